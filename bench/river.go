package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// job is the argument of a River job. It contains the values of the product's message row.
type job struct {
	Client  int64  `json:"client"`
	Session int64  `json:"session"`
	Run     int64  `json:"run"`
	Phone   string `json:"phone"`
	Due     int64  `json:"due"` // the due time, in microseconds
}

func (job) Kind() string { return "message" }

// riverTuning contains the settings of River that change its speed. A zero value means River's default.
type riverTuning struct {
	workers        int
	cooldown, poll time.Duration
}

// River waits for its cooldown between two fetches. River's documentation says that the cooldown limits River's rate, so
// the tuned settings shorten it. One setting has as many workers as River allows, like River's own benchmark.
var (
	riverDefault = riverTuning{workers: 1000}
	riverTuned   = riverTuning{workers: 1000, cooldown: time.Millisecond, poll: 5 * time.Millisecond}
	riverRates   = []riverTuning{ // the bench reports the best of these settings
		{workers: 500, cooldown: time.Millisecond, poll: 10 * time.Millisecond},
		{workers: 2000, cooldown: time.Millisecond, poll: 10 * time.Millisecond},
		{workers: river.QueueNumWorkersMax, cooldown: 2 * time.Millisecond, poll: 10 * time.Millisecond},
	}
)

func (t riverTuning) String() string {
	return fmt.Sprintf("%d workers, cooldown %v, poll %v", t.workers, t.cooldown, t.poll)
}

// riverServer is River on a database of its own.
type riverServer struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	drop   func()
	worked atomic.Int64
	first  atomic.Int64 // when the first job began
}

// riverWorker notes when jobs begin. The job's row has the state "running" before that.
type riverWorker struct {
	river.WorkerDefaults[job]
	work func(*river.Job[job])
}

func (w *riverWorker) Work(_ context.Context, j *river.Job[job]) error {
	w.work(j)
	return nil
}

func (b *bench) newRiver(ctx context.Context, t riverTuning, seen func(*river.Job[job])) (r *riverServer, err error) {
	_, address, drop, err := b.freshPostgres(ctx, "")
	if err != nil {
		return nil, err
	}
	r = &riverServer{drop: drop}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	cfg, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 20
	if r.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return nil, err
	}
	driver := riverpgxv5.New(r.pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet()})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, fmt.Errorf("make River's tables: %w", err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{work: func(j *river.Job[job]) {
		r.first.CompareAndSwap(0, time.Now().UnixNano())
		if seen != nil {
			seen(j)
		}
		r.worked.Add(1)
	}})
	r.client, err = river.NewClient(driver, &river.Config{
		Logger: quiet(), Workers: workers, FetchCooldown: t.cooldown, FetchPollInterval: t.poll,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: max(1, t.workers)}},
	})
	return r, err
}

func (r *riverServer) close() {
	if r.pool != nil {
		r.pool.Close()
	}
	r.drop()
}

// insert inserts n jobs in batches of group jobs, as fast as River can.
func (r *riverServer) insert(ctx context.Context, n, group int, opts func(i int) *river.InsertOpts) error {
	for first := 0; first < n; first += group {
		jobs := make([]river.InsertManyParams, min(group, n-first))
		for i := range jobs {
			jobs[i] = riverJob(first+i, opts(first+i))
		}
		if _, err := r.client.InsertManyFast(ctx, jobs); err != nil {
			return fmt.Errorf("insert jobs: %w", err)
		}
	}
	return nil
}

func riverJob(i int, opts *river.InsertOpts) river.InsertManyParams {
	args := job{Client: int64(i % customers), Session: int64(i % customers), Run: int64(i), Phone: fmt.Sprintf("+39347%07d", i)}
	if opts != nil {
		args.Due = opts.ScheduledAt.UnixMicro()
	}
	return river.InsertManyParams{Args: args, InsertOpts: opts}
}

// finish waits until n jobs were executed and their outcomes are committed. It returns the time at which it saw this.
func (r *riverServer) finish(ctx context.Context, n int, within time.Duration) (time.Time, error) {
	deadline := time.Now().Add(within)
	for r.worked.Load() < int64(n) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return time.Time{}, errors.Join(ctx.Err(), fmt.Errorf("River worked only %d of %d jobs", r.worked.Load(), n))
		}
		time.Sleep(time.Millisecond)
	}
	for {
		var running bool
		if err := r.pool.QueryRow(ctx, `select exists (select 1 from river_job where state = 'running')`).Scan(&running); err != nil {
			return time.Time{}, err
		}
		if !running {
			return time.Now(), nil
		}
		time.Sleep(time.Millisecond)
	}
}

// riverDispatch measures jobs that do nothing, from the start of the first job until the last job is recorded.
// Scheduled jobs were planned for times that have just passed.
func (b *bench) riverDispatch(ctx context.Context, name string, scheduled bool) error {
	best, chosen, spent := 0.0, riverTuning{}, effort{}
	for i, t := range riverRates {
		if !b.tries(name, i) {
			continue
		}
		rate, e, err := b.riverRate(ctx, name, t, scheduled)
		if err != nil {
			return err
		}
		if rate > best {
			best, chosen, spent = rate, t, e
			b.tuned[name] = i
		}
	}
	b.sheet.note(name, perSecond, best)
	b.sheet.noteEffort(name, spent)
	b.say("%s: best with %v", name, chosen)
	return nil
}

func (b *bench) riverRate(ctx context.Context, name string, t riverTuning, scheduled bool) (rate float64, spent effort, err error) {
	r, err := b.newRiver(ctx, t, nil)
	if err != nil {
		return 0, spent, err
	}
	defer r.close()
	opts := func(int) *river.InsertOpts { return nil }
	if scheduled {
		due := time.Now().Add(time.Second + time.Duration(b.rows/20_000)*time.Second) // all jobs are inserted before this time
		opts = func(int) *river.InsertOpts { return &river.InsertOpts{ScheduledAt: due} }
		if err := r.insert(ctx, b.rows, 5000, opts); err != nil {
			return 0, spent, err
		}
		time.Sleep(time.Until(due))
	} else if err := r.insert(ctx, b.rows, 5000, opts); err != nil {
		return 0, spent, err
	}
	b.calm(postgres)
	w := b.watch(postgres)
	if err := r.client.Start(ctx); err != nil {
		return 0, spent, fmt.Errorf("start River: %w", err)
	}
	end, err := r.finish(ctx, b.rows, 3*time.Minute)
	if err == nil {
		spent = w.stop(name, b.rows)
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	if err := errors.Join(err, r.client.Stop(stopping)); err != nil {
		return 0, spent, err
	}
	return float64(b.rows) / end.Sub(time.Unix(0, r.first.Load())).Seconds(), spent, nil
}
