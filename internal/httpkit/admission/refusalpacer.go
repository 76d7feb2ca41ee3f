package admission

import (
	"context"
	"sync"
	"time"
)

// RefusalPacer keeps refusals from costing more than the work that they avoid. A caller that calls again right after each refusal could
// keep all processors busy. So beyond rate a second a refusal waits for its moment, at most a second. Meanwhile it takes only memory. Safe
// for concurrent use; a nil RefusalPacer delays nothing.
type RefusalPacer struct {
	rate float64 // a second
	now  func() time.Time

	mu   sync.Mutex
	next time.Time // the moment of the next
}

const (
	pacerBurst   = 250 * time.Millisecond // of the rate may go at once
	longestDelay = time.Second
)

// NewRefusalPacer lets so many refusals a second go without a delay.
func NewRefusalPacer(rate float64, now func() time.Time) *RefusalPacer {
	return &RefusalPacer{rate: rate, now: now}
}

// Delay returns when the refusal may go, or when the caller is gone.
func (r *RefusalPacer) Delay(ctx context.Context) {
	if r == nil {
		return
	}
	wait := r.moment()
	if wait <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	<-ctx.Done()
}

// moment gives the next refusal its moment, and returns how far away that is.
func (r *RefusalPacer) moment() time.Duration {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if earliest := now.Add(-pacerBurst); r.next.Before(earliest) {
		r.next = earliest
	}
	if latest := now.Add(longestDelay); r.next.After(latest) { // the clock was set back, or there are more than can be delayed
		r.next = latest
		return longestDelay
	}
	wait := r.next.Sub(now)
	r.next = r.next.Add(time.Duration(float64(time.Second) / r.rate))
	return wait
}
