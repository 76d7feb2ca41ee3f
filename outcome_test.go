package puntuale_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"puntuale"
)

var (
	outcomeNow   = time.Date(2026, 11, 20, 10, 30, 0, 0, time.UTC)
	outcomeBegun = outcomeNow.Add(-2 * time.Second)
)

func TestDecide(t *testing.T) {
	t.Parallel()
	evidence := func(kind puntuale.SendErrorKind, after time.Duration) error {
		return errors.Join(errors.New("send"), &puntuale.SendError{Kind: kind, Reason: puntuale.Quoted("perché"), Detail: puntuale.Quoted("words"), After: after})
	}
	lost := errors.New("connection reset")
	deadline := outcomeBegun.Add(24 * time.Hour)
	tests := []struct {
		name     string
		repeats  int
		recovery puntuale.Recovery
		err      error
		verdict  puntuale.Verdict
		next     time.Time // zero: none; if failed is set, the real time is later by at most a quarter of the wait
		failed   bool
	}{
		{"accepted", 0, puntuale.RecoverNone, nil, puntuale.Sent, time.Time{}, false},
		{"accepted on repeat", 2, puntuale.RecoverSameID, nil, puntuale.Sent, time.Time{}, false},

		{"refused for good", 0, puntuale.RecoverNone, evidence(puntuale.Final, 0), puntuale.Refused, time.Time{}, false},
		{"transient", 0, puntuale.RecoverNone, evidence(puntuale.Transient, 0), puntuale.Retry, outcomeNow.Add(5 * time.Second), true},
		{"session down", 0, puntuale.RecoverNone, evidence(puntuale.SessionDown, 0), puntuale.Retry, outcomeNow.Add(5 * time.Second), false},
		{"throttled", 0, puntuale.RecoverNone, evidence(puntuale.Throttled, 40*time.Second), puntuale.Retry, outcomeNow.Add(40 * time.Second), false},
		{"throttled without saying how long", 0, puntuale.RecoverNone, evidence(puntuale.Throttled, 0), puntuale.Retry, outcomeNow.Add(time.Second), false},

		{"answer lost, no repeats known", 0, puntuale.RecoverNone, lost, puntuale.Uncertain, deadline, false},
		{"answer lost", 0, puntuale.RecoverSameID, lost, puntuale.Uncertain, outcomeNow.Add(3 * time.Second), false},
		{"answer lost again", 1, puntuale.RecoverSameID, lost, puntuale.Uncertain, outcomeNow.Add(12 * time.Second), false},
		{"answer lost a third time", 2, puntuale.RecoverSameID, lost, puntuale.Uncertain, outcomeNow.Add(48 * time.Second), false},
		{"repeats used up", 3, puntuale.RecoverSameID, lost, puntuale.Uncertain, deadline, false},

		// In these cases a repeat did not arrive. The attempt before the repeat may still have arrived.
		{"repeat transient", 1, puntuale.RecoverSameID, evidence(puntuale.Transient, 0), puntuale.Uncertain, outcomeNow.Add(12 * time.Second), false},
		{"repeat session down", 3, puntuale.RecoverSameID, evidence(puntuale.SessionDown, 0), puntuale.Uncertain, deadline, false},
		{"repeat throttled", 1, puntuale.RecoverSameID, evidence(puntuale.Throttled, time.Hour), puntuale.Uncertain, outcomeNow.Add(12 * time.Second), false},
		{"repeat refused for good", 1, puntuale.RecoverSameID, evidence(puntuale.Final, 0), puntuale.Refused, time.Time{}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := puntuale.Attempt{
				Message: 42, Number: 1 + test.repeats, Repeats: test.repeats, Now: outcomeNow, Begun: outcomeBegun,
				Recovery: test.recovery, GiveUp: 24 * time.Hour,
			}
			got := puntuale.Decide(a, puntuale.Acceptance{Detail: puntuale.Quoted("wamid.1")}, test.err)
			if got.Verdict != test.verdict || got.Failed != test.failed {
				t.Errorf("got %v, failed %v; want %v, %v", got.Verdict, got.Failed, test.verdict, test.failed)
			}
			slack := time.Duration(0)
			if test.failed {
				slack = 5 * time.Second / 4
			}
			if got.Next.Before(test.next) || got.Next.After(test.next.Add(slack)) {
				t.Errorf("next %v, want %v", got.Next, test.next)
			}
			switch test.verdict {
			case puntuale.Sent:
				if got.Detail.String() != "wamid.1" {
					t.Errorf("detail %q, want the receipt's", got.Detail)
				}
			case puntuale.Uncertain:
				if !got.Reason.IsZero() || got.Detail.Code != puntuale.ReasonMaybeBecause {
					t.Errorf("reason %q, detail %q: want none, and one that says so", got.Reason, got.Detail)
				}
			default:
				if got.Reason.String() != "perché" || got.Detail.String() != "words" {
					t.Errorf("reason %q, detail %q: want the connector's", got.Reason, got.Detail)
				}
			}
		})
	}
}

