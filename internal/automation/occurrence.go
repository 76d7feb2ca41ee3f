package automation

import (
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/plan"
)

// NextDay returns the first day on which a date comes. This day is not before the argument from. NextDay returns zero
// if there is no such day, or if the value is no date.
func NextDay(repeat puntuale.Repeat, value string, from puntuale.Date) puntuale.Date {
	m, err := plan.ParseMoment(value)
	if err != nil {
		return puntuale.Date{}
	}
	d := m.Date
	if !d.Before(from) { // a future date comes for the first time on its own day
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

// anniversary returns the date with the same day and month in the given year. For 29 February it returns 28 February in a year without 29 February.
func anniversary(d puntuale.Date, year int) puntuale.Date {
	return ofMonth(d.Day, puntuale.Date{Year: year, Month: d.Month, Day: 1})
}

// ofMonth returns a day of the month that begins with first. If the month lacks the day, it returns the month's last day.
func ofMonth(day int, first puntuale.Date) puntuale.Date {
	last := first.AddMonths(1).AddDays(-1).Day
	first.Day = min(day, last)
	return first
}

// dateValue returns the day as the value of a sequence's field. If the contact's value has a time of day, dateValue adds that time.
func dateValue(value string, day puntuale.Date) string {
	m, err := plan.ParseMoment(value)
	if err != nil || !m.HasTime {
		return day.String()
	}
	return day.String() + "T" + time.Time{}.Add(m.Time).Format("15:04")
}

// lookAhead returns how many days before a contact's date a sequence must be planned. This is the offset of the earliest step, plus one day. For
// a step with a window, lookAhead adds the longest time for which the window is closed.
func lookAhead(field string, steps []puntuale.Step, c Client, today puntuale.Date) int {
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
			n += max(windowDays, closedDays(t.Window, c, today, n))
		}
		days = max(days, n)
	}
	return days + 1
}

// windowDays is how many days earlier a step may leave because of its window, which may exclude weekends and holidays.
const windowDays = 14

// windowReach is how many days the planner looks for an opening of a window.
const windowReach = 2 * 366

// closedDays returns how many days earlier than its own time a step may leave, because of a window that closes after
// today. The own time may be up to the given number of days ahead of what the caller plans.
func closedDays(own *puntuale.Window, c Client, today puntuale.Date, ahead int) int {
	w := *own
	if w.Holidays == puntuale.HolidaysAvoid {
		w.Closed = slices.Concat(w.Closed, c.Closed)
	}
	longest, end := time.Duration(0), today.AddDays(ahead+windowReach).At(0, c.Zone)
	for at := today.At(0, c.Zone); at.Before(end); {
		opens, ok := w.Next(at, c.Zone)
		if !ok {
			opens = end
		}
		longest = max(longest, opens.Sub(at))
		at = puntuale.DateOf(opens.In(c.Zone)).AddDays(1).At(0, c.Zone)
	}
	return int(longest/(24*time.Hour)) + 2 // one day for the part of a day, one for the opening before, which may end earlier on its day
}
