package puntuale_test

import (
	"strings"
	"testing"
	"time"

	"puntuale"
	_ "time/tzdata"

	"pgregory.net/rapid"
)

func zone(t interface{ Fatal(...any) }, name string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func date(t interface{ Fatal(...any) }, text string) puntuale.Date {
	d, err := puntuale.ParseDate(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// shortZone returns a zone whose data contains only the rule for all years. Some systems have such data.
func shortZone(t *testing.T, rule string) *time.Location {
	t.Helper()
	header := func(types byte) []byte { // no times of changes, and one type of local time with a name of one byte
		return append([]byte("TZif2"), append(make([]byte, 15+3*4+7), types, 0, 0, 0, types)...)
	}
	block := []byte{0, 0, 0, 0, 0, 0, 0} // the type: offset, summer time, index of the name; and the name
	data := append(append(header(1), block...), append(header(1), block...)...)
	loc, err := time.LoadLocationFromTZData("short", append(data, "\n"+rule+"\n"...))
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// TestLastDayOfLeapYear: some times have only a zone's rule for all years. For these times, the time package returns a
// wrong end of the present offset on the last day of a leap year.
func TestLastDayOfLeapYear(t *testing.T) {
	t.Parallel()
	window := puntuale.Window{Weekdays: []int{1, 2, 3, 4, 5, 6, 7}}
	for _, loc := range []*time.Location{zone(t, "Europe/Rome"), zone(t, "America/New_York"), zone(t, "Australia/Lord_Howe"), shortZone(t, "CET-1CEST,M3.5.0,M10.5.0/3")} {
		for year := 2028; year < 2100; year += 4 {
			for hour := range 5 * 24 {
				want := time.Date(year, 12, 29, hour, 0, 0, 0, loc)
				clock := time.Duration(hour%24) * time.Hour
				if got := puntuale.DateOf(want).At(clock, loc); !got.Equal(want) {
					t.Errorf("%s: %s, want %s", loc, got, want.UTC())
				}
				if next, ok := window.Next(want, loc); !ok || !next.Equal(want) {
					t.Errorf("%s: %s is not in the window", loc, want)
				}
			}
		}
	}
}

// TestDateAt tests each kind of clock change. At moves a skipped time forward by the gap. If a time occurs twice, At
// returns the first occurrence.
func TestDateAt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, day, at, want string }{
		{"Europe/Rome", "2026-03-29", "01:59", "2026-03-29T00:59:00Z"},
		{"Europe/Rome", "2026-03-29", "02:00", "2026-03-29T01:00:00Z"},
		{"Europe/Rome", "2026-03-29", "02:30", "2026-03-29T01:30:00Z"}, // skipped time: clocks show 03:30
		{"Europe/Rome", "2026-03-29", "03:00", "2026-03-29T01:00:00Z"},
		{"Europe/Rome", "2026-10-25", "01:59", "2026-10-24T23:59:00Z"},
		{"Europe/Rome", "2026-10-25", "02:30", "2026-10-25T00:30:00Z"}, // the time occurs twice: At returns the first
		{"Europe/Rome", "2026-10-25", "03:00", "2026-10-25T02:00:00Z"},
		{"America/New_York", "2026-03-08", "02:30", "2026-03-08T07:30:00Z"},
		{"America/New_York", "2026-11-01", "01:30", "2026-11-01T05:30:00Z"},
		{"Europe/London", "2026-03-29", "01:30", "2026-03-29T01:30:00Z"},
		{"Europe/London", "2026-10-25", "01:30", "2026-10-25T00:30:00Z"},
		{"Australia/Lord_Howe", "2026-10-04", "02:15", "2026-10-03T15:45:00Z"}, // a gap of half an hour: clocks show 02:45
		{"Australia/Lord_Howe", "2026-04-05", "01:45", "2026-04-04T14:45:00Z"},
		{"Africa/Casablanca", "2026-03-22", "02:30", "2026-03-22T02:30:00Z"}, // the gap at Ramadan's end: clocks show 03:30
		{"Africa/Casablanca", "2026-02-15", "02:30", "2026-02-15T01:30:00Z"}, // when Ramadan begins, the time from 02:00 to 03:00 occurs twice
		{"Pacific/Apia", "2011-12-29", "10:00", "2011-12-29T20:00:00Z"},
		{"Pacific/Apia", "2011-12-30", "10:00", "2011-12-30T20:00:00Z"}, // the zone skipped this day: clocks show 31 December
		{"Pacific/Apia", "2011-12-31", "10:00", "2011-12-30T20:00:00Z"},
		{"America/Sao_Paulo", "2018-11-04", "00:00", "2018-11-04T03:00:00Z"}, // this day has no midnight: clocks show 01:00
		{"America/Sao_Paulo", "2018-02-17", "23:30", "2018-02-18T01:30:00Z"}, // this time occurs twice, before midnight
		{"America/Sao_Paulo", "2026-11-01", "00:00", "2026-11-01T03:00:00Z"}, // no clock changes any more
		{"UTC", "2026-01-01", "00:00", "2026-01-01T00:00:00Z"},
	} {
		at, err := puntuale.ParseTimeOfDay(c.at)
		if err != nil {
			t.Fatal(err)
		}
		got := date(t, c.day).At(at, zone(t, c.zone))
		if got.Format(time.RFC3339) != c.want {
			t.Errorf("%s %s in %s is %s, want %s", c.day, c.at, c.zone, got.Format(time.RFC3339), c.want)
		}
	}
}

var zones = []string{"Europe/Rome", "America/New_York", "Europe/London", "Australia/Lord_Howe", "Africa/Casablanca",
	"Pacific/Apia", "America/Sao_Paulo", "America/St_Johns", "Asia/Kathmandu", "Pacific/Kiritimati", "UTC"}

// TestDateAtProperties checks that At returns the first instant at which clocks show the given time. If a clock change
// skips the time, no instant shows it.
func TestDateAtProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		loc := zone(t, rapid.SampledFrom(zones).Draw(t, "zone"))
		minute := time.Duration(rapid.IntRange(0, 24*60-1).Draw(t, "minute")) * time.Minute
		day := puntuale.Date{Year: 2000, Month: 1, Day: 1}.AddDays(rapid.IntRange(0, 40*366).Draw(t, "day"))
		got := day.At(minute, loc)
		wall := time.Date(day.Year, day.Month, day.Day, 0, 0, 0, 0, time.UTC).Add(minute).Format(time.DateTime)
		// This loop finds the instant in a slow way: it tries every quarter of an hour near the time. All offsets since
		// 1990 are multiples of a quarter of an hour.
		var first time.Time
		for at := got.Add(-26 * time.Hour); at.Before(got.Add(26 * time.Hour)); at = at.Add(15 * time.Minute) {
			if at.In(loc).Format(time.DateTime) == wall {
				first = at
				break
			}
		}
		switch {
		case !first.IsZero() && !first.Equal(got):
			t.Fatalf("%s in %s: %s, want %s", wall, loc, got, first)
		case first.IsZero() && got.In(loc).Format(time.DateTime) <= wall:
			t.Fatalf("%s in %s is skipped, yet became %s", wall, loc, got.In(loc))
		}
	})
}

