package dispatch

import (
	"context"
	"time"

	"puntuale"
)

// recover decides about a row with an attempt that has no known outcome. Either a crash left the attempt behind, or the
// message is uncertain and its next check is due. recover returns true if the attempt is to be repeated.
//
//   - An attempt of this process whose claim got no answer was never sent. Therefore, the message becomes pending again.
//     This does not apply to a repeat, because the attempt before it may have arrived.
//   - If the network recognises repeats by the connector id, the attempt is repeated up to MaxRepeats times, until the
//     message's deadline. For any other network, the message is sent again up to MaxResends times, if its content allows
//     this. In both cases, the content is read first.
//   - If the attempt is not repeated, and the connector is a delivery checker, inquire asks the network whether the
//     message arrived. A message that did not arrive waits, because it may still arrive.
//   - At giveUpAt, a message without a receipt becomes FAILED with an uncertain outcome. This also happens to a message
//     whose attempts crash the process, because the network may have the message.
func (s *scheduler) recover(m *queuedMessage, now time.Time) bool {
	row := &m.row
	_, unsent := s.attempts.unsent[row.Intent]
	switch giveUp := s.giveUpAt(row); {
	case unsent && row.Repeats == 0:
		s.conclude(m, puntuale.Outcome{Verdict: puntuale.Retry, Next: now})
	case row.Next.After(now): // the next check is not due yet
	case !now.Before(giveUp):
		s.addToMemory(m)
		s.settle(m, puntuale.Settlement{State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonUncertain), Detail: uncertainDetail}, "gave up")
	case !s.mightRepeat(row, m.queue, now):
		s.inquire(m, now)
	default:
		return true
	}
	return false
}

var uncertainDetail = puntuale.Because(puntuale.ReasonMaybeArrived)

// giveUpAt returns the time at which an unanswered attempt is given up.
func (s *scheduler) giveUpAt(row *puntuale.DueMessage) time.Time {
	return row.IntentAt.Add(s.cfg.UncertainAfter)
}

// mightRepeat reports whether the row of a message allows a repeat. The message's content is not known yet.
func (s *scheduler) mightRepeat(row *puntuale.DueMessage, q *sessionQueue, now time.Time) bool {
	maximum := puntuale.MaxRepeats
	if q.capabilities.Recovery != puntuale.RecoverSameID {
		maximum = puntuale.MaxResends
	}
	return q.conn != nil && row.Repeats < maximum && now.Before(row.ValidUntil) && now.Before(s.giveUpAt(row))
}

// mayRepeat reports whether a message may be repeated. The message's content must be known.
func (s *scheduler) mayRepeat(m *queuedMessage, now time.Time) bool {
	return s.mightRepeat(&m.row, m.queue, now) && (m.content.Resend || m.queue.capabilities.Recovery == puntuale.RecoverSameID)
}

// mustWait reports whether an unanswered message must not be sent again now. Either its content does not allow a
// resend, or a delivery receipt may still come. Any goroutine may call it.
func (s *scheduler) mustWait(m *queuedMessage, now time.Time) bool {
	return m.queue.capabilities.Recovery != puntuale.RecoverSameID &&
		(!m.content.Resend || now.Before(m.row.IntentAt.Add(puntuale.ResendAfter)))
}

// awaitReceipt makes an unanswered message wait. Call it if mustWait returns true.
func (s *scheduler) awaitReceipt(m *queuedMessage, now time.Time) {
	if resendAt := m.row.IntentAt.Add(puntuale.ResendAfter); m.content.Resend && now.Before(resendAt) {
		s.postpone(m, resendAt, puntuale.Reason{}, puntuale.Reason{})
		return
	}
	s.giveUpRepeat(m)
}

// conclude records an outcome for an attempt that this process did not make or did not send.
func (s *scheduler) conclude(m *queuedMessage, o puntuale.Outcome) {
	s.inFlight(m)
	s.recorder.push(m, o)
}

