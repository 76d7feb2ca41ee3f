package main

import (
	"context"
	"log/slog"
	"time"

	"puntuale/internal/clock"
)

// refillEvery is how often accounts are looked through for a refill that has come, and the store is maintained.
const refillEvery = time.Minute

// refills refills accounts and maintains the store, at once and each minute, until it is stopped. Any number of nodes
// may do so.
type refills struct {
	refill func(context.Context) (int, error)
	upkeep func(context.Context) error
	clock  clock.Clock
	logger *slog.Logger
	cancel context.CancelFunc
	done   chan struct{}
}

func startRefills(refill func(context.Context) (int, error), upkeep func(context.Context) error, c clock.Clock, logger *slog.Logger) *refills {
	ctx, cancel := context.WithCancel(context.Background())
	r := &refills{refill: refill, upkeep: upkeep, clock: c, logger: logger, cancel: cancel, done: make(chan struct{})}
	go r.run(ctx)
	return r
}

// stop ends it and waits until it did nothing more. It may be called twice.
func (r *refills) stop() {
	r.cancel()
	<-r.done
}

func (r *refills) run(ctx context.Context) {
	defer close(r.done)
	for {
		n, err := r.refill(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.logger.Warn("accounts were not refilled; it is tried again", "error", err, "accounts", n)
		case n > 0:
			r.logger.Info("accounts refilled", "accounts", n)
		}
		if err := r.upkeep(ctx); err != nil && ctx.Err() == nil {
			r.logger.Warn("the store was not maintained; it is tried again", "error", err)
		}
		fired, release := r.clock.After(refillEvery)
		select {
		case <-fired:
		case <-ctx.Done():
			release()
			return
		}
	}
}
