package httpkit_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/httpkit"
)

var (
	strangers = httpkit.Share{}
	greedy    = httpkit.Share{Side: puntuale.ClientSide, ID: 1}
	modest    = httpkit.Share{Side: puntuale.ClientSide, ID: 2}
	third     = httpkit.Share{Side: puntuale.PartnerSide, ID: 1}
)

// hall is a gate with a clock that a test sets.
type hall struct {
	*httpkit.Gate
	t   *testing.T
	now atomic.Int64 // nanoseconds

	mu      sync.Mutex
	reasons []string
}

func newHall(t *testing.T, places int) *hall {
	h := &hall{t: t}
	h.Gate = httpkit.NewGate(httpkit.GateConfig{Places: places, Now: func() time.Time { return time.Unix(0, h.now.Load()) },
		Refused: func(reason string) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.reasons = append(h.reasons, reason)
		}})
	return h
}

// in lets one in that need not wait.
func (h *hall) in(who httpkit.Share, lane httpkit.Lane) *httpkit.Pass {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	p, _, err := h.Enter(ctx, who, lane)
	if err != nil {
		h.t.Fatalf("%+v, %d: %v", who, lane, err)
	}
	return p
}

type entered struct {
	name string
	pass *httpkit.Pass
	err  error
}

// queue lets one wait, and returns once it does.
func (h *hall) queue(name string, who httpkit.Share, lane httpkit.Lane, to chan<- entered) {
	h.t.Helper()
	before := h.Load().Waiting
	go func() {
		p, _, err := h.Enter(h.t.Context(), who, lane)
		to <- entered{name, p, err}
	}()
	for deadline := time.Now().Add(time.Minute); h.Load().Waiting == before; {
		if time.Now().After(deadline) {
			h.t.Fatalf("%s does not wait", name)
		}
		<-time.After(time.Millisecond)
	}
}

// Nobody holds more than is left for others, and what prevents sends has places of its own.
func TestGateLeavesRoom(t *testing.T) {
	t.Parallel()
	h := newHall(t, 8)
	for range 4 {
		h.in(greedy, httpkit.LaneWrite)
	}
	waits := make(chan entered, 8)
	h.queue("fifth", greedy, httpkit.LaneWrite, waits)
	h.in(modest, httpkit.LaneWrite)
	h.in(modest, httpkit.LaneWrite)
	h.in(third, httpkit.LaneWrite)
	h.in(strangers, httpkit.LaneWrite)
	if l := h.Load(); l.Inside != 8 || l.Waiting != 1 {
		t.Fatalf("%+v", l)
	}
	h.in(third, httpkit.LanePrevent)
	h.in(modest, httpkit.LanePrevent)
	select {
	case e := <-waits:
		t.Errorf("%s got in", e.name)
	default:
	}
}

// Those who wait are let in by turns: what prevents first, then everybody's first before anybody's second.
func TestGateTakesTurns(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	held := h.in(strangers, httpkit.LaneWrite)
	waits := make(chan entered, 8)
	h.queue("greedy 1", greedy, httpkit.LaneWrite, waits)
	h.queue("greedy 2", greedy, httpkit.LaneWrite, waits)
	h.queue("greedy 3", greedy, httpkit.LaneWrite, waits)
	h.queue("modest 1", modest, httpkit.LaneWrite, waits)
	reserve := []*httpkit.Pass{held}
	for id := range int64(4) {
		reserve = append(reserve, h.in(httpkit.Share{ID: 100 + id}, httpkit.LanePrevent))
	}
	h.queue("stop", greedy, httpkit.LanePrevent, waits)
	held.Leave()
	first := <-waits
	if first.name != "stop" || first.err != nil {
		t.Fatalf("%+v", first)
	}
	for _, p := range append(reserve[1:], first.pass) {
		p.Leave()
	}
	var order []string
	for range 4 {
		e := <-waits
		if e.err != nil {
			t.Fatalf("%s: %v", e.name, e.err)
		}
		order = append(order, e.name)
		e.pass.Leave()
	}
	if want := []string{"greedy 1", "modest 1", "greedy 2", "greedy 3"}; !slices.Equal(order, want) {
		t.Errorf("%v", order)
	}
}

// Lists may wait; they do not take what calls that change something need.
func TestGateReads(t *testing.T) {
	t.Parallel()
	h := newHall(t, 8)
	h.in(greedy, httpkit.LaneRead)
	waits := make(chan entered, 8)
	h.queue("second read of one", greedy, httpkit.LaneRead, waits)
	h.in(modest, httpkit.LaneRead)
	h.queue("third read", third, httpkit.LaneRead, waits)
	for _, who := range []httpkit.Share{greedy, modest, third} {
		h.in(who, httpkit.LaneWrite)
	}
	if len(waits) > 0 {
		t.Errorf("%s got in", (<-waits).name)
	}
}

