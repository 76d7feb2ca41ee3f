package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/dispatch"
)

// orphaned adds a message with an attempt that a dead process began.
func orphaned(m *memory, phone string) puntuale.MessageID {
	now := time.Now()
	id := m.add(1, phone, now)[0]
	m.change(id, func(r *row) { r.Intent, r.IntentAt, r.Attempt = 99<<32|1, now, 1 })
	return id
}

// TestOrphanIsRepeated checks that an attempt of a dead process is repeated under the same connector id, if the
// network recognises repeats.
func TestOrphanIsRepeated(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, m *memory, _ *network) { orphaned(m, "+391") }
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		began := time.Now()
		after(10 * time.Second)
		all := n.sightings()
		if len(all) != 1 || !all[0].Repeat || all[0].ConnectorID != puntuale.ConnectorID(1001, 0) || all[0].at.Sub(began) > time.Second {
			t.Fatalf("handed over %+v, want one repeat at once", all)
		}
		if r := m.get(1001); r.state != puntuale.Completed || r.Repeats != 1 {
			t.Errorf("the row is %v after %d repeats", r.state, r.Repeats)
		}
	})
}

// TestOrphanWithoutRepeats checks an orphan in a network that does not recognise repeats. Nothing is sent again, and
// the message ends as uncertain at its deadline.
func TestOrphanWithoutRepeats(t *testing.T) {
	t.Parallel()
	setup := func(cfg *dispatch.Config, m *memory, n *network) {
		aDay(cfg)
		n.capabilities.Recovery = puntuale.RecoverNone
		orphaned(m, "+391")
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		began := time.Now()
		after(23*time.Hour + 59*time.Minute)
		if r := m.get(1001); r.state != puntuale.Pending || r.Intent == 0 {
			t.Errorf("before its deadline: %v, intent %d", r.state, r.Intent)
		}
		after(2 * time.Minute)
		r := m.get(1001)
		if r.state != puntuale.Failed || r.reason.Code != puntuale.ReasonUncertain || r.done.Sub(began) < 24*time.Hour {
			t.Errorf("at its deadline: %v %q after %v", r.state, r.reason, r.done.Sub(began))
		}
		if len(n.sightings()) != 0 {
			t.Error("it was sent again")
		}
	})
}

// TestLostAnswers checks that there are three repeats, the first within 10 s. After the third, the dispatcher gives the
// message up. Later messages do not wait.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	setup := func(cfg *dispatch.Config, _ *memory, n *network) {
		cfg.UncertainAfter = 10 * time.Minute
		n.send = func(_ context.Context, p puntuale.Prepared) error {
			if p.Content.Text == "1001" {
				return errors.New("connection reset")
			}
			return nil
		}
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		now := time.Now()
		ids := m.add(1, "+391", now, now.Add(time.Second))
		after(11 * time.Minute)
		at := n.of(ids[0])
		if len(at) != 1+puntuale.MaxRepeats {
			t.Fatalf("handed over %d times, want %d", len(at), 1+puntuale.MaxRepeats)
		}
		if wait := at[1].Sub(at[0]); wait > 10*time.Second {
			t.Errorf("first repeat after %v", wait)
		}
		if r := m.get(ids[0]); r.state != puntuale.Failed || r.reason.Code != puntuale.ReasonUncertain {
			t.Errorf("it is %v %q", r.state, r.reason)
		}
		if later := n.of(ids[1]); len(later) != 1 || later[0].Sub(now) > 2*time.Second {
			t.Errorf("the later message left at %v", later)
		}
	})
}

// TestRepeatsEndWithValidity checks that a message is not repeated after its deadline.
func TestRepeatsEndWithValidity(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, m *memory, n *network) {
		n.send = func(context.Context, puntuale.Prepared) error { return errors.New("connection reset") }
		m.addWith(1, "+391", nil, 10*time.Second, time.Now())
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(time.Hour)
		if got := len(n.sightings()); got != 2 {
			t.Errorf("handed over %d times, want 2", got)
		}
		if r := m.get(1001); r.state != puntuale.Pending || r.Intent == 0 {
			t.Errorf("it is %v, intent %d; want uncertain", r.state, r.Intent)
		}
	})
}

