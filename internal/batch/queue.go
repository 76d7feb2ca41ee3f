// Package batch gathers values, so that one call of the store writes many of them.
package batch

import (
	"context"
	"iter"
	"sync"
)

// Queue contains the values that wait for the next batch. It has no bound; its users stop adding values while batches
// fail. It is safe for concurrent use.
type Queue[T any] struct {
	wake chan struct{} // has a value after waiting or closed changed

	mu      sync.Mutex
	waiting []T
	closed  bool
}

// New returns an empty queue.
func New[T any]() *Queue[T] { return &Queue[T]{wake: make(chan struct{}, 1)} }

// Add adds a value. It never blocks.
func (q *Queue[T]) Add(x T) {
	q.mu.Lock()
	q.waiting = append(q.waiting, x)
	q.mu.Unlock()
	q.notify()
}

// Close says that no value comes any more.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.notify()
}

// Batches yields the values in the order in which they came, at most limit at a time. While one batch is in use, values
// gather for the next. The sequence ends when the queue is closed and empty, or when it would have to wait and ctx has
// ended. Several goroutines may take batches at the same time.
func (q *Queue[T]) Batches(ctx context.Context, limit int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for {
			batch, ended := q.take(limit)
			switch {
			case len(batch) > 0:
				if !yield(batch) {
					return
				}
			case ended:
				return
			default:
				select {
				case <-q.wake:
				case <-ctx.Done():
					return
				}
			}
		}
	}
}

// take takes a batch. If it leaves something to another goroutine, it wakes that goroutine.
func (q *Queue[T]) take(limit int) (batch []T, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), limit)
	batch, q.waiting = q.waiting[:n:n], q.waiting[n:]
	if len(q.waiting) == 0 {
		q.waiting = nil
	}
	if len(q.waiting) > 0 || q.closed {
		q.notify()
	}
	return batch, n == 0 && q.closed
}

func (q *Queue[T]) notify() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
