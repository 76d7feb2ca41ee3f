package admission

import (
	"context"
	"sync"
	"time"

	"puntuale"
)

// Priority is the urgency of a call. The gate admits calls in the order of their priority.
type Priority int

const (
	PriorityPrevent Priority = iota // the call prevents sends, such as a stop: it is admitted first and refused last
	PriorityWrite                   // the call changes something
	PriorityRead                    // the call changes nothing; all these calls together may use a quarter of the seats
	priorities
)

// Bounds of waiting. A call may wait until its admission deadline, in all parts of the server together. A call that
// prevents sends may wait longer. If a caller's oldest waiting call has waited too long (see earlyRefusalPart), the
// caller's next call would not get a seat in time. The gate refuses this next call immediately.
const (
	usualDeadline    = 2 * time.Second
	preventTimes     = 5
	earlyRefusalPart = 8 // the caller's next call is refused if the oldest one has waited more than an eighth of the longest wait

	waitersPerSeat = 8 // the largest number of waiting calls for each seat
	minWaiters     = 4 // the number of calls of one caller that may wait in any case
)

// GateConfig configures [NewGate].
type GateConfig struct {
	Seats       int           // how many calls may be executed at the same time
	LongestWait time.Duration // the longest wait of a call; 0: 2 s. A call that prevents sends may wait five times as long.
	Now         func() time.Time
	Refused     func(reason string)   // called for each refusal; may be nil
	Waited      func(d time.Duration) // called for each call that had to wait, with the time that it waited; may be nil
}

// Gate bounds how many calls are executed at the same time, so that each call is answered soon. The other calls wait
// for a short time. A caller gets a further seat only while it has fewer seats than are free. So a busy caller leaves
// seats for others. The gate admits waiting callers in rotation, one call of each. Many goroutines may call its methods
// at the same time. A nil Gate admits all calls.
type Gate struct {
	cfg     GateConfig
	reserve int // additional seats for calls that prevent sends

	mu      sync.Mutex
	inside  int
	reading int // how many of the admitted calls have PriorityRead
	waiting int
	callers map[CallerKey]*caller
	queues  [priorities][]*caller // for each priority: the callers with waiting calls, the next caller first
	rounds  int                   // how many times a waiting call was admitted
	tally   tally
}

// caller is the gate's record of a caller with running or waiting calls. It is deleted when the caller has no calls.
type caller struct {
	CallerKey
	calls                    int // how many of the caller's calls are between Enter and Leave
	inside, reading, waiting int
	waiters                  [priorities][]*waiter
}

type waiter struct {
	since time.Time
	ready chan struct{}
	in    bool
}

// NewGate returns an empty gate.
func NewGate(cfg GateConfig) *Gate {
	if cfg.Refused == nil {
		cfg.Refused = func(string) {}
	}
	if cfg.LongestWait <= 0 {
		cfg.LongestWait = usualDeadline
	}
	if cfg.Waited == nil {
		cfg.Waited = func(time.Duration) {}
	}
	return &Gate{cfg: cfg, reserve: max(4, cfg.Seats/8), callers: map[CallerKey]*caller{}}
}

// Permit is the right of one call to be executed, from Enter to Leave. A nil Gate returns a nil Permit, and all methods
// accept a nil Permit.
type Permit struct {
	gate     *Gate
	caller   *caller
	priority Priority
	in       bool
	ends     context.Context
	stop     context.CancelFunc
}

// Enter waits for a seat. The returned context has the call's admission deadline. Codes: overloaded; rate_limited if
// the same caller has too many other calls.
func (g *Gate) Enter(ctx context.Context, who CallerKey, priority Priority) (*Permit, context.Context, error) {
	if g == nil {
		return nil, ctx, nil
	}
	p := &Permit{gate: g, priority: priority}
	p.begin(ctx)
	g.mu.Lock()
	p.caller = g.callers[who]
	if p.caller == nil {
		p.caller = &caller{CallerKey: who}
		g.callers[who] = p.caller
	}
	p.caller.calls++
	if err := p.enter(ctx, false); err != nil {
		p.Leave()
		return nil, ctx, err
	}
	return p, p.patient(ctx), nil
}

