package dispatch

import (
	"time"

	"puntuale"
)

// A session may be asked to rest, so that it can be unlinked or deleted with nothing in flight. A rest always ends by
// itself: whoever asked for it may be gone.

// drain is what was asked of one session.
type drain struct {
	until   time.Time       // nothing begins until then; zero: no drain is under way
	waiters []chan struct{} // closed once nothing is in flight
}

func (d *drain) active() bool { return !d.until.IsZero() }

// over reports whether a drain ended by itself.
func (d *drain) over(now time.Time) bool { return d.active() && !now.Before(d.until) }

// restMost bounds it, by whatever clock its end was told.
const drainMost = 40 * time.Second

// rest has a lane begin nothing new until a moment; quiet is closed once nothing of it is in flight.
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

// restEnds lets a lane, which may be nil, go on.
func (s *scheduler) endDrain(q *sessionQueue) {
	if q == nil || !q.drain.active() {
		return
	}
	q.drain.until = time.Time{}
	s.resume(q)
}

// isQuiet tells those who wait for it that nothing of the lane is in flight, nor of an earlier one of its session.
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
