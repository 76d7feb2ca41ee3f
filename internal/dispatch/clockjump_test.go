package dispatch_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/dispatch"
)

// jumpingClock is a clock that a test may set while it runs. Running timers do not change.
type jumpingClock struct {
	clock.Clock
	by atomic.Int64
}

func (c *jumpingClock) Now() time.Time { return c.Clock.Now().Add(time.Duration(c.by.Load())) }

func (c *jumpingClock) jump(step time.Duration) { c.by.Add(int64(step)) }

func bubbleOn(t *testing.T, setup func(*dispatch.Config, *memory, *network), run func(*testing.T, *jumpingClock, *dispatch.Dispatcher, *memory, *network)) {
	t.Helper()
	c := &jumpingClock{Clock: clock.System()}
	bubble(t, func(cfg *dispatch.Config, m *memory, n *network) {
		cfg.Clock = c
		if setup != nil {
			setup(cfg, m, n)
		}
	}, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) { run(t, c, d, m, n) })
}

var clockJumps = map[string]time.Duration{"back": -time.Hour, "forward": time.Hour}

// TestClockJump sets the clock. After that, a message with a wakeup leaves immediately, and the next message leaves
// within the poll's interval.
func TestClockJump(t *testing.T) {
	t.Parallel()
	for name, step := range clockJumps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbleOn(t, nil, func(t *testing.T, c *jumpingClock, d *dispatch.Dispatcher, m *memory, n *network) {
				d.Wake(1, c.Now())
				after(1500 * time.Millisecond)
				d.Wake(1, c.Now())
				synctest.Wait()
				c.jump(step)
				first := m.add(1, "+391", c.Now())[0]
				d.Wake(1, c.Now())
				after(1100 * time.Millisecond)
				second := m.add(1, "+392", c.Now())[0]
				after(1100 * time.Millisecond)
				for _, id := range []puntuale.MessageID{first, second} {
					if s := m.get(id).state; s != puntuale.Completed {
						t.Errorf("message %d is %v", id, s)
					}
				}
			})
		})
	}
}

// TestClockJumpWhileReading sets the clock during a read. The jump must not count as time that the read took.
func TestClockJumpWhileReading(t *testing.T) {
	t.Parallel()
	for name, step := range clockJumps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := &slowReads{}
			setup := func(cfg *dispatch.Config, _ *memory, _ *network) { slow.Queue, cfg.Queue = cfg.Queue, slow }
			bubbleOn(t, setup, func(t *testing.T, c *jumpingClock, _ *dispatch.Dispatcher, m *memory, _ *network) {
				slow.wait.Store(int64(400 * time.Millisecond))
				after(2100 * time.Millisecond)
				c.jump(step)
				after(500 * time.Millisecond)
				slow.wait.Store(0)
				id := m.add(1, "+391", c.Now())[0]
				after(2500 * time.Millisecond)
				if s := m.get(id).state; s != puntuale.Completed {
					t.Errorf("it is %v", s)
				}
			})
		})
	}
}

// TestClockSetBackDuringWaits sets the clock back during three waits: a pause, a drain, and a wait behind a message in
// retry. Each wait must last as long as planned. The due time of the retry does not change.
func TestClockSetBackDuringWaits(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, m *memory, n *network) {
		m.session(2, 1, 0)
		m.session(3, 1, 0)
		n.send = func(_ context.Context, p puntuale.Prepared) error {
			switch {
			case p.Attempt > 1:
			case p.To == "+391":
				return &puntuale.SendError{Kind: puntuale.Throttled, After: 10 * time.Second}
			case p.To == "+392":
				return &puntuale.SendError{Kind: puntuale.Transient}
			}
			return nil
		}
	}
	bubbleOn(t, setup, func(t *testing.T, c *jumpingClock, d *dispatch.Dispatcher, m *memory, n *network) {
		long := c.Now().Add(-3 * time.Hour)
		m.add(1, "+391", long)
		tried := m.add(2, "+392", long)[0]
		after(1500 * time.Millisecond)
		<-d.Drain(3, c.Now().Add(20*time.Second))
		c.jump(-time.Hour)
		paused := m.add(1, "+399", c.Now())[0]
		behind := m.add(2, "+392", c.Now())[0]
		drained := m.add(3, "+399", c.Now())[0]
		after(5 * time.Second)
		for _, id := range []puntuale.MessageID{paused, behind, drained} {
			if got := n.of(id); len(got) != 0 {
				t.Errorf("message %d left before its time", id)
			}
		}
		after(65 * time.Second)
		for _, id := range []puntuale.MessageID{paused, behind, drained} {
			if s := m.get(id).state; s != puntuale.Completed {
				t.Errorf("message %d is %v", id, s)
			}
		}
		if got := n.of(tried); len(got) != 1 {
			t.Errorf("what is in retry was tried %d times before its moment", len(got))
		}
		after(time.Hour)
		if s := m.get(tried).state; s != puntuale.Completed {
			t.Errorf("what was in retry is %v at its moment", s)
		}
	})
}

// TestClockSetForwardInFlight checks that an attempt is not given up because the clock was set forward.
func TestClockSetForwardInFlight(t *testing.T) {
	t.Parallel()
	v := &verdicts{}
	setup := func(cfg *dispatch.Config, _ *memory, n *network) {
		v.Queue, cfg.Queue = cfg.Queue, v
		n.send = func(context.Context, puntuale.Prepared) error {
			time.Sleep(5 * time.Second)
			return nil
		}
	}
	bubbleOn(t, setup, func(t *testing.T, c *jumpingClock, d *dispatch.Dispatcher, m *memory, _ *network) {
		id := m.add(1, "+391", c.Now())[0]
		d.Wake(1, c.Now())
		after(time.Second)
		c.jump(time.Hour)
		after(10 * time.Second)
		v.mu.Lock()
		defer v.mu.Unlock()
		if len(v.all) != 1 || v.all[0] != puntuale.Sent {
			t.Errorf("recorded %v, and it is %v", v.all, m.get(id).state)
		}
	})
}

// verdicts is a queue that stores the recorded verdicts.
type verdicts struct {
	puntuale.Queue
	mu  sync.Mutex
	all []puntuale.Verdict
}

func (v *verdicts) Record(ctx context.Context, now time.Time, results []puntuale.Result) ([]bool, error) {
	v.mu.Lock()
	for i := range results {
		v.all = append(v.all, results[i].Outcome.Verdict)
	}
	v.mu.Unlock()
	return v.Queue.Record(ctx, now, results)
}

// TestDrainIsBounded checks that a drain ends within 40 s, even if the clock of its caller is wrong.
func TestDrainIsBounded(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(time.Second)
		<-d.Drain(1, time.Now().Add(time.Hour))
		id := m.add(1, "+391", time.Now())[0]
		after(38 * time.Second)
		if got := n.of(id); len(got) != 0 {
			t.Error("it left before the end of the drain")
		}
		after(4 * time.Second)
		if got := n.of(id); len(got) != 1 {
			t.Error("the drain goes on")
		}
	})
}