func TestDateAddMonths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from   string
		months int
		want   string
	}{
		{"2026-01-31", 1, "2026-02-28"},
		{"2028-01-31", 1, "2028-02-29"},
		{"2026-01-31", 3, "2026-04-30"},
		{"2026-03-31", -1, "2026-02-28"},
		{"2028-02-29", 12, "2029-02-28"},
		{"2026-12-15", 1, "2027-01-15"},
		{"2026-01-15", -1, "2025-12-15"},
		{"2026-01-31", -13, "2024-12-31"},
		{"2026-05-31", 0, "2026-05-31"},
	} {
		if got := date(t, c.from).AddMonths(c.months); got.String() != c.want {
			t.Errorf("%s and %d months is %s, want %s", c.from, c.months, got, c.want)
		}
	}
}

func TestParseTimeOfDay(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"00:00": 0, "09:05": 9*time.Hour + 5*time.Minute, "23:59": 23*time.Hour + 59*time.Minute,
	} {
		if got, err := puntuale.ParseTimeOfDay(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "9:00", "24:00", "12:60", "12.30", "12:3", "12:300", " 12:30", "-1:00", "1a:00", "12:0/", "１２:00"} {
		if got, err := puntuale.ParseTimeOfDay(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}

func FuzzParseTimeOfDay(f *testing.F) {
	for _, seed := range []string{"00:00", "23:59", "24:00", "9:00", "é1:00", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := puntuale.ParseTimeOfDay(text)
		if err != nil {
			return
		}
		if back := time.Unix(0, 0).UTC().Add(got).Format("15:04"); back != text {
			t.Fatalf("%q came back as %q", text, back)
		}
	})
}

func FuzzParseDate(f *testing.F) {
	for _, seed := range []string{"2026-11-20", "2028-02-29", "2026-02-29", "0001-01-01", "9999-12-31", "2026-1-2", "-2026-11-20", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := puntuale.ParseDate(text)
		if err == nil && (d.String() != text || puntuale.DateFromInt(d.Int()) != d || d.AddDays(1).AddDays(-1) != d) {
			t.Fatalf("%q became %v", text, d)
		}
	})
}

