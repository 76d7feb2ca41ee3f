package dispatch

import (
	"errors"
	"time"

	"puntuale"
)

// A connector may refuse a message in Prepare or in Send. The same refusal has the same effect in both:
//
//	kind                  message                    later ones to its recipient   the session's others
//	Final                 FAILED                     go on                         go on
//	Transient             again, after the backoff   wait a minute at most         go on
//	Deferred              again, after the wait      wait a minute at most         go on
//	SessionDown,Throttled again, after the wait      wait a minute at most         wait as long
//	no proof, Prepare     as Transient
//	no proof, Send        uncertain                  go on                         go on
//
// Before Prepare, no attempt has begun. So prepareFailed closes or postpones the message, and nothing else is
// written. A refused attempt goes through [puntuale.Decide] and the recorder (see send). If a repeat is refused, the
// network may have the message from an earlier attempt. So the message stays uncertain, unless Send returns Final.

// prepareFailed handles the error of a connector's Prepare.
func (s *scheduler) prepareFailed(m *queuedMessage, now time.Time, err error) {
	refusal := puntuale.AsSendError(err)
	if refusal != nil && refusal.SessionWait() > 0 {
		s.pause(m.queue, now.Add(refusal.SessionWait()))
	}
	switch {
	case refusal == nil || refusal.Kind == puntuale.Transient:
		s.retryPrepare(m, now, refusal, err)
	case refusal.Kind == puntuale.Final:
		s.refuse(m, refusal.Reason, refusal.Detail)
	default:
		s.putOff(m, now, refusal)
	}
}

// putOff postpones a message that was refused only for now, and not because of itself. Later messages to its
// recipient wait for it, as after a refused attempt. The message is prepared before its moment, and never leaves
// before its moment.
func (s *scheduler) putOff(m *queuedMessage, now time.Time, refusal *puntuale.SendError) {
	next := now.Add(refusal.Wait())
	if !next.After(m.row.Next) {
		next = m.row.Next.Add(refusal.Wait())
	}
	if !m.repeat() {
		m.queue.recipient(recipientKeyOf(&m.row)).addBarrier(&m.row, now, next, false)
	}
	s.postpone(m, next, refusal.Reason, refusal.Detail)
}

// retryPrepare postpones a message that could not be prepared. Later messages to its recipient wait for it for a
// while.
func (s *scheduler) retryPrepare(m *queuedMessage, now time.Time, refusal *puntuale.SendError, err error) {
	reason, detail := puntuale.Reason{}, puntuale.ReasonOf(err)
	if refusal != nil {
		reason, detail = refusal.Reason, refusal.Detail
	}
	var p *panicError
	if m.repeat() { // a repeat takes no part in the recipient order, and is not urgent, because the network may have the message
		if errors.As(err, &p) {
			s.giveUpRepeat(m)
			return
		}
		s.postpone(m, now.Add(puntuale.Backoff(m.row.ID, repeatTries)), reason, detail)
		return
	}
	r := m.queue.recipient(recipientKeyOf(&m.row))
	tries := r.tries(m.row.ID) + 1
	if errors.As(err, &p) {
		s.cfg.Logger.Error("preparing a message panicked", "message_id", int64(m.row.ID), "session_id", int64(m.row.Session), "error", err)
		if tries >= panicsAllowed {
			s.refuse(m, puntuale.Because(puntuale.ReasonUnrecoverable), detail)
			return
		}
	}
	next := now.Add(puntuale.Backoff(m.row.ID, tries))
	if next.After(m.row.ValidUntil) {
		next = m.row.ValidUntil
	}
	r.addBarrier(&m.row, now, next, true)
	s.postpone(m, next, reason, detail)
}

// refuse makes a message FAILED that is not in flight. If the network may have the message, it waits until it is
// given up.
func (s *scheduler) refuse(m *queuedMessage, reason, detail puntuale.Reason) {
	if m.repeat() {
		s.giveUpRepeat(m)
		return
	}
	s.settle(m, puntuale.Settlement{State: puntuale.Failed, Reason: reason, Detail: detail}, "refused")
}
