package dispatch

import (
	"context"
	"time"

	"puntuale"
)

// unansweredGrace is how long a connector may run after its SendTimeout. After that, overdue gives up the attempt.
const unansweredGrace = 5 * time.Second

// sendResult is the result of an attempt.
type sendResult struct {
	m       *queuedMessage
	outcome puntuale.Outcome
	pause   time.Duration // the pause that the connector requested for the session; 0: no pause
}

// startSend sends a claimed message through its connector in a new goroutine. Any goroutine may call it.
func (s *scheduler) startSend(m *queuedMessage) { s.life.wg.Go(func() { s.send(m) }) }

func (s *scheduler) send(m *queuedMessage) {
	receipt, err := s.deliver(m)
	r := sendResult{m: m, outcome: s.decide(m, receipt, err, s.cfg.Clock.Now())}
	if refusal := puntuale.AsSendError(err); refusal != nil {
		r.pause = refusal.SessionWait()
	}
	if r.outcome.Verdict == puntuale.Retry && r.outcome.Next.After(m.row.ValidUntil) {
		r.outcome.Next = m.row.ValidUntil // the deadline, so that the message expires on time
	}
	s.mailbox.ended(r)
	if s.cfg.Observe != nil {
		s.cfg.Observe(m.row, m.content, r.outcome)
	}
}

// decide converts a connector's answer into an outcome. Any goroutine may call it, because it reads only fields that do
// not change while the message is in flight.
func (s *scheduler) decide(m *queuedMessage, r puntuale.Acceptance, err error, now time.Time) puntuale.Outcome {
	a := puntuale.Attempt{
		Message: m.row.ID, Number: m.row.Attempt + 1, Repeats: m.row.Repeats, Now: now, Begun: m.begun,
		Recovery: m.queue.capabilities.Recovery, Resend: m.content.Resend, GiveUp: s.cfg.UncertainAfter,
	}
	if m.repeat() {
		a.Repeats++
	}
	return puntuale.Decide(a, r, err)
}

// deliver calls the connector's Send. A panic counts as a lost answer.
func (s *scheduler) deliver(m *queuedMessage) (r puntuale.Acceptance, err error) {
	ctx, cancel := s.life.sendCtx, context.CancelFunc(func() {})
	if m.queue.capabilities.SendTimeout > 0 {
		ctx, cancel = context.WithTimeout(s.life.sendCtx, m.queue.capabilities.SendTimeout)
	}
	defer cancel()
	p := m.prepared
	p.Token = m.token
	err = puntuale.Recovered(func() (err error) {
		r, err = m.queue.conn.Send(ctx, p)
		return err
	})
	if puntuale.Panicked(err) {
		s.cfg.Logger.Error("sending a message panicked", "message_id", int64(m.row.ID), "session_id", int64(m.row.Session), "error", err)
	}
	return r, err
}

// ended handles the outcome of an attempt. It frees the slot, so that the recipient's next message may leave, and gives
// the outcome to the recorder.
func (s *scheduler) ended(r *sendResult, now time.Time) {
	m := r.m
	if m.late || m.stage == gone {
		if v := r.outcome.Verdict; v == puntuale.Sent || v == puntuale.Refused {
			s.recorder.pushLate(m, r.outcome)
		}
		return
	}
	s.cfg.Meter.Outcome(m.queue.capabilities.Name, r.outcome.Verdict.String(), 1)
	if r.pause > 0 {
		s.pause(m.queue, now.Add(r.pause))
	}
	s.answer(m, r.outcome, now)
}

// answer ends an attempt in memory, and gives its outcome to the recorder.
func (s *scheduler) answer(m *queuedMessage, o puntuale.Outcome, now time.Time) {
	m.stage = answered
	if o.Verdict == puntuale.Retry && !m.repeat() {
		m.queue.recipient(recipientKeyOf(&m.row)).addBarrier(&m.row, now, o.Next, false)
	}
	s.recorder.push(m, o)
	s.freeSlot(m, o.Verdict != puntuale.Retry)
}

// overdue gives up attempts whose connector ignores its timeout, because their slots are needed. If an answer comes
// later, it is recorded, too. overdue measures time in polls instead of by the clock, because a person may set the
// clock forward.
func (s *scheduler) overdue(now time.Time) {
	for _, m := range s.attempts.open {
		if m.stage != sending || m.queue.capabilities.SendTimeout <= 0 {
			continue
		}
		if time.Duration(s.polls.count-m.sentPoll-1)*s.cfg.Poll < m.queue.capabilities.SendTimeout+unansweredGrace {
			continue
		}
		m.late = true
		s.cfg.Logger.Warn("a connector gave no answer in time", "message_id", int64(m.row.ID), "session_id", int64(m.row.Session))
		s.cfg.Meter.Outcome(m.queue.capabilities.Name, puntuale.Uncertain.String(), 1)
		s.answer(m, s.decide(m, puntuale.Acceptance{}, context.DeadlineExceeded, now), now)
	}
}
