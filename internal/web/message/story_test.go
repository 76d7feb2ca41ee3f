package message_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/web/language"
	"puntuale/internal/web/message"
	"puntuale/internal/web/view"
)

// TestNetworksMoments: the network reports times in whole seconds of its own clock. The message's history must not show
// a reported event before the attempt.
func TestNetworksMoments(t *testing.T) {
	t.Parallel()
	const received, planned, tried, taken, left, arrived, read = "Richiesta ricevuta", "Da inviare subito", "Tentativo di invio", "La rete l’ha accettato", "Partito dalla rete", "Consegnato al telefono", "Letto"
	call := time.Date(2026, 11, 20, 9, 0, 20, 100e6, time.UTC)
	second := call.Truncate(time.Second)
	ctx := view.With(context.Background(), &view.Frame{Language: language.Named("it"), Zone: time.UTC, Now: call.Add(time.Hour)})
	for name, test := range map[string]struct {
		departed, delivered, read time.Time
		want                      []string
	}{
		"all in one second":      {second, second, second, []string{received, planned, tried, taken, left, arrived, read}},
		"a clock that is behind": {second.Add(-9 * time.Second), second.Add(-8 * time.Second), second.Add(-8 * time.Second), []string{received, planned, tried, left, arrived, read, taken}},
		"as one expects":         {second.Add(time.Second), second.Add(5 * time.Second), second.Add(time.Minute), []string{received, planned, tried, taken, left, arrived, read}},
		"with fractions":         {call.Add(2 * time.Second), time.Time{}, call.Add(3 * time.Second), []string{received, planned, tried, taken, left, read}},
		"before the answer":      {call.Add(250 * time.Millisecond), time.Time{}, time.Time{}, []string{received, planned, tried, left, taken}},
		"nothing":                {want: []string{received, planned, tried, taken}},
	} {
		m := puntuale.MessageDetail{Received: call, Departed: test.departed, Delivered: test.delivered, Read: test.read}
		m.State, m.Attempt, m.IntentAt, m.Done = puntuale.Completed, 1, call.Add(200*time.Millisecond), call.Add(300*time.Millisecond)
		var got []string
		for _, c := range message.Chapters(ctx, message.Story{MessageDetail: m}) {
			got = append(got, c.What)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
