package admission

import (
	"context"
	"sync"
	"time"
)

// RefusalPacer delays refusals. A caller that calls again right after each refusal could otherwise keep all processors
// busy. If there are more than rate refusals a second, a refusal waits, at most one second. While it waits, it takes
// only memory. Its methods may be called by many goroutines at once. A nil RefusalPacer delays nothing.
type RefusalPacer struct {
	rate float64 // refusals a second
	now  func() time.Time

	mu   sync.Mutex
	next time.Time // when the next refusal may leave
}

const (
	pacerBurst   = 250 * time.Millisecond // refusals for this much time may leave at once
	longestDelay = time.Second
)

// NewRefusalPacer returns a pacer that lets rate refusals a second leave without delay.
func NewRefusalPacer(rate float64, now func() time.Time) *RefusalPacer {
	return &RefusalPacer{rate: rate, now: now}
}

// Delay returns when the refusal may leave, or when the caller has hung up.
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

// moment gives the next refusal its moment, and returns how long to wait for it.
func (r *RefusalPacer) moment() time.Duration {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if earliest := now.Add(-pacerBurst); r.next.Before(earliest) {
		r.next = earliest
	}
	if latest := now.Add(longestDelay); r.next.After(latest) { // the clock was set back, or there are more refusals than may be delayed
		r.next = latest
		return longestDelay
	}
	wait := r.next.Sub(now)
	r.next = r.next.Add(time.Duration(float64(time.Second) / r.rate))
	return wait
}