// FuzzParseID checks that each identifier has only one spelling, so that two different texts never name the same
// thing.
func FuzzParseID(f *testing.F) {
	for _, seed := range []string{"1", "9007199254740991", "9007199254740992", "0", "-1", "007", "+1", " 1", "1e3", "٣", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := puntuale.ParseID[puntuale.MessageID](text)
		if err == nil && (id.String() != text || id < 1 || id > puntuale.MaxID) {
			t.Fatalf("%q became %d", text, id)
		}
	})
}

// TestEaster checks Easter Sundays from published tables. They include the earliest and the latest possible days.
func TestEaster(t *testing.T) {
	t.Parallel()
	for _, want := range []string{"1818-03-22", "1943-04-25", "2000-04-23", "2008-03-23", "2011-04-24", "2019-04-21",
		"2024-03-31", "2025-04-20", "2026-04-05", "2027-03-28", "2028-04-16", "2029-04-01", "2030-04-21",
		"2031-04-13", "2032-03-28", "2038-04-25", "2285-03-22"} {
		day := date(t, want)
		if got := puntuale.Easter(day.Year); got != day {
			t.Errorf("Easter %d is %s, want %s", day.Year, got, want)
		}
	}
}

func TestIsHoliday(t *testing.T) {
	t.Parallel()
	for year, want := range map[int]string{
		2025: "01-01 01-06 04-20 04-21 04-25 05-01 06-02 08-15 11-01 12-08 12-25 12-26",
		2026: "01-01 01-06 04-05 04-06 04-25 05-01 06-02 08-15 10-04 11-01 12-08 12-25 12-26",
		2027: "01-01 01-06 03-28 03-29 04-25 05-01 06-02 08-15 10-04 11-01 12-08 12-25 12-26",
		2038: "01-01 01-06 04-25 04-26 05-01 06-02 08-15 10-04 11-01 12-08 12-25 12-26",
	} {
		var got []string
		for d := (puntuale.Date{Year: year, Month: 1, Day: 1}); d.Year == year; d = d.AddDays(1) {
			if d.IsHoliday() {
				got = append(got, d.String()[5:])
			}
		}
		if found := strings.Join(got, " "); found != want {
			t.Errorf("holidays of %d:\n%s\nwant\n%s", year, found, want)
		}
	}
}
