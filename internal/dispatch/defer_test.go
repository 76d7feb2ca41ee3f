package dispatch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/dispatch"
)

func deferred(after time.Duration) error {
	return &puntuale.SendError{Kind: puntuale.Deferred, Reason: puntuale.Quoted("Troppo a questo destinatario"), After: after}
}

// TestDeferred uses a message that must wait because of its recipient. Messages to other recipients must not wait.
// Later messages to the same recipient leave in their order. It makes no difference whether Prepare or Send refuses the
// message.
func TestDeferred(t *testing.T) {
	t.Parallel()
	for _, found := range []string{"before", "by the attempt"} {
		t.Run(found, func(t *testing.T) {
			t.Parallel()
			var first, second, other puntuale.MessageID
			var deadline time.Time
			setup := func(_ *dispatch.Config, m *memory, n *network) {
				deadline = time.Now().Add(20 * time.Second)
				wait := func(e puntuale.Envelope) error {
					if left := time.Until(deadline); e.Message == first && left > 0 {
						return deferred(left)
					}
					return nil
				}
				if found == "before" {
					n.prepare = func(_ context.Context, e puntuale.Envelope) error { return wait(e) }
				} else {
					n.send = func(_ context.Context, p puntuale.Prepared) error { return wait(p.Envelope) }
				}
				first, second = m.add(1, "+391", time.Now())[0], m.add(1, "+391", time.Now().Add(time.Millisecond))[0]
				other = m.add(1, "+392", time.Now().Add(2*time.Millisecond))[0]
			}
			bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
				begun := time.Now()
				after(2 * time.Minute)
				if at := n.of(other); len(at) != 1 || at[0].Sub(begun) > 2*time.Second {
					t.Errorf("another recipient's left %v, began at %v", at, begun)
				}
				at, behind := n.of(first), n.of(second)
				if len(at) == 0 || at[len(at)-1].Before(deadline) || len(behind) != 1 || behind[0].Before(at[len(at)-1]) {
					t.Errorf("handed over at %v and then %v, want both after %v", at, behind, deadline)
				}
				if r := m.get(first); r.state != puntuale.Completed || r.Attempt > 2 {
					t.Errorf("the first one: %+v", r)
				}
			})
		})
	}
}

// TestNetworksRate checks that a session never sends more messages in a second than its network accepts, even if the
// session's own pace is faster. A slower pace of the session also applies.
func TestNetworksRate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		perMin    int
		perSecond float64
		want      time.Duration // expected time between two messages
	}{
		"the network's":        {0, 10, 100 * time.Millisecond},
		"the slower network's": {6000, 10, 100 * time.Millisecond},
		"its own":              {60, 10, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setup := func(_ *dispatch.Config, m *memory, n *network) {
				n.capabilities.PerSecond = test.perSecond
				m.session(7, 3, test.perMin)
				for i := range 20 {
					m.add(7, fmt.Sprintf("+39%d", i), time.Now())
				}
			}
			bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
				after(time.Minute)
				all := n.sightings()
				if len(all) != 20 {
					t.Fatalf("%d left", len(all))
				}
				for i := range all[1:] {
					if gap := all[i+1].at.Sub(all[i].at); gap < test.want-time.Millisecond {
						t.Errorf("%v between two, want %v", gap, test.want)
					}
				}
			})
		})
	}
}

// TestTokenReachesTheConnector checks that the connector gets each attempt with the token of its intent on disk.
func TestTokenReachesTheConnector(t *testing.T) {
	t.Parallel()
	var tokens []int64
	setup := func(_ *dispatch.Config, m *memory, n *network) {
		n.send = func(_ context.Context, p puntuale.Prepared) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			if p.Token <= 0 || p.Token != m.rows[p.Message].Intent {
				t.Errorf("attempt %d bears %d, the row %d", p.Attempt, p.Token, m.rows[p.Message].Intent)
			}
			tokens = append(tokens, p.Token)
			if len(tokens) == 1 {
				return transient()
			}
			return nil
		}
		m.add(1, "+39", time.Now())
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(time.Minute)
		if len(tokens) != 2 || tokens[0] == tokens[1] {
			t.Errorf("tokens %v", tokens)
		}
	})
}
