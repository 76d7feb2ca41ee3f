package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/connector/sandbox"
	"puntuale/internal/dispatch"
	"puntuale/internal/store/storetest"
)

// killable is between a dispatcher and everything that the dispatcher calls. After kill, no call has an effect, as if
// the process had died. From then on, attempts in flight never get an outcome on disk.
type killable struct {
	puntuale.Queue
	puntuale.Fleet
	puntuale.Connector
	dead atomic.Bool
}

var errKilled = puntuale.Unavailable(errors.New("killed"))

func (k *killable) check() error {
	if k.dead.Load() {
		return errKilled
	}
	return nil
}

func (k *killable) Due(ctx context.Context, from []puntuale.QueueCursor, h time.Time, limit int) ([]puntuale.DueMessage, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	return k.Queue.Due(ctx, from, h, limit)
}

// Claim may commit just before kill. In this case, the dispatcher never gets the answer.
func (k *killable) Claim(ctx context.Context, c puntuale.Claim) ([]puntuale.ClaimAnswer, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	g, err := k.Queue.Claim(ctx, c)
	if dead := k.check(); dead != nil {
		return nil, dead
	}
	return g, err
}

func (k *killable) Record(ctx context.Context, now time.Time, r []puntuale.Result) ([]bool, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	return k.Queue.Record(ctx, now, r)
}

func (k *killable) Settle(ctx context.Context, n puntuale.NodeID, now time.Time, s []puntuale.Settlement) error {
	if err := k.check(); err != nil {
		return err
	}
	return k.Queue.Settle(ctx, n, now, s)
}

func (k *killable) Join(ctx context.Context, lease time.Duration) (puntuale.NodeID, error) {
	if err := k.check(); err != nil {
		return 0, err
	}
	return k.Fleet.Join(ctx, lease)
}

func (k *killable) Beat(ctx context.Context, n puntuale.NodeID, lease time.Duration) error {
	if err := k.check(); err != nil {
		return err
	}
	return k.Fleet.Beat(ctx, n, lease)
}

func (k *killable) Reap(ctx context.Context) (int, error) {
	if err := k.check(); err != nil {
		return 0, err
	}
	return k.Fleet.Reap(ctx)
}

func (k *killable) Leave(ctx context.Context, n puntuale.NodeID) error {
	if err := k.check(); err != nil {
		return err
	}
	return k.Fleet.Leave(ctx, n)
}

func (k *killable) Send(ctx context.Context, p puntuale.Prepared) (puntuale.Acceptance, error) {
	if err := k.check(); err != nil {
		return puntuale.Acceptance{}, err
	}
	return k.Connector.Send(ctx, p)
}

func (k *killable) Arrived(ctx context.Context, e puntuale.Envelope) (bool, error) {
	if err := k.check(); err != nil {
		return false, err
	}
	return k.Connector.(puntuale.DeliveryChecker).Arrived(ctx, e)
}

// kill stops all effects of the dispatcher. The dispatcher's goroutines end with the test.
func (k *killable) kill() { k.dead.Store(true) }

// mortal starts a dispatcher that a test can kill.
func (w *world) mortal(t *testing.T, latency time.Duration) (*dispatch.Dispatcher, *killable) {
	t.Helper()
	return w.mortalWith(t, sandbox.New(w.store, clock.System(), latency))
}

func (w *world) mortalWith(t *testing.T, out puntuale.Connector) (*dispatch.Dispatcher, *killable) {
	t.Helper()
	k := &killable{Queue: w.store, Fleet: w.store, Connector: out}
	d := dispatch.New(dispatch.Config{
		Queue: k, Fleet: k, Logger: quiet(), Lease: 2 * time.Second, Poll: 200 * time.Millisecond,
		Connector: func(puntuale.Session) puntuale.Connector { return k },
	})
	if err := d.Start(t.Context()); err != nil {
		t.Fatalf("start the dispatcher: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		if k.dead.Load() {
			cancel() // the killed process must not wait for anything
		}
		defer cancel()
		if err := d.Stop(ctx); err != nil && !k.dead.Load() {
			t.Errorf("stop the dispatcher: %v", err)
		}
	})
	return d, k
}

// silent is a sandbox that never answers. A message to the phone in the field lost does not arrive in the sandbox.
type silent struct {
	*sandbox.Connector
	lost    string
	arrived atomic.Int64 // number of calls of Send, including calls for the phone in the field lost
}

func (c *silent) Send(ctx context.Context, p puntuale.Prepared) (puntuale.Acceptance, error) {
	if p.To != c.lost {
		if _, err := c.Connector.Send(ctx, p); err != nil {
			return puntuale.Acceptance{}, err
		}
	}
	c.arrived.Add(1)
	<-ctx.Done()
	return puntuale.Acceptance{}, ctx.Err()
}

