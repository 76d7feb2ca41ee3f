package delivery

import (
	"context"
	"time"
)

// numberRest is how long the numberer waits after a transaction, as a multiple of the transaction's duration. On SQLite
// the numberer and the recording of outcomes use the same writer. So under the heaviest load, numbers come a few seconds
// later, but messages still leave and their outcomes are recorded.
const numberRest = 3

// RestAfter returns how long the numberer waits after a transaction that gave numbers. The argument took is the
// duration of this transaction. The wait is never longer than numberPoll.
func RestAfter(took time.Duration) time.Duration { return min(numberRest*took, numberPoll) }

const (
	numberPoll  = 100 * time.Millisecond // the time between searches for facts
	numberAgain = time.Second            // the wait after a failure
	callWithin  = 15 * time.Second       // the time limit of one call of the store
)

// number gives events their numbers until ctx ends. Every sending node runs it. For each client, the store lets only
// one node number events at a time.
func (s *Sender) number(ctx context.Context) {
	for ctx.Err() == nil {
		begun := s.cfg.Clock.Now()
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
			wait = RestAfter(s.cfg.Clock.Now().Sub(begun))
		case err != nil:
			wait = numberAgain
		}
		if s.cfg.Clock.Sleep(ctx, wait) != nil {
			return
		}
	}
}
