package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"puntuale/internal/clock"
)

func TestRefills(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))
	called := make(chan struct{})
	outcomes := []error{nil, errors.New("unreachable"), nil}
	n, kept := 0, 0
	r := startRefills(func(context.Context) (int, error) {
		defer func() { called <- struct{}{} }()
		n++
		return n, outcomes[n-1]
	}, func(context.Context) error {
		kept++
		return outcomes[kept-1]
	}, c, slog.New(slog.DiscardHandler))
	<-called                      // at once
	for range len(outcomes) - 1 { // then each minute, after a failure too
		for waiting := true; waiting; {
			select {
			case <-called:
				waiting = false
			default:
				c.Advance(refillEvery)
			}
		}
	}
	r.stop()
	r.stop()
	c.Advance(time.Hour)
	if n != len(outcomes) || kept < n-1 || kept > n { // stopped during the last
		t.Errorf("called %d and %d times", n, kept)
	}
}
