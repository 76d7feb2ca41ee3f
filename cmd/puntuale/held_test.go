package main

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestHeld: the operator's page asks somebody else's server every ten minutes, or two after a failure. A clock that is set
// back does not keep an answer, and a report that is cut off does not cut the question off.
func TestHeld(t *testing.T) {
	t.Parallel()
	now, asked := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), 0
	failure := errors.New("the mail server refuses")
	var answer error
	probe := held(func() time.Time { return now }, func(ctx context.Context) error {
		asked++
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > probeWithin || ctx.Err() != nil {
			t.Errorf("the question ends at %v, %v (%v)", end, ok, ctx.Err())
		}
		return answer
	})
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	for i, c := range []struct {
		after time.Duration
		says  error
		want  int
	}{
		{0, nil, 1},
		{probeHolds - 1, failure, 1},
		{1, failure, 2},
		{failureHolds - 1, nil, 2},
		{1, nil, 3},
		{-time.Hour, nil, 4},
		{probeHolds - 1, failure, 4},
	} {
		now, answer = now.Add(c.after), c.says
		_ = probe(cut)
		if asked != c.want {
			t.Errorf("step %d: asked %d times, want %d", i, asked, c.want)
		}
	}
	if answer = nil; probe(cut) != nil {
		t.Error("a kept answer is not the one that was given")
	}
	if held(time.Now, nil) != nil {
		t.Error("no probe became one")
	}
}
