package puntuale

import "time"

// fixedHolidays are Italy's national holidays that fall on the same day each year, as month*100+day.
var fixedHolidays = [...]int{101, 106, 425, 501, 602, 815, 1101, 1208, 1225, 1226}

// The feast of Saint Francis is a national holiday from 2026 (law 151 of 2025).
const (
	francisDay   = 1004
	francisSince = 2026
)

// IsHoliday reports whether the day is an Italian national holiday. They are 1 and 6 January, Easter and Easter Monday,
// 25 April, 1 May, 2 June, and 15 August. Later come 4 October from 2026, 1 November, and 8, 25 and 26 December.
// Earlier years are reckoned by the same list.
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
