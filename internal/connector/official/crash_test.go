package official_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/connector/official"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/dispatch"
	"puntuale/internal/intake"
	"puntuale/internal/session"
	"puntuale/internal/store/storetest"
)

// process is a node's access to the database during one life of the node. After the node died, its goroutines change
// nothing in the database. So attempts in flight get no outcome. process records the messages that have a committed
// intent and no outcome.
type process struct {
	puntuale.Queue
	puntuale.Fleet
	dead atomic.Bool

	mu        *sync.Mutex
	committed map[puntuale.MessageID]bool // messages with an intent and no outcome, in all lives
}

var errDead = puntuale.Unavailable(errors.New("killed"))

func (p *process) Claim(ctx context.Context, c puntuale.Claim) ([]puntuale.ClaimAnswer, error) {
	if p.dead.Load() {
		return nil, errDead
	}
	granted, err := p.Queue.Claim(ctx, c)
	p.mu.Lock()
	for i, g := range granted {
		if g == puntuale.ClaimGranted {
			p.committed[c.Messages[i].ID] = true
		}
	}
	p.mu.Unlock()
	if p.dead.Load() { // the intent was committed, but the process died before the database's answer came
		return nil, errDead
	}
	return granted, err
}

func (p *process) Record(ctx context.Context, now time.Time, results []puntuale.Result) ([]bool, error) {
	if p.dead.Load() {
		return nil, errDead
	}
	applied, err := p.Queue.Record(ctx, now, results)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, ok := range applied {
		if v := results[i].Outcome.Verdict; ok && (v == puntuale.Sent || v == puntuale.Refused || v == puntuale.Retry) {
			delete(p.committed, results[i].ID)
		}
	}
	return applied, err
}

func (p *process) Settle(ctx context.Context, n puntuale.NodeID, now time.Time, s []puntuale.Settlement) error {
	if p.dead.Load() {
		return errDead
	}
	return p.Queue.Settle(ctx, n, now, s)
}

func (p *process) Join(ctx context.Context, lease time.Duration) (puntuale.NodeID, error) {
	if p.dead.Load() {
		return 0, errDead
	}
	return p.Fleet.Join(ctx, lease)
}

func (p *process) Beat(ctx context.Context, n puntuale.NodeID, lease time.Duration) error {
	if p.dead.Load() {
		return errDead
	}
	return p.Fleet.Beat(ctx, n, lease)
}

func (p *process) Leave(ctx context.Context, n puntuale.NodeID) error {
	if p.dead.Load() {
		return errDead
	}
	return p.Fleet.Leave(ctx, n)
}

// mortal is a sender that can be killed.
type mortal struct {
	*world
	process *process
	d       *dispatch.Dispatcher
	manager *session.Manager
	conn    *official.Connector
	in      *intake.Intake
}

// live starts one life of a node, with the system's clock.
func (w *world) live(committed map[puntuale.MessageID]bool, mu *sync.Mutex) *mortal {
	w.t.Helper()
	m := &mortal{world: w, process: &process{Queue: w.w.Store, Fleet: w.w.Store, mu: mu, committed: committed}}
	m.in = intake.New(intake.Config{Store: w.w.Store, Logger: quiet()})
	m.manager = session.New(session.Config{
		Keeper:       w.w.Store,
		Linker:       func(s puntuale.Session) puntuale.Linker { return linkerOf(m, s) },
		DrainSession: func(id puntuale.SessionID, deadline time.Time) <-chan struct{} { return m.d.Drain(id, deadline) },
		Resume:       func(id puntuale.SessionID) { m.d.Resume(id) },
		Changed:      func(id puntuale.SessionID) { m.d.Wake(id, clock.System().Now()) },
		Seal:         w.vault.Seal, Open: w.vault.Open, Logger: quiet(),
	})
	m.conn = official.New(official.Config{
		Store: w.w.Store, Unseal: w.vault.Open, Media: w.files, Take: m.in.Take, API: w.peer.URL, Logger: quiet(), Report: m.manager.Report, Rate: 1000,
	})
	m.d = dispatch.New(dispatch.Config{
		Queue: m.process, Fleet: m.process, Logger: quiet(), Lease: 600 * time.Millisecond, Poll: 100 * time.Millisecond, Sessions: m.manager,
		Connector: func(s puntuale.Session) puntuale.Connector {
			if s.Type == puntuale.Official {
				return m.conn
			}
			return nil
		},
	})
	m.manager.Start()
	if err := m.d.Start(w.t.Context()); err != nil {
		w.t.Fatalf("start: %v", err)
	}
	return m
}

func linkerOf(m *mortal, s puntuale.Session) puntuale.Linker {
	if s.Type == puntuale.Official {
		return m.conn
	}
	return nil
}

// die ends a life. If killed is true, the life ends immediately. Otherwise the sender first finishes its messages in
// flight.
func (m *mortal) die(killed bool) {
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	if killed {
		m.process.dead.Store(true)
		cancel()
	}
	defer cancel()
	if err := m.d.Stop(ctx); err != nil && !killed {
		m.t.Errorf("stop: %v", err)
	}
	m.manager.Stop(ctx)
}

