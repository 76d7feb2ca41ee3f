package dispatch

import (
	"time"

	"puntuale"
)

// wakeup has the wakeups of one session since the last look.
type wakeup struct {
	here    bool      // the wakeup comes from this node, and perhaps from others too
	changed bool      // sessions changed
	first   time.Time // the earliest moment at which something is due; zero: no moment was named
	until   time.Time // the latest
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
		return // it stands behind the messages in memory
	}
	until := latest(w.until, now)
	if len(q.messages) < queueMost/4 {
		// A wakeup may stand for several messages, and names only the first moment. The poll is in time for messages that are due well
		// after it.
		until = latest(until, now.Add(s.cfg.Poll+s.cfg.Poll/2))
	}
	s.act(q, q.lookahead.Wakeup(until, w.changed, s.cfg.Clock.Now()))
}

// passOn tells other nodes of a wakeup for a session that is not here.
func (s *scheduler) passOn(session puntuale.SessionID, w wakeup) {
	if w.changed {
		s.cfg.Elsewhere(session, time.Time{})
	}
	if !w.until.IsZero() {
		s.cfg.Elsewhere(session, w.until)
	}
	if w.first.Before(w.until) {
		s.cfg.Elsewhere(session, w.first)
	}
}
