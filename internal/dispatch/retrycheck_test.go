package dispatch_test

import (
	"context"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/dispatch"
)

// refuseFirst makes the network refuse every attempt of the first message as Transient. The argument takes is the
// duration of each of these attempts. The network accepts all other messages.
func refuseFirst(takes time.Duration) func(*dispatch.Config, *memory, *network) {
	return func(_ *dispatch.Config, _ *memory, n *network) {
		n.send = func(_ context.Context, p puntuale.Prepared) error {
			if p.Message != 1001 {
				return nil
			}
			time.Sleep(takes)
			return &puntuale.SendError{Kind: puntuale.Transient}
		}
	}
}

func cancelled(r *row) { r.state = puntuale.Cancelled }

// TestStoppedInRetry stops a message in retry. This message must not hold back later messages.
func TestStoppedInRetry(t *testing.T) {
	t.Parallel()
	bubble(t, refuseFirst(0), func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		now := time.Now()
		tried := m.add(1, "+391", now)[0]
		d.Wake(1, now)
		after(time.Second)
		m.change(tried, cancelled)
		now = time.Now()
		id := m.add(1, "+391", now)[0]
		d.Wake(1, now)
		after(100 * time.Millisecond)
		if at := n.of(id); len(at) != 1 {
			t.Errorf("left %v, want at %v", at, now)
		}
	})
}

// TestStoppedWhileOneWaits stops a message for which a later message already waits. The later message must leave.
func TestStoppedWhileOneWaits(t *testing.T) {
	t.Parallel()
	bubble(t, refuseFirst(0), func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		now := time.Now()
		tried := m.add(1, "+391", now)[0]
		d.Wake(1, now)
		after(time.Second)
		now = time.Now()
		id := m.add(1, "+391", now)[0]
		d.Wake(1, now)
		after(3 * time.Second)
		if len(n.of(id)) > 0 {
			t.Error("it overtook one in retry")
		}
		m.change(tried, cancelled)
		after(1100 * time.Millisecond)
		if len(n.of(id)) != 1 {
			t.Error("it waits for one that was stopped")
		}
	})
}

// TestStoppedDuringAttempt stops a message during an attempt that ends in a retry. This message must not hold back
// later messages.
func TestStoppedDuringAttempt(t *testing.T) {
	t.Parallel()
	setup := func(cfg *dispatch.Config, m *memory, n *network) {
		refuseFirst(3*time.Second)(cfg, m, n)
		m.commit = 20 * time.Millisecond
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		now := time.Now()
		tried := m.add(1, "+391", now)[0]
		d.Wake(1, now)
		after(time.Second)
		m.change(tried, cancelled)
		now = time.Now()
		id := m.add(1, "+391", now)[0]
		d.Wake(1, now)
		after(1900 * time.Millisecond)
		if len(n.of(id)) > 0 {
			t.Error("it overtook one in flight")
		}
		after(300 * time.Millisecond)
		if len(n.of(id)) != 1 {
			t.Error("it waits for one that was stopped")
		}
	})
}
