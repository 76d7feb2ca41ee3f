package request

import (
	"testing"
	"time"

	"puntuale"
)

func TestMidnight(t *testing.T) {
	t.Parallel()
	var z Zones
	for _, c := range []struct {
		zone string
		day  puntuale.Date
		want string
	}{
		{"Europe/Rome", puntuale.Date{Year: 2026, Month: 11, Day: 20}, "2026-11-20T23:00:00Z"},
		{"Europe/Rome", puntuale.Date{Year: 2026, Month: 10, Day: 25}, "2026-10-25T23:00:00Z"},
		{"Europe/Rome", puntuale.Date{Year: 2026, Month: 12, Day: 31}, "2026-12-31T23:00:00Z"},
		{"Africa/Cairo", puntuale.Date{Year: 2026, Month: 4, Day: 23}, "2026-04-23T22:00:00Z"},    // the next day begins at 01:00
		{"America/Santiago", puntuale.Date{Year: 2026, Month: 9, Day: 5}, "2026-09-06T04:00:00Z"}, // the next day begins at 01:00
		{"Atlantic/Azores", puntuale.Date{Year: 2026, Month: 3, Day: 28}, "2026-03-29T01:00:00Z"},
		{"America/Havana", puntuale.Date{Year: 2026, Month: 3, Day: 7}, "2026-03-08T05:00:00Z"},
		{"America/New_York", puntuale.Date{Year: 2026, Month: 3, Day: 7}, "2026-03-08T05:00:00Z"},
	} {
		loc, err := z.Load(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := Midnight(c.day, loc).Format(time.RFC3339); got != c.want {
			t.Errorf("%s in %s: %s, want %s", c.day, c.zone, got, c.want)
		}
	}
	for _, name := range []string{"", "Local", "Europe/Roma", "../Europe/Rome", "/etc/passwd", "Europe", "UTC+1", "\x00"} {
		if loc, err := z.Load(name); err == nil {
			t.Errorf("%q is %s", name, loc)
		}
	}
}
