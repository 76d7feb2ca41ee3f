package httpkit

import (
	"context"
	"sync"
	"time"
)

// Restraint keeps refusals from costing more than the work they spare. A caller that calls again right after each
// refusal could keep all processors busy. So beyond rate a second an answer waits for its turn, at most a second.
// Meanwhile it takes only memory. Safe for concurrent use; a nil Restraint holds nothing back.
type Restraint struct {
	rate float64 // a second
	now  func() time.Time

	mu   sync.Mutex
	next time.Time // the turn of the next
}

const (
	restraintBurst = 250 * time.Millisecond // of the rate may go at once
	longestHold    = time.Second
)

// NewRestraint lets so many refusals a second go at once.
func NewRestraint(rate float64, now func() time.Time) *Restraint {
	return &Restraint{rate: rate, now: now}
}

// Hold returns when the refusal may go, or when the caller is gone.
func (r *Restraint) Hold(ctx context.Context) {
	if r == nil {
		return
	}
	wait := r.turn()
	if wait <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	<-ctx.Done()
}

// turn gives the next refusal its turn, and returns how far away that is.
func (r *Restraint) turn() time.Duration {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if earliest := now.Add(-restraintBurst); r.next.Before(earliest) {
		r.next = earliest
	}
	if latest := now.Add(longestHold); r.next.After(latest) { // the clock was set back, or there are more than can be held
		r.next = latest
		return longestHold
	}
	wait := r.next.Sub(now)
	r.next = r.next.Add(time.Duration(float64(time.Second) / r.rate))
	return wait
}