// inFlight handles an attempt that this process did not make. The attempt counts as in flight until its outcome is on
// disk.
func (s *scheduler) inFlight(m *queuedMessage) {
	m.stage, m.token = answered, m.row.Intent
	s.attempts.add(m)
	m.queue.unrecorded++
}

// inquire handles an unanswered message that must not be repeated. If the connector is a delivery checker, inquire asks
// the network whether the message arrived. A message that arrived is recorded as sent. If it did not arrive, inquire
// asks once more after ResendAfter. After that, the message waits until it is given up.
func (s *scheduler) inquire(m *queuedMessage, now time.Time) {
	o := puntuale.Outcome{Verdict: puntuale.Uncertain, Next: s.giveUpAt(&m.row), Detail: uncertainDetail}
	checker, can := m.queue.conn.(puntuale.DeliveryChecker)
	if !can {
		s.conclude(m, o)
		return
	}
	if resendAt := m.row.IntentAt.Add(puntuale.ResendAfter); now.Before(resendAt) && resendAt.Before(o.Next) {
		o.Next = resendAt
	}
	s.inFlight(m)
	s.life.wg.Go(func() {
		ctx, cancel := context.WithTimeout(s.life.ctx, callWait)
		defer cancel()
		requested := puntuale.Envelope{Client: m.row.Client, Session: m.row.Session, Run: m.row.Run, Message: m.row.ID,
			ConnectorID: puntuale.ConnectorID(m.row.ID, m.row.Generation), To: m.row.Phone}
		arrived := false
		if err := puntuale.Recovered(func() (err error) {
			arrived, err = checker.Arrived(ctx, requested)
			return err
		}); err != nil {
			s.cfg.Logger.Warn("asking the network about a message failed", "message_id", int64(m.row.ID), "error", err)
		} else if arrived {
			o = puntuale.Outcome{Verdict: puntuale.Sent, Detail: arrivedDetail}
		}
		s.recorder.push(m, o)
	})
}

var arrivedDetail = puntuale.Because(puntuale.ReasonArrived)

// giveUpRepeat ends the repeats of an unanswered message. The message then waits until it is given up.
func (s *scheduler) giveUpRepeat(m *queuedMessage) {
	s.forget(m)
	s.conclude(m, puntuale.Outcome{Verdict: puntuale.Uncertain, Next: s.giveUpAt(&m.row), Detail: uncertainDetail})
}

// postpone moves a message that is not in flight to a later time. If the message is a repeat, this time is never after
// giveUpAt. Otherwise it is never after the message's deadline, so that the message expires on time.
func (s *scheduler) postpone(m *queuedMessage, next time.Time, reason, detail puntuale.Reason) {
	if m.repeat() {
		giveUp := s.giveUpAt(&m.row)
		if next.IsZero() || next.After(giveUp) {
			next = giveUp
		}
		if detail.IsZero() {
			detail = uncertainDetail
		}
		s.forget(m)
		s.conclude(m, puntuale.Outcome{Verdict: puntuale.Uncertain, Next: next, Detail: detail})
		return
	}
	if next.IsZero() || next.After(m.row.ValidUntil) {
		next = m.row.ValidUntil
	}
	s.settle(m, puntuale.Settlement{State: puntuale.Pending, Next: next, Reason: reason, Detail: detail}, "postponed")
}

// expire closes a message whose deadline has passed. The settler finds the reason why the message did not leave.
func (s *scheduler) expire(m *queuedMessage) {
	s.settle(m, puntuale.Settlement{State: puntuale.Failed}, "expired")
}

// settle makes the settler close or postpone a message without an attempt.
func (s *scheduler) settle(m *queuedMessage, st puntuale.Settlement, verdict string) {
	m.stage = settling
	st.MessageRef, st.Intent = m.ref(), m.row.Intent
	s.settler.push(pendingSettlement{m: m, settlement: st, verdict: verdict, offline: m.queue.offline, node: s.node})
}
