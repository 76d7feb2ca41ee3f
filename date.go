package puntuale

import (
	"fmt"
	"math"
	"time"
)

// Date is a day of the Gregorian calendar without a zone. The zero value is no day.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// DateOf returns the day that calendars in t's location show at t.
func DateOf(t time.Time) Date {
	y, m, d := t.Date()
	return Date{y, m, d}
}

// ParseDate reads YYYY-MM-DD.
func ParseDate(text string) (Date, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return Date{}, fmt.Errorf("%q is not a date of the form YYYY-MM-DD", text)
	}
	return DateOf(t), nil
}

// ParseTimeOfDay reads HH:MM, from 00:00 to 23:59. It returns the time since midnight on a wall clock.
func ParseTimeOfDay(text string) (time.Duration, error) {
	if len(text) == 5 && text[2] == ':' {
		h, okH := twoDigits(text[:2])
		m, okM := twoDigits(text[3:])
		if okH && okM && h < 24 && m < 60 {
			return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute, nil
		}
	}
	return 0, fmt.Errorf("%q is not a time of day of the form HH:MM", text)
}

func twoDigits(text string) (int, bool) {
	a, b := text[0]-'0', text[1]-'0'
	return int(a)*10 + int(b), a <= 9 && b <= 9
}

func (d Date) IsZero() bool { return d == Date{} }

// String returns YYYY-MM-DD.
func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, int(d.Month), d.Day) }

// AddDays returns the day n days later.
func (d Date) AddDays(n int) Date {
	return DateOf(time.Date(d.Year, d.Month, d.Day+n, 0, 0, 0, 0, time.UTC))
}

// AddMonths returns the same day of the month n months later. If that month is too short, it returns the month's last
// day.
func (d Date) AddMonths(n int) Date {
	first := time.Date(d.Year, d.Month+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return Date{first.Year(), first.Month(), min(d.Day, last)}
}

// At returns the instant, in UTC, at which clocks in loc show the time of day on this day. timeOfDay counts from
// midnight, in whole microseconds. If a clock change skips the time, At moves it forward by the length of the gap. If
// the time occurs twice, At returns the first occurrence.
func (d Date) At(timeOfDay time.Duration, loc *time.Location) time.Time {
	midnight := time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC)
	return time.UnixMicro(instant(midnight.UnixMicro()+timeOfDay.Microseconds(), loc)).UTC()
}

// Before reports whether d is an earlier day than o.
func (d Date) Before(o Date) bool { return d.Int() < o.Int() }

// Int returns the day as the number YYYYMMDD. The database contains this number.
func (d Date) Int() int { return d.Year*10000 + int(d.Month)*100 + d.Day }

// DateFromInt is the inverse of [Date.Int].
func DateFromInt(n int) Date { return Date{n / 10000, time.Month(n / 100 % 100), n % 100} }

// Weekday returns 1 for Monday to 7 for Sunday.
func (d Date) Weekday() int {
	w := int(time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC).Weekday())
	if w == 0 {
		return 7
	}
	return w
}

// MarshalText returns YYYY-MM-DD, or an empty text for the zero value. UnmarshalText reads both.
func (d Date) MarshalText() ([]byte, error) {
	if d.IsZero() {
		return nil, nil
	}
	return []byte(d.String()), nil
}

func (d *Date) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*d = Date{}
		return nil
	}
	*d, err = ParseDate(string(text))
	return err
}

// The functions below compute local time for one zoneSpan at a time. Between two clock changes, local time is the
// instant plus a constant. Instants and local times are in microseconds of the Unix epoch. The variable wall is the
// time that a local clock shows, read as if it were UTC.

const (
	microSecond = int64(time.Second / time.Microsecond)
	microMinute = 60 * microSecond
	microDay    = 24 * 60 * microMinute
)

// zoneSpan is the time between two clock changes. For an instant in [start, end), local time is the instant plus
// offset.
type zoneSpan struct{ offset, start, end int64 }

// spanAt returns the zoneSpan that contains the instant in the argument at.
func spanAt(at int64, loc *time.Location) zoneSpan {
	t := time.UnixMicro(at).In(loc)
	_, seconds := t.Zone()
	s := zoneSpan{int64(seconds) * microSecond, math.MinInt64, math.MaxInt64}
	from, to := t.ZoneBounds()
	if !from.IsZero() {
		s.start = from.UnixMicro()
	}
	if !to.IsZero() {
		s.end = to.UnixMicro()
	}
	if s.end <= at {
		// Where only a zone's rule for all later years applies, ZoneBounds assumes years of 365 days. So on the last day of a
		// leap year (in UTC) it returns an end that has passed. The offset is valid until the year ends.
		s.end = at - at%microDay + microDay
	}
	return s
}

// instant returns the first instant at which local clocks show wall. If a clock change skips wall, instant converts
// it with the offset from before the change. At that instant clocks show wall plus the gap.
func instant(wall int64, loc *time.Location) int64 {
	s := spanAt(wall-26*60*microMinute, loc) // 26 hours are more than any zone's offset from UTC
	for {
		at := wall - s.offset
		if at < s.end {
			return at
		}
		next := spanAt(s.end, loc)
		if wall-next.offset < next.start {
			return at
		}
		s = next
	}
}

// fixedHolidays are Italy's national holidays that fall on the same day each year, as month*100+day.
var fixedHolidays = [...]int{101, 106, 425, 501, 602, 815, 1101, 1208, 1225, 1226}

// Saint Francis' day is a national holiday from 2026 (law 151 of 2025).
const (
	francisDay   = 1004
	francisSince = 2026
)

// IsHoliday reports whether the day is an Italian national holiday: a day of fixedHolidays, Easter, Easter Monday, or
// Saint Francis' day from 2026. The other holidays are holidays in every year.
func (d Date) IsHoliday() bool {
	day := int(d.Month)*100 + d.Day
	for _, fixed := range fixedHolidays {
		if day == fixed {
			return true
		}
	}
	if day == francisDay {
		return d.Year >= francisSince
	}
	if d.Month != time.March && d.Month != time.April {
		return false
	}
	easter := Easter(d.Year)
	return d == easter || d == easter.AddDays(1)
}

// Easter returns Easter Sunday of a year of the Gregorian calendar, by the method published in Nature in 1876 (Meeus,
// Astronomical Algorithms, chapter 8).
func Easter(year int) Date {
	a, b, c := year%19, year/100, year%100
	d, e := b/4, b%4
	f := (b + 8) / 25
	g := (b - f + 1) / 3
	h := (19*a + b - d - g + 15) % 30
	i, k := c/4, c%4
	l := (32 + 2*e + 2*i - h - k) % 7
	m := (a + 11*h + 22*l) / 451
	n := h + l - 7*m + 114
	return Date{year, time.Month(n / 31), n%31 + 1}
}
