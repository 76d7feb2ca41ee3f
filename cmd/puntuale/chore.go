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

// chore is what a server does in the background, again and again until it stops. Each has a loop of its own, so that one
// that takes its time delays no other. Any number of servers may do the same ones.
type chore struct {
	name   string                      // in the log and in figures
	first  time.Duration               // waits so long before the first time
	every  time.Duration               // rests so long after each
	do     func(context.Context) error // returns early when its context ends
	urgent func(error) bool            // tells failures that need somebody at once; nil: none does
}

// How often chores are done.
const (
	choreEvery    = time.Minute
	checkFirst    = time.Minute // a start has better things to do
	checkEvery    = 24 * time.Hour
	backlogEvery  = 15 * time.Second
	readinessEach = 5 * time.Second
	failsLong     = time.Hour // a chore that fails for so long needs somebody
)

// chores returns what this server does.
func (s *server) chores(cfg *serverConfig, vault *auth.Vault, m *meter) []chore {
	all := []chore{
		{name: "refill", every: choreEvery, do: func(ctx context.Context) error {
			n, err := s.control.Refill(ctx)
			if n > 0 {
				cfg.Logger.Info("accounts refilled", "accounts", n)
			}
			return err
		}},
		// Years of old contents take many minutes.
		{name: "maintenance", every: choreEvery, do: s.control.Maintain},
		{name: "disk", every: choreEvery, do: newDisks(cfg, m).look},
		{name: "readiness", every: readinessEach, do: func(ctx context.Context) error { s.health.probe(ctx); return nil }},
	}
	if databaseFile(&cfg.baseSettings, cfg.Data) != "" {
		all = append(all, chore{name: "check", first: checkFirst, every: checkEvery, do: s.store.CheckFile})
	}
	if cfg.has(roleDispatch) {
		all = append(all, chore{name: "backlog", every: backlogEvery, do: func(ctx context.Context) error {
			now := cfg.Clock.Now()
			ready, waiting, err := s.store.Backlog(ctx, now)
			if err == nil {
				m.backlog.set(now, ready, waiting)
			}
			return err
		}})
	}
	if archive := s.archive(cfg, vault); archive != nil {
		// What is not the store's fault is the folder's: full, not to be written, damaged.
		all = append(all, chore{name: "archive", every: choreEvery, do: archive, urgent: func(err error) bool { return !puntuale.StoreAway(err) }})
	}
	return all
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

// chorus runs chores.
type chorus struct {
	clock  clock.Clock
	logger *slog.Logger
	meter  *meter
	cancel context.CancelFunc
	loops  sync.WaitGroup
}

// startChores begins each one.
func startChores(all []chore, c clock.Clock, logger *slog.Logger, m *meter) *chorus {
	ctx, cancel := context.WithCancel(context.Background())
	r := &chorus{clock: c, logger: logger, meter: m, cancel: cancel}
	for i := range all {
		m.taskFailures.WithLabelValues(all[i].name) // 0 until the first
		r.loops.Go(func() { r.repeat(ctx, &all[i]) })
	}
	return r
}

// stop ends them and waits until nothing is done any more. It may be called twice.
func (r *chorus) stop() {
	r.cancel()
	r.loops.Wait()
}

func (r *chorus) repeat(ctx context.Context, c *chore) {
	if c.first > 0 && r.clock.Sleep(ctx, c.first) != nil {
		return
	}
	var t trouble
	for ctx.Err() == nil {
		err := c.do(ctx)
		if ctx.Err() != nil {
			return
		}
		r.note(c, &t, err)
		if r.clock.Sleep(ctx, c.every) != nil {
			return
		}
	}
}

// trouble is a chore's failure, while it lasts.
type trouble struct {
	since, told time.Time // since is zero without any
	level       slog.Level
	reason      string
}

// note counts and logs how a chore ended. A failure has a line when it begins, when its reason or its weight changes, and
// every hour.
func (r *chorus) note(c *chore, t *trouble, err error) {
	now := r.clock.Now()
	if err == nil {
		r.meter.taskDone.WithLabelValues(c.name).Set(float64(now.Unix()))
		if !t.since.IsZero() {
			r.logger.Info("a background task works again", "task", c.name, "failed_for", now.Sub(t.since))
		}
		*t = trouble{}
		return
	}
	r.meter.taskFailures.WithLabelValues(c.name).Inc()
	if t.since.IsZero() {
		t.since = now
	}
	level := slog.LevelWarn
	if now.Sub(t.since) >= failsLong || c.urgent != nil && c.urgent(err) {
		level = slog.LevelError
	}
	if level == t.level && err.Error() == t.reason && now.Sub(t.told) < failsLong {
		return
	}
	t.level, t.reason, t.told = level, err.Error(), now
	r.logger.Log(context.Background(), level, "a background task fails; it is tried again", "task", c.name, "error", err, "since", t.since)
}
