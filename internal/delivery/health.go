package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// taskName is the sender's name in the metrics of background tasks.
const taskName = "events"

const (
	unhealthyAfter = 10 * time.Second
	failsLong      = time.Hour // after this time a failure is logged as an error, because a person must act
)

// health contains the parts of the sender that fail now, and since when. The parts have names such as "record".
type health struct {
	cfg *Config

	mu    sync.Mutex
	fails map[string]failure // the failing parts, by name
}

// failure is the present failure of a part.
type failure struct {
	err           error
	since, logged time.Time
}

func newHealth(cfg *Config) *health { return &health{cfg: cfg, fails: map[string]failure{}} }

// note records whether a part's last call of the store succeeded. It logs the beginning of a failure, logs the failure
// again every hour, and logs its end.
func (h *health) note(part string, err error) {
	now := h.cfg.Clock.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	before, failed := h.fails[part]
	if err == nil {
		if failed {
			delete(h.fails, part)
			h.cfg.Logger.Info("events go out again", "part", part, "failed_for", now.Sub(before.since))
		}
		if len(h.fails) == 0 {
			h.cfg.Meter.TaskDone(taskName, now)
		}
		return
	}
	h.cfg.Meter.TaskFailed(taskName)
	f := failure{err: err, since: now, logged: now}
	if failed {
		f.since, f.logged = before.since, before.logged
	}
	if !failed || now.Sub(before.logged) >= failsLong {
		level := slog.LevelWarn
		if f.logged = now; now.Sub(f.since) >= failsLong {
			level = slog.LevelError
		}
		h.cfg.Logger.Log(context.Background(), level, "events do not go out; they are tried again", "part", part, "error", err, "since", f.since)
	}
	h.fails[part] = f
}

// err returns the failure of a part that has failed for at least unhealthyAfter, or nil.
func (h *health) err() error {
	now := h.cfg.Clock.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for part, f := range h.fails {
		if now.Sub(f.since) >= unhealthyAfter {
			return fmt.Errorf("events do not go out (%s): %w", part, f.err)
		}
	}
	return nil
}
