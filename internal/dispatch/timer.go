package dispatch

import (
	"container/heap"
	"time"

	"puntuale"
)

// timer wakes its owner at a certain time. The owner is a message that is not due yet, or a session that waits.
type timer struct {
	at    int64 // the time of the timer, in microseconds of the Unix epoch
	index int   // position in the heap, from 1; 0: the timer is not set

	// Exactly one of these fields is set. It is what the timer wakes.
	message *queuedMessage // the message may leave now, or stops being parked
	queue   *sessionQueue  // the session may send again
	reading *sessionQueue  // the session may be read again; this is the timer of its lookahead
}

// id returns the id of the message that the timer wakes, or 0.
func (t *timer) id() puntuale.MessageID {
	if t.message == nil {
		return 0
	}
	return t.message.row.ID
}

// timers is a heap of timers; the earliest timer is first. Messages that are due together leave in the order of their ids.
type timers []*timer

func (h timers) Len() int { return len(h) }
func (h timers) Less(i, j int) bool {
	if h[i].at == h[j].at {
		return h[i].id() < h[j].id()
	}
	return h[i].at < h[j].at
}
func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *timers) Push(x any) {
	t := x.(*timer)
	*h = append(*h, t)
	t.index = len(*h)
}

func (h *timers) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.index = 0
	return t
}

func (h *timers) set(t *timer, at time.Time) {
	t.at = at.UnixMicro()
	if time.UnixMicro(t.at).Before(at) {
		t.at++ // round up, so that the timer is never early
	}
	if t.index > 0 {
		heap.Fix(h, t.index-1)
		return
	}
	heap.Push(h, t)
}

func (h *timers) drop(t *timer) {
	if t.index > 0 {
		heap.Remove(h, t.index-1)
	}
}

// next removes and returns the earliest timer that is not after now, or nil if there is none.
func (h *timers) next(now time.Time) *timer {
	if len(*h) == 0 || (*h)[0].at > now.UnixMicro() {
		return nil
	}
	return heap.Pop(h).(*timer)
}

// first returns the time of the earliest timer. It returns false if there is no timer.
func (h timers) first() (time.Time, bool) {
	if len(h) == 0 {
		return time.Time{}, false
	}
	return time.UnixMicro(h[0].at), true
}
