package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"puntuale/internal/clock"
)

// TestProgress: a terminal gets a bar, and other outputs get lines.
func TestProgress(t *testing.T) {
	t.Parallel()
	show := func(terminal bool) string {
		var out bytes.Buffer
		now := clock.NewFake(time.Unix(1000, 0))
		b := &Progress{w: &out, terminal: terminal, columns: 100, clock: now}
		for done := int64(0); done <= 4000; done += 1000 {
			b.Count("loading", Rows, done, 4000)
			now.Advance(3 * time.Second)
		}
		b.Count("loading", Rows, 4000, 4000) // the caller may report the end of a stage twice
		b.Count("checking", Rows, 0, 0)
		b.End()
		return out.String()
	}
	plain := "loading  50 %, 2000 of 4000 rows, 333 a second, 6s left\n" +
		"loading 100 %, 4000 of 4000 rows, 333 a second\n" + "checking 100 %, 0 of 0 rows\n"
	if got := show(false); got != plain {
		t.Errorf("lines:\n%s", got)
	}
	got := show(true)
	for _, want := range []string{
		"\r\x1b[J███████░░░░░░░░░░░░░░░░░░░░░░░  loading  25 %, 1000 of 4000 rows, 333 a second, 9s left\x1b[?7h",
		strings.Repeat("█", barWidth) + "  loading 100 %, 4000 of 4000 rows, 333 a second\x1b[?7h\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in the bar:\n%q", want, got)
		}
	}
}

// TestNarrowProgress: on a narrow terminal no words are cut off, and the next bar replaces all lines of the earlier
// one.
func TestNarrowProgress(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	b := &Progress{w: &out, terminal: true, columns: 40, clock: clock.NewFake(time.Unix(1000, 0))}
	for range 2 {
		b.Show("campaign", 1, 2, ", 600 a minute, ends about 15:04:05", "10 fed, 0 left, 1 completed, 0 failed, 0 blacklisted", true)
	}
	b.End()
	drawn := strings.Repeat("█", 15) + strings.Repeat("░", 15) + "\n50 %, 600 a minute, ends about 15:04:05\n10 fed, 0 left, 1 completed, 0 failed,\n0 blacklisted\x1b[?7h"
	if want := "\x1b[?7l\r\x1b[J" + drawn + "\x1b[?7l\r\x1b[3A\x1b[J" + drawn + "\n"; out.String() != want {
		t.Errorf("drawn:\n%q, want\n%q", out.String(), want)
	}
}
