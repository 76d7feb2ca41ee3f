package puntuale_test

import (
	"strings"
	"testing"

	"puntuale"
)

// Easter Sundays from the published tables, among them the earliest and the latest possible days.
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
