package dispatch

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"puntuale/internal/clock"
)

// health is what others may ask about the dispatcher. Its methods may be called by many goroutines at once.
type health struct {
	clock clock.Clock
	stale time.Duration // without a read that succeeded

	lease atomic.Bool // prolonged in time, by the monotonic clock

	mu      sync.Mutex
	member  bool
	records bool
	asked   bool      // some read ended
	readAt  time.Time // the last that succeeded
}

func newHealth(cfg *Config) *health {
	return &health{clock: cfg.Clock, stale: 5*cfg.Poll + callWait, records: true}
}

func (h *health) leased() bool { return h.lease.Load() }

func (h *health) joined(yes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.member = yes
}

func (h *health) recording(ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.records = ok
}

func (h *health) read(ok bool, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ok || !h.asked {
		h.asked, h.readAt = true, now
	}
}

func (h *health) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.member:
		return errors.New("dispatch: not a member of the fleet")
	case !h.leased():
		return errors.New("dispatch: the lease could not be prolonged in time")
	case !h.records:
		return errors.New("dispatch: outcomes cannot be recorded")
	case h.asked && h.clock.Now().Sub(h.readAt) > h.stale:
		return errors.New("dispatch: due messages cannot be read")
	}
	return nil
}
