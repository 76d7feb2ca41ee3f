package control_test

import (
	"strings"
	"testing"

	"puntuale/internal/control"
	"puntuale/internal/store/storetest"
)

// TestReportsOfDevicesAreCounted: the texts of a device's reports count in the bytes that the client stores a day. A
// report is never refused, also if the client may store nothing more today.
func TestReportsOfDevicesAreCounted(t *testing.T) {
	t.Parallel()
	w := newLimited(t, storetest.SQLite(t))
	report := control.Reported{Attempt: "1.1", Outcome: "sent", Detail: strings.Repeat("x", 300)}
	counted := func() (n int64) {
		w.control.MostStored(1, func(_, bytes int64) { n = bytes })
		return n
	}
	before := counted()
	for range 10 {
		if _, err := w.device.Report(t.Context(), []control.Reported{report}); err != nil {
			t.Fatal(err)
		}
	}
	if n := counted() - before; n != 10*300 {
		t.Errorf("%d bytes are counted", n)
	}
	for _, err := w.client.Spend(t.Context(), 64<<20); err == nil; _, err = w.client.Spend(t.Context(), 64<<20) {
	}
	for _, err := w.client.Spend(t.Context(), 4096); err == nil; _, err = w.client.Spend(t.Context(), 4096) {
	}
	if all, err := w.device.Report(t.Context(), []control.Reported{report}); err != nil || len(all) != 1 {
		t.Errorf("a report beyond the quota: %v, %v", all, err)
	}
}