// Whose calls have waited for long already is refused at once and told when to come again; others are not.
func TestGateRefusesEarly(t *testing.T) {
	t.Parallel()
	h := newHall(t, 2)
	h.in(greedy, httpkit.LaneWrite)
	waits := make(chan entered, 8)
	h.queue("waits", greedy, httpkit.LaneWrite, waits)
	h.now.Add(int64(time.Second))
	_, _, err := h.Enter(t.Context(), greedy, httpkit.LaneWrite)
	refused, ok := errors.AsType[*puntuale.Error](err)
	if !ok || refused.Code != puntuale.CodeRateLimited || refused.RetryAfter < time.Second || refused.RetryAfter > 30*time.Second {
		t.Errorf("%+v", err)
	}
	h.in(modest, httpkit.LaneWrite).Leave()
	h.in(greedy, httpkit.LanePrevent).Leave()
	if len(h.reasons) != 1 || h.reasons[0] != "caller" {
		t.Errorf("%v", h.reasons)
	}
}

// A caller whose calls fill all there is to wait in can still stop something.
func TestGateStopsBehindAFlood(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	held := h.in(modest, httpkit.LaneWrite)
	for id := range int64(4) {
		h.in(httpkit.Share{ID: 100 + id}, httpkit.LanePrevent)
	}
	waits := make(chan entered, 64)
	for h.Load().Waiting < 4 { // of eight: nobody gets more than are free beside
		h.queue("flood", greedy, httpkit.LaneWrite, waits)
	}
	if _, _, err := h.Enter(t.Context(), greedy, httpkit.LaneWrite); err == nil {
		t.Fatal("there is no flood")
	}
	h.queue("stop", greedy, httpkit.LanePrevent, waits)
	held.Leave()
	if first := <-waits; first.name != "stop" || first.err != nil {
		t.Errorf("%+v", first)
	}
}

// A call that waits for too long is refused, and leaves nothing behind.
func TestGatePatience(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	held := h.in(modest, httpkit.LaneWrite)
	if _, _, err := h.Enter(t.Context(), strangers, httpkit.LaneWrite); puntuale.CodeOf(err) != puntuale.CodeOverloaded {
		t.Errorf("%v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := h.Enter(gone, strangers, httpkit.LaneWrite); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	held.Leave()
	if l := h.Load(); l != (httpkit.Load{}) {
		t.Errorf("%+v", l)
	}
	h.in(strangers, httpkit.LaneWrite).Leave()
}

// While a body is on its way others have the place; the call comes back before new ones of the same caller.
func TestGateRest(t *testing.T) {
	t.Parallel()
	h := newHall(t, 1)
	first := h.in(greedy, httpkit.LaneWrite)
	first.Rest()
	second := h.in(greedy, httpkit.LaneWrite)
	waits := make(chan entered, 8)
	h.queue("new", greedy, httpkit.LaneWrite, waits)
	back := make(chan error, 1)
	go func() {
		_, err := first.Return(t.Context())
		back <- err
	}()
	for deadline := time.Now().Add(time.Minute); h.Load().Waiting < 2; {
		if time.Now().After(deadline) {
			t.Fatal("the first does not come back")
		}
		<-time.After(time.Millisecond)
	}
	second.Leave()
	if err := <-back; err != nil || len(waits) > 0 {
		t.Errorf("%v, %d let in before", err, len(waits))
	}
	first.Leave()
	if e := <-waits; e.err != nil {
		t.Error(e.err)
	}
}

// However calls come and go, there are never more inside than places, and in the end nobody is left.
func TestGateCounts(t *testing.T) {
	t.Parallel()
	h := newHall(t, 16)
	var inside, most atomic.Int64
	var done sync.WaitGroup
	for i := range 200 {
		done.Go(func() {
			who, lane := httpkit.Share{ID: int64(i % 7)}, httpkit.Lane(i%3)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for n := range 50 {
				if (n+i)%11 == 0 {
					cancel()
					ctx, cancel = context.WithCancel(t.Context()) //nolint:govet // the last is cancelled above
					go cancel()
				}
				p, _, err := h.Enter(ctx, who, lane)
				if err != nil {
					continue
				}
				now := inside.Add(1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				inside.Add(-1)
				p.Rest()
				_, _ = p.Return(ctx)
				p.Leave()
			}
		})
	}
	done.Wait()
	if l := h.Load(); l != (httpkit.Load{}) || most.Load() > 16+4 {
		t.Errorf("%+v, %d at once", l, most.Load())
	}
	h.in(greedy, httpkit.LaneWrite).Leave()
}

// Refusals go at once while there are few, and later when there are many: a second at most.
func TestRestraint(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	r := httpkit.NewRestraint(100, func() time.Time { return now })
	for range 20 {
		r.Hold(t.Context()) // none of them waits
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10_000 {
		r.Hold(gone) // who is gone keeps nobody
	}
	begun := time.Now()
	r.Hold(t.Context())
	if took := time.Since(begun); took < 500*time.Millisecond {
		t.Errorf("held for %v", took)
	}
	(*httpkit.Restraint)(nil).Hold(t.Context())
}
