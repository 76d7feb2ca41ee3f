package httpkit

import (
	"context"
	"sync"
	"time"

	"puntuale"
)

// Lane says what a call is for, and so who goes first.
type Lane int

const (
	LanePrevent Lane = iota // keeps messages from being sent: goes first and is refused last
	LaneWrite               // changes something
	LaneRead                // changes nothing, and may hold a quarter of the places
	lanes
)

// Bounds of what waits. A call waits at most until its admission deadline (its patience), in all places together. A
// call that prevents sends may wait longer. If a caller's oldest waiting call has used a part of its time already, the
// caller's next call is refused at once. It would not get a place in time either.
const (
	usualPatience  = 2 * time.Second
	preventTimes   = 5
	impatientAfter = 8 // a part of the patience

	waitersPerPlace = 8 // at most so many calls wait for each place
	leastWaiters    = 4 // of one share, however many others wait
)

// GateConfig is what [NewGate] needs.
type GateConfig struct {
	Places   int           // calls at work at once
	Patience time.Duration // for which a call waits at most, one that prevents sends five times as long; 0: 2 s
	Now      func() time.Time
	Refused  func(reason string)   // told of each refusal; nil: nobody counts
	Waited   func(d time.Duration) // told of each call that had to wait; nil likewise
}

// Gate bounds the calls that are worked on at once to so many as can be answered soon. The others wait in turn for a
// short time. No caller holds more places than are free besides, so the next caller always finds one. Waiting callers
// are admitted by turns. Safe for concurrent use; a nil Gate admits all.
type Gate struct {
	cfg     GateConfig
	reserve int // places beyond for what prevents

	mu      sync.Mutex
	inside  int
	reading int // of inside
	waiting int
	shares  map[Share]*share
	rings   [lanes][]*share // whose calls wait, the next first
	turn    int             // counts who was let in from waiting
	tally   tally
}

// share is one caller's part; it is forgotten when it has none.
type share struct {
	Share
	calls                    int // from Enter to Leave
	inside, reading, waiting int
	queues                   [lanes][]*waiter
}

type waiter struct {
	since time.Time
	ready chan struct{}
	in    bool
}

// NewGate returns a gate with nobody inside.
func NewGate(cfg GateConfig) *Gate {
	if cfg.Refused == nil {
		cfg.Refused = func(string) {}
	}
	if cfg.Patience <= 0 {
		cfg.Patience = usualPatience
	}
	if cfg.Waited == nil {
		cfg.Waited = func(time.Duration) {}
	}
	return &Gate{cfg: cfg, reserve: max(4, cfg.Places/8), shares: map[Share]*share{}}
}

// Pass is one call's, from Enter to Leave. Its methods take nil, which a nil Gate gives.
type Pass struct {
	gate  *Gate
	share *share
	lane  Lane
	in    bool
	ends  context.Context
	stop  context.CancelFunc
}

// Enter waits for a place. The context that it returns holds the call's patience. Codes: overloaded; rate_limited when
// it is the same caller's other calls that are too many.
func (g *Gate) Enter(ctx context.Context, who Share, lane Lane) (*Pass, context.Context, error) {
	if g == nil {
		return nil, ctx, nil
	}
	p := &Pass{gate: g, lane: lane}
	p.begin(ctx)
	g.mu.Lock()
	p.share = g.shares[who]
	if p.share == nil {
		p.share = &share{Share: who}
		g.shares[who] = p.share
	}
	p.share.calls++
	if err := p.enter(ctx, false); err != nil {
		p.Leave()
		return nil, ctx, err
	}
	return p, p.patient(ctx), nil
}

// begin starts the time of the call's patience.
func (p *Pass) begin(ctx context.Context) {
	within := p.gate.cfg.Patience
	if p.lane == LanePrevent {
		within *= preventTimes
	}
	p.ends, p.stop = context.WithTimeout(context.WithoutCancel(ctx), within)
}

func (p *Pass) patient(ctx context.Context) context.Context {
	return puntuale.WithPatience(ctx, puntuale.NewPatience(p.ends.Done(), p.lane == LanePrevent))
}

// Rest gives the place back while the call's body is on its way, which may take long.
func (p *Pass) Rest() {
	if p == nil || !p.in {
		return
	}
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	p.gate.release(p)
}

// Return takes a place again, before the same caller's calls that have had none yet. The patience, which the context that it
// returns holds, begins anew, because the time of the body must not count as waiting for the server. Codes: as Enter.
func (p *Pass) Return(ctx context.Context) (context.Context, error) {
	if p == nil {
		return ctx, nil
	}
	p.stop()
	p.begin(ctx)
	p.gate.mu.Lock()
	if err := p.enter(ctx, true); err != nil {
		return ctx, err
	}
	return p.patient(ctx), nil
}

// Leave ends the call.
func (p *Pass) Leave() {
	if p == nil {
		return
	}
	p.stop()
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(p)
	if p.share.calls--; p.share.calls == 0 {
		delete(g.shares, p.share.Share)
	}
}

// Load is what a gate holds at the moment.
type Load struct {
	Inside, Waiting int
}

// Load returns what the gate holds.
func (g *Gate) Load() Load {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Load{g.inside, g.waiting}
}

// Overloaded counts a refusal that was made behind the gate, and returns the time after which the caller should come
// again.
func (g *Gate) Overloaded(reason string) time.Duration {
	if g == nil {
		return time.Second
	}
	g.cfg.Refused(reason)
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tally.refused(g.cfg.Now())
}

