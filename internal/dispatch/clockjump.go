package dispatch

import (
	"container/heap"
	"time"
)

// A person may set the machine's clock while the process runs. The moments of messages on disk do not change. If the
// clock is set back, setBack also moves back the moments for which this process waits. If the clock is set forward,
// these moments only come early. So code that gives up an attempt never uses the clock (see overdue).

// tick returns the present moment. If the clock was set back, it calls setBack.
func (s *scheduler) tick() time.Time {
	now := s.cfg.Clock.Now()
	if by := s.last.Sub(now); by > 0 {
		s.setBack(by)
	}
	s.last = now
	return now
}

// setBack moves back all moments for which this process waits. by is how far the clock was set back.
func (s *scheduler) setBack(by time.Duration) {
	back := func(moments ...*time.Time) {
		for _, t := range moments {
			if !t.IsZero() {
				*t = t.Add(-by)
			}
		}
	}
	back(&s.polls.next, &s.polls.nextPart, &s.claims.resume)
	for _, q := range s.queues {
		back(&q.drain.until)
		q.lookahead.SetBack(by)
		if !q.pause.until.IsZero() {
			q.pause.set(q.pause.until.Add(-by))
		}
		q.pace.setBack(by)
		for _, r := range q.recipients {
			for i := range r.barriers {
				back(&r.barriers[i].until)
			}
		}
	}
	for _, t := range s.timers {
		if t.message == nil || t.message.parked { // all other timers of messages stand at the message's own moment, which does not change
			t.at -= by.Microseconds()
		}
	}
	heap.Init(&s.timers)
}
