package store_test

import (
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// TestQuarantineOfResent checks how the quarantine finds the age of a resent message. It must use the message's own
// identifier, not the identifier of the run.
func TestQuarantineOfResent(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	w := storetest.NewWorld(t, d)
	w.MustJoin()
	for name, test := range map[string]struct {
		lost   time.Duration // time of the last commit that the new database server has, counted from the resend; 0: unknown
		joined time.Duration // time of the failover before this one, counted from the resend
		aside  bool
	}{
		"on the new timeline":              {-time.Minute, -24 * time.Hour, false},
		"on the old one":                   {time.Second, -24 * time.Hour, true},
		"perhaps on the old one":           {-time.Second, -24 * time.Hour, true},
		"soon after another failover":      {-time.Minute, -30 * time.Minute, true},
		"a while after another failover":   {-time.Minute, -2 * time.Hour, false},
		"nobody knows when the server was": {0, -24 * time.Hour, true},
	} {
		c := w.Client(puntuale.AccountFull)
		old := c.MustStart(someone, storetest.Begin, 1)
		if _, err := c.CancelMessages(t.Context(), old, storetest.Day, storetest.Begin); err != nil {
			t.Fatal(err)
		}
		again := c.MustResend(old...)[0]
		w.Exec("update message set next_at = due_at - 3600000000 where id = $1", again) // makes the message due
		w.Exec("update run set received_at = 1")
		moment := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(again) * time.Microsecond)
		w.Exec("update cluster set timeline = timeline - 1, synchronous = 0, since = $1", moment.Add(test.joined).UnixMicro())
		since := moment.Add(test.lost)
		if test.lost == 0 {
			since = time.Time{}
		}
		if err := store.SetAside(t.Context(), w.Store, since); err != nil {
			t.Fatal(err)
		}
		if d := c.Detail(again); (d.Intent > 0) != test.aside {
			t.Errorf("sent again %s: %+v", name, d.Message)
		}
		w.Exec("update id_block set next = 0")
		w.Exec("update message set next_at = next_at + 7200000000000 where intent = 0 and state = 0") // hides the message from later cases
	}
}