// TestSilentConnector uses a connector that ignores its timeout. The attempt must lose its slot. The connector's late
// answer is still recorded.
func TestSilentConnector(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, m *memory, n *network) {
		n.capabilities.Slots, n.capabilities.Recovery = 1, puntuale.RecoverNone
		n.send = func(_ context.Context, p puntuale.Prepared) error {
			if p.To == "+391" {
				time.Sleep(time.Minute)
			}
			return nil
		}
		m.add(1, "+391", time.Now())
		m.add(1, "+392", time.Now())
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(30 * time.Second)
		if at := n.of(1002); len(at) != 1 {
			t.Error("the next message still waits")
		}
		if r := m.get(1001); r.state != puntuale.Pending {
			t.Errorf("without an answer: %v", r.state)
		}
		after(time.Minute)
		if r := m.get(1001); r.state != puntuale.Completed {
			t.Errorf("after the late answer: %v", r.state)
		}
	})
}

// TestSendPanics checks that a panic in a connector counts as a lost answer and does not end the process.
func TestSendPanics(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, m *memory, n *network) {
		n.send = func(_ context.Context, p puntuale.Prepared) error {
			if !p.Repeat {
				panic("poison")
			}
			return nil
		}
		m.add(1, "+391", time.Now())
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(10 * time.Second)
		if r := m.get(1001); r.state != puntuale.Completed || r.Repeats != 1 {
			t.Errorf("%v after %d repeats", r.state, r.Repeats)
		}
	})
}

// TestStoreAway checks that outcomes wait while the store does not answer. In this time nothing is claimed, and nothing
// is sent twice.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, m *memory, n *network) {
		n.send = func(context.Context, puntuale.Prepared) error { time.Sleep(time.Second); return nil }
		for i := range 20 {
			m.add(1, fmt.Sprintf("+39%d", i), time.Now(), time.Now().Add(2*time.Second))
		}
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(500 * time.Millisecond)
		m.fail(func(method string) error {
			if method == "Beat" {
				return nil
			}
			if method == "Due" {
				d.Wake(1, time.Now()) // this wakeup arrives while a read fails
			}
			return errAway
		})
		after(30 * time.Second)
		if got := len(n.sightings()); got != 20 {
			t.Errorf("%d handed over while the store was away, want the 20 claimed before", got)
		}
		if d.Healthy() == nil {
			t.Error("it calls itself healthy")
		}
		m.fail(nil)
		after(5 * time.Second)
		if err := d.Healthy(); err != nil {
			t.Errorf("after the store came back: %v", err)
		}
		for i := range 40 {
			id := puntuale.MessageID(1001 + i)
			if r := m.get(id); r.state != puntuale.Completed || len(n.of(id)) != 1 {
				t.Errorf("message %d is %v, handed over %d times", id, r.state, len(n.of(id)))
			}
		}
	})
}

// TestReadHeldUp makes the store delay one read. The next read must begin without a delay.
func TestReadHeldUp(t *testing.T) {
	t.Parallel()
	slow := &slowReads{}
	setup := func(cfg *dispatch.Config, m *memory, _ *network) {
		slow.Queue, cfg.Queue = cfg.Queue, slow
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		slow.wait.Store(int64(10 * time.Second))
		after(1500 * time.Millisecond) // the read for the poll has begun
		slow.wait.Store(0)
		after(10 * time.Second)
		now := time.Now()
		id := m.add(1, "+391", now)[0]
		d.Wake(1, now)
		after(5 * time.Second)
		if at := n.of(id); len(at) != 1 || at[0].Sub(now) > time.Second {
			t.Errorf("due at %v, it left at %v", now, at)
		}
	})
}

