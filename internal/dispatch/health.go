package dispatch

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"puntuale/internal/clock"
)

// health contains the state that other goroutines may read. It is safe for concurrent use.
type health struct {
	clock clock.Clock
	stale time.Duration // after this time without a successful read, the node is unhealthy

	lease atomic.Bool  // true: the lease was renewed in time, by the monotonic clock
	owner atomic.Int64 // id of the node that owns this dispatcher's sessions; 0: none

	mu      sync.Mutex
	member  bool
	records bool
	asked   bool      // true: at least one read has ended
	readAt  time.Time // when the last read succeeded

	refused int       // number of failed claims since the last claim that succeeded
	since   time.Time // when the first of these claims failed
	lately  time.Time // when the last of these claims failed
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

// A single claim may fail. The node becomes unhealthy if claimsRefuse or more claims fail one after the other. In
// addition, at least claimsFail must lie between the first and the last of these failures.
const (
	claimsFail   = 10 * time.Second
	claimsRefuse = 3
)

// claimed records whether the store accepted a claim.
func (h *health) claimed(ok bool, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ok {
		h.refused = 0
		return
	}
	if h.refused++; h.refused == 1 || now.Before(h.since) || now.Sub(h.lately) > h.stale {
		h.refused, h.since = 1, now
	}
	h.lately = now
}

// claims reports whether the store accepts claims. If there was no claim recently, it returns true.
func (h *health) claims(now time.Time) bool {
	return h.refused < claimsRefuse || h.lately.Sub(h.since) < claimsFail || now.Sub(h.lately) > h.stale
}

func (h *health) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.Now()
	if h.readAt.After(now) {
		h.readAt = now // the clock was set back
	}
	switch {
	case !h.member:
		return errors.New("dispatch: not a member of the fleet")
	case !h.leased():
		return errors.New("dispatch: the lease could not be prolonged in time")
	case !h.records:
		return errors.New("dispatch: outcomes cannot be recorded")
	case h.asked && now.Sub(h.readAt) > h.stale:
		return errors.New("dispatch: due messages cannot be read")
	case !h.claims(now):
		return errors.New("dispatch: messages cannot be claimed")
	}
	return nil
}
