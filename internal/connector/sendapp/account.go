package sendapp

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"puntuale"
)

// account is one open session, with its keys and its state.
type account struct {
	session puntuale.SessionID
	c       *Connector
	log     *slog.Logger

	ctx    context.Context // the context of the connector's own work for the session
	cancel context.CancelFunc
	wake   chan struct{}  // a value in this channel requests a status check now
	work   sync.WaitGroup // goroutines that run under ctx
	asking chan struct{}  // full while busy: at most one goroutine asks the gateway about the link

	mu     sync.Mutex
	client puntuale.ClientID
	keys   *puntuale.GatewayKeys // nil: the session has no keys, or they were not read yet
	closed bool
	state  puntuale.LinkState
	number string
	held   time.Time          // no message leaves before this time
	unpair context.CancelFunc // ends the pairing under way; nil: no pairing
	hooked hook               // the webhook that the connector set at the gateway while the session was open
}

// hook is a webhook at a gateway.
type hook struct{ base, instance, address string }

func (c *Connector) newAccount(s puntuale.Session) *account {
	a := &account{
		session: s.ID, c: c, log: c.cfg.Logger.With("session_id", int64(s.ID)),
		wake: make(chan struct{}, 1), asking: make(chan struct{}, 1), client: s.Client, state: s.LinkOf(), number: s.Link.Number,
	}
	if a.state == puntuale.LinkPairing { // the pairing ran on another node and has ended
		a.state = puntuale.LinkUnlinked
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

func (a *account) online(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.closed && a.keys != nil && a.keys.InstanceID != "" && a.state == puntuale.LinkOnline && !now.Before(a.held)
}

// access returns the keys for sending a message. It returns false if the session cannot send now.
func (a *account) access(now time.Time) (puntuale.GatewayKeys, bool) {
	if !a.online(now) {
		return puntuale.GatewayKeys{}, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.keys == nil {
		return puntuale.GatewayKeys{}, false
	}
	return *a.keys, true
}

// set changes the session's state and the reason for it, and reports both to the server. An empty reason means that all
// is well.
func (a *account) set(state puntuale.LinkState, reason puntuale.ReasonCode) {
	a.report(puntuale.LinkReport{State: state, Detail: puntuale.Because(reason)})
}

func (a *account) report(r puntuale.LinkReport) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.state, r.Session = r.State, a.session
	if r.State == puntuale.LinkOnline || r.State == puntuale.LinkLinked {
		r.Number = a.number
	}
	a.c.cfg.Report(r)
}

// linked reports whether the session was linked at the last status check.
func (a *account) linked() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state == puntuale.LinkOnline || a.state == puntuale.LinkLinked
}

// wait stops all messages of the session for the duration d.
func (a *account) wait(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = a.c.cfg.Clock.Now().Add(d)
}

// noteDown records that the gateway refuses the number, and requests a status check.
func (a *account) noteDown(state puntuale.LinkState, reason puntuale.ReasonCode) {
	a.set(state, reason)
	a.lookNow()
}

func (a *account) lookNow() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// close ends the session's goroutines. After close, the session reports nothing.
func (a *account) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.cancel()
}
