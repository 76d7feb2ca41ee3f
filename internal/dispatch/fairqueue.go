package dispatch

import "puntuale"

// share is a client's part in the round robin: each round one message of each client that has something to send.
type tenantQueue struct {
	client  puntuale.ClientID
	queues  fifo[*sessionQueue] // with something to send, each in turn
	listed  bool
	owned   int    // lanes this node has of the client
	stopped bool   // the client may not send now
	reason  string // the sentence for it, once it is known
	erased  bool   // it erased persons: claims need marks
}

// activate puts a lane with something to send into the round.
func (s *scheduler) activate(q *sessionQueue) {
	if q.active || q.gone || q.ready.len()+q.campaign.ready.len()+q.repeats.len() == 0 {
		return
	}
	q.active = true
	q.tenant.queues.push(q)
	if !q.tenant.listed {
		q.tenant.listed = true
		s.fair.push(q.tenant)
	}
}

// nextTurn takes the lane whose turn it is, nil when no lane has anything to send.
func (s *scheduler) nextQueue() *sessionQueue {
	for s.fair.len() > 0 {
		t := s.fair.pop()
		if t.queues.len() == 0 {
			t.listed = false
			continue
		}
		q := t.queues.pop()
		q.active = false
		if t.queues.len() > 0 {
			s.fair.push(t)
		} else {
			t.listed = false
		}
		return q
	}
	return nil
}
