package sendapp

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"puntuale"
)

// account is one open session: its keys, and how far it is from sending.
type account struct {
	session puntuale.SessionID
	c       *Connector
	log     *slog.Logger

	ctx    context.Context // the context of work that the connector starts by itself for the session
	cancel context.CancelFunc
	wake   chan struct{}  // asks for a status check now
	work   sync.WaitGroup // goroutines that run under ctx
	asking sync.Mutex     // one goroutine at a time asks the gateway about the link

	mu     sync.Mutex
	client puntuale.ClientID
	keys   *puntuale.GatewayKeys // nil: none, or not read yet
	closed bool
	state  puntuale.LinkState
	number string
	held   time.Time          // no message leaves before this moment
	unpair context.CancelFunc // ends the pairing under way; nil: there is none
	hooked hook               // the webhook that the connector set at the gateway since the session was opened
}

// hook is a webhook at a gateway.
type hook struct{ base, instance, address string }

func (c *Connector) newAccount(s puntuale.Session) *account {
	a := &account{
		session: s.ID, c: c, log: c.cfg.Logger.With("session_id", int64(s.ID)),
		wake: make(chan struct{}, 1), client: s.Client, state: s.LinkOf(), number: s.Link.Number,
	}
	if a.state == puntuale.LinkPairing { // the pairing ran on another node, and is over
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

// access returns the keys that a message needs to leave. It returns false when the session cannot send now.
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

// set notes whether the session can send, and if not, why. An empty why means that all is well. set reports the new
// state to the server.
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

// linked reports whether the session was linked when it was last looked at.
func (a *account) linked() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state == puntuale.LinkOnline || a.state == puntuale.LinkLinked
}

// wait holds back all messages of the session for a time.
func (a *account) wait(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = a.c.cfg.Clock.Now().Add(d)
}

// noteDown notes that the gateway refuses the number, and asks for a status check of it.
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

// close ends everything that runs for the session.
func (a *account) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.cancel()
}
