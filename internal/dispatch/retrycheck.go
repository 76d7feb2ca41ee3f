package dispatch

import (
	"context"
	"time"

	"puntuale"
)

// A message in retry holds back later ones to its recipient, and is not in memory meanwhile. If it is stopped, the
// dispatcher is not told. So while it holds back one that is due, the store is asked whether it is still open.

// retryCheck is a recipient with a due message that waits for a message in retry.
type retryCheck struct {
	queue     *sessionQueue
	recipient recipientKey
}

const retryCheckMost = 1000 // how many recipients are asked for at once, and again at each poll

type retryChecks struct {
	asking bool
	all    map[retryCheck]struct{}
	fresh  []retryCheck // the store must be asked for these now
}

func (d *retryChecks) add(x retryCheck) {
	d.all[x] = struct{}{}
	d.fresh = append(d.fresh, x)
}

// known asks again at once, if the recipient is among those asked for.
func (d *retryChecks) known(x retryCheck) {
	if _, known := d.all[x]; known {
		d.fresh = append(d.fresh, x)
	}
}

// again asks for all that still wait, if nothing else is to be asked for.
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

// checkRetries asks the store for the messages that hold back others, one row each.
func (s *scheduler) checkRetries(now time.Time) {
	for !s.retryChecks.asking && len(s.retryChecks.fresh) > 0 {
		n := min(len(s.retryChecks.fresh), retryCheckMost)
		var asked []retryCheck
		var from []puntuale.QueueCursor
		var horizon time.Time
		for _, x := range s.retryChecks.fresh[:n] {
			r := x.queue.recipients[x.recipient]
			if r == nil || x.queue.lost() || r.nextParked() == nil || !r.barred(now) {
				delete(s.retryChecks.all, x)
				continue
			}
			for _, b := range r.barriers {
				if now.Before(b.until) && !s.underWay(x.queue, b.key.id) {
					asked = append(asked, x)
					from = append(from, puntuale.QueueCursor{Session: x.queue.session.ID, Campaign: x.recipient.campaign, Next: b.next, ID: b.key.id - 1})
					horizon = latest(horizon, b.next)
				}
			}
		}
		s.retryChecks.fresh = s.retryChecks.fresh[n:]
		if len(from) > 0 {
			s.askRetryChecks(asked, from, horizon)
		}
	}
}

// underWay reports whether a message is in flight, or being closed. Then the row on disk is about to change.
func (s *scheduler) underWay(q *sessionQueue, id puntuale.MessageID) bool {
	m := q.messages[id]
	return s.attempts.has(id) || m != nil && m.stage == settling
}

func (s *scheduler) askRetryChecks(asked []retryCheck, from []puntuale.QueueCursor, horizon time.Time) {
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

// gotRetryChecks lifts the barriers of messages that are no longer open, or are tried at another moment.
func (s *scheduler) gotRetryChecks(asked []retryCheck, from []puntuale.QueueCursor, open []puntuale.DueMessage) {
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
