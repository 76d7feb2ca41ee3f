package httpapi

import (
	"sync"
	"testing"
	"time"

	"puntuale"
)

func TestPace(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	if none := newPace(0, clock); none.take(puntuale.ClientSide, 1) != nil {
		t.Error("a rate of nothing refuses")
	}
	slow := newPace(0.01, clock)
	if err := slow.take(puntuale.ClientSide, 1); err != nil {
		t.Error(err)
	}
	err, _ := slow.take(puntuale.ClientSide, 1).(*puntuale.Error)
	if err == nil || err.Code != puntuale.CodeRateLimited || err.RetryAfter.Round(time.Second) != 100*time.Second {
		t.Errorf("%+v", err)
	}
	if err := slow.take(puntuale.PartnerSide, 1); err != nil { // another key
		t.Error(err)
	}

	// Any number of keys, one after the other, are not all known at once; one that has calls to wait for stays known.
	p := newPace(1, clock)
	for range 2 {
		_ = p.take(puntuale.ClientSide, 0)
	}
	for id := range puntuale.KeyID(10 * leastKeys) {
		if id > 0 {
			_ = p.take(puntuale.ClientSide, id)
		}
		now = now.Add(time.Millisecond)
	}
	if len(p.keys) > 3*leastKeys {
		t.Errorf("%d keys are known", len(p.keys))
	}

	// Calls at once are as many as may be.
	busy := newPace(50, clock)
	var done sync.WaitGroup
	passed := make(chan struct{}, 400)
	for range 400 {
		done.Go(func() {
			if busy.take(puntuale.ClientSide, 1) == nil {
				passed <- struct{}{}
			}
		})
	}
	done.Wait()
	if len(passed) != 100 {
		t.Errorf("%d calls passed at once", len(passed))
	}
}
