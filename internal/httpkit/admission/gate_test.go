package admission_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/httpkit/admission"
)

var (
	unknownCallers = admission.CallerKey{}
	greedy         = admission.CallerKey{Side: puntuale.ClientSide, ID: 1}
	modest         = admission.CallerKey{Side: puntuale.ClientSide, ID: 2}
	third          = admission.CallerKey{Side: puntuale.PartnerSide, ID: 1}
)

// testGate is a gate with a clock that the test sets.
type testGate struct {
	*admission.Gate
	t   *testing.T
	now atomic.Int64 // the gate's time, in nanoseconds

	mu      sync.Mutex
	reasons []string
}

func newTestGate(t *testing.T, seats int) *testGate {
	h := &testGate{t: t}
	h.Gate = admission.NewGate(admission.GateConfig{Seats: seats, Now: func() time.Time { return time.Unix(0, h.now.Load()) },
		Refused: func(reason string) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.reasons = append(h.reasons, reason)
		}})
	return h
}

// in makes a call that must get a seat, and returns the call's permit.
func (h *testGate) in(who admission.CallerKey, priority admission.Priority) *admission.Permit {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	p, _, err := h.Enter(ctx, who, priority)
	if err != nil {
		h.t.Fatalf("%+v, %d: %v", who, priority, err)
	}
	return p
}

type entered struct {
	name   string
	permit *admission.Permit
	err    error
}

// queue makes a call that must wait, and returns when the call waits.
func (h *testGate) queue(name string, who admission.CallerKey, priority admission.Priority, to chan<- entered) {
	h.t.Helper()
	before := h.Load().Waiting
	go func() {
		p, _, err := h.Enter(h.t.Context(), who, priority)
		to <- entered{name, p, err}
	}()
	for deadline := time.Now().Add(time.Minute); h.Load().Waiting == before; {
		if time.Now().After(deadline) {
			h.t.Fatalf("%s does not wait", name)
		}
		<-time.After(time.Millisecond)
	}
}

// TestGateLeavesRoom: a caller with half of the seats gets no further seat, but other callers do. When all seats are
// taken, calls that prevent sends use additional seats.
func TestGateLeavesRoom(t *testing.T) {
	t.Parallel()
	h := newTestGate(t, 8)
	for range 4 {
		h.in(greedy, admission.PriorityWrite)
	}
	waits := make(chan entered, 8)
	h.queue("fifth", greedy, admission.PriorityWrite, waits)
	h.in(modest, admission.PriorityWrite)
	h.in(modest, admission.PriorityWrite)
	h.in(third, admission.PriorityWrite)
	h.in(unknownCallers, admission.PriorityWrite)
	if l := h.Load(); l.Inside != 8 || l.Waiting != 1 {
		t.Fatalf("%+v", l)
	}
	h.in(third, admission.PriorityPrevent)
	h.in(modest, admission.PriorityPrevent)
	select {
	case e := <-waits:
		t.Errorf("%s got in", e.name)
	default:
	}
}

// Waiting calls that prevent sends are admitted first. Then the first call of each caller is admitted, and then the
// second call of each caller.
func TestGateIsFair(t *testing.T) {
	t.Parallel()
	h := newTestGate(t, 1)
	held := h.in(unknownCallers, admission.PriorityWrite)
	waits := make(chan entered, 8)
	h.queue("greedy 1", greedy, admission.PriorityWrite, waits)
	h.queue("greedy 2", greedy, admission.PriorityWrite, waits)
	h.queue("greedy 3", greedy, admission.PriorityWrite, waits)
	h.queue("modest 1", modest, admission.PriorityWrite, waits)
	reserve := []*admission.Permit{held}
	for id := range int64(4) {
		reserve = append(reserve, h.in(admission.CallerKey{ID: 100 + id}, admission.PriorityPrevent))
	}
	h.queue("stop", greedy, admission.PriorityPrevent, waits)
	held.Leave()
	first := <-waits
	if first.name != "stop" || first.err != nil {
		t.Fatalf("%+v", first)
	}
	for _, p := range append(reserve[1:], first.permit) {
		p.Leave()
	}
	var order []string
	for range 4 {
		e := <-waits
		if e.err != nil {
			t.Fatalf("%s: %v", e.name, e.err)
		}
		order = append(order, e.name)
		e.permit.Leave()
	}
	if want := []string{"greedy 1", "modest 1", "greedy 2", "greedy 3"}; !slices.Equal(order, want) {
		t.Errorf("%v", order)
	}
}

