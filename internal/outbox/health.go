package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// taskName names the sender among the background tasks in figures.
const taskName = "events"

const (
	unhealthyAfter = 10 * time.Second
	failsLong      = time.Hour // then somebody must act
)

// health knows which parts fail and since when.
type health struct {
	cfg *Config

	mu    sync.Mutex
	fails map[string]failure // by part
}

// failure is a part's trouble, as long as it lasts.
type failure struct {
	err         error
	since, told time.Time
}

func newHealth(cfg *Config) *health { return &health{cfg: cfg, fails: map[string]failure{}} }

// note takes how a part's call of the store ended. It logs when a failure begins, each hour, and when the part works again.
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
	f := failure{err: err, since: now, told: now}
	if failed {
		f.since, f.told = before.since, before.told
	}
	if !failed || now.Sub(before.told) >= failsLong {
		level := slog.LevelWarn
		if f.told = now; now.Sub(f.since) >= failsLong {
			level = slog.LevelError
		}
		h.cfg.Logger.Log(context.Background(), level, "events do not go out; they are tried again", "part", part, "error", err, "since", f.since)
	}
	h.fails[part] = f
}

// err is what has failed for a while.
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
