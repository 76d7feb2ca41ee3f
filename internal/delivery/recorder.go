package delivery

import (
	"context"
	"sync"
	"time"

	"puntuale"
)

const (
	maxRecorded = 256 // the most results in one call of the store
	recordAgain = 200 * time.Millisecond
)

// recorder writes results in batches. All results that come during one write are in the next batch.
type recorder struct {
	sender *Sender
	done   chan []puntuale.DeliveryResult // batches that are on disk

	mu      sync.Mutex
	waiting []puntuale.DeliveryResult
	more    chan struct{} // has room for one signal, which says that results wait
	closed  bool          // no more results will come
	failing bool          // the last attempt to write a batch failed
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

// close says that no more results will come.
func (r *recorder) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	signal(r.more)
}

// fails reports whether the last attempt to write results failed.
func (r *recorder) fails() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failing
}

func (r *recorder) take() (batch []puntuale.DeliveryResult, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.waiting), maxRecorded)
	batch = r.waiting[:n:n]
	if r.waiting = r.waiting[n:]; len(r.waiting) == 0 {
		r.waiting = nil
	}
	return batch, n == 0 && r.closed
}

// run writes batches until the recorder is closed and has no results left, or until ctx ends. Then it closes done.
func (r *recorder) run(ctx context.Context) {
	defer close(r.done)
	for {
		batch, ended := r.take()
		switch {
		case ended:
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

// write repeats writing a batch until the batch is on disk, and returns true. If ctx ends first, it returns false.
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

// signal sends to a channel with room for one value. If the channel already has a value, signal does nothing.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
