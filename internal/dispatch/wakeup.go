package dispatch

import (
	"time"

	"puntuale"
)

// wakeup collects the wakeups of one session that arrived since the scheduler last handled mail.
type wakeup struct {
	here       bool      // true: at least one of the wakeups comes from this node
	changed    bool      // true: sessions changed
	first      time.Time // the earliest due time in the wakeups; zero: no wakeup contains a due time
	horizonEnd time.Time // the latest due time in the wakeups
}

// wakeUp handles a wakeup.
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
		q.lookahead.ReadFromStart()
	} else {
		q.lookahead.ReadFromStartIfBefore(w.first)
	}
	if s.life.retiring || q.backlogged(s.capacity()) {
		return // the message is behind the messages in memory, so a refill will find it
	}
	horizonEnd := latest(w.horizonEnd, now)
	if len(q.messages) < maxQueue/4 {
		// One wakeup may be for several messages, but contains only the first due time. Therefore, the read looks a
		// little further into the future. The poll finds messages with later due times in time.
		horizonEnd = latest(horizonEnd, now.Add(s.cfg.Poll+s.cfg.Poll/2))
	}
	s.act(q, q.lookahead.Wakeup(horizonEnd, w.changed, s.cfg.Clock.Now()))
}

// passOn sends a wakeup to other nodes, because its session is not on this node.
func (s *scheduler) passOn(session puntuale.SessionID, w wakeup) {
	if w.changed {
		s.cfg.Remote(session, time.Time{})
	}
	if !w.horizonEnd.IsZero() {
		s.cfg.Remote(session, w.horizonEnd)
	}
	if w.first.Before(w.horizonEnd) {
		s.cfg.Remote(session, w.first)
	}
}
