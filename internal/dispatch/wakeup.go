package dispatch

import (
	"time"

	"puntuale"
)

// wakeup collects the wakeups of one session that came since the scheduler last looked.
type wakeup struct {
	here       bool      // at least one of the wakeups comes from this node
	changed    bool      // sessions changed
	first      time.Time // earliest moment at which something is due; zero: the wakeups name no moment
	horizonEnd time.Time // latest moment at which something is due
}

// wakeUp acts on a wakeup.
func (s *scheduler) wakeUp(session puntuale.SessionID, w wakeup, now time.Time) {
	q := s.queues[session]
	if q == nil && w.here {
		s.passOn(session, w)
	}
	if q == nil || w.changed {
		s.membership.nudge(session, w.changed, q != nil || w.here && w.changed)
	}
	if q == nil {
		return
	}
	s.checkOnline(q, now)
	if w.changed {
		q.lookahead.Stray()
	} else {
		q.lookahead.StrayBefore(w.first)
	}
	if s.life.retiring || q.backlogged(s.capacity()) {
		return // the message is behind those in memory, so a refill will find it
	}
	horizonEnd := latest(w.horizonEnd, now)
	if len(q.messages) < queueMost/4 {
		// One wakeup may stand for several messages, and it names only the first moment. So look a little further.
		// The poll is in time for messages that are due later.
		horizonEnd = latest(horizonEnd, now.Add(s.cfg.Poll+s.cfg.Poll/2))
	}
	s.act(q, q.lookahead.Wakeup(horizonEnd, w.changed, s.cfg.Clock.Now()))
}

// passOn gives a wakeup to other nodes, because its session is not on this node.
func (s *scheduler) passOn(session puntuale.SessionID, w wakeup) {
	if w.changed {
		s.cfg.Elsewhere(session, time.Time{})
	}
	if !w.horizonEnd.IsZero() {
		s.cfg.Elsewhere(session, w.horizonEnd)
	}
	if w.first.Before(w.horizonEnd) {
		s.cfg.Elsewhere(session, w.first)
	}
}
