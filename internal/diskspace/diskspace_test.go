package diskspace

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestDiskNearlyFull: there is one log line when the disk becomes nearly full, and one when it has enough space again.
// The figures are always set.
func TestDiskNearlyFull(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	figures := 0
	d := New(map[string]string{"data": t.TempDir()}, func(string, uint64, uint64) { figures++ }, slog.New(slog.NewTextHandler(&log, nil)))
	if err := d.Look(t.Context()); err != nil { // measures the real disk
		t.Fatal(err)
	}
	log.Reset()
	d.low = map[string]bool{}
	for _, step := range []struct {
		free, size uint64
		lines      int
	}{
		{50 << 30, 100 << 30, 0}, {6 << 30, 100 << 30, 0}, // less than a tenth is free, but it is enough
		{4 << 30, 100 << 30, 1}, {1 << 30, 100 << 30, 1}, {0, 100 << 30, 1},
		{20 << 30, 100 << 30, 2}, {1 << 20, 8 << 20, 2}, {1 << 19, 8 << 20, 3},
	} {
		d.space = func(string) (uint64, uint64, error) { return step.free, step.size, nil }
		if err := d.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "\n"); n != step.lines {
			t.Errorf("%d of %d bytes: %d lines, want %d:\n%s", step.free, step.size, n, step.lines, log.String())
		}
	}
	if figures != 9 {
		t.Errorf("%d figures", figures)
	}
}
