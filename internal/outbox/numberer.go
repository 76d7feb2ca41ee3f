package outbox

import (
	"context"
	"time"
)

// GatherFor is how long facts wait for others, while facts keep coming. If each transaction numbered only a few facts, the
// same pages would be written to disk again and again.
const GatherFor = 50 * time.Millisecond

const (
	numberPoll  = 100 * time.Millisecond // the time between searches for facts, if no wakeup comes
	numberAgain = time.Second            // the wait after a failure
	callWithin  = 15 * time.Second       // the time limit of one call of the store
)

// number gives events their numbers until ctx ends. Every sending node runs it. For each client, the store lets only
// one node number events at a time.
func (s *Sender) number(ctx context.Context) {
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, callWithin)
		n, err := s.cfg.Store.NumberEvents(call, s.cfg.Clock.Now())
		cancel()
		if ctx.Err() != nil {
			return
		}
		s.health.note("number", err)
		wait := numberPoll
		switch {
		case n > 0:
			signal(s.numbered)
			wait = GatherFor
		case err != nil:
			wait = numberAgain
		}
		fired, stop := s.cfg.Clock.After(wait)
		select {
		case <-fired:
		case <-s.wake:
		case <-ctx.Done():
		}
		stop()
	}
}
