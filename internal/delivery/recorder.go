package delivery

import (
	"context"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/batch"
)

const (
	maxRecorded = 256 // the most results in one call of the store
	recordAgain = 200 * time.Millisecond
)

// recorder writes results in batches. All results that come during one write are in the next batch.
type recorder struct {
	*batch.Queue[puntuale.DeliveryResult]
	sender  *Sender
	done    chan []puntuale.DeliveryResult // batches that are on disk
	failing atomic.Bool                    // the last attempt to write a batch failed
}

func newRecorder(s *Sender) *recorder {
	return &recorder{batch.New[puntuale.DeliveryResult](), s, make(chan []puntuale.DeliveryResult, 16), atomic.Bool{}}
}

// run writes batches until the queue is closed and empty, or until ctx ends. Then it closes done.
func (r *recorder) run(ctx context.Context) {
	defer close(r.done)
	for results := range r.Batches(ctx, maxRecorded) {
		if !r.write(ctx, results) {
			return
		}
		select {
		case r.done <- results:
		case <-ctx.Done():
			return
		}
	}
}

// write repeats writing a batch until the batch is on disk, and returns true. If ctx ends first, it returns false.
func (r *recorder) write(ctx context.Context, results []puntuale.DeliveryResult) bool {
	s := r.sender
	for {
		call, cancel := context.WithTimeout(ctx, callWithin)
		err := s.cfg.Store.EndAttempts(call, s.cfg.Clock.Now(), results)
		cancel()
		s.health.note("record", err)
		r.failing.Store(err != nil)
		if err == nil {
			return true
		}
		if s.cfg.Clock.Sleep(ctx, recordAgain) != nil {
			return false
		}
	}
}

// signal sends to a channel with room for one value. If the channel already has a value, signal does nothing.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