// begin starts the time until the call's admission deadline.
func (p *Permit) begin(ctx context.Context) {
	within := p.gate.cfg.LongestWait
	if p.priority == PriorityPrevent {
		within *= preventTimes
	}
	p.ends, p.stop = context.WithTimeout(context.WithoutCancel(ctx), within)
}

func (p *Permit) patient(ctx context.Context) context.Context {
	return puntuale.WithAdmissionDeadline(ctx, puntuale.NewAdmissionDeadline(p.ends.Done(), p.priority == PriorityPrevent).WithSeat(p.LeaveSeat))
}

// LeaveSeat returns the call's seat to the gate, for example while the call's body arrives, because this may take long.
func (p *Permit) LeaveSeat() {
	if p == nil || !p.in {
		return
	}
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	p.gate.release(p)
}

// Return takes a seat again. The call goes before those calls of the same caller that have had no seat yet. The
// returned context has a new admission deadline, because the time in which the body arrived must not count as waiting.
// Codes: the same as Enter.
func (p *Permit) Return(ctx context.Context) (context.Context, error) {
	if p == nil {
		return ctx, nil
	}
	p.LeaveSeat() // a call that still has its seat must not take a second one
	p.stop()
	p.begin(ctx)
	p.gate.mu.Lock()
	if err := p.enter(ctx, true); err != nil {
		return ctx, err
	}
	return p.patient(ctx), nil
}

// Leave ends the call, and returns its seat to the gate.
func (p *Permit) Leave() {
	if p == nil {
		return
	}
	p.stop()
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(p)
	if p.caller.calls--; p.caller.calls == 0 {
		delete(g.callers, p.caller.CallerKey)
	}
}

// Load is the number of calls that have a seat, and of calls that wait for one.
type Load struct {
	Inside, Waiting int
}

// Load returns the gate's current load.
func (g *Gate) Load() Load {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Load{g.inside, g.waiting}
}

// Overloaded counts a refusal that a part behind the gate made. It returns how long the caller should wait before the
// next try.
func (g *Gate) Overloaded(reason string) time.Duration {
	if g == nil {
		return time.Second
	}
	g.cfg.Refused(reason)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tally.refused(g.cfg.Now())
}

// enter takes a seat, or waits for one. Its caller must hold g.mu; enter unlocks it.
func (p *Permit) enter(ctx context.Context, repeat bool) error {
	g := p.gate
	if len(p.caller.waiters[p.priority]) == 0 && g.mayEnter(p.caller, p.priority) {
		g.admit(p)
		g.mu.Unlock()
		return nil
	}
	now := g.cfg.Now()
	if !repeat && g.crowded(p.caller, p.priority, now) {
		err := g.refuse(p.caller, "calls")
		g.mu.Unlock()
		return err
	}
	w := &waiter{since: now, ready: make(chan struct{})}
	g.queue(p, w, repeat)
	g.mu.Unlock()
	var err error
	select {
	case <-w.ready:
	case <-p.ends.Done():
		err = puntuale.Overloaded(0)
	case <-ctx.Done():
		err = ctx.Err()
	}
	g.cfg.Waited(g.cfg.Now().Sub(now))
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.in { // the call may have been admitted just before its time ended
		p.in = true
		return nil
	}
	g.unqueue(p, w)
	if puntuale.CodeOf(err) == puntuale.CodeOverloaded {
		return g.refuse(p.caller, "calls")
	}
	return err
}

// free returns how many seats are free for calls of a priority, and how many seats the caller has. For PriorityRead,
// both numbers concern only the seats for reading.
func (g *Gate) free(c *caller, priority Priority) (left, own int) {
	switch priority {
	case PriorityPrevent:
		return g.cfg.Seats + g.reserve - g.inside, c.inside
	case PriorityRead:
		return min(g.cfg.Seats-g.inside, max(1, g.cfg.Seats/4)-g.reading), c.reading
	default:
		return g.cfg.Seats - g.inside, c.inside
	}
}

