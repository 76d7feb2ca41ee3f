package automation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"puntuale"
)

const (
	// clientsAtOnce is how many clients' work a runner does at the same time. A slow client occupies one of these places.
	clientsAtOnce = 4
	// roundWithin is how long a round waits for the works that it began. A slower work goes on beside the next rounds.
	roundWithin = time.Second
)

// clientSlots share a runner's time between clients. No client has two works at the same time: a round takes nothing of the
// clients whose work of an earlier round goes on, so that their triggers keep their order and wait for no lease.
type clientSlots struct {
	places  chan struct{}
	working sync.WaitGroup

	mu   sync.Mutex
	busy map[puntuale.ClientID]bool
}

func (s *clientSlots) begin(id puntuale.ClientID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy[id] = true
}

// list returns the clients whose work goes on.
func (s *clientSlots) list() []puntuale.ClientID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.busy))
}

func (s *clientSlots) end(id puntuale.ClientID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.busy, id)
}

// each does the work of several clients, a few at a time, and returns the works' errors. It does not wait for a slow client
// for longer than roundWithin: then it returns, and the errors of works that go on are only logged. It leaves out
// clients that get no place before the time until. Their triggers come back when their lease ends. No work of these clients
// may go on.
func (r *Runner) each(ctx context.Context, ids []puntuale.ClientID, until time.Time, do func(context.Context, puntuale.ClientID) error) error {
	var mu sync.Mutex
	var failures []error
	var running sync.WaitGroup
	left := false // the round is over
	work := func(id puntuale.ClientID) error {
		select {
		case r.slots.places <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		defer func() { <-r.slots.places }()
		if !r.Clock.Now().Before(until) {
			return nil
		}
		return do(ctx, id)
	}
	for _, id := range ids {
		r.slots.begin(id)
		running.Add(1)
		r.slots.working.Go(func() {
			defer running.Done()
			err := work(id)
			r.slots.end(id)
			if err == nil {
				return
			}
			err = fmt.Errorf("client %d: %w", id, err)
			mu.Lock()
			defer mu.Unlock()
			if left {
				r.failed(ctx, "automations failed", err)
				return
			}
			failures = append(failures, err)
		})
	}
	ended := make(chan struct{})
	go func() { defer close(ended); running.Wait() }()
	over, release := r.Clock.After(roundWithin)
	defer release()
	select {
	case <-ended:
	case <-over:
	}
	mu.Lock()
	defer mu.Unlock()
	left = true
	return errors.Join(failures...)
}
