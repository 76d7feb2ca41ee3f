package puntuale

import (
	"fmt"
	"time"
)

// Verdict says what is known about a message after an attempt.
type Verdict int8

const (
	Sent      Verdict = iota + 1 // the network has the message: it becomes COMPLETED
	Refused                      // the network will never have the message: it becomes FAILED
	Retry                        // the network does not have the message: it is open again, and due at Outcome.Next
	Uncertain                    // the network may have the message: the intent stays, and the dispatcher checks the message again at the time Outcome.Next
)

func (v Verdict) String() string {
	switch v {
	case Sent:
		return "sent"
	case Refused:
		return "refused"
	case Retry:
		return "retry"
	case Uncertain:
		return "uncertain"
	}
	return fmt.Sprintf("Verdict(%d)", int8(v))
}

// Outcome is the result of an attempt.
type Outcome struct {
	Verdict Verdict
	Next    time.Time // only with Retry and Uncertain
	Reason  Reason    // the reason that people read
	Detail  Reason    // what the connector reported
	Failed  bool      // only with Retry: the attempt makes the message's next backoff longer
}

// Result is the outcome of one attempt.
type Result struct {
	MessageRef
	Token   int64
	Outcome Outcome
}

// Settlement asks to close an open message (State Failed) or to postpone it (State Pending, to the time Next), with a
// reason.
type Settlement struct {
	MessageRef
	Intent int64 // the message's intent when the dispatcher read it: 0, or the token of an attempt that is given up as uncertain
	State  State
	Next   time.Time
	Reason Reason
	Detail Reason
}

// Attempt contains what [Decide] needs to know about the attempt that just ended.
type Attempt struct {
	Message  MessageID
	Number   int       // number of attempts that began, including this one
	Repeats  int       // number of attempts that repeated an unanswered attempt
	Now      time.Time // when the answer came, or when waiting for it ended
	Begun    time.Time // when the intent of the first unanswered attempt was written
	Recovery Recovery
	Resend   bool          // only with RecoverNone: the message may be sent one more time
	GiveUp   time.Duration // time after Begun at which an uncertain message becomes FAILED
}

// Limits and waits of repeats and retries.
const (
	MaxRepeats  = 3
	MaxResends  = 1                // how often [UncertainResend] sends a message again
	ResendAfter = 10 * time.Minute // how long the dispatcher waits for a receipt after a lost answer, before [UncertainResend] sends the message again
	retryFirst  = 5 * time.Second
	retryLast   = 10 * time.Minute
	repeatFirst = 3 * time.Second
)

// Decide turns a connector's answer into an outcome. It is pure.
//
// If a repeat certainly did not reach the network, the attempt before it may still have arrived. So the message stays
// uncertain, keeps its credit, and cannot be cancelled. Only an error of the kind [Final] decides about all attempts.
func Decide(a Attempt, r Acceptance, err error) Outcome {
	if err == nil {
		return Outcome{Verdict: Sent, Detail: r.Detail}
	}
	e := AsSendError(err)
	if e == nil || a.Repeats > 0 && e.Kind != Final {
		return uncertain(a, err)
	}
	o := Outcome{Verdict: Retry, Reason: e.Reason, Detail: e.Detail}
	switch e.Kind {
	case Final:
		o.Verdict = Refused
	case SessionDown, Throttled, Deferred:
		o.Next = a.Now.Add(e.Wait())
	default:
		o.Next, o.Failed = a.Now.Add(Backoff(a.Message, a.Number)), true
	}
	return o
}

// uncertain plans the next check of a message whose answer was lost. With RecoverSameID, the next check is a repeat
// under the same connector id. If the step asks for a resend, the next check sends the message one more time. In all
// other cases, the message is given up at the time of the next check.
func uncertain(a Attempt, err error) Outcome {
	o := Outcome{Verdict: Uncertain, Next: a.Begun.Add(a.GiveUp),
		Detail: Because(ReasonMaybeBecause, ReasonOf(err).Stored())}
	var wait time.Duration
	switch {
	case a.Recovery == RecoverSameID && a.Repeats < MaxRepeats:
		wait = repeatFirst << (2 * a.Repeats) // 3 s, 12 s, 48 s
	case a.Recovery == RecoverNone && a.Resend && a.Repeats < MaxResends:
		wait = ResendAfter
	default:
		return o
	}
	if next := a.Now.Add(wait); next.Before(o.Next) {
		o.Next = next
	}
	return o
}

// Backoff returns the wait after the nth failed attempt, n from 1. It begins at 5 s and doubles up to ten minutes. Up
// to a quarter of the wait is added, so that messages that failed together are not all tried again together. The same
// id and n give the same wait.
func Backoff(id MessageID, n int) time.Duration {
	wait := retryLast
	if shift := max(n, 1) - 1; shift < 8 {
		wait = min(retryFirst<<shift, retryLast)
	}
	spread := (uint64(id)*0x9E3779B97F4A7C15 + uint64(n)*0xBF58476D1CE4E5B9) >> 40 // 24 bits that look random
	return wait + (wait/4)*time.Duration(spread)>>24
}

// NoMeter ignores all figures.
type NoMeter struct{}

func (NoMeter) Late(time.Duration)               {}
func (NoMeter) Outcome(string, string, int)      {}
func (NoMeter) Queue(int, int)                   {}
func (NoMeter) CapRefused(int)                   {}
func (NoMeter) Batch(string, int, time.Duration) {}
func (NoMeter) Deadlock()                        {}
func (NoMeter) Fenced(int)                       {}
func (NoMeter) Quarantined(int)                  {}
