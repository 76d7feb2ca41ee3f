package link

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// memory is a store with one link. It fails while broken is true, after it counted the first few clicks.
type memory struct {
	broken bool
	first  int
	clicks []puntuale.Click
}

func (m *memory) LinkOf(_ context.Context, code string) (ref puntuale.LinkRef, address string, err error) {
	if strings.Trim(code, "x") != "" {
		return ref, "", puntuale.NotFound(puntuale.NoPage)
	}
	return ref, "https://negozio.example/", nil
}

func (m *memory) RecordClicks(_ context.Context, _ time.Time, all []puntuale.Click) ([]puntuale.Click, error) {
	if m.broken {
		m.clicks = append(m.clicks, all[:m.first]...)
		return all[m.first:], errors.New("away")
	}
	m.clicks = append(m.clicks, all...)
	return nil, nil
}

// TestLinkWithMark: programs that show messages take a mark of italic text, or the end of a sentence, for a part of the link.
func TestLinkWithMark(t *testing.T) {
	l := New(&memory{}, clock.System())
	for code, leads := range map[string]bool{"x": true, "x_": true, "x*.": true, "x)": true, "_x": false, "y": false} {
		if address, err := l.Follow(context.Background(), code, "Mozilla/5.0", true); (err == nil && address != "") != leads {
			t.Errorf("%s: %q, %v", code, address, err)
		}
	}
}

// TestClicksWait: clicks wait while the store is away, up to a bound, and the link leads on all the same.
func TestClicksWait(t *testing.T) {
	ctx := context.Background()
	m := &memory{broken: true}
	l := New(m, clock.System())
	for range maxWaiting {
		if address, err := l.Follow(ctx, "x", "Mozilla/5.0", true); err != nil || address == "" {
			t.Fatal(address, err)
		}
	}
	if err := l.Flush(ctx); err == nil || errors.Is(err, ErrDropped) {
		t.Errorf("away: %v", err)
	}
	if address, err := l.Follow(ctx, "x", "", false); err != nil || address == "" {
		t.Error(address, err)
	}
	m.broken = false
	if err := l.Flush(ctx); !errors.Is(err, ErrDropped) || len(m.clicks) != maxWaiting {
		t.Errorf("back: %d clicks, %v", len(m.clicks), err)
	}
	if err := l.Flush(ctx); err != nil || len(m.clicks) != maxWaiting {
		t.Errorf("again: %d clicks, %v", len(m.clicks), err)
	}
}

// TestClicksCountOnce: of clicks of which a part was counted before the fault, only the others wait.
func TestClicksCountOnce(t *testing.T) {
	m := &memory{broken: true, first: 2}
	l := New(m, clock.System())
	for range 5 {
		if _, err := l.Follow(context.Background(), "x", "Mozilla/5.0", true); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Flush(context.Background()); err == nil {
		t.Error("no fault")
	}
	m.broken = false
	if err := l.Flush(context.Background()); err != nil || len(m.clicks) != 5 {
		t.Errorf("%d clicks, %v", len(m.clicks), err)
	}
}
