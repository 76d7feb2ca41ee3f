package dispatch

import (
	"context"
	"time"

	"puntuale"
)

// A message in retry holds back later ones to its recipient, and is not in memory meanwhile. If it is stopped, nobody
// tells; so while it is in the way of one that is due, the store is asked whether it is still open.

// doubt is a recipient whose due message waits for one in retry.
type retryCheck struct {
	queue     *sessionQueue
	recipient recipientKey
}

const retryCheckMost = 1000 // recipients asked for at once, and again at each poll

type retryChecks struct {
	asking bool
	all    map[retryCheck]struct{}
	fresh  []retryCheck // to be asked for now
}

func (d *retryChecks) add(x retryCheck) {
	d.all[x] = struct{}{}
	d.fresh = append(d.fresh, x)
}

// known asks again at once, if the recipient is one of them.
func (d *retryChecks) known(x retryCheck) {
	if _, known := d.all[x]; known {
		d.fresh = append(d.fresh, x)
	}
}

// again has those asked for that still wait.
func (d *retryChecks) again() {
	if len(d.fresh) > 0 {
		return
	}
	for x := range d.all {
		if d.fresh = append(d.fresh, x); len(d.fresh) == retryCheckMost {
			return
		}
	}
}

// doubt asks the store for the messages that are in the way, one row each.
func (s *scheduler) checkRetries(now time.Time) {
	for !s.retryChecks.asking && len(s.retryChecks.fresh) > 0 {
		n := min(len(s.retryChecks.fresh), retryCheckMost)
		var asked []retryCheck
		var from []puntuale.Place
		var horizon time.Time
		for _, x := range s.retryChecks.fresh[:n] {
			r := x.queue.recipients[x.recipient]
			if r == nil || x.queue.lost() || r.nextParked() == nil || !r.barred(now) {
				delete(s.retryChecks.all, x)
				continue
			}
			for _, h := range r.barriers {
				if now.Before(h.until) && !s.underWay(x.queue, h.key.id) {
					asked = append(asked, x)
					from = append(from, puntuale.Place{Session: x.queue.session.ID, Campaign: x.recipient.campaign, Next: h.next, ID: h.key.id - 1})
					horizon = latest(horizon, h.next)
				}
			}
		}
		s.retryChecks.fresh = s.retryChecks.fresh[n:]
		if len(from) > 0 {
			s.askRetryChecks(asked, from, horizon)
		}
	}
}

// here tells whether a message is in flight, or being closed: then what is on disk is not the last word.
func (s *scheduler) underWay(q *sessionQueue, id puntuale.MessageID) bool {
	m := q.messages[id]
	return s.attempts.has(id) || m != nil && m.stage == settling
}

func (s *scheduler) askRetryChecks(asked []retryCheck, from []puntuale.Place, horizon time.Time) {
	s.retryChecks.asking = true
	s.life.wg.Go(func() {
		ctx, cancel := context.WithTimeout(s.life.ctx, callWait)
		defer cancel()
		open, err := s.cfg.Queue.Due(ctx, from, horizon, 1)
		s.mailbox.post(func() {
			s.retryChecks.asking = false
			if err == nil { // else it is asked again at the next poll
				s.gotRetryChecks(asked, from, open)
			}
		})
	})
}

// gotDoubts takes what is no longer open, or no longer where it was, out of the way.
func (s *scheduler) gotRetryChecks(asked []retryCheck, from []puntuale.Place, open []puntuale.DueMessage) {
	still := make(map[puntuale.MessageID]bool, len(open))
	for i := range open {
		still[open[i].ID] = true
	}
	for i, x := range asked {
		id := from[i].ID + 1
		r := x.queue.recipients[x.recipient]
		if r == nil || still[id] || s.underWay(x.queue, id) || !r.lift(id, from[i].Next) {
			continue
		}
		if m := x.queue.messages[id]; m != nil {
			s.forget(m) // it was read shortly before its next attempt
		}
		s.advance(x.queue, x.recipient)
	}
}
