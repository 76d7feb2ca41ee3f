package dispatch

import (
	"context"
	"time"

	"puntuale"
)

// recover decides about a row whose attempt was begun and has no known outcome: it is an orphan of a crash, or an
// uncertain message whose time to be looked at has come. It reports whether the attempt is to be repeated.
//
//   - An attempt of this process whose claim went unanswered was never sent: it is open again. Not so if it was to repeat
//     an earlier one: that one may have arrived.
//   - Where the network shows one copy of the same connector id, it is repeated, as often as MaxRepeats, while valid.
//     Where it does not, one whose content asks for it is sent again, as often as MaxResends; its content is read first.
//   - Otherwise the network is asked, where it can tell whether the message arrived (inquire). What did not is left to
//     wait: it may still be on its way, and a message that was stopped must never be sent again.
//   - It waits for evidence until its deadline, and then it is FAILED with an uncertain outcome. A message
//     that crashes the process with each attempt ends here too: nobody can know that the network does not have it.
func (s *scheduler) recover(e *entry, now time.Time) bool {
	m := &e.m
	_, unsent := s.orphan[m.Intent]
	switch deadline := s.deadline(m); {
	case unsent && m.Repeats == 0:
		s.conclude(e, puntuale.Outcome{Verdict: puntuale.Retry, Next: now})
	case m.Next.After(now): // not yet
	case !now.Before(deadline):
		s.hold(e)
		s.settle(e, puntuale.Settlement{State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonUncertain), Detail: uncertainDetail}, "gave up")
	case !s.mightRepeat(m, e.lane, now):
		s.inquire(e, now)
	default:
		return true
	}
	return false
}

var uncertainDetail = puntuale.Because(puntuale.ReasonMaybeArrived)

// deadline is when an unanswered attempt is given up.
func (s *scheduler) deadline(m *puntuale.DueMessage) time.Time {
	return m.IntentAt.Add(s.cfg.UncertainAfter)
}

// mightRepeat tells whether a message may be repeated as far as its row says; its content is not known yet.
func (s *scheduler) mightRepeat(m *puntuale.DueMessage, l *lane, now time.Time) bool {
	most := puntuale.MaxRepeats
	if l.traits.Recovery != puntuale.RecoverSameID {
		most = puntuale.MaxResends
	}
	return l.conn != nil && m.Repeats < most && now.Before(m.ValidUntil) && now.Before(s.deadline(m))
}

// mayRepeat tells whether one whose content was read may be repeated.
func (s *scheduler) mayRepeat(e *entry, now time.Time) bool {
	return s.mightRepeat(&e.m, e.lane, now) && (e.content.Resend || e.lane.traits.Recovery == puntuale.RecoverSameID)
}

// mustWait tells whether an unanswered message must not be sent again, now that its content says what it asks for: at all, or
// before evidence had its time. Any goroutine.
func (s *scheduler) mustWait(e *entry, now time.Time) bool {
	return e.lane.traits.Recovery != puntuale.RecoverSameID &&
		(!e.content.Resend || now.Before(e.m.IntentAt.Add(puntuale.ResendAfter)))
}

// leave has an unanswered message wait as mustWait says.
func (s *scheduler) leave(e *entry, now time.Time) {
	if again := e.m.IntentAt.Add(puntuale.ResendAfter); e.content.Resend && now.Before(again) {
		s.postpone(e, again, puntuale.Reason{}, puntuale.Reason{})
		return
	}
	s.giveUpRepeat(e)
}

// conclude records an outcome for an attempt that this process did not make, or did not send.
func (s *scheduler) conclude(e *entry, o puntuale.Outcome) {
	s.inFlight(e)
	s.records.push(e, o)
}

// inFlight counts an attempt that this process did not make, until its outcome is on disk.
func (s *scheduler) inFlight(e *entry) {
	e.stage, e.token = answered, e.m.Intent
	s.alive[e.m.ID] = e
	e.lane.open++
}

// inquire asks the network about an unanswered message that must not be repeated, where it can tell. What arrived is
// closed as sent. The rest is asked about once more after ResendAfter, and then waits for its deadline.
func (s *scheduler) inquire(e *entry, now time.Time) {
	o := puntuale.Outcome{Verdict: puntuale.Uncertain, Next: s.deadline(&e.m), Detail: uncertainDetail}
	witness, can := e.lane.conn.(puntuale.Witness)
	if !can {
		s.conclude(e, o)
		return
	}
	if again := e.m.IntentAt.Add(puntuale.ResendAfter); now.Before(again) && again.Before(o.Next) {
		o.Next = again
	}
	s.inFlight(e)
	s.wg.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, callWait)
		defer cancel()
		asked := puntuale.Envelope{Client: e.m.Client, Session: e.m.Session, Run: e.m.Run, Message: e.m.ID,
			ConnectorID: puntuale.ConnectorID(e.m.ID, e.m.Generation), To: e.m.Phone}
		if arrived, err := witness.Arrived(ctx, asked); err != nil {
			s.log.Warn("asking the network about a message failed", "message_id", int64(e.m.ID), "error", err)
		} else if arrived {
			o = puntuale.Outcome{Verdict: puntuale.Sent, Detail: arrivedDetail}
		}
		s.records.push(e, o)
	})
}

var arrivedDetail = puntuale.Because(puntuale.ReasonArrived)

// giveUpRepeat leaves an unanswered message to its deadline.
func (s *scheduler) giveUpRepeat(e *entry) {
	s.forget(e)
	s.conclude(e, puntuale.Outcome{Verdict: puntuale.Uncertain, Next: s.deadline(&e.m), Detail: uncertainDetail})
}

// postpone moves a message that is not in flight to a later moment, at most to its end, so that it expires on time.
func (s *scheduler) postpone(e *entry, next time.Time, reason, detail puntuale.Reason) {
	if e.repeat() {
		deadline := s.deadline(&e.m)
		if next.IsZero() || next.After(deadline) {
			next = deadline
		}
		if detail.IsZero() {
			detail = uncertainDetail
		}
		s.forget(e)
		s.conclude(e, puntuale.Outcome{Verdict: puntuale.Uncertain, Next: next, Detail: detail})
		return
	}
	if next.IsZero() || next.After(e.m.ValidUntil) {
		next = e.m.ValidUntil
	}
	s.settle(e, puntuale.Settlement{State: puntuale.Pending, Next: next, Reason: reason, Detail: detail}, "postponed")
}

// refuse closes a message that is not in flight as FAILED. One that the network may have waits for its deadline.
func (s *scheduler) refuse(e *entry, reason, detail puntuale.Reason) {
	if e.repeat() {
		s.giveUpRepeat(e)
		return
	}
	s.settle(e, puntuale.Settlement{State: puntuale.Failed, Reason: reason, Detail: detail}, "refused")
}

// expire closes a message whose validity ended; the settler finds out why it could not leave.
func (s *scheduler) expire(e *entry) {
	s.settle(e, puntuale.Settlement{State: puntuale.Failed}, "expired")
}

// settle has an entry closed or postponed without an attempt.
func (s *scheduler) settle(e *entry, st puntuale.Settlement, verdict string) {
	e.stage = settling
	st.MessageRef, st.Intent = e.ref(), e.m.Intent
	s.settles.push(ending{e: e, s: st, verdict: verdict, offline: e.lane.offline, node: s.node})
}

// pause keeps a lane quiet for a while.
func (s *scheduler) pause(l *lane, until time.Time) {
	if until.After(l.paused) {
		l.setPaused(until)
		s.alarms.set(&l.alarm, until)
	}
}
