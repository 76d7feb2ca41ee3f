package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
)

// asynqTuning contains the settings of asynq that change its speed. A zero value means asynq's default.
type asynqTuning struct {
	workers        int
	forward, check time.Duration
}

var (
	asynqDefault = asynqTuning{workers: 100}
	asynqTuned   = asynqTuning{workers: 100, forward: 10 * time.Millisecond, check: 10 * time.Millisecond}
	asynqWorkers = []int{20, 100, 400} // the bench reports the best of these settings
)

// noWords is a logger that ignores everything.
type noWords struct{}

func (noWords) Debug(...any) {}
func (noWords) Info(...any)  {}
func (noWords) Warn(...any)  {}
func (noWords) Error(...any) {}
func (noWords) Fatal(...any) {}

// asynqServer is asynq on a Redis of its own.
type asynqServer struct {
	redis     *redisServer
	client    *asynq.Client
	inspector *asynq.Inspector
	server    *asynq.Server
	worked    atomic.Int64
	first     atomic.Int64 // when the first task began
	seen      func(*asynq.Task)
}

func (b *bench) newAsynq(ctx context.Context, t asynqTuning, seen func(*asynq.Task)) (*asynqServer, error) {
	if err := b.redis.start(ctx, b.folder); err != nil {
		return nil, err
	}
	where := asynq.RedisClientOpt{Network: "unix", Addr: b.redis.socket, PoolSize: 64}
	a := &asynqServer{redis: &b.redis, seen: seen, client: asynq.NewClient(where), inspector: asynq.NewInspector(where)}
	a.server = asynq.NewServer(where, asynq.Config{
		Concurrency: t.workers, DelayedTaskCheckInterval: t.forward, TaskCheckInterval: t.check,
		Logger: noWords{}, LogLevel: asynq.FatalLevel, ShutdownTimeout: 10 * time.Second,
	})
	return a, nil
}

func (a *asynqServer) close() {
	_ = errors.Join(a.client.Close(), a.inspector.Close())
	a.redis.stop()
}

// ProcessTask only notes that the task ran.
func (a *asynqServer) ProcessTask(_ context.Context, t *asynq.Task) error {
	a.first.CompareAndSwap(0, time.Now().UnixNano())
	if a.seen != nil {
		a.seen(t)
	}
	a.worked.Add(1)
	return nil
}

// enqueue plans a task for the time due. With the zero time, the task is due immediately.
func (a *asynqServer) enqueue(ctx context.Context, i int, due time.Time) error {
	args := job{Client: int64(i % customers), Session: int64(i % customers), Run: int64(i), Phone: fmt.Sprintf("+39347%07d", i)}
	var opts []asynq.Option
	if !due.IsZero() {
		args.Due = due.UnixMicro()
		opts = append(opts, asynq.ProcessAt(due))
	}
	payload, err := json.Marshal(args)
	if err != nil {
		return err
	}
	_, err = a.client.EnqueueContext(ctx, asynq.NewTask("message", payload), opts...)
	return err
}

// finish waits until n tasks were executed, and Redis lists no task as active or pending. It returns the time at which
// it saw this.
func (a *asynqServer) finish(ctx context.Context, n int, within time.Duration) (time.Time, error) {
	deadline := time.Now().Add(within)
	for {
		if a.worked.Load() >= int64(n) {
			q, err := a.inspector.GetQueueInfo("default")
			if err != nil {
				return time.Time{}, err
			}
			if q.Active == 0 && q.Pending == 0 {
				return time.Now(), nil
			}
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return time.Time{}, errors.Join(ctx.Err(), fmt.Errorf("asynq worked only %d of %d tasks", a.worked.Load(), n))
		}
		time.Sleep(time.Millisecond)
	}
}

// asynqDispatch measures tasks that do nothing, from the beginning of the first task until the last task is removed
// from Redis.
func (b *bench) asynqDispatch(ctx context.Context, name string, durable bool) error {
	n := b.tasks
	if durable {
		n /= 4
	}
	best, chosen, spent := 0.0, 0, effort{}
	for i, c := range asynqWorkers {
		if !b.tries(name, i) {
			continue
		}
		rate, e, err := b.asynqRate(ctx, name, asynqTuning{workers: c, check: 10 * time.Millisecond}, n, durable)
		if errors.Is(err, errNoRedis) {
			b.say("%v", err)
			return nil
		}
		if err != nil {
			return err
		}
		if rate > best {
			best, chosen, spent = rate, c, e
			b.tuned[name] = i
		}
	}
	b.sheet.note(name, perSecond, best)
	b.sheet.noteEffort(name, spent)
	b.say("%s: best with %d workers", name, chosen)
	return nil
}

func (b *bench) asynqRate(ctx context.Context, name string, t asynqTuning, n int, durable bool) (rate float64, spent effort, err error) {
	a, err := b.newAsynq(ctx, t, nil)
	if err != nil {
		return 0, spent, err
	}
	defer a.close()
	if _, err := each(n, 64, func(_, i int) error { return a.enqueue(ctx, i, time.Time{}) }); err != nil {
		return 0, spent, fmt.Errorf("enqueue tasks: %w", err)
	}
	if durable {
		if err := a.redis.fsync(ctx); err != nil {
			return 0, spent, err
		}
	}
	w := b.watch(redis)
	if err := a.server.Start(a); err != nil {
		return 0, spent, fmt.Errorf("start asynq: %w", err)
	}
	end, err := a.finish(ctx, n, 3*time.Minute)
	if err == nil {
		spent = w.stop(name, n)
	}
	a.server.Shutdown()
	return float64(n) / end.Sub(time.Unix(0, a.first.Load())).Seconds(), spent, err
}
