package dispatch

import (
	"time"

	"puntuale"
)

// polls contains the time of the next poll of all sessions, and counts the polls.
type polls struct {
	next     time.Time
	count    int64 // number of polls so far; overdue measures time in polls, because a person may set the clock
	nextPart time.Time
	part     int64 // the current part of the poll, from 0 to pollParts-1
}

// due reports whether a poll is due. If so, it sets the time of the next poll. If the clock was set back, it returns
// true, so that polls do not stop.
func (p *polls) due(every time.Duration, now time.Time) bool {
	if now.Before(p.next) && p.next.Sub(now) <= every {
		return false
	}
	p.next = now.Add(every)
	p.count++
	return true
}

// partDue reports whether the next part of a poll is due. If so, it sets the time of the part after that.
func (p *polls) partDue(every time.Duration, now time.Time) bool {
	if now.Before(p.nextPart) && p.nextPart.Sub(now) <= every {
		return false
	}
	p.nextPart = now.Add(every / pollParts)
	p.part = (p.part + 1) % pollParts
	return true
}

// poll checks all sessions once every Poll. It finds messages whose wakeup was lost, and messages that an earlier read
// missed.
func (s *scheduler) poll(now time.Time) {
	if !s.polls.due(s.cfg.Poll, now) {
		return
	}
	stopped := map[puntuale.ClientID]bool{}
	s.reader.blocked = 0
	for _, q := range s.queues {
		s.sweep(q, now)
		s.checkOnline(q, now)
		s.askDeparted(q, now)
		if q.drain.hasEnded(now) {
			s.endDrain(q)
		}
		if q.tenant.stopped {
			stopped[q.session.Client] = true
		}
		if !q.canSend() {
			s.reader.blocked++
			if !q.lookahead.ExpiryDue(now) {
				continue
			}
		}
		if q.countKnown() <= smallQueue || q.lookahead.PollDue(s.cfg.Poll, now) {
			s.pollQueue(q, now)
		}
	}
	s.askSendPermissions(stopped)
	s.overdue(now)
	s.retryChecks.askAll()
	s.attempts.sweep(now)
	s.cfg.Meter.Queue(s.inMemory, len(s.queues))
}

// pollParts is the number of parts of a poll's interval. A session with many messages in memory is read in one of these
// parts. If all such sessions were read at the same time, messages that become due during these reads would wait for a
// processor.
const pollParts = 32

// pollPart reads the sessions with many messages in memory that belong to the current part.
func (s *scheduler) pollPart(now time.Time) {
	if !s.polls.partDue(s.cfg.Poll, now) {
		return
	}
	for id, q := range s.queues {
		if int64(id)%pollParts == s.polls.part && q.countKnown() > smallQueue && q.canSend() {
			s.pollQueue(q, now)
		}
	}
}

// pollQueue requests a read of a session for the poll.
func (s *scheduler) pollQueue(q *sessionQueue, now time.Time) {
	q.lookahead.Polled(now)
	s.requestRead(q, false)
}

// sweep closes messages that expired while they waited in memory, and deletes old retry barriers.
func (s *scheduler) sweep(q *sessionQueue, now time.Time) {
	for _, m := range q.messages {
		if (m.stage == ready || m.stage == loading) && !m.repeat() && m.expired(now) {
			s.expire(m)
		}
	}
	for p, r := range q.recipients {
		if len(r.barriers) > 0 {
			r.sweep(now)
			s.advance(q, p)
		}
	}
}

// checkOnline handles a session that came online or went offline.
func (s *scheduler) checkOnline(q *sessionQueue, now time.Time) {
	if online := q.online(); online == q.offline {
		q.offline = !online
		if q.offline {
			s.clear(q)
		}
		q.lookahead.ExpireNow()
		s.resume(q)
	}
}

// resume requests an urgent read, because the state of the session changed.
func (s *scheduler) resume(q *sessionQueue) {
	if !s.life.retiring {
		s.act(q, q.lookahead.Resume(s.cfg.Clock.Now()))
	}
}
