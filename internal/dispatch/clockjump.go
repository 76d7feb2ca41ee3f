package dispatch

import (
	"container/heap"
	"time"
)

// A person may set the machine's clock while the process runs. The times of messages on disk do not change. If the
// clock is set back, setBack also moves back the times for which this process waits. If the clock is set forward, this
// process only acts earlier. Therefore, code that gives up an attempt never uses the clock (see overdue).

// tick returns the current time. If the clock was set back, it calls setBack.
func (s *scheduler) tick() time.Time {
	now := s.cfg.Clock.Now()
	if jump := s.last.Sub(now); jump > 0 {
		s.setBack(jump)
	}
	s.last = now
	return now
}

// setBack moves back all times for which this process waits. jump is how far the clock was set back.
func (s *scheduler) setBack(jump time.Duration) {
	moveBack := func(moments ...*time.Time) {
		for _, t := range moments {
			if !t.IsZero() {
				*t = t.Add(-jump)
			}
		}
	}
	moveBack(&s.polls.next, &s.polls.nextPart, &s.claims.resume)
	for _, q := range s.queues {
		moveBack(&q.drain.end)
		q.lookahead.SetBack(jump)
		if !q.pause.end.IsZero() {
			q.pause.set(q.pause.end.Add(-jump))
		}
		q.pace.setBack(jump)
		for _, r := range q.recipients {
			for i := range r.barriers {
				moveBack(&r.barriers[i].end)
			}
		}
	}
	for _, t := range s.timers {
		if t.message == nil || t.message.parked { // the timer of a message that is not parked is set to the time in the message's row, which does not change
			t.at -= jump.Microseconds()
		}
	}
	heap.Init(&s.timers)
}
