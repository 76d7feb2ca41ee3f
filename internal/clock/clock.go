// Package clock is the only code of the product that calls time.Now or creates timers and tickers. All other code gets
// a Clock, or the time itself, as an input.
package clock

import (
	"context"
	"sync"
	"time"
)

// Clock returns the time and waits. It is safe for concurrent use.
type Clock interface {
	// Now returns the current time in UTC, truncated to microseconds. Stores have the same precision.
	Now() time.Time
	// After returns a channel that receives one value after the duration d, or at once if d <= 0. stop releases the
	// timer early.
	After(d time.Duration) (fired <-chan time.Time, stop func())
	// Sleep waits for the duration d, or returns ctx's error when ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// System returns the machine's clock. Inside a testing/synctest bubble, it returns the bubble's clock.
func System() Clock { return system{} }

type system struct{}

func (system) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func (system) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

func (s system) Sleep(ctx context.Context, d time.Duration) error { return sleep(ctx, s, d) }

// Fake is a clock for tests. Its time changes only by Advance and Set.
type Fake struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*fakeTimer]struct{}
	more   chan struct{} // closed when a goroutine begins to wait; nil: no test waits for that
}

type fakeTimer struct {
	at time.Time
	c  chan time.Time
}

// NewFake returns a clock whose time is now.
func NewFake(now time.Time) *Fake {
	return &Fake{now: now.UTC().Truncate(time.Microsecond), timers: map[*fakeTimer]struct{}{}}
}

func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Advance moves the clock forward by d, and fires the timers that become due.
func (f *Fake) Advance(d time.Duration) { f.Set(f.Now().Add(d)) }

// Set moves the clock to a time, which may be in the past, and fires the timers that become due.
func (f *Fake) Set(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = now.UTC().Truncate(time.Microsecond)
	for t := range f.timers {
		if !t.at.After(f.now) {
			t.c <- f.now
			delete(f.timers, t)
		}
	}
}

func (f *Fake) After(d time.Duration) (<-chan time.Time, func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &fakeTimer{at: f.now.Add(d), c: make(chan time.Time, 1)}
	if d <= 0 {
		t.c <- f.now
		return t.c, func() {}
	}
	f.timers[t] = struct{}{}
	if f.more != nil {
		close(f.more)
		f.more = nil
	}
	return t.c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.timers, t)
	}
}

// Waiters returns how many goroutines wait for the clock.
func (f *Fake) Waiters() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.timers)
}

// Waiting returns when at least n goroutines wait for the clock, or with ctx's error when ctx ends.
func (f *Fake) Waiting(ctx context.Context, n int) error {
	return f.until(ctx, func() bool { return len(f.timers) >= n })
}

// WaitingUntil returns when a goroutine waits for exactly the time end, or with ctx's error when ctx ends.
func (f *Fake) WaitingUntil(ctx context.Context, end time.Time) error {
	return f.until(ctx, func() bool {
		for t := range f.timers {
			if t.at.Equal(end) {
				return true
			}
		}
		return false
	})
}

// until checks the condition each time a goroutine begins to wait. It returns when the condition is true. The condition
// runs with the lock held.
func (f *Fake) until(ctx context.Context, condition func() bool) error {
	for {
		f.mu.Lock()
		met, more := condition(), f.more
		if more == nil {
			more = make(chan struct{})
			f.more = more
		}
		f.mu.Unlock()
		if met {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *Fake) Sleep(ctx context.Context, d time.Duration) error { return sleep(ctx, f, d) }

func sleep(ctx context.Context, c Clock, d time.Duration) error {
	fired, stop := c.After(d)
	defer stop()
	select {
	case <-fired:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
