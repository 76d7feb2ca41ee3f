package admission

import (
	"sync"
	"testing"
	"time"

	"puntuale"
)

func TestRateLimiter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	if none := NewRateLimiter[int](0, 1, clock); none.Take(1) != nil {
		t.Error("a rate of nothing refuses")
	}
	slow := NewRateLimiter[int](0.01, 0, clock)
	for range 3 {
		if err := slow.Check(1); err != nil {
			t.Errorf("what is not counted: %v", err)
		}
	}
	if err := slow.Take(1); err != nil {
		t.Error(err)
	}
	err, _ := slow.Take(1).(*puntuale.Error)
	if err == nil || err.Code != puntuale.CodeRateLimited || err.RetryAfter.Round(time.Second) != 100*time.Second || slow.Check(1) == nil {
		t.Errorf("%+v", err)
	}
	if err := slow.Take(2); err != nil { // the call of another caller is not refused
		t.Error(err)
	}

	// Of many callers that come one after another, the limiter forgets most. It remembers a caller that must wait.
	p := NewRateLimiter[int](1, 2, clock)
	for range 2 {
		_ = p.Take(0)
	}
	for id := range 10 * minCallers {
		if id > 0 {
			_ = p.Take(id)
		}
		now = now.Add(time.Millisecond)
	}
	if len(p.callers) > 3*minCallers {
		t.Errorf("%d callers are known", len(p.callers))
	}

	// Even if many callers come at the same time, the limiter remembers a bounded number.
	crowd := NewRateLimiter[int](1, 100, clock)
	for id := range 2 * maxCallers {
		_ = crowd.Take(id)
	}
	if len(crowd.callers) > maxCallers {
		t.Errorf("%d callers are known", len(crowd.callers))
	}

	// Up to burst calls are allowed at the same time.
	busy := NewRateLimiter[int](50, 100, clock)
	var done sync.WaitGroup
	passed := make(chan struct{}, 400)
	for range 400 {
		done.Go(func() {
			if busy.Take(1) == nil {
				passed <- struct{}{}
			}
		})
	}
	done.Wait()
	if len(passed) != 100 {
		t.Errorf("%d calls passed at once", len(passed))
	}
}