// TestStoppedThenCrashed stops messages in flight, and then kills the process. The next process does not send these
// messages again, but asks the network about them. The messages that arrived become COMPLETED. The other messages stay
// uncertain, because they may still arrive.
func TestStoppedThenCrashed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
		w := open(t)
		out := &silent{Connector: sandbox.New(w.store, clock.System(), 0), lost: "+393470001002"}
		_, first := w.mortalWith(t, out)
		now := time.Now()
		phones := []string{"+393470001001", out.lost}
		arrived, lost := w.start(t, phones[0], time.Hour, now)[0], w.start(t, phones[1], time.Hour, now)[0]
		eventually(t, "both are in flight", func() bool { return out.arrived.Load() == 2 })
		if got, err := storetest.CancelPending(t.Context(), w.tenant, phones, false, puntuale.DateOf(now), now); err != nil || len(got) != 0 {
			t.Fatalf("in flight: %v, %v", got, err)
		}
		first.kill()
		w.mortal(t, 0)
		eventually(t, "what arrived is completed", func() bool { return w.message(t, arrived).State == puntuale.Completed })
		eventually(t, "the other was looked at", func() bool { return !w.message(t, lost).Detail.IsZero() })
		rows, copies := w.copies(t)
		if m := w.message(t, lost); m.State != puntuale.Pending || rows[lost] != 0 {
			t.Errorf("what did not arrive is %v, with %d rows", m.State, rows[lost])
		}
		if rows[arrived] != 1 || copies[arrived] != 1 {
			t.Errorf("what arrived is there %d times, %d copies", rows[arrived], copies[arrived])
		}
	})
}

// TestCrash kills a process with messages in flight. Some were answered but not recorded, and others were claimed but
// not sent. The next process completes every message, and people see each message once.
func TestCrash(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
		w := open(t)
		_, first := w.mortal(t, 30*time.Millisecond)
		now := time.Now()
		var all []puntuale.MessageID
		for i := range 60 {
			all = append(all, w.start(t, phoneOf(i), time.Hour, now, now.Add(time.Duration(i)*10*time.Millisecond))...)
		}
		all = append(all, w.start(t, "+393470009903", time.Hour, now)...)
		eventually(t, "some arrived", func() bool { return len(w.ledger(t)) > 5 })
		first.kill()
		began := time.Now()
		before := w.states(t, all)
		w.mortal(t, 0)
		eventually(t, "every message is closed", func() bool { return w.states(t, all)[puntuale.Pending] == 0 })
		t.Logf("at the crash %v; all done %v later", before, time.Since(began).Round(time.Millisecond))
		if got := w.states(t, all)[puntuale.Completed]; got != len(all) {
			t.Errorf("%d of %d COMPLETED", got, len(all))
		}
		rows, _ := w.copies(t)
		for _, id := range all {
			if rows[id] != 1 {
				t.Errorf("message %d is visible %d times", id, rows[id])
			}
		}
	})
}

// TestTwoDispatchers runs two processes on one database that share the sessions. The first is killed, and the second
// takes over the first's sessions. Then a third process joins. Every message leaves exactly once.
func TestTwoDispatchers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
		w := open(t)
		sessions := []puntuale.SessionID{w.session}
		for i := range 7 {
			id, err := w.tenant.CreateSession(t.Context(), puntuale.Session{Name: fmt.Sprint(i), Type: puntuale.Socket, Sandbox: true, Created: time.Now()}, nil)
			if err != nil {
				t.Fatal(err)
			}
			sessions = append(sessions, id)
		}
		_, first := w.mortal(t, 10*time.Millisecond)
		w.mortal(t, 10*time.Millisecond)
		var all []puntuale.MessageID
		load := func(n int) {
			t.Helper()
			for i := range n {
				now := time.Now()
				ids, err := w.beginFor(t.Context(), w.client, sessions[i%len(sessions)], phoneOf(i), time.Hour, now, now.Add(300*time.Millisecond))
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, ids...)
			}
		}
		load(40)
		eventually(t, "both send", func() bool { return w.owners(t) == 2 })
		load(40)
		first.kill()
		load(40)
		w.mortal(t, 10*time.Millisecond)
		load(40)
		eventually(t, "every message is closed", func() bool { return w.states(t, all)[puntuale.Pending] == 0 })
		rows, _ := w.copies(t)
		for _, id := range all {
			if m := w.message(t, id); m.State != puntuale.Completed || rows[id] != 1 {
				t.Errorf("message %d is %v, visible %d times", id, m.State, rows[id])
			}
		}
	})
}

// owners returns how many nodes own sessions.
func (w *world) owners(t *testing.T) (n int) {
	t.Helper()
	if err := w.raw.QueryRowContext(t.Context(), "select count(distinct owner) from session where owner <> 0").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
