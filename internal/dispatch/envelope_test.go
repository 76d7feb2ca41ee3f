package dispatch_test

import (
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/dispatch"
)

// TestEnvelope checks that a connector gets the client and the run of a message. The connector needs both to fetch
// media only once.
func TestEnvelope(t *testing.T) {
	t.Parallel()
	var ids []puntuale.MessageID
	setup := func(_ *dispatch.Config, m *memory, _ *network) {
		ids = m.add(1, "+391", time.Now(), time.Now())
	}
	bubble(t, setup, func(t *testing.T, _ *dispatch.Dispatcher, m *memory, n *network) {
		after(5 * time.Second)
		seen := n.sightings()
		if len(seen) != 2 {
			t.Fatalf("%d handed over, want 2", len(seen))
		}
		for i, s := range seen {
			row := m.get(ids[i])
			if s.Message != ids[i] || s.Run != row.Run || s.Run == 0 || s.Client != row.Client || s.Session != row.Session || s.To != "+391" || s.Attempt != 1 || s.Repeat {
				t.Errorf("the envelope is %+v, want that of %+v", s.Envelope, row)
			}
		}
	})
}
