package dispatch

import (
	"context"
	"time"

	"puntuale"
)

// A message in retry holds back later messages to its recipient, but is not in memory itself. If a caller stops the
// message in retry, nobody informs the dispatcher. Therefore, while such a message holds back a due message, the
// dispatcher asks the store whether the message in retry is still open.

// retryCheck identifies a recipient with a due message that waits for a message in retry.
type retryCheck struct {
	queue     *sessionQueue
	recipient recipientKey
}

const maxRetryCheck = 1000 // largest number of recipients in one call of the store

type retryChecks struct {
	asking bool
	all    map[retryCheck]struct{}
	fresh  []retryCheck // recipients about which the store must be asked now
}

func (d *retryChecks) add(x retryCheck) {
	d.all[x] = struct{}{}
	d.fresh = append(d.fresh, x)
}

// known requests a new check of a recipient immediately, if there was a check of this recipient before.
func (d *retryChecks) known(x retryCheck) {
	if _, known := d.all[x]; known {
		d.fresh = append(d.fresh, x)
	}
}

// askAll requests a check of all recipients that still wait, if no checks are requested yet.
func (d *retryChecks) askAll() {
	if len(d.fresh) > 0 {
		return
	}
	for x := range d.all {
		if d.fresh = append(d.fresh, x); len(d.fresh) == maxRetryCheck {
			return
		}
	}
}

// checkRetries asks the store whether the messages in retry that hold back other messages are still open. The store
// returns one row for each of them.
func (s *scheduler) checkRetries(now time.Time) {
	for !s.retryChecks.asking && len(s.retryChecks.fresh) > 0 {
		n := min(len(s.retryChecks.fresh), maxRetryCheck)
		var requested []retryCheck
		var from []puntuale.QueueCursor
		var horizon time.Time
		for _, x := range s.retryChecks.fresh[:n] {
			r := x.queue.recipients[x.recipient]
			if r == nil || x.queue.lost() || r.nextParked() == nil || !r.barred(now) {
				delete(s.retryChecks.all, x)
				continue
			}
			for _, b := range r.barriers {
				if now.Before(b.end) && !s.underWay(x.queue, b.key.id) {
					requested = append(requested, x)
					from = append(from, puntuale.QueueCursor{Session: x.queue.session.ID, Campaign: x.recipient.campaign, Next: b.next, ID: b.key.id - 1})
					horizon = latest(horizon, b.next)
				}
			}
		}
		s.retryChecks.fresh = s.retryChecks.fresh[n:]
		if len(from) > 0 {
			s.askRetryChecks(requested, from, horizon)
		}
	}
}

// underWay reports whether a message is in flight, or is being closed. In both cases, its row on disk will change soon.
func (s *scheduler) underWay(q *sessionQueue, id puntuale.MessageID) bool {
	m := q.messages[id]
	return s.attempts.has(id) || m != nil && m.stage == settling
}

func (s *scheduler) askRetryChecks(requested []retryCheck, from []puntuale.QueueCursor, horizon time.Time) {
	s.retryChecks.asking = true
	s.life.wg.Go(func() {
		ctx, cancel := context.WithTimeout(s.life.ctx, callWait)
		defer cancel()
		open, err := guarded(s, func() ([]puntuale.DueMessage, error) { return s.cfg.Queue.Due(ctx, from, horizon, 1) })
		s.mailbox.post(func() {
			s.retryChecks.asking = false
			if err == nil { // after an error, the next poll asks the store again
				s.gotRetryChecks(requested, from, open)
			}
		})
	})
}

// gotRetryChecks lifts the barriers of messages that are no longer open, or whose next attempt has a new time on disk.
// It does not lift a barrier that changed after the check was requested.
func (s *scheduler) gotRetryChecks(requested []retryCheck, from []puntuale.QueueCursor, open []puntuale.DueMessage) {
	still := make(map[puntuale.MessageID]bool, len(open))
	for i := range open {
		still[open[i].ID] = true
	}
	for i, x := range requested {
		id := from[i].ID + 1
		r := x.queue.recipients[x.recipient]
		if r == nil || still[id] || s.underWay(x.queue, id) || !r.lift(id, from[i].Next) {
			continue
		}
		if m := x.queue.messages[id]; m != nil {
			s.forget(m) // the message was read into memory shortly before its next attempt
		}
		s.advance(x.queue, x.recipient)
	}
}