// TestKilledWithManyInFlight kills a sender again and again, with many messages in flight. Meta drops some of the
// answers. At the end, exactly the messages with an intent and no outcome are uncertain. No person got a message twice.
// Only messages with a status from Meta become COMPLETED. With PUNTUALE_LONG=1 the test kills the sender a hundred
// times.
func TestKilledWithManyInFlight(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, driver storetest.Driver) {
		w := newWorld(t, setup{driver: realTime(driver)})
		w.conn.Close(w.within(), w.session)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		held := &graphtest.Held{Reply: func(n int) graphtest.Reply { return graphtest.Reply{Drop: n%25 == 0} }}
		w.peer.Answer(held.Answer)
		lives, each := 3, 60
		if os.Getenv("PUNTUALE_LONG") == "1" { // "make long" sets this variable
			lives = 100
		}
		var mu sync.Mutex
		committed := map[puntuale.MessageID]bool{}
		var all []puntuale.MessageID
		for life := range lives {
			m := w.live(committed, &mu)
			all = append(all, w.plan(life*each, each)...)
			m.d.Wake(w.session, clock.System().Now())
			answered, flying := 5+r.IntN(each/2), 1+r.IntN(each/4)
			asked := w.peer.Asked() + answered + flying
			release := held.After(answered)
			w.until("some are on their way", func() bool { return w.peer.Asked() >= asked || m.conn.Online(w.session) && w.withoutIntent() == 0 })
			m.die(true)
			release()
		}
		last := w.live(committed, &mu)
		w.until("all were tried", func() bool { return w.withoutIntent() == 0 && w.settled(committed, &mu) })
		last.die(false)

		uncertain := w.uncertain()
		mu.Lock()
		expected := slices.Sorted(maps.Keys(committed))
		mu.Unlock()
		if !slices.Equal(uncertain, expected) {
			t.Errorf("uncertain are %v, with an intent and no outcome %v", uncertain, expected)
		}
		taken := map[puntuale.MessageID]graphtest.Taken{}
		for _, m := range w.peer.Taken() {
			id := messageOf(t, m)
			if _, twice := taken[id]; twice {
				t.Errorf("message %d was shown twice", id)
			}
			taken[id] = m
		}
		for _, id := range all {
			if _, arrived := taken[id]; !arrived && w.c.Detail(id).State == puntuale.Completed {
				t.Errorf("message %d is COMPLETED, and Meta never took it", id)
			}
		}
		resolved := 0
		for _, id := range uncertain {
			if m, arrived := taken[id]; arrived {
				w.deliver(w.peer.Status(m, "sent", time.Now()))
				resolved++
			}
		}
		for _, id := range all {
			_, arrived := taken[id]
			want := puntuale.Pending
			if arrived {
				want = puntuale.Completed
			}
			if d := w.c.Detail(id); d.State != want {
				t.Errorf("message %d is %v, arrived: %v", id, d.State, arrived)
			}
		}
		t.Logf("%d messages, %d uncertain, of which %d had arrived", len(all), len(uncertain), resolved)
	})
}

// realTime returns a driver whose stores use the system's clock.
func realTime(d storetest.Driver) storetest.Driver {
	return func(t testing.TB) *storetest.Database {
		db := d(t)
		db.Config.Clock = clock.System()
		db.Clock.Set(time.Now())
		return db
	}
}

// plan schedules messages to persons with an open window.
func (w *world) plan(from, n int) (ids []puntuale.MessageID) {
	w.t.Helper()
	w.clock.Set(time.Now())
	for i := range n {
		phone := fmt.Sprintf("+39333%07d", from+i)
		w.wrote(phone)
		run := w.c.Run(phone, time.Now(), 1)
		run.Run.Session = w.session
		started, err := w.c.Start(context.Background(), run)
		if err != nil {
			w.t.Fatal(err)
		}
		ids = append(ids, started.IDs...)
	}
	return ids
}

// withoutIntent returns how many messages have no intent. No attempt of these messages has begun.
func (w *world) withoutIntent() int64 {
	return w.w.Int("select count(*) from message where intent = 0")
}

// settled reports whether exactly the committed messages have an intent without a known outcome.
func (w *world) settled(committed map[puntuale.MessageID]bool, mu *sync.Mutex) bool {
	mu.Lock()
	defer mu.Unlock()
	return int(w.w.Int("select count(*) from message where intent > 0 and next_at > intent_at + 3600000000")) == len(committed) &&
		w.w.Int("select count(*) from message where intent > 0 and next_at <= intent_at + 3600000000") == 0
}

func (w *world) uncertain() (ids []puntuale.MessageID) {
	w.t.Helper()
	rows, err := w.w.DB.SQL.Query("select id from message where intent > 0 order by id")
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id puntuale.MessageID
		if err := rows.Scan(&id); err != nil {
			w.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	return ids
}
