package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"puntuale/internal/clock"
)

// refillEvery is how often accounts are looked through for a refill that has come, and the store is maintained.
const refillEvery = time.Minute

// refills refills accounts and, beside that, maintains the store, each at once and a minute after it last ended, until it
// is stopped. Any number of nodes may do so.
type refills struct {
	clock  clock.Clock
	logger *slog.Logger
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

func startRefills(refill func(context.Context) (int, error), upkeep func(context.Context) error, c clock.Clock, logger *slog.Logger) *refills {
	ctx, cancel := context.WithCancel(context.Background())
	r := &refills{clock: c, logger: logger, cancel: cancel}
	r.loops.Go(func() {
		r.repeat(ctx, func() {
			n, err := refill(ctx)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				logger.Warn("accounts were not refilled; it is tried again", "error", err, "accounts", n)
			case n > 0:
				logger.Info("accounts refilled", "accounts", n)
			}
		})
	})
	r.loops.Go(func() { // by itself: years of old contents take many minutes
		r.repeat(ctx, func() {
			if err := upkeep(ctx); err != nil && ctx.Err() == nil {
				logger.Warn("the store was not maintained; it is tried again", "error", err)
			}
		})
	})
	return r
}

// stop ends it and waits until it did nothing more. It may be called twice.
func (r *refills) stop() {
	r.cancel()
	r.loops.Wait()
}

func (r *refills) repeat(ctx context.Context, do func()) {
	for ctx.Err() == nil {
		do()
		fired, release := r.clock.After(refillEvery)
		select {
		case <-fired:
		case <-ctx.Done():
			release()
		}
	}
}
