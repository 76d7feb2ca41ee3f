package admission_test

import (
	"context"
	"testing"
	"time"

	"puntuale/internal/httpkit/admission"
)

// A few refusals are sent immediately. Many refusals are delayed, each by at most a second.
func TestRefusalPacer(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	r := admission.NewRefusalPacer(100, func() time.Time { return now })
	for range 20 {
		r.Delay(t.Context()) // none of these refusals waits
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10_000 {
		r.Delay(gone) // returns immediately, because the caller closed the connection
	}
	begun := time.Now()
	r.Delay(t.Context())
	if took := time.Since(begun); took < 500*time.Millisecond {
		t.Errorf("held for %v", took)
	}
	(*admission.RefusalPacer)(nil).Delay(t.Context())
}
