package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/dispatch"
)

// TestSentAgainWhereAsked uses a network that does not recognise repeats, and a lost answer. After ten minutes without
// a receipt, the message is sent once more, but only if its content allows a resend.
func TestSentAgainWhereAsked(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection reset")
	for name, test := range map[string]struct {
		asks    bool
		answers []error       // answers to the attempts, in order
		left    time.Duration // how long ago an earlier process began an attempt; 0: there was no earlier attempt
		wantAt  []time.Duration
		want    puntuale.State
	}{
		"never":                        {answers: []error{lost, nil}, wantAt: []time.Duration{0}},
		"asked for":                    {asks: true, answers: []error{lost, nil}, wantAt: []time.Duration{0, 10 * time.Minute}, want: puntuale.Completed},
		"lost again":                   {asks: true, answers: []error{lost, lost, nil}, wantAt: []time.Duration{0, 10 * time.Minute}},
		"a crash before":               {asks: true, answers: []error{nil}, left: time.Minute, wantAt: []time.Duration{9 * time.Minute}, want: puntuale.Completed},
		"a crash long before":          {asks: true, answers: []error{nil}, left: time.Hour, wantAt: []time.Duration{0}, want: puntuale.Completed},
		"a crash before, and no wish":  {answers: []error{nil}, left: time.Hour},
		"the deadline is over already": {asks: true, answers: []error{nil}, left: 25 * time.Hour, want: puntuale.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var id puntuale.MessageID
			var repeats []bool
			setup := func(_ *dispatch.Config, m *memory, n *network) {
				n.capabilities.Recovery = puntuale.RecoverNone
				n.send = func(_ context.Context, p puntuale.Prepared) error {
					answer := test.answers[min(len(repeats), len(test.answers)-1)]
					repeats = append(repeats, p.Repeat)
					return answer
				}
				id = m.add(1, "+391", time.Now())[0]
				r := m.rows[id]
				m.contents[puntuale.RunRef{Client: r.Client, ID: r.Run}].steps[0].Content.Resend = test.asks
				if test.left > 0 {
					r.Intent, r.Attempt, r.IntentAt = 99<<32|1, 1, time.Now().Add(-test.left)
					r.ValidUntil = time.Now().Add(24 * time.Hour)
				}
			}
			bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
				begun := time.Now()
				after(20 * time.Minute)
				at := n.of(id)
				if len(at) != len(test.wantAt) {
					t.Fatalf("handed over at %v, began at %v", at, begun)
				}
				for i, want := range test.wantAt {
					if late := at[i].Sub(begun) - want; late < -time.Second || late > 5*time.Second {
						t.Errorf("handed over after %v, want %v", at[i].Sub(begun), want)
					}
					if repeats[i] != (i > 0 || test.left > 0) {
						t.Errorf("attempt %d is a repeat: %v", i+1, repeats[i])
					}
				}
				if r := m.get(id); r.state != test.want || test.want == 0 && r.Intent == 0 {
					t.Errorf("it is %v, %+v", r.state, r)
				}
			})
		})
	}
}
