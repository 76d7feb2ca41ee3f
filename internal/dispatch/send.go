package dispatch

import (
	"context"
	"time"

	"puntuale"
)

// unansweredGrace is how much longer than its SendTimeout a connector may take to notice that it ran out.
const unansweredGrace = 5 * time.Second

// attempt is how one handing over ended.
type attempt struct {
	e       *entry
	outcome puntuale.Outcome
	quiet   time.Duration // for which the session should be left alone
}

// startSend hands a claimed message to its connector, in a goroutine of its own. Any goroutine.
func (s *scheduler) startSend(e *entry) { s.wg.Go(func() { s.send(e) }) }

func (s *scheduler) send(e *entry) {
	receipt, err := s.deliver(e)
	a := attempt{e: e, outcome: s.decide(e, receipt, err, s.cfg.Clock.Now())}
	if refusal := puntuale.AsSendError(err); refusal != nil {
		a.quiet = refusal.SessionWait()
	}
	if a.outcome.Verdict == puntuale.Retry && a.outcome.Next.After(e.m.ValidUntil) {
		a.outcome.Next = e.m.ValidUntil // so that it expires on time
	}
	s.box.ended(a)
	if s.cfg.Observe != nil {
		s.cfg.Observe(e.m, e.content, a.outcome)
	}
}

// decide reads only what does not change while the message is in flight. Any goroutine.
func (s *scheduler) decide(e *entry, r puntuale.Receipt, err error, now time.Time) puntuale.Outcome {
	a := puntuale.Attempt{
		Message: e.m.ID, Number: e.m.Attempt + 1, Repeats: e.m.Repeats, Now: now, Begun: e.begun,
		Recovery: e.lane.traits.Recovery, Resend: e.content.Resend, GiveUp: s.cfg.UncertainAfter,
	}
	if e.repeat() {
		a.Repeats++
	}
	return puntuale.Decide(a, r, err)
}

// deliver calls the connector; a panic counts as a lost answer.
func (s *scheduler) deliver(e *entry) (r puntuale.Receipt, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v}
			s.log.Error("sending a message panicked", "message_id", int64(e.m.ID), "session_id", int64(e.m.Session), "error", err)
		}
	}()
	ctx, cancel := s.sendCtx, context.CancelFunc(func() {})
	if e.lane.traits.SendTimeout > 0 {
		ctx, cancel = context.WithTimeout(s.sendCtx, e.lane.traits.SendTimeout)
	}
	defer cancel()
	p := e.prepared
	p.Token = e.token
	return e.lane.conn.Send(ctx, p)
}

// ended takes an attempt's outcome from its goroutine: the slot is free, the recipient's next message may go, the
// outcome is on its way to disk.
func (s *scheduler) ended(a *attempt, now time.Time) {
	e := a.e
	if e.late || e.stage == gone {
		if v := a.outcome.Verdict; v == puntuale.Sent || v == puntuale.Refused {
			s.records.evidence(e, a.outcome)
		}
		return
	}
	s.cfg.Meter.Outcome(e.lane.traits.Name, a.outcome.Verdict.String(), 1)
	if a.quiet > 0 {
		s.pause(e.lane, now.Add(a.quiet))
	}
	s.answer(e, a.outcome, now)
}

// answer ends the attempt in memory and has its outcome recorded.
func (s *scheduler) answer(e *entry, o puntuale.Outcome, now time.Time) {
	e.stage = answered
	if o.Verdict == puntuale.Retry && !e.repeat() {
		e.lane.recipient(personOf(&e.m)).hold(&e.m, now, o.Next, false)
	}
	s.records.push(e, o)
	s.landed(e, o.Verdict != puntuale.Retry)
}

// overdue gives up attempts whose connector ignores its timeout: their slots are needed. An answer that still comes is
// recorded as evidence. Time is counted by polls: a clock that was set forward is no reason to give up.
func (s *scheduler) overdue(now time.Time) {
	for _, e := range s.alive {
		if e.stage != sending || e.lane.traits.SendTimeout <= 0 {
			continue
		}
		if time.Duration(s.polls-e.sent-1)*s.cfg.Poll < e.lane.traits.SendTimeout+unansweredGrace {
			continue
		}
		e.late = true
		s.log.Warn("a connector gave no answer in time", "message_id", int64(e.m.ID), "session_id", int64(e.m.Session))
		s.cfg.Meter.Outcome(e.lane.traits.Name, puntuale.Uncertain.String(), 1)
		s.answer(e, s.decide(e, puntuale.Receipt{}, context.DeadlineExceeded, now), now)
	}
}
