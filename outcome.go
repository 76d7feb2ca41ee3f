package puntuale

import (
	"fmt"
	"time"
)

// Verdict says what is known of a message after an attempt.
type Verdict int8

const (
	Sent      Verdict = iota + 1 // the network has it: COMPLETED
	Refused                      // the network never will have it: FAILED
	Retry                        // the network does not have it: open again, at Outcome.Next
	Uncertain                    // the network may have it: the intent stays, and the next look is at Outcome.Next
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

// Outcome is what an attempt led to.
type Outcome struct {
	Verdict Verdict
	Next    time.Time // with Retry and Uncertain
	Reason  Reason    // for people
	Detail  Reason    // the connector's words
	Failed  bool      // with Retry: the attempt counts against the message's backoff
}

// Attempt is what [Decide] needs to know of the attempt that just ended.
type Attempt struct {
	Message  MessageID
	Number   int       // attempts begun, this one included
	Repeats  int       // how many of them repeated an unanswered one
	Now      time.Time // when the answer came, or the wait for it ended
	Begun    time.Time // when the first unanswered attempt's intent was written
	Recovery Recovery
	Resend   bool          // with RecoverNone: the message may still be sent once more
	GiveUp   time.Duration // so long after Begun, an uncertain message becomes FAILED
}

// Times of the retry rule.
const (
	MaxRepeats  = 3
	MaxResends  = 1                // of [UncertainResend]
	ResendAfter = 10 * time.Minute // the time without a receipt since the lost answer
	retryFirst  = 5 * time.Second
	retryLast   = 10 * time.Minute
	repeatFirst = 3 * time.Second
)

// Decide turns a connector's answer into an outcome. It is pure.
//
// A proof that a repeat did not reach the network says nothing about the attempt before it. The message stays uncertain, keeps its credit,
// and cannot be cancelled. Only [Final] is about the message as a whole.
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

// uncertain plans the next look at a message whose answer was lost. Where the network shows one copy, the next look is
// a repeat under the same id. If the step asks for a resend, it is one more message. Otherwise it is the deadline at
// which the message is given up.
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

// Backoff is the wait after the nth failed attempt (n from 1): 5 s, then doubling up to ten minutes. It is spread by up
// to a quarter, so that messages that failed together do not come back together. The same message and n give the same
// wait.
func Backoff(id MessageID, n int) time.Duration {
	wait := retryLast
	if shift := max(n, 1) - 1; shift < 8 {
		wait = min(retryFirst<<shift, retryLast)
	}
	spread := (uint64(id)*0x9E3779B97F4A7C15 + uint64(n)*0xBF58476D1CE4E5B9) >> 40 // 24 bits
	return wait + (wait/4)*time.Duration(spread)>>24
}
