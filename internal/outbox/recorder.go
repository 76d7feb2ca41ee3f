package outbox

import (
	"context"
	"sync"
	"time"

	"puntuale"
)

const (
	mostRecorded = 256 // results in one call of the store
	recordAgain  = 200 * time.Millisecond
)

// recorder writes results in batches: what came while the last batch was written is the next one.
type recorder struct {
	sender *Sender
	done   chan []puntuale.DeliveryResult // what is on disk

	mu      sync.Mutex
	waiting []puntuale.DeliveryResult
	more    chan struct{} // holds one; says that something waits
	closed  bool          // no more comes
	failing bool          // the store did not take the last batch
}

func newRecorder(s *Sender) *recorder {
	return &recorder{sender: s, done: make(chan []puntuale.DeliveryResult, 16), more: make(chan struct{}, 1)}
}

func (r *recorder) add(result puntuale.DeliveryResult) {
	r.mu.Lock()
	r.waiting = append(r.waiting, result)
	r.mu.Unlock()
	signal(r.more)
}

// close says that no result comes any more.
func (r *recorder) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	signal(r.more)
}

// fails reports whether the store takes no results at present.
func (r *recorder) fails() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failing
}

func (r *recorder) take() (batch []puntuale.DeliveryResult, over bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.waiting), mostRecorded)
	batch = r.waiting[:n:n]
	if r.waiting = r.waiting[n:]; len(r.waiting) == 0 {
		r.waiting = nil
	}
	return batch, n == 0 && r.closed
}

// run writes until the recorder is closed and empty, or ctx ends. It closes done at its end.
func (r *recorder) run(ctx context.Context) {
	defer close(r.done)
	for {
		batch, over := r.take()
		switch {
		case over:
			return
		case len(batch) == 0:
			select {
			case <-r.more:
			case <-ctx.Done():
				return
			}
		case !r.write(ctx, batch):
			return
		default:
			select {
			case r.done <- batch:
			case <-ctx.Done():
				return
			}
		}
	}
}

// write tries until the batch is on disk, or ctx ends.
func (r *recorder) write(ctx context.Context, batch []puntuale.DeliveryResult) bool {
	s := r.sender
	for {
		call, cancel := context.WithTimeout(ctx, callWithin)
		err := s.cfg.Store.EndAttempts(call, s.cfg.Clock.Now(), batch)
		cancel()
		s.health.note("record", err)
		r.mu.Lock()
		r.failing = err != nil
		r.mu.Unlock()
		if err == nil {
			return true
		}
		if s.cfg.Clock.Sleep(ctx, recordAgain) != nil {
			return false
		}
	}
}

// signal puts a word into a channel that holds one, if there is none yet.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
