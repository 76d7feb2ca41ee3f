package automation

import (
	"time"

	"puntuale"
	"puntuale/internal/plan"
)

// NextDay returns the first day, not before from, on which a date comes. Zero: none comes, or the value is no date.
func NextDay(repeat puntuale.Repeat, value string, from puntuale.Date) puntuale.Date {
	m, err := plan.ParseMoment(value)
	if err != nil {
		return puntuale.Date{}
	}
	d := m.Date
	if !d.Before(from) { // a date in the future comes first as it is
		return d
	}
	switch repeat {
	case puntuale.RepeatYearly:
		if next := anniversary(d, from.Year); !next.Before(from) {
			return next
		}
		return anniversary(d, from.Year+1)
	case puntuale.RepeatMonthly:
		first := puntuale.Date{Year: from.Year, Month: from.Month, Day: 1}
		if next := ofMonth(d.Day, first); !next.Before(from) {
			return next
		}
		return ofMonth(d.Day, first.AddMonths(1))
	}
	return puntuale.Date{}
}

// anniversary is the day of a date in a year. 29 February is 28 February in common years.
func anniversary(d puntuale.Date, year int) puntuale.Date {
	return ofMonth(d.Day, puntuale.Date{Year: year, Month: d.Month, Day: 1})
}

// ofMonth is a day in the month that begins with first, or its last day.
func ofMonth(day int, first puntuale.Date) puntuale.Date {
	last := first.AddMonths(1).AddDays(-1).Day
	first.Day = min(day, last)
	return first
}

// dateValue is the occurrence's date as a sequence's field has it: with the time of day of the contact's value, if it has one.
func dateValue(value string, day puntuale.Date) string {
	m, err := plan.ParseMoment(value)
	if err != nil || !m.HasTime {
		return day.String()
	}
	return day.String() + "T" + time.Time{}.Add(m.Time).Format("15:04")
}

// lookAhead is how many days before its date a sequence must be planned: its earliest step, and a day more. A window may move a step back by days.
func lookAhead(field string, steps []puntuale.Step) int {
	days := 0
	for i := range steps {
		t := &steps[i].Timing
		if t.Anchor != field || t.Offset.Direction != puntuale.Before {
			continue
		}
		n := t.Offset.Amount
		switch t.Offset.Unit {
		case puntuale.Seconds:
			n = n/86_400 + 1
		case puntuale.Minutes:
			n = n/1440 + 1
		case puntuale.Hours:
			n = n/24 + 1
		case puntuale.Weeks:
			n *= 7
		case puntuale.Months:
			n *= 31
		case puntuale.Days:
		}
		if t.Window != nil {
			n += windowDays
		}
		days = max(days, n)
	}
	return days + 1
}

// windowDays is how many days a window may move a step back: over weekends, and over holidays around them.
const windowDays = 14
