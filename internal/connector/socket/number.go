//go:build !nosocket

package socket

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"go.mau.fi/whatsmeow"

	"puntuale"
)

// number is one open session. All changes of its state happen under its lock, and no code waits while it holds the
// lock. Each login and each pairing runs in a goroutine. The goroutine's results are ignored once the next login or
// pairing begins.
type number struct {
	c      *Connector
	id     puntuale.SessionID
	client puntuale.ClientID
	log    *slog.Logger

	ctx    context.Context // when ctx ends, the connections close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	looked chan struct{} // closed once the number's state is known: linked, not linked, or being linked
	slot   chan struct{} // full while a message is sent, or while a connection is replaced

	coldContacts *coldContactLimiter
	people       *personDirectory
	files        *files
	online       atomic.Bool

	mu      sync.Mutex
	closed  bool
	state   linkMachine
	shown   puntuale.LinkReport
	epoch   int                // counts the logins and pairings; results of an earlier epoch are ignored
	end     context.CancelFunc // ends the login or pairing under way
	settled chan struct{}      // closed once a login succeeded or failed
	cli     *whatsmeow.Client  // the client that is connected or connecting
	unheard unansweredMessage
}

func (c *Connector) newNumber(s puntuale.Session) *number {
	n := &number{
		c: c, id: s.ID, client: s.Client, log: c.cfg.Logger.With("session_id", int64(s.ID)),
		slot: make(chan struct{}, 1), end: func() {}, settled: make(chan struct{}), looked: make(chan struct{}),
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.coldContacts = newColdContactLimiter(n, s)
	n.people = newPeople(n)
	n.files = newFiles()
	n.state.link.Session = s.ID
	return n
}

// apply changes the state, reports the new state and acts on it. If epoch is over, apply does nothing and returns
// false.
func (n *number) apply(epoch int, change func(m *linkMachine)) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.epoch != epoch {
		return false
	}
	n.change(change)
	return true
}

// change does the same as apply without checking the epoch. The caller holds the lock.
func (n *number) change(change func(m *linkMachine)) {
	change(&n.state)
	n.markKnown()
	if n.state.moved {
		n.state.moved = false
		n.act()
	}
	n.online.Store(n.state.link.State == puntuale.LinkOnline && n.cli != nil)
	n.report()
}

// act starts the work that the new state needs. The caller holds the lock.
func (n *number) act() {
	select {
	case <-n.settled:
	default:
		close(n.settled)
	}
	switch link := n.state.link; {
	case !n.state.next.IsZero():
		at := n.state.next
		n.settled = make(chan struct{})
		n.begin(func(ctx context.Context, epoch int) { n.login(ctx, epoch, at) })
	case link.Condition == puntuale.Outdated:
		n.begin(n.awaitVersion)
	case link.State == puntuale.LinkOnline, link.State == puntuale.LinkPairing:
		// The login or pairing under way continues.
	default:
		n.begin(func(context.Context, int) {})
	}
}

// report reports the state if it changed. The caller holds the lock.
func (n *number) report() {
	if n.state.link.Equal(n.shown) {
		return
	}
	before := puntuale.Link{State: n.shown.State, Condition: n.shown.Condition}
	link := puntuale.Link{State: n.state.link.State, Condition: n.state.link.Condition}
	if before.Word() != link.Word() {
		n.log.Info("a number's state changed", "state", link.Word())
	}
	n.shown = n.state.link
	n.c.cfg.Report(n.shown)
}

// markKnown records that the number's state is known. The caller holds the lock.
func (n *number) markKnown() {
	select {
	case <-n.looked:
	default:
		close(n.looked)
	}
}

// begin ends the work under way and its client. Then it starts do in a new epoch. The caller holds the lock.
func (n *number) begin(do func(ctx context.Context, epoch int)) {
	n.end()
	n.epoch++
	ctx, cancel := context.WithCancel(n.ctx)
	n.end = cancel
	old, epoch := n.cli, n.epoch
	n.cli = nil
	n.online.Store(false)
	n.wg.Go(func() {
		n.quit(old)
		do(ctx, epoch)
	})
}

// quit ends a client's connection. If a goroutine is sending through the client, that goroutine gets an error
// immediately, and quit waits until this send has ended.
func (n *number) quit(old *whatsmeow.Client) {
	if old == nil {
		return
	}
	old.Disconnect()
	n.slot <- struct{}{}
	<-n.slot
}

// connected returns the client to send with, or nil if the number is not online.
func (n *number) connected() *whatsmeow.Client {
	if !n.online.Load() {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.online.Load() {
		return nil
	}
	return n.cli
}

// close ends all work of the number. After close returns, the number reports and sends nothing. When ctx ends, close
// cuts the connection without waiting.
func (n *number) close(ctx context.Context) {
	n.mu.Lock()
	n.closed = true
	n.end()
	old := n.cli
	n.cli = nil
	n.online.Store(false)
	n.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.quit(old)
		n.wg.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	n.cancel()
}
