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
	called, begun, end := make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
	outcomes := []error{nil, errors.New("unreachable"), nil}
	n, kept := 0, 0
	r := startRefills(func(context.Context) (int, error) {
		defer func() { called <- struct{}{} }()
		n++
		return n, outcomes[(n-1)%len(outcomes)]
	}, func(context.Context) error {
		kept++
		select {
		case begun <- struct{}{}:
		default:
		}
		if kept == 1 {
			<-end // takes its time, and delays no refill
		}
		return outcomes[(kept-1)%len(outcomes)]
	}, nil, c, slog.New(slog.DiscardHandler))
	advance := func(until <-chan struct{}) {
		for {
			select {
			case <-until:
				return
			default:
				c.Advance(refillEvery)
			}
		}
	}
	<-called // at once
	<-begun
	for range len(outcomes) - 1 { // then each minute, after a failure too
		advance(called)
	}
	if n != len(outcomes) {
		t.Errorf("refilled %d times", n)
	}
	close(end)
	stopped := make(chan struct{})
	go func() {
		for {
			select {
			case <-called:
			case <-stopped:
				return
			}
		}
	}()
	for range len(outcomes) {
		advance(begun)
	}
	r.stop()
	r.stop()
	close(stopped)
	before, keptBefore := n, kept
	c.Advance(time.Hour)
	if n != before || kept != keptBefore || kept < len(outcomes) {
		t.Errorf("called %d and %d times, then %d and %d", before, keptBefore, n, kept)
	}
}