// Calls that read lists must wait, so that enough seats stay free for calls that change something.
func TestGateReads(t *testing.T) {
	t.Parallel()
	h := newTestGate(t, 8)
	h.in(greedy, admission.PriorityRead)
	waits := make(chan entered, 8)
	h.queue("second read of one", greedy, admission.PriorityRead, waits)
	h.in(modest, admission.PriorityRead)
	h.queue("third read", third, admission.PriorityRead, waits)
	for _, who := range []admission.CallerKey{greedy, modest, third} {
		h.in(who, admission.PriorityWrite)
	}
	if len(waits) > 0 {
		t.Errorf("%s got in", (<-waits).name)
	}
}

// If the waiting calls of a caller have waited long, the caller's next call is refused immediately, with a time for the
// next try. Other callers are not refused.
func TestGateRefusesEarly(t *testing.T) {
	t.Parallel()
	h := newTestGate(t, 2)
	h.in(greedy, admission.PriorityWrite)
	waits := make(chan entered, 8)
	h.queue("waits", greedy, admission.PriorityWrite, waits)
	h.now.Add(int64(time.Second))
	_, _, err := h.Enter(t.Context(), greedy, admission.PriorityWrite)
	refused, ok := errors.AsType[*puntuale.Error](err)
	if !ok || refused.Code != puntuale.CodeRateLimited || refused.RetryAfter < time.Second || refused.RetryAfter > 30*time.Second {
		t.Errorf("%+v", err)
	}
	h.in(modest, admission.PriorityWrite).Leave()
	h.in(greedy, admission.PriorityPrevent).Leave()
	if len(h.reasons) != 1 || h.reasons[0] != "caller" {
		t.Errorf("%v", h.reasons)
	}
}

// A caller whose calls fill the whole queue can still make a call that prevents sends.
func TestGateStopsBehindAFlood(t *testing.T) {
	t.Parallel()
	h := newTestGate(t, 1)
	held := h.in(modest, admission.PriorityWrite)
	for id := range int64(4) {
		h.in(admission.CallerKey{ID: 100 + id}, admission.PriorityPrevent)
	}
	waits := make(chan entered, 64)
	for h.Load().Waiting < 4 { // the gate has eight seats, and a caller never has more seats than are free
		h.queue("flood", greedy, admission.PriorityWrite, waits)
	}
	if _, _, err := h.Enter(t.Context(), greedy, admission.PriorityWrite); err == nil {
		t.Fatal("there is no flood")
	}
	h.queue("stop", greedy, admission.PriorityPrevent, waits)
	held.Leave()
	if first := <-waits; first.name != "stop" || first.err != nil {
		t.Errorf("%+v", first)
	}
}

// A call that waits too long is refused, and the gate deletes its record of the call.
func TestGateDeadline(t *testing.T) {
	t.Parallel()
	h := newTestGate(t, 1)
	held := h.in(modest, admission.PriorityWrite)
	if _, _, err := h.Enter(t.Context(), unknownCallers, admission.PriorityWrite); puntuale.CodeOf(err) != puntuale.CodeOverloaded {
		t.Errorf("%v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := h.Enter(gone, unknownCallers, admission.PriorityWrite); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	held.Leave()
	if l := h.Load(); l != (admission.Load{}) {
		t.Errorf("%+v", l)
	}
	h.in(unknownCallers, admission.PriorityWrite).Leave()
}

// While a body arrives, other calls can use the call's seat. Afterwards the call gets a seat before new calls of the
// same caller.
func TestGateRest(t *testing.T) {
	t.Parallel()
	h := newTestGate(t, 1)
	first := h.in(greedy, admission.PriorityWrite)
	first.LeaveSeat()
	second := h.in(greedy, admission.PriorityWrite)
	waits := make(chan entered, 8)
	h.queue("new", greedy, admission.PriorityWrite, waits)
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

// In any order of calls, there are never more admitted calls than seats. At the end the gate is empty.
func TestGateCounts(t *testing.T) {
	t.Parallel()
	h := newTestGate(t, 16)
	var inside, peak atomic.Int64
	var done sync.WaitGroup
	for i := range 200 {
		done.Go(func() {
			who, priority := admission.CallerKey{ID: int64(i % 7)}, admission.Priority(i%3)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for n := range 50 {
				if (n+i)%11 == 0 {
					cancel()
					ctx, cancel = context.WithCancel(t.Context()) //nolint:govet // the last context is cancelled above
					go cancel()
				}
				p, _, err := h.Enter(ctx, who, priority)
				if err != nil {
					continue
				}
				now := inside.Add(1)
				for old := peak.Load(); now > old && !peak.CompareAndSwap(old, now); old = peak.Load() {
				}
				inside.Add(-1)
				p.LeaveSeat()
				_, _ = p.Return(ctx)
				p.Leave()
			}
		})
	}
	done.Wait()
	if l := h.Load(); l != (admission.Load{}) || peak.Load() > 16+4 {
		t.Errorf("%+v, %d at once", l, peak.Load())
	}
	h.in(greedy, admission.PriorityWrite).Leave()
}
