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

// TestQuarantinePausesCalendars: after a failover that may have lost commits, calendars plan nothing until a person starts
// them again, and people are told.
func TestQuarantinePausesCalendars(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	w := storetest.NewWorld(t, d)
	w.MustJoin()
	c := w.Client(puntuale.AccountFull)
	id, err := c.CreateCalendar(t.Context(), puntuale.Calendar{Name: "Agenda", Sealed: []byte("x"), Sequence: c.Sequence, PhoneFrom: []string{"title"}, Created: storetest.Begin}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Exec("update calendar set read_at = 1")
	if _, err := c.StartCalendar(t.Context(), id, storetest.Begin); err != nil {
		t.Fatal(err)
	}
	w.Exec("update cluster set timeline = timeline - 1, synchronous = 0")
	if err := store.SetAside(t.Context(), w.Store, time.Time{}); err != nil {
		t.Fatal(err)
	}
	found, err := c.Calendar(t.Context(), id)
	if err != nil || !found.Started.IsZero() {
		t.Errorf("started at %v: %v", found.Started, err)
	}
	var notices int
	if err := d.SQL.QueryRow("select count(*) from notice where kind = 14").Scan(&notices); err != nil || notices != 1 {
		t.Errorf("%d notices: %v", notices, err)
	}
}
