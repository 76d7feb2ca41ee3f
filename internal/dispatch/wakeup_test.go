package dispatch_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/dispatch"
)

// pair is two nodes on one PostgreSQL database, with a session that the second node owns.
type pair struct {
	first, second *world
	waker         *dispatch.Dispatcher // dispatcher of the first node
	client        puntuale.ClientID
	session       puntuale.SessionID
}

func newPair(t *testing.T, poll time.Duration) *pair {
	t.Helper()
	if os.Getenv(postgresEnv) == "" {
		t.Skipf("no PostgreSQL: %s is not set", postgresEnv)
	}
	address := newDatabase(t)
	p := &pair{first: openWorld(t, address)}
	p.second = openWorld(t, address)
	node := func(w *world) *dispatch.Dispatcher {
		cfg := w.config()
		cfg.Poll, cfg.Remote = poll, w.store.Notify
		d := w.dispatch(t, cfg)
		w.store.Listen(d.TakeWakeup)
		return d
	}
	p.waker = node(p.first)
	var first puntuale.NodeID
	p.scan(t, &first, "select id from node")
	node(p.second)
	eventually(t, "the nodes know each other", func() bool {
		var shared bool
		p.scan(t, &shared, "select count(*) = 2 from node")
		return shared
	})
	for owner := first; owner == first; {
		p.client, p.session = p.first.newClient(t)
		eventually(t, "the session has its owner", func() bool { // without a wakeup, the node that should own the session takes it
			p.scan(t, &owner, fmt.Sprintf("select owner from session where id = %d", p.session))
			return owner != 0
		})
	}
	return p
}

func (p *pair) scan(t *testing.T, into any, text string) {
	t.Helper()
	if err := p.first.raw.QueryRowContext(t.Context(), text).Scan(into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// call starts a message at the first node, and returns the time until the second node sent it.
func (p *pair) call(t *testing.T, i int) time.Duration {
	t.Helper()
	tenant := p.first.store.Tenant(p.client)
	began := clock.System().Now()
	ids, err := p.first.beginFor(t.Context(), p.client, p.session, phoneOf(i), time.Hour, began)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	p.waker.Wake(p.session, began)
	eventually(t, "the message left", func() bool {
		found, err := tenant.Details(t.Context(), ids)
		return err == nil && found[0].State == puntuale.Completed
	})
	return time.Since(began)
}

// TestWakeupReachesOtherNode checks that a call to one node makes the other node send the message immediately. The
// poll's interval is an hour, so only a wakeup can be the cause.
func TestWakeupReachesOtherNode(t *testing.T) {
	t.Parallel()
	p := newPair(t, time.Hour)
	var longest, sum time.Duration
	const calls = 20
	for i := range calls {
		took := p.call(t, i)
		longest, sum = max(longest, took), sum+took
	}
	t.Logf("%d messages left after %v on average, %v at most", calls, sum/calls, longest)
}

// TestWakeupsMayBeLost closes every connection that listens for wakeups as soon as it is open. The poll then finds the
// messages, and the messages leave.
func TestWakeupsMayBeLost(t *testing.T) {
	t.Parallel()
	p := newPair(t, time.Second)
	ctx, stop := context.WithCancel(t.Context())
	var cut atomic.Int64
	ended := make(chan error, 1)
	go func() {
		for {
			var n int64
			err := p.second.raw.QueryRowContext(ctx, `select count(pg_terminate_backend(pid)) from pg_stat_activity
 where datname = current_database() and application_name in ('puntuale server listens', 'puntuale server hints')`).Scan(&n)
			cut.Add(n)
			if ctx.Err() != nil || err != nil {
				ended <- context.Cause(ctx)
				return
			}
		}
	}()
	eventually(t, "connections were cut", func() bool { return cut.Load() >= 2 })
	var longest time.Duration
	for i := range 5 {
		longest = max(longest, p.call(t, i))
	}
	t.Logf("5 messages left after %v at most, and %d connections were cut", longest, cut.Load())
	stop()
	if err := <-ended; err == nil {
		t.Error("cutting failed")
	}
}

// elsewhere counts the wakeups that a node passes on.
type elsewhere struct{ due, changed map[puntuale.SessionID]int }

func (e *elsewhere) wakeup(session puntuale.SessionID, due time.Time) {
	if due.IsZero() {
		e.changed[session]++
	} else {
		e.due[session]++
	}
}

// TestWakeupsGivenAway checks that a node handles wakeups for its own sessions, and passes on other wakeups that are
// due soon. It does not pass on wakeups from other nodes. A wakeup from another node causes a read of the roster only
// if this node should own the session.
func TestWakeupsGivenAway(t *testing.T) {
	t.Parallel()
	given := &elsewhere{map[puntuale.SessionID]int{}, map[puntuale.SessionID]int{}}
	set := func(cfg *dispatch.Config, _ *memory, _ *network) {
		cfg.Remote, cfg.Poll, cfg.Lease = given.wakeup, time.Hour, time.Minute
	}
	bubble(t, set, func(t *testing.T, d *dispatch.Dispatcher, m *memory, _ *network) {
		const theirs = 2
		other, err := m.Join(t.Context(), 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		m.session(theirs, 2, 0)
		if _, err := m.Assign(t.Context(), 0, other, []puntuale.SessionID{theirs}); err != nil {
			t.Fatal(err)
		}
		looks := 0
		m.fail(func(method string) error {
			if method == "Roster" {
				looks++
			}
			return nil
		})
		after(time.Minute) // after this time, the first node knows the other node
		const mine = 1
		if m.owner(mine) == other || m.owner(mine) == 0 {
			t.Fatal("the session went to the other node")
		}
		d.Wake(mine, time.Now())
		d.Wake(theirs, time.Now())
		d.Wake(theirs, time.Now().Add(3*time.Second))
		d.TakeWakeup(theirs, time.Now())
		synctest.Wait()
		if given.due[mine] != 0 || given.due[theirs] != 1 || len(given.changed) != 0 {
			t.Errorf("given away: %+v", given)
		}
		// Other nodes pass on wakeups for free sessions. This node takes those sessions that it should own.
		for id := puntuale.SessionID(10); id < 40; id++ {
			m.session(id, 3, 0)
		}
		looks = 0
		taken := map[puntuale.SessionID]bool{}
		for id := puntuale.SessionID(10); id < 40; id++ {
			d.TakeWakeup(id, time.Time{})
			synctest.Wait()
			if m.owner(id) != 0 {
				taken[id] = true
			}
		}
		if len(taken) == 0 || len(taken) == 30 {
			t.Errorf("%d of 30 sessions were taken", len(taken))
		}
		if looks == 0 || looks > len(taken) {
			t.Errorf("%d looks at the roster for %d sessions", looks, len(taken))
		}
		// A session that is created here is taken immediately, and the other nodes get a wakeup.
		m.session(50, 3, 0)
		d.Wake(50, time.Time{})
		synctest.Wait()
		if m.owner(50) == 0 || given.changed[50] != 1 {
			t.Errorf("made here: owner %d, given away %+v", m.owner(50), given)
		}
	})
	if given.changed[0] != 1 {
		t.Errorf("leaving told %+v", given.changed)
	}
}
