package dispatch_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/dispatch"
)

// TestManyAtTakeover checks that a new owner respects a recipient's order if the former owner tried to send an earlier
// message. This must be true even in a session with more messages than one read scans. The large read must not delay
// other sessions.
func TestManyAtTakeover(t *testing.T) {
	t.Parallel()
	var first, second puntuale.MessageID
	var others []puntuale.MessageID
	setup := func(_ *dispatch.Config, m *memory, _ *network) {
		now := time.Now()
		m.session(2, 2, 0)
		for i := range 9000 {
			m.add(2, fmt.Sprintf("+39333%05d", i), now.Add(-10*time.Second))
		}
		first = m.add(2, "+391", now.Add(-40*time.Second))[0]
		second = m.add(2, "+391", now.Add(-20*time.Second))[0]
		m.change(first, func(r *row) { r.Attempt, r.IntentAt, r.Next = 1, now.Add(-time.Second), now.Add(10*time.Second) })
		for i := range 5 {
			m.session(puntuale.SessionID(3+i), 3, 0)
			others = append(others, m.add(puntuale.SessionID(3+i), "+392", now)...)
		}
	}
	bubble(t, setup, func(t *testing.T, _ *dispatch.Dispatcher, m *memory, n *network) {
		began := time.Now()
		after(time.Minute)
		for _, id := range others {
			if at := n.of(id); len(at) != 1 || at[0].Sub(began) > 100*time.Millisecond {
				t.Errorf("of another session, message %d left at %v, want at once", id, at)
			}
		}
		if a, b := n.of(first), n.of(second); len(a) != 1 || len(b) != 1 || b[0].Before(a[0]) {
			t.Errorf("the earlier one left at %v, the later at %v", a, b)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if limit := slices.Max(m.scanned); limit > 16_384 || len(m.scanned) < 2 {
			t.Errorf("%d looks, of up to %d rows", len(m.scanned), limit)
		}
	})
}
