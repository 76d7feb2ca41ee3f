package yeartest

import "time"

// step is a step of a sequence. Its time counts from a date.
type step struct {
	days         int // days after the date; negative: before the date
	hour, minute int
	text         string
}

// plans contains the steps of the sequences that the rules for dates start.
var plans = map[int][]step{
	Birthday:   {{0, 9, 0, TextBirthday}},
	Instalment: {{0, 2, 30, TextInstalment}},
	Renewal:    {{-7, 10, 0, TextBefore}, {0, 11, 0, TextToday}},
}

// falls reports whether a rule's date comes on a day.
func falls(rule int, value string, day time.Time) bool {
	d, err := time.Parse(time.DateOnly, value)
	if err != nil {
		return false
	}
	switch rule {
	case Birthday:
		if d.Month() == time.February && d.Day() == 29 && day.Month() == time.February {
			return day.Day() == lastOfMonth(day)
		}
		return day.Month() == d.Month() && day.Day() == d.Day()
	case Instalment:
		return day.Day() == min(d.Day(), lastOfMonth(day))
	default:
		return day.Year() == d.Year() && day.Month() == d.Month() && day.Day() == d.Day()
	}
}

// lastOfMonth returns the number of days in the month that contains day.
func lastOfMonth(day time.Time) int {
	return time.Date(day.Year(), day.Month()+1, 0, 12, 0, 0, 0, time.UTC).Day()
}

// midnight returns the beginning of a day. The day is the given number of days after the day that contains the time at.
func (m *model) midnight(at time.Time, days int) time.Time {
	y, month, d := at.In(m.Zone).Date()
	return time.Date(y, month, d+days, 0, 0, 0, 0, m.Zone)
}

// next returns the first day on which a rule's date comes, on or after the day that contains from. It returns zero if
// there is no such day until 30 days after the script's end.
func (m *model) next(rule int, value string, from time.Time) time.Time {
	for day := m.midnight(from, 0); day.Before(m.End.AddDate(0, 0, 30)); day = m.midnight(day, 1) {
		if falls(rule, value, day) {
			return day
		}
	}
	return time.Time{}
}

// on returns a time of day on a day. If the clocks skip this time, on returns the time plus the gap. If the clocks show this time twice, on
// returns the first.
func (m *model) on(day time.Time, hour, minute int) time.Time {
	y, month, d := day.Date()
	wall := time.Date(y, month, d, hour, minute, 0, 0, time.UTC)
	first := wall.Add(-m.offset(m.midnight(day, 0)))
	for _, at := range []time.Time{first, wall.Add(-m.offset(m.midnight(day, 1)))} {
		if shown := at.In(m.Zone); shown.Hour() == hour && shown.Minute() == minute {
			return at
		}
	}
	return first
}

// offset returns the zone's offset from UTC at a time.
func (m *model) offset(at time.Time) time.Duration {
	_, seconds := at.In(m.Zone).Zone()
	return time.Duration(seconds) * time.Second
}
