package admission

import (
	"context"
	"sync"
	"time"
)

// RefusalPacer delays refusals. Without the delay, a caller that calls again right after each refusal could keep all
// processors busy. If there are more refusals a second than the pacer's rate, each further refusal waits, at most one
// second. A waiting refusal uses only memory. Many goroutines may call its methods at the same time. A nil RefusalPacer
// delays nothing.
type RefusalPacer struct {
	rate float64 // how many refusals are sent in a second without a delay
	now  func() time.Time

	mu   sync.Mutex
	next time.Time // when the next refusal may be sent
}

const (
	pacerBurst   = 250 * time.Millisecond // after a quiet time, the pacer delays none of the next refusals, as many as the rate allows in this time
	longestDelay = time.Second
)

// NewRefusalPacer returns a pacer that delays refusals only if there are more than rate in a second. The argument rate
// must be above 0.
func NewRefusalPacer(rate float64, now func() time.Time) *RefusalPacer {
	return &RefusalPacer{rate: rate, now: now}
}

// Delay waits until the refusal may be sent, or until ctx ends because the caller closed the connection.
func (r *RefusalPacer) Delay(ctx context.Context) {
	if r == nil {
		return
	}
	wait := r.reserveTime()
	if wait <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	<-ctx.Done()
}

// reserveTime reserves the next refusal's time, and returns how long to wait until this time.
func (r *RefusalPacer) reserveTime() time.Duration {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if earliest := now.Add(-pacerBurst); r.next.Before(earliest) {
		r.next = earliest
	}
	if latest := now.Add(longestDelay); r.next.After(latest) { // the clock was set back, or there are too many refusals
		r.next = latest
		return longestDelay
	}
	wait := r.next.Sub(now)
	r.next = r.next.Add(time.Duration(float64(time.Second) / r.rate))
	return wait
}
