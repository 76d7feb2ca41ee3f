package dispatch

import (
	"time"

	"puntuale"
)

// This file drains sessions. After a drain, nothing of the session is in flight, and the session can be unlinked or
// deleted. A drain always ends by itself, because the process that ordered it may have died.

// drain is the drain of one session.
type drain struct {
	end     time.Time       // no attempt begins before this time; zero: the session is not being drained
	waiters []chan struct{} // channels to close when nothing is in flight
}

func (d *drain) active() bool { return !d.end.IsZero() }

// hasEnded reports whether a running drain has reached its end.
func (d *drain) hasEnded(now time.Time) bool { return d.active() && !now.Before(d.end) }

// maxDrain is the longest drain. The caller's clock, which sets the end, may be ahead of this node's clock.
const maxDrain = 40 * time.Second

// drain prevents new attempts of a session until the time in the argument end. It closes the channel quiet when nothing
// of the session is in flight.
func (s *scheduler) drain(session puntuale.SessionID, end time.Time, quiet chan struct{}) {
	q := s.queues[session]
	if q == nil {
		close(quiet)
		return
	}
	if latest := s.cfg.Clock.Now().Add(maxDrain); end.After(latest) {
		end = latest
	}
	q.drain.end = end
	s.clear(q)
	q.drain.waiters = append(q.drain.waiters, quiet)
	s.notifyDrained(q)
}

// endDrain ends a drain, so that the session continues. q may be nil.
func (s *scheduler) endDrain(q *sessionQueue) {
	if q == nil || !q.drain.active() {
		return
	}
	q.drain.end = time.Time{}
	s.resume(q)
}

// notifyDrained closes the waiters' channels when nothing of the session is in flight. Messages that an earlier session
// queue of the same session sent count, too.
func (s *scheduler) notifyDrained(q *sessionQueue) {
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