// enter takes a place or waits for one. g.mu is held, and free afterwards.
func (p *Pass) enter(ctx context.Context, again bool) error {
	g := p.gate
	if len(p.share.queues[p.lane]) == 0 && g.mayEnter(p.share, p.lane) {
		g.admit(p)
		g.mu.Unlock()
		return nil
	}
	now := g.cfg.Now()
	if !again && g.crowded(p.share, p.lane, now) {
		err := g.refuse(p.share, "calls")
		g.mu.Unlock()
		return err
	}
	w := &waiter{since: now, ready: make(chan struct{})}
	g.queue(p, w, again)
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
	if w.in { // perhaps at the last moment
		p.in = true
		return nil
	}
	g.unqueue(p, w)
	if puntuale.CodeOf(err) == puntuale.CodeOverloaded {
		return g.refuse(p.share, "calls")
	}
	return err
}

// free is how many places are left in a lane, and how many of them the share holds.
func (g *Gate) free(s *share, lane Lane) (left, own int) {
	switch lane {
	case LanePrevent:
		return g.cfg.Places + g.reserve - g.inside, s.inside
	case LaneRead:
		return min(g.cfg.Places-g.inside, max(1, g.cfg.Places/4)-g.reading), s.reading
	default:
		return g.cfg.Places - g.inside, s.inside
	}
}

func (g *Gate) mayEnter(s *share, lane Lane) bool {
	left, own := g.free(s, lane)
	return left > 0 && own < max(1, left)
}

func (g *Gate) admit(p *Pass) {
	p.in = true
	g.count(p.share, p.lane, 1)
	g.tally.admitted(g.cfg.Now())
}

func (g *Gate) count(s *share, lane Lane, n int) {
	g.inside += n
	s.inside += n
	if lane == LaneRead {
		g.reading += n
		s.reading += n
	}
}

// crowded reports whether one more of the share's calls would wait too long. For a call that prevents sends it does not
// count the caller's other waiting calls.
func (g *Gate) crowded(s *share, lane Lane, now time.Time) bool {
	q, most := s.queues[lane], waitersPerPlace*g.cfg.Places
	if lane == LanePrevent {
		return len(q) >= most
	}
	return s.waiting >= max(leastWaiters, most-g.waiting) || len(q) > 0 && now.Sub(q[0].since) > g.cfg.Patience/impatientAfter
}

func (g *Gate) queue(p *Pass, w *waiter, first bool) {
	s := p.share
	if len(s.queues[p.lane]) == 0 {
		g.rings[p.lane] = append(g.rings[p.lane], s)
	}
	if q := s.queues[p.lane]; first {
		s.queues[p.lane] = append([]*waiter{w}, q...)
	} else {
		s.queues[p.lane] = append(q, w)
	}
	s.waiting++
	g.waiting++
}

// unqueue removes a waiter that was not admitted.
func (g *Gate) unqueue(p *Pass, w *waiter) {
	q := p.share.queues[p.lane]
	for i := range q {
		if q[i] == w {
			p.share.queues[p.lane] = append(q[:i:i], q[i+1:]...)
			g.left(p.share, p.lane)
			return
		}
	}
}

// left notes that one of the share waits no more.
func (g *Gate) left(s *share, lane Lane) {
	s.waiting--
	g.waiting--
	if len(s.queues[lane]) > 0 {
		return
	}
	for i, other := range g.rings[lane] {
		if other == s {
			g.rings[lane] = append(g.rings[lane][:i:i], g.rings[lane][i+1:]...)
			return
		}
	}
}

// release gives a place back and lets in the next caller.
func (g *Gate) release(p *Pass) {
	if !p.in {
		return
	}
	p.in = false
	g.count(p.share, p.lane, -1)
	for g.letIn() {
	}
}

// letIn admits one of the waiting calls: first calls that prevent, then three that write for each one that reads.
func (g *Gate) letIn() bool {
	g.turn++
	order := [...]Lane{LanePrevent, LaneWrite, LaneRead}
	if g.turn%4 == 0 {
		order = [...]Lane{LanePrevent, LaneRead, LaneWrite}
	}
	for _, lane := range order {
		ring := g.rings[lane]
		for i, s := range ring {
			if !g.mayEnter(s, lane) {
				continue
			}
			w := s.queues[lane][0]
			s.queues[lane] = s.queues[lane][1:]
			w.in = true
			g.rings[lane] = append(append(ring[:i:i], ring[i+1:]...), s) // to the end
			g.left(s, lane)
			g.count(s, lane, 1)
			g.tally.admitted(g.cfg.Now())
			close(w.ready)
			return true
		}
	}
	return false
}

const faultCallTooManyAtOnce puntuale.ReasonCode = "call.too_many_at_once"

// refuse makes the refusal of one of the share's calls.
func (g *Gate) refuse(s *share, reason string) error {
	err := puntuale.Overloaded(g.tally.refused(g.cfg.Now()))
	if s.Share != (Share{}) && 2*(s.inside+s.waiting) > g.inside+g.waiting {
		err.Code, err.Reason = puntuale.CodeRateLimited, puntuale.Because(faultCallTooManyAtOnce)
		reason = "caller"
	}
	g.cfg.Refused(reason)
	return err
}
