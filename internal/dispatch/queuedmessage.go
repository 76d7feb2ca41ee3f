package dispatch

import (
	"container/heap"
	"time"

	"puntuale"
)

// stage is how far a message in memory has come.
type stage int8

const (
	loading  stage = iota // its content is being read and prepared
	ready                 // may leave once it is its turn
	claiming              // its intent is being written
	sending               // the connector has it
	answered              // its outcome is on the way to disk
	settling              // it is being closed or postponed without an attempt
	gone                  // no longer in memory
)

// entry is one message in memory. The scheduler owns it; the goroutine that loads, prepares, claims or sends it may read
// it, and while it loads also writes what it found.
type entry struct {
	m     puntuale.DueMessage
	lane  *lane
	stage stage

	// Found while loading.
	content  puntuale.Content
	window   *puntuale.Window
	zone     *time.Location
	prepared puntuale.Prepared
	failed   error // why it could not be prepared

	alarm
	parked bool // waits for its recipient's turn

	token int64     // of its attempt
	begun time.Time // when the present attempt was claimed
	sent  int64     // the poll after which it was handed over
	late  bool      // given up unanswered; its answer may still come
}

// repeat tells whether the message's next attempt repeats an unanswered one.
func (e *entry) repeat() bool { return e.m.Intent > 0 }

func (e *entry) ref() puntuale.MessageRef {
	return puntuale.MessageRef{Client: e.m.Client, ID: e.m.ID}
}

func (e *entry) due(now time.Time) bool { return !now.Before(e.m.Next) }

func (e *entry) expired(now time.Time) bool { return !now.Before(e.m.ValidUntil) }

// turn is a message's place in its recipient's order.
type turn struct {
	due  int64
	run  puntuale.RunID
	step int
	id   puntuale.MessageID
}

func turnOf(m *puntuale.DueMessage) turn { return turn{m.Due.UnixMicro(), m.Run, m.Step, m.ID} }

func (t turn) compare(o turn) int {
	switch {
	case t.due != o.due:
		return order(t.due, o.due)
	case t.run != o.run:
		return order(t.run, o.run)
	case t.step != o.step:
		return order(t.step, o.step)
	}
	return order(t.id, o.id)
}

func order[T int | int64 | puntuale.RunID | puntuale.MessageID](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// alarm wakes its owner at a moment: an entry that is not yet due, a lane that waits for its pace.
type alarm struct {
	at    int64 // microseconds of the Unix epoch
	place int   // in the heap, from 1; 0: not set

	// One of these.
	entry  *entry // may leave, or ask for its turn again
	lane   *lane  // may send again
	reader *lane  // may be read again
}

// alarms is a heap of what is to happen, earliest first.
type alarms []*alarm

func (h alarms) Len() int           { return len(h) }
func (h alarms) Less(i, j int) bool { return h[i].at < h[j].at }
func (h alarms) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}

func (h *alarms) Push(x any) {
	a := x.(*alarm)
	*h = append(*h, a)
	a.place = len(*h)
}

func (h *alarms) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	a.place = 0
	return a
}

func (h *alarms) set(a *alarm, at time.Time) {
	a.at = at.UnixMicro()
	if time.UnixMicro(a.at).Before(at) {
		a.at++ // never early
	}
	if a.place > 0 {
		heap.Fix(h, a.place-1)
		return
	}
	heap.Push(h, a)
}

func (h *alarms) drop(a *alarm) {
	if a.place > 0 {
		heap.Remove(h, a.place-1)
	}
}

// next takes the earliest alarm that is not after now; nil when there is none.
func (h *alarms) next(now time.Time) *alarm {
	if len(*h) == 0 || (*h)[0].at > now.UnixMicro() {
		return nil
	}
	return heap.Pop(h).(*alarm)
}

// first is the moment of the earliest alarm.
func (h alarms) first() (time.Time, bool) {
	if len(h) == 0 {
		return time.Time{}, false
	}
	return time.UnixMicro(h[0].at), true
}
