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
	session puntuale.SessionID
	clock   clock.Clock
	log     *slog.Logger
	report  func(puntuale.LinkReport)
	pairs   *pairs

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
	pausedUntil time.Time                               // no message leaves before this time
	restricted  bool                                    // the pause began because Meta restricts the number
	holds       map[pauseSubject]puntuale.OfficialPause // what the store has for the templates, categories and countries of late messages
	orders      []puntuale.OfficialPause                // what Meta's restrictions demand; never changed in place
	ordered     bool                                    // pausedUntil comes from orders
	confirmed   time.Time                               // when Meta was last asked whether its reports are true
	ends        time.Time                               // the latest end of a reported restriction; zero: none
	slowUntil   time.Time
	slowFor     time.Duration
	reach       *recipientCount // counts the persons addressed by the number, or by all numbers of the business that the keys name
	loaded      bool            // reach includes the persons that the number addressed before this node opened the session
	direct      bool            // the store knows that Meta takes messages by Direct Send
	optIn       time.Time       // when Meta was last told that it may change how marketing looks
	synced      time.Time       // the last time at which a read of the templates began
}

func (c *Connector) newAccount(s puntuale.Session) *account {
	a := &account{
		session: s.ID, client: s.Client, clock: c.cfg.Clock, report: c.cfg.Report, pairs: newPairs(), reach: newReach(),
		log:  c.cfg.Logger.With("session_id", int64(s.ID)),
		wake: make(chan struct{}, 1), asking: make(chan struct{}, 1), calling: make(chan struct{}, 1), ended: make(chan struct{}), holds: map[pauseSubject]puntuale.OfficialPause{},
		state: s.LinkOf(), number: s.Link.Number,
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

// enter waits until no status check of the session runs. The caller must call leave.
func (a *account) enter(ctx context.Context) (leave func(), err error) {
	select {
	case a.asking <- struct{}{}:
		return func() { <-a.asking }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// mayOptIn reports whether it is time to tell Meta again that it may change how marketing looks.
func (a *account) mayOptIn() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	due := now.Sub(a.optIn) >= pauseTime
	if due {
		a.optIn = now
	}
	return due
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

// noCode stands for the code of a pause that no refusal caused.
const noCode = -1

// pause is hold for all but the status check, which must know of the pause.
func (a *account) pause(state puntuale.LinkState, reason puntuale.ReasonCode, code int, until time.Time) {
	a.hold(state, reason, code, until)
	ring(a.wake)
}

// hold stops all messages of the number until the given time. It reports the reason, which people read. It does not wake the
// status check: a check that woke itself would run without end while the number is paused.
func (a *account) hold(state puntuale.LinkState, reason puntuale.ReasonCode, code int, until time.Time) {
	now := a.clock.Now()
	if !now.Before(until) {
		return
	}
	a.mu.Lock()
	first := !now.Before(a.pausedUntil)
	a.pausedUntil = until
	a.restricted = state == puntuale.LinkLinked && reason != reasonNumber && reason != reasonQuota && reason != reasonMaintenance
	a.mu.Unlock()
	if first {
		a.log.Error("Meta refuses what a number sends; it is held back", "code", code, "for", until.Sub(now))
	}
	detail := puntuale.Because(reason)
	if code != noCode {
		detail = withCode(detail, code)
	}
	a.set(state, detail)
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

// release ends the pauses of the number, and makes the memory forget what Meta's refusals hold back.
func (a *account) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pausedUntil, a.slowUntil, a.slowFor, a.synced, a.confirmed = time.Time{}, time.Time{}, 0, time.Time{}, time.Time{}
	clear(a.holds)
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
// reconsider starts no check.
func (a *account) reconsider() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clock.Now().Sub(a.synced) >= syncSoonest {
		a.synced = time.Time{}
		ring(a.wake)
	}
}

// origin returns the session with its client and its business.
func (a *account) origin() origin {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := origin{session: a.session, client: a.client}
	if a.keys != nil {
		o.account = a.keys.BusinessAccountID
	}
	return o
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

func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// look starts a status check, which reads what Meta reported and the templates.
func (a *account) look() {
	a.reconsider()
	ring(a.wake)
}

// obeys replaces what Meta's restrictions demand of the session.
func (a *account) obeys(orders []puntuale.OfficialPause, gone bool, now time.Time) {
	a.mu.Lock()
	before := a.ordered
	a.orders, a.ordered = orders, false
	for _, p := range orders {
		a.ordered = a.ordered || p.Kind == puntuale.PauseNumber
	}
	if before && !a.ordered {
		a.pausedUntil = time.Time{}
	}
	a.mu.Unlock()
	state := puntuale.LinkLinked
	if gone {
		state = puntuale.LinkUnlinked
	}
	for _, p := range orders {
		if p.Kind == puntuale.PauseNumber {
			a.hold(state, p.Reason, noCode, now.Add(min(p.Until.Sub(now), lookAgain)))
			return
		}
	}
}

// restrictionEnd returns when Meta's restriction of the number ends, or the zero time if none is known.
func (a *account) restrictionEnd() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ends
}

// ordersNow returns what Meta's restrictions demand.
func (a *account) ordersNow() []puntuale.OfficialPause {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.orders
}
