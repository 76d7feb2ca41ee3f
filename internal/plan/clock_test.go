package plan

import (
	"testing"
	"time"
)

// TestClockChanges contains, for each kind of zone, a night on which clocks go forward and a night on which clocks go
// back. A skipped time moves forward by the gap. If a time occurs twice, the plan uses the first. Offsets in days
// follow the calendar. Offsets in hours are elapsed time.
func TestClockChanges(t *testing.T) {
	t.Parallel()
	const day, dayHours = `"anchor":"f","offset":{"amount":1,"unit":"days","direction":"after"}`,
		`"anchor":"f","offset":{"amount":24,"unit":"hours","direction":"after"}`
	for _, c := range []struct{ zone, now, timing, f, due string }{
		{"Europe/Rome", "2026-03-01", day, "28/03/2026 02:30", "2026-03-29T01:30:00Z"}, // clocks show 03:30
		{"Europe/Rome", "2026-03-01", dayHours, "28/03/2026 02:30", "2026-03-29T01:30:00Z"},
		{"Europe/Rome", "2026-03-01", day, "28/03/2026 12:00", "2026-03-29T10:00:00Z"},
		{"Europe/Rome", "2026-03-01", dayHours, "28/03/2026 12:00", "2026-03-29T11:00:00Z"},
		{"Europe/Rome", "2026-10-01", `"anchor":"f"`, "25/10/2026 02:30", "2026-10-25T00:30:00Z"}, // the time occurs twice: the plan uses the first
		{"Europe/Rome", "2026-10-01", `"anchor":"f"`, "2026-10-25T02:30+01:00", "2026-10-25T01:30:00Z"},
		{"Europe/Rome", "2026-10-01", day, "24/10/2026 02:30", "2026-10-25T00:30:00Z"},
		{"Europe/Rome", "2026-10-01", day, "24/10/2026 12:00", "2026-10-25T11:00:00Z"},
		{"Europe/Rome", "2026-10-01", dayHours, "24/10/2026 12:00", "2026-10-25T10:00:00Z"},
		{"Europe/Rome", "2026-10-01", `"anchor":"f","offset":{"amount":1,"unit":"hours","direction":"after"}`, "25/10/2026 02:30", "2026-10-25T01:30:00Z"},
		{"America/New_York", "2026-03-01", `"anchor":"f","at":"02:15"`, "2026-03-08", "2026-03-08T07:15:00Z"},
		{"America/New_York", "2026-10-01", `"anchor":"f","at":"01:30"`, "2026-11-01", "2026-11-01T05:30:00Z"},
		{"America/New_York", "2026-10-01", day, "31/10/2026 12:00", "2026-11-01T17:00:00Z"},
		{"Europe/London", "2026-03-01", `"anchor":"f","at":"01:15"`, "2026-03-29", "2026-03-29T01:15:00Z"},
		{"Europe/London", "2026-10-01", `"anchor":"f","at":"01:30"`, "2026-10-25", "2026-10-25T00:30:00Z"},
		{"Australia/Lord_Howe", "2026-09-01", `"anchor":"f","at":"02:15"`, "2026-10-04", "2026-10-03T15:45:00Z"}, // the clocks change by only half an hour
		{"Australia/Lord_Howe", "2026-03-01", `"anchor":"f","at":"01:45"`, "2026-04-05", "2026-04-04T14:45:00Z"},
		{"Australia/Lord_Howe", "2026-03-01", day, "2026-04-04T12:00", "2026-04-05T01:30:00Z"},
		{"Africa/Casablanca", "2026-01-01", `"anchor":"f","at":"02:30"`, "2026-03-22", "2026-03-22T02:30:00Z"},
		{"Africa/Casablanca", "2026-01-01", `"anchor":"f","at":"02:30"`, "2026-02-15", "2026-02-15T01:30:00Z"},
		{"Pacific/Apia", "2011-12-01", `"anchor":"f"`, "30/12/2011 10:00", "2011-12-30T20:00:00Z"}, // the zone skipped this day: clocks show the 31st
		{"Pacific/Apia", "2011-12-01", day, "29/12/2011 10:00", "2011-12-30T20:00:00Z"},
		{"Pacific/Apia", "2012-09-01", `"anchor":"f","at":"03:30"`, "2012-09-30", "2012-09-29T14:30:00Z"},
		{"Pacific/Apia", "2012-03-01", `"anchor":"f","at":"03:30"`, "2012-04-01", "2012-03-31T13:30:00Z"},
		{"America/Sao_Paulo", "2018-10-01", `"anchor":"f","at":"00:00"`, "2018-11-04", "2018-11-04T03:00:00Z"}, // this day has no midnight: clocks show 01:00
		{"America/Sao_Paulo", "2018-02-01", `"anchor":"f","at":"23:30"`, "2018-02-17", "2018-02-18T01:30:00Z"}, // the time occurs twice, before midnight
		{"America/Sao_Paulo", "2018-02-01", day, "17/02/2018 12:00", "2018-02-18T15:00:00Z"},
	} {
		loc, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		in := input(t, `[{"text":"x","timing":{`+c.timing+`}}]`, `{"f":"`+c.f+`"}`)
		in.Location = loc
		if in.Now, err = time.Parse(time.DateOnly, c.now); err != nil {
			t.Fatal(err)
		}
		if got := mustBuild(t, in).Messages[0].Due.Format(time.RFC3339); got != c.due {
			t.Errorf("%s, %s of %s: due %s, want %s", c.zone, c.timing, c.f, got, c.due)
		}
	}
}
