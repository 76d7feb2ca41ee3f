package account

import (
	"puntuale/internal/control/request"
	"testing"
	"time"

	"pgregory.net/rapid"

	"puntuale"
)

func TestNextRefill(t *testing.T) {
	t.Parallel()
	var z request.Zones
	for _, c := range []struct {
		period, zone, created, now, want string
	}{
		{puntuale.RefillYearly, "Europe/Rome", "2026-11-20T09:30:00Z", "2026-11-20T09:30:00Z", "2027-11-19T23:00:00Z"},
		{puntuale.RefillYearly, "Europe/Rome", "2026-11-20T09:30:00Z", "2027-11-19T22:59:59Z", "2027-11-19T23:00:00Z"},
		{puntuale.RefillYearly, "Europe/Rome", "2026-11-20T09:30:00Z", "2027-11-19T23:00:00Z", "2028-11-19T23:00:00Z"},
		{puntuale.RefillYearly, "Europe/Rome", "2026-11-20T09:30:00Z", "2041-01-01T00:00:00Z", "2041-11-19T23:00:00Z"},
		{puntuale.RefillYearly, "Europe/Rome", "2026-12-31T23:30:00Z", "2026-12-31T23:30:00Z", "2027-12-31T23:00:00Z"}, // in local time, the client was created on 1 January
		{puntuale.RefillYearly, "Europe/Rome", "2028-02-29T09:00:00Z", "2028-02-29T09:00:00Z", "2029-02-27T23:00:00Z"}, // the client was created on 29 February, so in other years the refill is on 28 February
		{puntuale.RefillYearly, "Europe/Rome", "2028-02-29T09:00:00Z", "2031-03-01T09:00:00Z", "2032-02-28T23:00:00Z"}, // in a leap year the refill is on 29 February
		{puntuale.RefillYearly, "America/New_York", "2026-11-20T02:00:00Z", "2026-11-20T02:00:00Z", "2027-11-19T05:00:00Z"},
		{puntuale.RefillMonthly, "Europe/Rome", "2026-12-31T09:00:00Z", "2026-12-31T09:00:00Z", "2027-01-30T23:00:00Z"},
		{puntuale.RefillMonthly, "Europe/Rome", "2026-12-31T09:00:00Z", "2027-01-30T23:00:00Z", "2027-02-27T23:00:00Z"},
		{puntuale.RefillMonthly, "Europe/Rome", "2026-12-31T09:00:00Z", "2027-02-27T23:00:00Z", "2027-03-30T22:00:00Z"},  // a short month does not change the day in later months
		{puntuale.RefillMonthly, "Africa/Cairo", "2026-03-24T09:00:00Z", "2026-04-23T12:00:00Z", "2026-04-23T22:00:00Z"}, // this day begins at 01:00
		{puntuale.RefillNone, "Europe/Rome", "2026-11-20T09:30:00Z", "2026-11-20T09:30:00Z", "0001-01-01T00:00:00Z"},
	} {
		loc, err := z.Load(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		account := puntuale.Client{Refill: c.period, Created: parse(t, c.created)}
		if got := nextRefill(account, loc, parse(t, c.now)).Format(time.RFC3339); got != c.want {
			t.Errorf("%s since %s, after %s: %s, want %s", c.period, c.created, c.now, got, c.want)
		}
	}
}

// Refills never stop, and the next one is never in the past. There is exactly one refill for each month or year.
func TestNextRefillProperties(t *testing.T) {
	t.Parallel()
	var z request.Zones
	rapid.Check(t, func(t *rapid.T) {
		loc, err := z.Load(rapid.SampledFrom([]string{"Europe/Rome", "America/New_York", "Pacific/Apia", "Australia/Lord_Howe", "UTC"}).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		period := rapid.SampledFrom([]string{puntuale.RefillMonthly, puntuale.RefillYearly}).Draw(t, "period")
		account := puntuale.Client{Refill: period, Created: time.Unix(rapid.Int64Range(1_500_000_000, 2_500_000_000).Draw(t, "created"), 0).UTC()}
		now := account.Created.Add(time.Duration(rapid.Int64Range(0, 20*366*24*3600).Draw(t, "later")) * time.Second)
		next := nextRefill(account, loc, now)
		longest := 32 * 24 * time.Hour
		if period == puntuale.RefillYearly {
			longest = 367 * 24 * time.Hour
		}
		if !next.After(now) || next.Sub(now) > longest {
			t.Fatalf("created %s, now %s: %s", account.Created, now, next)
		}
		if before := nextRefill(account, loc, next.Add(-time.Second)); !before.Equal(next) {
			t.Fatalf("a second before it, %s is not next, but %s", next, before)
		}
	})
}

func parse(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
