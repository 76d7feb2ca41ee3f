package puntuale_test

import (
	"testing"
	"time"

	"puntuale"
)

func TestKeep(t *testing.T) {
	t.Parallel()
	now := time.Date(2028, 2, 29, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"24mo": "2026-02-28T12:00:00Z", "2y": "2026-02-28T12:00:00Z", "1mo": "2028-01-29T12:00:00Z",
		"90d": "2027-12-01T12:00:00Z", "1w": "2028-02-22T12:00:00Z", "never": "0001-01-01T00:00:00Z",
	} {
		k, err := puntuale.ParseKeep(text)
		if got := k.Cutoff(now).Format(time.RFC3339); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
		if again, err := puntuale.ParseKeep(k.String()); err != nil || again != k {
			t.Errorf("%s is written %s, which is %v, %v", text, k, again, err)
		}
	}
	for _, text := range []string{"", "0d", "-1d", "24", "mo", "24h", "24 mo", "+2y", "007d", "1.5y", "d90", "2ymo", "Never", "100000y", "9999999999999999999d"} {
		if k, err := puntuale.ParseKeep(text); err == nil {
			t.Errorf("%q is read as %v", text, k)
		}
	}
}