func (g *Gate) mayEnter(c *caller, priority Priority) bool {
	left, own := g.free(c, priority)
	return left > 0 && own < max(1, left)
}

func (g *Gate) admit(p *Permit) {
	p.in = true
	g.count(p.caller, p.priority, 1)
	g.tally.admitted(g.cfg.Now())
}

func (g *Gate) count(c *caller, priority Priority, n int) {
	g.inside += n
	c.inside += n
	if priority == PriorityRead {
		g.reading += n
		c.reading += n
	}
}

// crowded reports whether a further call of this caller would wait too long. For a call that prevents sends, crowded
// counts only the caller's waiting calls of this priority.
func (g *Gate) crowded(c *caller, priority Priority, now time.Time) bool {
	q, limit := c.waiters[priority], waitersPerSeat*g.cfg.Seats
	if priority == PriorityPrevent {
		return len(q) >= limit
	}
	return c.waiting >= max(minWaiters, limit-g.waiting) || len(q) > 0 && now.Sub(q[0].since) > g.cfg.LongestWait/earlyRefusalPart
}

func (g *Gate) queue(p *Permit, w *waiter, first bool) {
	c := p.caller
	if len(c.waiters[p.priority]) == 0 {
		g.queues[p.priority] = append(g.queues[p.priority], c)
	}
	if q := c.waiters[p.priority]; first {
		c.waiters[p.priority] = append([]*waiter{w}, q...)
	} else {
		c.waiters[p.priority] = append(q, w)
	}
	c.waiting++
	g.waiting++
}

// unqueue removes a waiting call that was not admitted.
func (g *Gate) unqueue(p *Permit, w *waiter) {
	q := p.caller.waiters[p.priority]
	for i := range q {
		if q[i] == w {
			p.caller.waiters[p.priority] = append(q[:i:i], q[i+1:]...)
			g.noteLeft(p.caller, p.priority)
			return
		}
	}
}

// noteLeft records that one call of the caller no longer waits.
func (g *Gate) noteLeft(c *caller, priority Priority) {
	c.waiting--
	g.waiting--
	if len(c.waiters[priority]) > 0 {
		return
	}
	for i, other := range g.queues[priority] {
		if other == c {
			g.queues[priority] = append(g.queues[priority][:i:i], g.queues[priority][i+1:]...)
			return
		}
	}
}

// release returns a seat to the gate, and admits the next waiting call.
func (g *Gate) release(p *Permit) {
	if !p.in {
		return
	}
	p.in = false
	g.count(p.caller, p.priority, -1)
	for g.letIn() {
	}
}

// letIn admits one of the waiting calls. It returns false if no waiting call may have a seat. Calls that prevent sends
// come first. After them, about three calls that write are admitted for each call that reads.
func (g *Gate) letIn() bool {
	g.rounds++
	order := [...]Priority{PriorityPrevent, PriorityWrite, PriorityRead}
	if g.rounds%4 == 0 {
		order = [...]Priority{PriorityPrevent, PriorityRead, PriorityWrite}
	}
	for _, priority := range order {
		queue := g.queues[priority]
		for i, c := range queue {
			if !g.mayEnter(c, priority) {
				continue
			}
			w := c.waiters[priority][0]
			c.waiters[priority] = c.waiters[priority][1:]
			w.in = true
			g.queues[priority] = append(append(queue[:i:i], queue[i+1:]...), c) // the caller goes to the end of the queue
			g.noteLeft(c, priority)
			g.count(c, priority, 1)
			g.tally.admitted(g.cfg.Now())
			close(w.ready)
			return true
		}
	}
	return false
}

// refuse returns the error for one refused call of the caller.
func (g *Gate) refuse(c *caller, reason string) error {
	err := puntuale.Overloaded(g.tally.refused(g.cfg.Now()))
	if c.CallerKey != (CallerKey{}) && 2*(c.inside+c.waiting) > g.inside+g.waiting {
		err.Code, err.Reason = puntuale.CodeRateLimited, puntuale.Because(puntuale.FaultCallTooManyAtOnce)
		reason = "caller"
	}
	g.cfg.Refused(reason)
	return err
}
