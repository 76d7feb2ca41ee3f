package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/store"
)

// refillEvery is how often accounts are looked through for a refill that has come, and the store is maintained.
const refillEvery = time.Minute

// refills refills accounts and, beside that, maintains the store and archives what is old, each at once and a minute after
// it last ended, until it is stopped. Any number of nodes may do so.
type refills struct {
	clock  clock.Clock
	logger *slog.Logger
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

// startRefills begins; archive may be nil.
func startRefills(refill func(context.Context) (int, error), upkeep, archive func(context.Context) error, c clock.Clock, logger *slog.Logger) *refills {
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
	if archive != nil {
		last := ""
		r.loops.Go(func() { // by itself: it rests most of its time
			r.repeat(ctx, func() { last = archived(ctx, archive(ctx), last, logger) })
		})
	}
	return r
}

// archived logs why nothing was archived, once for each reason, and returns the reason.
func archived(ctx context.Context, err error, last string, logger *slog.Logger) string {
	switch {
	case ctx.Err() != nil:
		return last
	case err == nil && last != "":
		logger.Info("old runs are archived again")
	case err == nil, err.Error() == last:
	case puntuale.CodeOf(err) == puntuale.CodeUnavailable:
		logger.Warn("old runs were not archived; it is tried again", "error", err)
	default: // the folder: full, not to be written, damaged
		logger.Error("old runs are not archived; it is tried again each minute", "error", err)
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// archive returns what archives old runs; nil where no folder is set. It goes by days, so that a quiet installation gets
// one file a day.
func (s *server) archive(cfg *serverConfig, vault *auth.Vault) func(context.Context) error {
	if cfg.Archive == "" {
		return nil
	}
	a := store.NewArchiver(s.store, store.ArchiverConfig{
		Folder: cfg.Archive, Program: versionText(),
		Mark: func(client puntuale.ClientID, phone string) string { return control.Mark(vault, client, phone) },
	})
	return func(ctx context.Context) error {
		now := cfg.Clock.Now()
		_, err := a.Run(ctx, now, cfg.ArchiveAfter.Before(now).Truncate(24*time.Hour))
		return err
	}
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
