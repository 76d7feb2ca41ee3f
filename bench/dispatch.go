package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/dispatch"
	"puntuale/internal/store"
)

const (
	ourDispatch    = "dispatch, intent and outcome on disk"
	riverImmediate = "River, immediate jobs"
	riverScheduled = "River, scheduled jobs that came due"
	asynqFast      = "asynq, Redis without fsync"
	asynqDurable   = "asynq, Redis with appendfsync always"
)

// dispatches measures the time from the first claim to the last outcome on disk. All messages are due, and the network
// accepts each message immediately.
func (b *bench) dispatches(ctx context.Context) error {
	var failed error
	for _, engine := range b.engines() {
		failed = errors.Join(failed, b.dispatch(ctx, onEngine(ourDispatch, engine), engine, 1, 0, false))
	}
	if b.onPostgres() {
		failed = errors.Join(failed, b.dispatch(ctx, onEngine(ourDispatch+", 3 nodes", postgres), postgres, 3, 0, false))
	}
	if !b.comparesOthers() {
		return failed
	}
	if b.onPostgres() {
		failed = errors.Join(failed, b.riverDispatch(ctx, riverImmediate, false), b.riverDispatch(ctx, riverScheduled, true))
	}
	return errors.Join(failed, b.asynqDispatch(ctx, asynqFast, false), b.asynqDispatch(ctx, asynqDurable, true))
}

// besidePending returns the name of the figure of dispatching while other messages wait.
func besidePending(pending int, engine string) string {
	return onEngine(ourDispatch+", beside "+count(pending)+" pending", engine)
}

func scattered(pending int, engine string) string {
	return onEngine(ourDispatch+", among "+count(pending)+" pending", engine)
}

// dispatchesBeside measures dispatching while other messages wait for later days. In the first case, the due messages
// were inserted after the waiting messages, like reminders for today. In the second case, the due messages are
// scattered among the waiting messages, each on a different page of the database.
func (b *bench) dispatchesBeside(ctx context.Context) (failed error) {
	for _, engine := range b.engines() {
		failed = errors.Join(failed, b.dispatch(ctx, besidePending(0, engine), engine, 1, 0, false))
		for _, pending := range b.pending {
			if pending < 3*b.rows || b.skips(engine, pending) {
				continue
			}
			failed = errors.Join(failed, b.dispatch(ctx, besidePending(pending, engine), engine, 1, pending, false))
			if b.first() || pending <= 1_000_000 {
				failed = errors.Join(failed, b.dispatch(ctx, scattered(pending, engine), engine, 1, pending, true))
			}
		}
	}
	return failed
}

// dispatch does one measurement of dispatching.
func (b *bench) dispatch(ctx context.Context, name, engine string, nodes, pending int, among bool) error {
	f, err := b.fixture(ctx, engine, pending)
	if err != nil {
		return err
	}
	defer f.close()
	due := time.Now().Add(-time.Minute)
	if among {
		err = f.makeDue(ctx, b.rows, pending, due)
	} else {
		err = f.put(ctx, load{first: 2*pending + 1, n: b.rows, steps: 1, due: due.UnixMicro()})
	}
	if err != nil {
		return fmt.Errorf("plan messages: %w", err)
	}
	b.calm(engine)
	t := newTally(b.rows)
	w := b.watch(engine)
	stop, err := f.dispatchers(ctx, nodes, t, puntuale.NoMeter{})
	if err != nil {
		return err
	}
	took, err := t.wait(ctx, 30*time.Second+time.Duration(b.rows/2000)*time.Second)
	if err == nil {
		b.sheet.note(name, perSecond, float64(b.rows)/took.Seconds())
		w.note(name, b.rows)
	}
	return errors.Join(err, stop())
}

// put inserts rows with SQL, without the product's code.
func (f *fixture) put(ctx context.Context, l load) error {
	db, err := plain(f.engine, f.address)
	if err != nil {
		return err
	}
	defer db.Close()
	s := stocked{benchDatabase: f.benchDatabase, clients: f.clients}
	if err := s.put(ctx, db, l); err != nil {
		return err
	}
	return s.tidy(ctx, db)
}

