package dispatch_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/dispatch"
)

// TestRepeatClaimWithoutAnswer commits the claim of a repeat, but loses the answer. The repeat was not sent, but the
// first attempt may have arrived. Therefore, the message never becomes pending again, and cannot be cancelled.
func TestRepeatClaimWithoutAnswer(t *testing.T) {
	t.Parallel()
	var lost lostRepeat
	setup := func(cfg *dispatch.Config, m *memory, n *network) {
		lost.memory = m
		cfg.Queue = &lost
		n.send = func(_ context.Context, p puntuale.Prepared) error {
			if p.Attempt == 1 {
				return errors.New("connection reset")
			}
			return nil
		}
		m.add(1, "+391", time.Now())
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		for range 40 {
			after(250 * time.Millisecond)
			if r := m.get(1001); r.state == puntuale.Pending && r.Intent == 0 && r.Attempt > 0 {
				t.Fatal("it is open, though the network may have it")
			}
		}
		after(time.Minute)
		if r := m.get(1001); r.state != puntuale.Completed || !lost.once.Load() {
			t.Errorf("it is %v, a claim was lost: %v", r.state, lost.once.Load())
		}
	})
}

// lostRepeat is a queue that commits the first claim of a repeat, but loses the answer.
type lostRepeat struct {
	*memory
	once atomic.Bool
}

func (l *lostRepeat) Claim(ctx context.Context, c puntuale.Claim) ([]puntuale.ClaimAnswer, error) {
	g, err := l.memory.Claim(ctx, c)
	if err == nil && len(c.Messages) > 0 && c.Messages[0].Intent > 0 && !l.once.Swap(true) {
		return nil, errAway
	}
	return g, err
}

// TestClaimThatTookTooLong checks that a message is not sent if its deadline passes or its window closes while its
// claim commits.
func TestClaimThatTookTooLong(t *testing.T) {
	t.Parallel()
	setup := func(_ *dispatch.Config, m *memory, _ *network) {
		m.commit = 3 * time.Second
		now := time.Now().UTC()
		m.addWith(1, "+391", nil, time.Second, now)
		rome, err := time.LoadLocation("Europe/Rome")
		if err != nil {
			t.Fatal(err)
		}
		closes := now.In(rome).Add(time.Minute).Truncate(time.Minute)
		closing := &puntuale.Window{From: closes.Add(-time.Hour).Format("15:04"), To: closes.Format("15:04")}
		m.addWith(1, "+392", closing, 48*time.Hour, closes.Add(-2*time.Second).UTC())
	}
	bubble(t, setup, func(t *testing.T, d *dispatch.Dispatcher, m *memory, n *network) {
		after(5 * time.Minute)
		if got := len(n.sightings()); got != 0 {
			t.Errorf("handed over %d times", got)
		}
		if r := m.get(1001); r.state != puntuale.Failed || r.reason.Code != puntuale.ReasonExpired {
			t.Errorf("the expired one is %v %q", r.state, r.reason)
		}
		if r := m.get(1002); r.state != puntuale.Pending || r.Intent != 0 || time.Until(r.Next) < 20*time.Hour {
			t.Errorf("the one outside its window is %v, next at %v", r.state, r.Next)
		}
	})
}
