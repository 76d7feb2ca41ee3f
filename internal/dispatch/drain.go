package dispatch

import (
	"time"

	"puntuale"
)

// A session may be drained, so that it can be unlinked or deleted with nothing in flight. A drain always ends by itself, because the caller
// may have died.

// drain is the drain of one session.
type drain struct {
	until   time.Time       // nothing begins until then; zero: no drain is under way
	waiters []chan struct{} // closed once nothing is in flight
}

func (d *drain) active() bool { return !d.until.IsZero() }

// over reports whether a drain has reached its end.
func (d *drain) over(now time.Time) bool { return d.active() && !now.Before(d.until) }

// drainMost is how long a drain may last. The caller's clock, which set its end, may be ahead of ours.
const drainMost = 40 * time.Second

// drain stops a session from beginning anything new until a moment. It closes quiet once nothing of the session is in flight.
func (s *scheduler) drain(session puntuale.SessionID, until time.Time, quiet chan struct{}) {
	q := s.queues[session]
	if q == nil {
		close(quiet)
		return
	}
	if most := s.cfg.Clock.Now().Add(drainMost); until.After(most) {
		until = most
	}
	q.drain.until = until
	s.clear(q)
	q.drain.waiters = append(q.drain.waiters, quiet)
	s.tellDrained(q)
}

// endDrain lets a session continue. q may be nil.
func (s *scheduler) endDrain(q *sessionQueue) {
	if q == nil || !q.drain.active() {
		return
	}
	q.drain.until = time.Time{}
	s.resume(q)
}

// tellDrained tells the waiters once nothing is in flight, neither of this session queue nor of an earlier one of the
// session.
func (s *scheduler) tellDrained(q *sessionQueue) {
	if len(q.drain.waiters) == 0 || q.unrecorded > 0 && !q.lost() {
		return
	}
	for _, m := range s.attempts.open {
		if m.row.Session == q.session.ID && !q.lost() {
			return
		}
	}
	for _, quiet := range q.drain.waiters {
		close(quiet)
	}
	q.drain.waiters = nil
}
