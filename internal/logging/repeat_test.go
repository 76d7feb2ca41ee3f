package logging

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"puntuale/internal/clock"
)

func TestRepeatsAreHeldBack(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := clock.NewFake(time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC))
	log := WithoutRepeats(slog.New(slog.NewTextHandler(&out, nil)), now)
	full := errors.New("database or disk is full (13)")
	for range 600 { // the same error, twice a second for five minutes
		log.Warn("a claim failed", "error", full)
		log.With("node", 3).Warn("closing or postponing messages failed", "error", full)
		now.Advance(time.Second / 2)
	}
	if n := strings.Count(out.String(), "\n"); n != 10 || !strings.Contains(out.String(), "repeated=119") {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
	out.Reset()
	for i := range 3 { // different lines, and lines below level warning, are written
		log.Warn("a claim failed", "error", fmt.Errorf("%d", i))
		log.Info("serving")
	}
	if n := strings.Count(out.String(), "\n"); n != 6 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
	for i := range 3 * maxSeen {
		log.Warn("many", "n", i)
	}
	if n := len(log.Handler().(repeats).seen.lines); n > maxSeen {
		t.Errorf("%d lines are remembered", n)
	}
}