// slowReads is a queue with slow reads.
type slowReads struct {
	puntuale.Queue
	wait atomic.Int64
}

func (q *slowReads) Due(ctx context.Context, from []puntuale.QueueCursor, h time.Time, limit int) ([]puntuale.DueMessage, error) {
	time.Sleep(time.Duration(q.wait.Load()))
	return q.Queue.Due(ctx, from, h, limit)
}

// TestClaimWithoutAnswer commits a claim, but loses the answer. Therefore, none of its messages was sent. They become
// pending again and are sent once, not as repeats.
func TestClaimWithoutAnswer(t *testing.T) {
	t.Parallel()
	var lost lostClaims
	setup := func(cfg *dispatch.Config, m *memory, _ *network) {
		lost.memory = m
		cfg.Queue = &lost
		m.add(1, "+391", time.Now())
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(10 * time.Second)
		all := n.sightings()
		if len(all) != 1 || all[0].Repeat {
			t.Fatalf("handed over %+v, want once and no repeat", all)
		}
		if r := m.get(1001); r.state != puntuale.Completed || r.Repeats != 0 {
			t.Errorf("%v after %d repeats", r.state, r.Repeats)
		}
	})
}

// lostClaims is a queue that commits the first claim, but loses the answer.
type lostClaims struct {
	*memory
	once atomic.Bool
}

func (l *lostClaims) Claim(ctx context.Context, c puntuale.Claim) ([]puntuale.ClaimAnswer, error) {
	g, err := l.memory.Claim(ctx, c)
	if err == nil && !l.once.Swap(true) {
		return nil, errAway
	}
	return g, err
}

// TestFenced ends the lease of a node. The node must stop sending. Then it must join again under another id and
// continue.
func TestFenced(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		first := m.owner(1)
		m.mu.Lock()
		m.free(first)
		m.mu.Unlock()
		m.add(1, "+391", time.Now())
		after(10 * time.Second)
		if len(n.sightings()) != 1 {
			t.Errorf("handed over %d times, want once", len(n.sightings()))
		}
		if m.owner(1) == first || m.owner(1) == 0 {
			t.Errorf("the session is owned by %d", m.owner(1))
		}
		if err := d.Healthy(); err != nil {
			t.Error(err)
		}
	})
}

// TestLeaseRunsLow uses a node that cannot renew its lease. By its own clock, the node must stop claiming before the
// lease ends.
func TestLeaseRunsLow(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(time.Second)
		m.fail(func(method string) error {
			if method == "Beat" {
				return errAway
			}
			return nil
		})
		after(5900 * time.Millisecond)
		m.mu.Lock()
		for node := range m.nodes {
			m.nodes[node] = time.Now().Add(time.Hour) // the fence does not stop the node, so only the node's own clock can
		}
		m.mu.Unlock()
		m.add(1, "+391", time.Now())
		after(5 * time.Second)
		if len(n.sightings()) != 0 {
			t.Error("it claimed without a lease")
		}
		if d.Healthy() == nil {
			t.Error("it calls itself healthy")
		}
		m.fail(nil)
		after(3 * time.Second)
		if len(n.sightings()) != 1 {
			t.Error("it did not go on")
		}
	})
}

// TestNewSession checks that a new session gets its owner immediately after a wakeup, and at the next beat without a
// wakeup.
func TestNewSession(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(20 * time.Second)
		m.session(2, 2, 0)
		d.Wake(2, time.Time{})
		synctest.Wait()
		if m.owner(2) == 0 {
			t.Error("woken: nobody owns it")
		}
		id := m.add(2, "+391", time.Now())[0]
		d.Wake(2, time.Now())
		m.session(3, 3, 0)
		m.add(3, "+392", time.Now())
		d.Wake(3, time.Now()) // the start of a session that this node does not know yet
		synctest.Wait()
		if len(n.of(id)) != 1 || len(n.sightings()) != 2 {
			t.Errorf("%d handed over, want 2", len(n.sightings()))
		}
		m.session(4, 4, 0)
		after(3 * time.Second)
		if m.owner(4) == 0 {
			t.Error("not woken: nobody owns it after a beat")
		}
	})
}

