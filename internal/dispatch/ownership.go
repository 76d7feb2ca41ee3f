package dispatch

import (
	"time"

	"puntuale"
)

// ownership says whether this node owns the session of a session queue.
type ownership int8

const (
	sessionOwned   ownership = iota
	sessionLeaving           // the session goes to another node when nothing is in flight
	sessionLost              // this node no longer owns the session, and the session queue is not used
)

// setSessions handles the sessions that the membership read from the roster. own contains all sessions that the node
// owns. Sessions in the argument leaving go to another node when none of their messages is in flight.
func (s *scheduler) setSessions(node puntuale.NodeID, own []puntuale.Session, leaving map[puntuale.SessionID]bool) {
	if node != s.node {
		return
	}
	s.setOwned(node, own, leaving) // opens the sessions; the loop below then reads whether each session is online
	now := s.cfg.Clock.Now()
	owned := make(map[puntuale.SessionID]bool, len(own))
	for _, session := range own {
		owned[session.ID] = true
		q := s.queues[session.ID]
		if q == nil {
			q = s.addQueue(session, now)
		} else if q.pace.limits != session.Pace {
			q.pace.setPace(session.Pace, now)
			s.askDeparted(q, now)
			s.fair.activate(q)
		}
		if session.Campaigns && !q.campaign.open {
			s.requestRead(q, true)
		}
		q.campaign.open = session.Campaigns
		switch drain := leaving[session.ID]; {
		case drain && q.ownership == sessionOwned:
			q.ownership = sessionLeaving
			s.clear(q)
		case !drain && q.ownership == sessionLeaving:
			q.ownership = sessionOwned
			s.resume(q)
		}
		s.releaseLeaving(q)
	}
	for id, q := range s.queues {
		if !owned[id] {
			s.dropQueue(q)
		}
	}
}

// setOwned opens the node's sessions, and closes those that the node no longer owns.
func (s *scheduler) setOwned(node puntuale.NodeID, owned []puntuale.Session, leaving map[puntuale.SessionID]bool) {
	s.health.owner.Store(int64(node))
	if s.cfg.Sessions != nil {
		s.cfg.Sessions.Own(node, owned, leaving)
	}
}

func (s *scheduler) addQueue(session puntuale.Session, now time.Time) *sessionQueue {
	q := newSessionQueue(s.fair.join(session.Client), session, s.cfg.Connector(session))
	q.offline = !q.online()
	s.askDeparted(q, now)
	s.queues[session.ID] = q
	s.requestRead(q, true)
	return q
}

func (s *scheduler) dropQueue(q *sessionQueue) {
	q.ownership = sessionLost
	s.clear(q)
	s.notifyDrained(q)
	delete(s.queues, q.session.ID)
	s.fair.leave(q.tenant)
}

// sessionsMoved drops the queues of sessions that moved to another node.
func (s *scheduler) sessionsMoved(node puntuale.NodeID, sessions []puntuale.SessionID) {
	for _, id := range sessions {
		if q := s.queues[id]; q != nil && node == s.node {
			s.dropQueue(q)
		}
	}
}

// releaseLeaving gives a drained session to its new owner after the session is closed on this node.
func (s *scheduler) releaseLeaving(q *sessionQueue) {
	if q.ownership != sessionLeaving || q.unrecorded > 0 {
		return
	}
	session := q.session.ID
	if s.cfg.Sessions == nil {
		s.membership.release(session)
		return
	}
	s.cfg.Sessions.Release(session, func() { s.membership.release(session) })
}

// fenced drops all queues, because another node may own the sessions now. Outcomes that are not on disk yet are still
// recorded.
func (s *scheduler) fenced(node puntuale.NodeID) {
	if node == 0 || node != s.node {
		return
	}
	s.cfg.Logger.Warn("the node's lease is gone, joining again", "node", int64(node))
	s.node = 0
	for _, q := range s.queues {
		s.dropQueue(q)
	}
	s.setOwned(0, nil, nil)
	s.health.joined(false)
	s.membership.rejoin(node)
}
