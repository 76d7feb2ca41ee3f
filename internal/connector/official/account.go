package official

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// account is one open session, with its keys, its state and its limits.
type account struct {
	session         puntuale.SessionID
	clock           clock.Clock
	log             *slog.Logger
	report          func(puntuale.LinkReport)
	pairs           *pairs
	marketingPauses marketingPause
	unreachable     unreachable

	ctx     context.Context // the context of the connector's own work
	cancel  context.CancelFunc
	wake    chan struct{}
	ended   chan struct{}
	calling chan struct{} // full while finishTemplates runs
	asking  chan struct{} // full while busy: at most one goroutine runs checkStatus

	mu          sync.Mutex
	client      puntuale.ClientID
	keys        *puntuale.OfficialKeys // nil: the session has no keys, or they were not read yet
	closed      bool
	state       puntuale.LinkState
	number      string
	detail      puntuale.Reason
	pausedUntil time.Time // no message leaves before this time
	restricted  bool      // the pause began because Meta restricts the number
	templates   map[string]pausedTemplate
	slowUntil   time.Time
	slowFor     time.Duration
	reach       *recipientCount // counts the persons addressed by the number, or by all numbers of the business that the keys name
	loaded      bool            // reach includes the persons that the number addressed before this node opened the session
	synced      time.Time       // the last time at which a read of the templates began
}

// pausedTemplate says until when messages with a template must wait, and which error they get. The connector
// makes it after Meta refused a message with the template.
type pausedTemplate struct {
	pausedUntil time.Time
	refusal     *puntuale.SendError
}

func (c *Connector) newAccount(s puntuale.Session) *account {
	a := &account{
		session: s.ID, client: s.Client, clock: c.cfg.Clock, report: c.cfg.Report, pairs: newPairs(), reach: newReach(),
		log:  c.cfg.Logger.With("session_id", int64(s.ID)),
		wake: make(chan struct{}, 1), asking: make(chan struct{}, 1), calling: make(chan struct{}, 1), ended: make(chan struct{}), templates: map[string]pausedTemplate{},
		state: s.LinkOf(), number: s.Link.Number,
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

func (a *account) online(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.closed && a.keys != nil && a.loaded && a.state == puntuale.LinkOnline && !now.Before(a.pausedUntil)
}

// access returns the keys for requests to Meta. It returns false if the session cannot send now.
func (a *account) access(now time.Time) (puntuale.OfficialKeys, bool) {
	if !a.online(now) {
		return puntuale.OfficialKeys{}, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.keys == nil {
		return puntuale.OfficialKeys{}, false
	}
	return *a.keys, true
}

// persons returns the count of addressed persons. If the keys name a business, all numbers of the business share one
// count.
func (a *account) persons() *recipientCount {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reach
}

// set changes the session's state and its reason, and reports both to the server.
func (a *account) set(state puntuale.LinkState, detail puntuale.Reason) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// A closed account reports nothing. A pause may have begun after the request to Meta, so Meta's answer does not end the
	// pause.
	if a.closed || state == puntuale.LinkOnline && a.clock.Now().Before(a.pausedUntil) {
		return
	}
	a.state, a.detail = state, detail
	r := puntuale.LinkReport{Session: a.session, State: state, Detail: detail}
	r.Restricted = state == puntuale.LinkLinked && a.restricted && a.clock.Now().Before(a.pausedUntil)
	if state != puntuale.LinkUnlinked {
		r.Number = a.number
	}
	a.report(r)
}

// pause stops all messages of the number for the duration wait. It reports the reason, which people read.
func (a *account) pause(state puntuale.LinkState, reason puntuale.ReasonCode, e *graphError, wait time.Duration) {
	now := a.clock.Now()
	a.mu.Lock()
	first := !now.Before(a.pausedUntil)
	a.pausedUntil = now.Add(wait)
	a.restricted = state == puntuale.LinkLinked && reason != reasonNumber
	a.mu.Unlock()
	if first {
		a.log.Error("Meta refuses what a number sends; it is held back", "code", e.Code, "for", wait)
	}
	a.set(state, e.withCode(puntuale.Because(reason)))
	ring(a.wake)
}

// pauseEnd returns when the number's pause ends, or the zero time if the number is not paused.
func (a *account) pauseEnd(now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Before(a.pausedUntil) {
		return a.pausedUntil
	}
	return time.Time{}
}

// release ends the pauses of the number and of its templates. It also forgets which persons Meta could not reach. It
// does not end the waits of single persons after too many messages or after a refused marketing message.
func (a *account) release() {
	a.unreachable.forget()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pausedUntil, a.slowUntil, a.slowFor, a.synced = time.Time{}, time.Time{}, 0, time.Time{}
	clear(a.templates)
}

// syncDue reports whether the caller must read the templates now. If so, syncDue sets the time of the last read to now.
func (a *account) syncDue(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.synced.IsZero() && now.Sub(a.synced) < syncEvery {
		return false
	}
	a.synced = now
	return true
}

// syncAgain makes the next status check read the templates.
func (a *account) syncAgain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.synced = time.Time{}
}

func (a *account) clientID() puntuale.ClientID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.client
}

// reconsider starts a status check, which reads the templates again. If they were read less than syncSoonest ago,
// reconsider starts no check. If valid is true, reconsider also ends the pause of the template with this key.
func (a *account) reconsider(key string, valid bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if valid {
		delete(a.templates, key)
	}
	if a.clock.Now().Sub(a.synced) >= syncSoonest {
		a.synced = time.Time{}
		ring(a.wake)
	}
}

// slowDown runs after Meta refused a message, because the number sends too fast. It returns how long the number must
// send nothing. The first pause is one second. Each further refusal doubles the pause, up to maxSlowWait.
func (a *account) slowDown(now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Before(a.slowUntil) { // several messages left before the pause began; their refusals count as one
		return a.slowUntil.Sub(now)
	}
	a.slowFor = min(max(time.Second, 2*a.slowFor), maxSlowWait)
	a.slowUntil = now.Add(a.slowFor)
	return a.slowFor
}

// accepted records that Meta accepted a message.
func (a *account) accepted(to string) {
	a.pairs.accepted(to)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.clock.Now().Before(a.slowUntil) {
		a.slowFor = 0
	}
}

func (a *account) pauseTemplate(name string, refusal *puntuale.SendError, heldUntil time.Time) {
	a.mu.Lock()
	_, known := a.templates[name]
	a.templates[name] = pausedTemplate{heldUntil, refusal}
	a.mu.Unlock()
	if !known {
		a.log.Error("Meta refuses a template; it is held back", "reason", string(refusal.Reason.Code))
		a.reconsider("", false) // Meta's list shows whether the template may be used again
	}
}

// mayUse returns why a template cannot be used now, or nil if it may be used.
func (a *account) mayUse(name string, now time.Time) *puntuale.SendError {
	a.mu.Lock()
	defer a.mu.Unlock()
	held, ok := a.templates[name]
	switch {
	case !ok:
		return nil
	case !now.Before(held.pausedUntil):
		delete(a.templates, name)
		return nil
	}
	return &puntuale.SendError{Kind: puntuale.Deferred, Reason: held.refusal.Reason, Detail: held.refusal.Detail, After: held.pausedUntil.Sub(now)}
}

func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