// TestDecideKeepsTheUncertain checks that no answer to a repeat opens the message again. A cancellation could close an
// opened message although the network has this message.
func TestDecideKeepsTheUncertain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := puntuale.Attempt{
			Message: puntuale.MessageID(rapid.Int64Range(1, puntuale.MaxID).Draw(t, "id")),
			Number:  rapid.IntRange(1, 50).Draw(t, "number"), Repeats: rapid.IntRange(0, 5).Draw(t, "repeats"),
			Now: outcomeNow, Begun: outcomeNow.Add(-time.Duration(rapid.Int64Range(0, int64(48*time.Hour)).Draw(t, "ago"))),
			Recovery: rapid.SampledFrom([]puntuale.Recovery{puntuale.RecoverNone, puntuale.RecoverSameID}).Draw(t, "recovery"),
			GiveUp:   24 * time.Hour,
		}
		var err error
		switch kind := rapid.IntRange(-1, 4).Draw(t, "kind"); kind {
		case -1:
			err = errors.New("lost")
		case 0:
		default:
			err = &puntuale.SendError{Kind: puntuale.SendErrorKind(kind), After: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "after"))}
		}
		o := puntuale.Decide(a, puntuale.Acceptance{}, err)
		if a.Repeats > 0 && o.Verdict == puntuale.Retry {
			t.Fatalf("a repeat was opened again: %+v", o)
		}
		if (o.Verdict == puntuale.Sent) != (err == nil) {
			t.Fatalf("error %v gave %v", err, o.Verdict)
		}
		if o.Verdict == puntuale.Uncertain && o.Next.After(a.Begun.Add(a.GiveUp)) {
			t.Fatalf("looked at after its deadline: %v", o.Next)
		}
		if o.Verdict == puntuale.Retry && !o.Next.After(a.Now) {
			t.Fatalf("tried again at once: %v", o.Next)
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	want := []time.Duration{5, 10, 20, 40, 80, 160, 320, 600, 600}
	for i, least := range want {
		least *= time.Second
		for id := puntuale.MessageID(1); id < 2000; id++ {
			if got := puntuale.Backoff(id, i+1); got < least || got > least+least/4 {
				t.Fatalf("Backoff(%d, %d) = %v, want %v to %v", id, i+1, got, least, least+least/4)
			}
		}
	}
	if puntuale.Backoff(7, 3) != puntuale.Backoff(7, 3) {
		t.Error("the same message and attempt gave two waits")
	}
	if puntuale.Backoff(1, 0) < 5*time.Second || puntuale.Backoff(1, 1<<40) > 750*time.Second {
		t.Error("an odd number of attempts leaves the bounds")
	}
	distinct := map[time.Duration]bool{}
	for id := puntuale.MessageID(1); id <= 100; id++ {
		distinct[puntuale.Backoff(id, 1)] = true
	}
	if len(distinct) < 90 {
		t.Errorf("100 messages came back at only %d moments", len(distinct))
	}
}

func TestVerdictString(t *testing.T) {
	t.Parallel()
	for v, want := range map[puntuale.Verdict]string{
		puntuale.Sent: "sent", puntuale.Refused: "refused", puntuale.Retry: "retry", puntuale.Uncertain: "uncertain", 9: "Verdict(9)",
	} {
		if v.String() != want {
			t.Errorf("%d prints %q, want %q", v, v.String(), want)
		}
	}
}