// TestTwoNodes checks that two nodes divide the sessions between them. When a node dies, the other node takes over the
// messages that the dead node had in flight.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, n := newMemory(), newNetwork()
		for i := range 40 {
			m.session(puntuale.SessionID(i+1), puntuale.ClientID(i+1), 0)
		}
		cut := &severed{memory: m}
		one := config(m, n)
		one.Queue, one.Fleet = cut, cut
		first, second := dispatch.New(one), dispatch.New(config(m, n))
		if err := errors.Join(first.Start(t.Context()), second.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
		after(10 * time.Second)
		count := map[puntuale.NodeID]int{}
		for i := range 40 {
			count[m.owner(puntuale.SessionID(i+1))]++
		}
		if count[1] < 10 || count[2] < 10 || count[1]+count[2] != 40 {
			t.Errorf("the sessions are shared out as %v", count)
		}
		now := time.Now()
		for i := range 40 {
			m.add(puntuale.SessionID(i+1), "+391", now.Add(time.Second), now.Add(3*time.Second))
		}
		n.mu.Lock()
		n.send = func(context.Context, puntuale.Prepared) error { time.Sleep(time.Second); return nil }
		n.mu.Unlock()
		after(1500 * time.Millisecond)
		cut.off.Store(true) // the node is now dead and has messages in flight
		after(15 * time.Second)
		for i := range 80 {
			if r := m.get(puntuale.MessageID(1001 + i)); r.state != puntuale.Completed {
				t.Errorf("message %d is %v, intent %d", r.ID, r.state, r.Intent)
			}
		}
		cut.off.Store(false)
		after(20 * time.Second) // the node can reach the store again, and gets its part of the sessions again
		clear(count)
		for i := range 40 {
			count[m.owner(puntuale.SessionID(i+1))]++
		}
		if len(count) != 2 || count[0] != 0 {
			t.Errorf("after its return the sessions are shared out as %v", count)
		}
		if err := errors.Join(first.Stop(context.Background()), second.Stop(context.Background())); err != nil {
			t.Error(err)
		}
		for i := range 40 {
			if m.owner(puntuale.SessionID(i+1)) != 0 {
				t.Fatal("a stopped node still owns sessions")
			}
		}
	})
}

// severed is a store that one process can no longer reach.
type severed struct {
	*memory
	off atomic.Bool
}

func (s *severed) err() error {
	if s.off.Load() {
		return errAway
	}
	return nil
}

func (s *severed) Due(ctx context.Context, from []puntuale.QueueCursor, h time.Time, limit int) ([]puntuale.DueMessage, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.memory.Due(ctx, from, h, limit)
}

func (s *severed) Claim(ctx context.Context, c puntuale.Claim) ([]puntuale.ClaimAnswer, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.memory.Claim(ctx, c)
}

func (s *severed) Record(ctx context.Context, now time.Time, r []puntuale.Result) ([]bool, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.memory.Record(ctx, now, r)
}

func (s *severed) Beat(ctx context.Context, n puntuale.NodeID, lease time.Duration) error {
	if err := s.err(); err != nil {
		return err
	}
	return s.memory.Beat(ctx, n, lease)
}

func (s *severed) Reap(ctx context.Context) (int, error) {
	if err := s.err(); err != nil {
		return 0, err
	}
	return s.memory.Reap(ctx)
}

