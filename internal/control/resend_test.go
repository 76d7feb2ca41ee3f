package control

import (
	"testing"
	"time"

	"puntuale"
)

// A resend does not change the time from a message's due time to its deadline, even if this time is very short.
func TestResendKeepsValidity(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	for _, validity := range []time.Duration{5 * time.Second, time.Minute, 24 * time.Hour} {
		old := puntuale.MessageDetail{}
		old.Due = now.Add(-time.Hour)
		old.ValidUntil = old.Due.Add(validity)
		got := resendMoments{now: now, zone: time.UTC}.momentsOf(&old, time.UTC)
		if !got.Due.Equal(now) || got.ValidUntil.Sub(got.Due) != validity {
			t.Errorf("due %s until %s, want %s", got.Due, got.ValidUntil, validity)
		}
	}
}
