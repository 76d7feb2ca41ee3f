package dispatch

import (
	"time"

	"puntuale"
)

// A connector may refuse a message in Prepare or in Send. A refusal has the same effect in both. The columns say what
// happens to the message, to later messages for its recipient, and to the session's other messages:
//
//	kind of error           the message                   its recipient           the session
//	Final                   FAILED                        does not wait           does not wait
//	Transient               again, after the backoff      waits up to a minute    does not wait
//	Deferred                again, after the error's wait waits up to a minute    does not wait
//	SessionDown, Throttled  again, after the error's wait waits up to a minute    waits for the same time
//	no proof, in Prepare    as after Transient
//	no proof, in Send       uncertain                     does not wait           does not wait
//
// "No proof" means any error that is not a [puntuale.SendError]. After such an error of Send, the message may have left.
//
// In Prepare, no attempt has begun yet. Therefore, prepareFailed only closes or postpones the message. The outcome of a
// refused attempt comes from [puntuale.Decide] and goes to the recorder (see send). If a repeat is refused, the network
// may have the message from an earlier attempt. Therefore, the message stays uncertain, unless Send returns Final.

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

// putOff postpones a message that was refused for a limited time, for a reason that is not in the message. Later
// messages to its recipient wait for this message, as they do after a refused attempt. The message may be prepared
// before its due time, but never leaves before its due time.
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

// retryPrepare postpones a message whose preparation failed. Later messages to its recipient wait for this message, but
// only for a limited time.
func (s *scheduler) retryPrepare(m *queuedMessage, now time.Time, refusal *puntuale.SendError, err error) {
	reason, detail := puntuale.Reason{}, puntuale.ReasonOf(err)
	if refusal != nil {
		reason, detail = refusal.Reason, refusal.Detail
	}
	if m.repeat() { // a repeat is not part of the recipient order, and is not urgent, because the network may already have the message
		if puntuale.Panicked(err) {
			s.giveUpRepeat(m)
			return
		}
		s.postpone(m, now.Add(puntuale.Backoff(m.row.ID, repeatTries)), reason, detail)
		return
	}
	r := m.queue.recipient(recipientKeyOf(&m.row))
	tries := r.tries(m.row.ID) + 1
	if puntuale.Panicked(err) {
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

// refuse sets a message to FAILED. The message must not be in flight. If the network may have the message from an
// earlier attempt, the message instead waits until it is given up.
func (s *scheduler) refuse(m *queuedMessage, reason, detail puntuale.Reason) {
	if m.repeat() {
		s.giveUpRepeat(m)
		return
	}
	s.settle(m, puntuale.Settlement{State: puntuale.Failed, Reason: reason, Detail: detail}, "refused")
}