// TestStop checks that Stop claims nothing more, waits for the attempts in flight, and leaves the fleet. Start and Stop
// may be called twice.
func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, n := newMemory(), newNetwork()
		m.session(1, 1, 0)
		n.capabilities.Slots = 5
		n.send = func(context.Context, puntuale.Prepared) error { time.Sleep(3 * time.Second); return nil }
		for i := range 20 {
			m.add(1, fmt.Sprintf("+39%d", i), time.Now())
		}
		d := dispatch.New(config(m, n))
		for range 2 {
			if err := d.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		after(time.Second)
		began := time.Now()
		for range 2 {
			if err := d.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("stopping took %v", took)
		}
		done := 0
		for i := range 20 {
			switch r := m.get(puntuale.MessageID(1001 + i)); {
			case r.state == puntuale.Completed:
				done++
			case r.Intent != 0:
				t.Errorf("message %d was left in flight", r.ID)
			}
		}
		if done != 5 || m.owner(1) != 0 || len(m.nodes) != 0 {
			t.Errorf("%d done, owner %d, %d nodes; want 5, 0, 0", done, m.owner(1), len(m.nodes))
		}
	})
}

// TestStopIsBounded checks that Stop gives up an attempt that does not end, and returns an error about it.
func TestStopIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, n := newMemory(), newNetwork()
		m.session(1, 1, 0)
		n.capabilities.SendTimeout = time.Hour
		n.send = func(ctx context.Context, _ puntuale.Prepared) error { <-ctx.Done(); return ctx.Err() }
		m.add(1, "+391", time.Now())
		d := dispatch.New(config(m, n))
		if err := d.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		after(time.Second)
		began := time.Now()
		if err := d.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 21*time.Second {
			t.Errorf("stopping took %v", took)
		}
		if r := m.get(1001); r.state != puntuale.Pending || r.Intent == 0 || !r.Next.After(time.Now()) {
			t.Errorf("the attempt given up is %v, intent %d, next %v", r.state, r.Intent, r.Next)
		}
	})
}

// TestStartFails checks that a failed Start returns the error, and that no goroutine remains.
func TestStartFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, n := newMemory(), newNetwork()
		m.fails = func(string) error { return errAway }
		d := dispatch.New(config(m, n))
		if err := d.Start(t.Context()); puntuale.CodeOf(err) != puntuale.CodeUnavailable {
			t.Errorf("Start: %v", err)
		}
		m.fail(nil)
		if err := d.Start(t.Context()); err != nil {
			t.Errorf("Start again: %v", err)
		}
		if err := d.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestNoConnector checks that a session without a connector is never online. Its messages wait and expire.
func TestNoConnector(t *testing.T) {
	t.Parallel()
	setup := func(cfg *dispatch.Config, m *memory, _ *network) {
		cfg.Connector = func(puntuale.Session) puntuale.Connector { return nil }
		cfg.Clock = clock.System()
		m.addWith(1, "+391", nil, time.Minute, time.Now())
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(2 * time.Minute)
		if r := m.get(1001); r.state != puntuale.Failed || r.reason.Code != puntuale.ReasonNotLinked {
			t.Errorf("%v %q", r.state, r.reason)
		}
	})
}

// TestClaimsThatFail makes the claims of a node fail for a while. The node must be unhealthy until the store accepts a
// claim.
func TestClaimsThatFail(t *testing.T) {
	t.Parallel()
	bubble(t, nil, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		m.fail(func(method string) error {
			if method == "Claim" {
				return errors.New("a statement that the database refuses")
			}
			return nil
		})
		id := m.add(1, "+391", time.Now())[0]
		after(5 * time.Second)
		if err := d.Healthy(); err != nil {
			t.Errorf("after a moment: %v", err)
		}
		after(10 * time.Second)
		if d.Healthy() == nil {
			t.Error("it calls itself healthy")
		}
		m.fail(nil)
		after(2 * time.Second)
		if err := d.Healthy(); err != nil || len(n.of(id)) != 1 {
			t.Errorf("once claims are taken: %v, handed over %d times", err, len(n.of(id)))
		}
	})
}
