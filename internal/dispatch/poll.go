package dispatch

import (
	"time"

	"puntuale"
)

// poll looks at everything once a second: hints may be lost, reads may be stale, the poll is not.
func (s *scheduler) poll(now time.Time) {
	if now.Before(s.nextPoll) && s.nextPoll.Sub(now) <= s.cfg.Poll { // a clock set back must not stop it
		return
	}
	s.nextPoll = now.Add(s.cfg.Poll)
	s.polls++
	held := map[puntuale.ClientID]bool{}
	s.reader.blocked = 0
	for _, q := range s.queues {
		s.sweep(q, now)
		s.checkOnline(q, now)
		s.askDeparted(q, now)
		if !q.drainUntil.IsZero() && !now.Before(q.drainUntil) {
			s.endDrain(q)
		}
		if q.tenant.stopped {
			held[q.session.Client] = true
		}
		if q.blocked() || q.tenant.stopped {
			s.reader.blocked++
			if !q.lookahead.ExpiryDue(now) {
				continue
			}
		}
		if q.known() <= smallQueue || q.lookahead.PollDue(s.cfg.Poll, now) {
			s.pollQueue(q, now)
		}
	}
	s.askStandings(held)
	s.overdue(now)
	s.retryChecks.again()
	for token, since := range s.unsent {
		if now.Sub(since) > orphanKept {
			delete(s.unsent, token)
		}
	}
	s.cfg.Meter.Queue(s.inMemory, len(s.queues))
}

// rounds are the parts of a poll's interval in which lanes with much in memory are read, each lane in one: all at once they would
// keep what comes due meanwhile waiting for a processor.
const pollParts = 32

// round reads one part of the lanes with much in memory.
func (s *scheduler) pollPart(now time.Time) {
	if now.Before(s.nextPart) && s.nextPart.Sub(now) <= s.cfg.Poll { // a clock set back must not stop it
		return
	}
	s.nextPart = now.Add(s.cfg.Poll / pollParts)
	s.part = (s.part + 1) % pollParts
	for id, q := range s.queues {
		if int64(id)%pollParts == s.part && q.known() > smallQueue && !q.blocked() && !q.tenant.stopped {
			s.pollQueue(q, now)
		}
	}
}

// look has a lane read for the poll.
func (s *scheduler) pollQueue(q *sessionQueue, now time.Time) {
	q.lookahead.Polled(now)
	s.want(q, false)
}

// orphanKept is how long tokens of lost claims are remembered: rows that carry one are found by the next polls.
const orphanKept = time.Hour

// sweep closes what expired while it waited in memory, and forgets holds that are over.
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

// checkOnline notices a session that came or went.
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

// resume reads a lane that may send again.
func (s *scheduler) resume(q *sessionQueue) {
	if !s.retiring {
		s.act(q, q.lookahead.Resume(s.cfg.Clock.Now()))
	}
}
