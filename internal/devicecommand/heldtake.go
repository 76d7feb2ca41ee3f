package devicecommand

import (
	"context"
	"slices"
	"sync"
	"time"
)

// heldTake contains the messages that the device took in one call and still holds. Two goroutines use it: one renews
// the holds, and the other passes messages to the command.
type heldTake struct {
	r *runner

	mu        sync.Mutex
	attempts  []string // the attempts that are not reported yet
	lost      map[string]bool
	confirmed time.Time // when the server last confirmed the holds for the whole lease
}

// keep renews the holds periodically until ctx ends.
func (h *heldTake) keep(ctx context.Context) {
	for h.r.Clock.Sleep(ctx, h.r.Lease/3) == nil {
		if err := h.renew(ctx); err != nil && ctx.Err() == nil {
			h.r.Logger.Warn("the holds could not be renewed; it is tried again", "error", err)
		}
	}
}

// stillHeld reports whether the device still holds an attempt, and will hold it for some time. stillHeld asks the
// server, unless the server confirmed the hold recently.
func (h *heldTake) stillHeld(ctx context.Context, attempt string) (bool, error) {
	h.mu.Lock()
	lately := h.r.Clock.Now().Sub(h.confirmed) < h.r.Lease/2
	h.mu.Unlock()
	if !lately {
		if err := h.r.Client.Repeat(ctx, func() error { return h.renew(ctx) }); err != nil {
			return false, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.lost[attempt], nil
}

func (h *heldTake) renew(ctx context.Context) error {
	h.mu.Lock()
	attempts := slices.Clone(h.attempts)
	h.mu.Unlock()
	if len(attempts) == 0 {
		return nil
	}
	begun := h.r.Clock.Now()
	lost, err := h.r.Client.RenewHolds(ctx, attempts, h.r.Lease)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.confirmed = begun
	for _, attempt := range lost {
		h.lost[attempt] = true
	}
	h.attempts = slices.DeleteFunc(h.attempts, func(a string) bool { return h.lost[a] })
	return nil
}

// release stops renewing the hold of an attempt.
func (h *heldTake) release(attempt string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts = slices.DeleteFunc(h.attempts, func(a string) bool { return a == attempt })
}