// makeDue moves some waiting messages, evenly spread over the table, to a time in the past. It moves only the first
// message of each run, because the recipient's other messages would wait for it.
func (f *fixture) makeDue(ctx context.Context, n, pending int, due time.Time) error {
	db, err := plain(f.engine, f.address)
	if err != nil {
		return err
	}
	defer db.Close()
	every := pending / 3 / n
	if every < 1 {
		return fmt.Errorf("%d of %d pending messages cannot be made due", n, pending)
	}
	first := f.firstPending
	_, err = db.ExecContext(ctx, fmt.Sprintf(`update message set due_at = %d, next_at = %[1]d, valid_until = %d
 where step = 0 and state = 0 and ((id - %d) / 3) %% %d = 0 and (id - %[3]d) / 3 < %[5]d`,
		due.UnixMicro(), due.Add(24*time.Hour).UnixMicro(), first, every, every*n))
	if err != nil {
		return err
	}
	s := stocked{benchDatabase: f.benchDatabase, clients: f.clients}
	return s.tidy(ctx, db)
}

// dispatchers starts nodes on the fixture's database. The first node uses the fixture's store. Each other node has its
// own store.
func (f *fixture) dispatchers(ctx context.Context, nodes int, t *tally, m dispatch.Meter) (stop func() error, err error) {
	var running []*dispatch.Dispatcher
	var stores []*store.Store
	stop = func() (err error) {
		for _, d := range running {
			stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
			err = errors.Join(err, d.Stop(stopping))
			cancel()
		}
		for _, s := range stores {
			err = errors.Join(err, s.Close())
		}
		return err
	}
	for i := range nodes {
		s := f.store
		if i > 0 {
			if s, err = f.open(ctx); err != nil {
				return nil, errors.Join(err, stop())
			}
			stores = append(stores, s)
		}
		d := dispatch.New(dispatch.Config{
			Queue: t.counting(s), Fleet: s, Clock: clock.System(), Meter: m, Logger: quiet(),
			Connector: func(puntuale.Session) puntuale.Connector { return noop{} },
		})
		if err := d.Start(ctx); err != nil {
			return nil, errors.Join(err, stop())
		}
		running = append(running, d)
	}
	return stop, nil
}

// stopLimit is the longest time in which a program or a node must stop.
const stopLimit = 30 * time.Second

// noop is a connector that accepts every message immediately.
type noop struct{}

func (noop) Capabilities() puntuale.Capabilities {
	return puntuale.Capabilities{Name: "noop", Slots: 1000, SendTimeout: 10 * time.Second, Recovery: puntuale.RecoverSameID}
}
func (noop) Online(puntuale.SessionID) bool { return true }
func (noop) Prepare(_ context.Context, e puntuale.Envelope) (puntuale.Prepared, error) {
	return puntuale.Prepared{Envelope: e}, nil
}

func (noop) Send(context.Context, puntuale.Prepared) (puntuale.Acceptance, error) {
	return puntuale.Acceptance{}, nil
}

// tally counts the sent messages whose outcomes are on disk. The field first is the time of the first claim, and last
// the time of the last outcome.
type tally struct {
	want  int64
	mu    sync.Mutex
	first time.Time
	last  time.Time
	done  atomic.Int64
	all   chan struct{}
}

func newTally(want int) *tally { return &tally{want: int64(want), all: make(chan struct{})} }

// counted is a queue that counts claims and outcomes.
type counted struct {
	puntuale.Queue
	t *tally
}

func (t *tally) counting(q puntuale.Queue) puntuale.Queue { return counted{q, t} }

func (c counted) Claim(ctx context.Context, claim puntuale.Claim) ([]puntuale.ClaimAnswer, error) {
	c.t.mu.Lock()
	if c.t.first.IsZero() {
		c.t.first = time.Now()
	}
	c.t.mu.Unlock()
	return c.Queue.Claim(ctx, claim)
}

func (c counted) Record(ctx context.Context, now time.Time, results []puntuale.Result) ([]bool, error) {
	applied, err := c.Queue.Record(ctx, now, results)
	n := int64(0)
	for i, ok := range applied {
		if ok && results[i].Outcome.Verdict == puntuale.Sent {
			n++
		}
	}
	if sum := c.t.done.Add(n); err == nil && n > 0 && sum >= c.t.want && sum-n < c.t.want {
		c.t.last = time.Now()
		close(c.t.all)
	}
	return applied, err
}

// wait returns the time from the first claim to the last outcome.
func (t *tally) wait(ctx context.Context, within time.Duration) (time.Duration, error) {
	select {
	case <-t.all:
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.last.Sub(t.first), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(within):
		return 0, fmt.Errorf("only %d of %d were sent", t.done.Load(), t.want)
	}
}
