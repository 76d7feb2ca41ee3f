package dispatch

import (
	"time"

	"puntuale"
)

// A session may be asked to rest, so that it can be unlinked or deleted with nothing in flight. A rest always ends by
// itself: whoever asked for it may be gone.

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
	q.drainUntil = until
	s.clear(q)
	q.drainWaiters = append(q.drainWaiters, quiet)
	s.tellDrained(q)
}

// restEnds lets a lane, which may be nil, go on.
func (s *scheduler) endDrain(q *sessionQueue) {
	if q == nil || q.drainUntil.IsZero() {
		return
	}
	q.drainUntil = time.Time{}
	s.resume(q)
}

// isQuiet tells those who wait for it that nothing of the lane is in flight, nor of an earlier one of its session.
func (s *scheduler) tellDrained(q *sessionQueue) {
	if len(q.drainWaiters) == 0 || q.unrecorded > 0 && !q.gone {
		return
	}
	for _, m := range s.alive {
		if m.row.Session == q.session.ID && !q.gone {
			return
		}
	}
	for _, quiet := range q.drainWaiters {
		close(quiet)
	}
	q.drainWaiters = nil
}
