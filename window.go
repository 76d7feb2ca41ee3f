package puntuale

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Window is when a message may leave: on these weekdays, from one time of day to another, perhaps not on holidays. It travels with the
// message and is checked again at claim, so that retries, late sessions and re-sends stay inside it.
//
// Its times are local times of the run's zone. If a clock change repeats an hour, both are inside or both outside. A
// skipped hour is missing. A window that crosses midnight belongs to the day on which it began. Friday's night reaches
// into Saturday, and the night before a holiday into the holiday.
//
// A nil Window is always open. The methods read only, and may be called by many goroutines at once.
type Window struct {
	Weekdays []int  `json:"weekdays,omitempty"` // 1 Monday to 7 Sunday; none: every day
	From     string `json:"from,omitempty"`     // "HH:MM", inclusive; "" with To "": the whole day
	To       string `json:"to,omitempty"`       // "HH:MM", exclusive; From later than To crosses midnight
	Holidays string `json:"holidays,omitempty"` // "avoid", or "" for no regard
	Closed   []Date `json:"closed,omitempty"`   // own dates of the client, frozen at start
}

// HolidaysAvoid closes a window on national holidays and on the client's own dates.
const HolidaysAvoid = "avoid"

// windowReach is how far Next and Last look: a window that does not open within two years is taken as never open.
const windowReach = 2 * 366 * microDay

// Faults of windows.
const (
	faultWindowDayTwice    ReasonCode = "window.day_twice"
	faultWindowFromAndTo   ReasonCode = "window.from_and_to"
	faultWindowFromIsTo    ReasonCode = "window.from_is_to"
	faultWindowHolidays    ReasonCode = "window.holidays"
	faultWindowTooManyDays ReasonCode = "window.too_many_days"
	faultWindowWeekday     ReasonCode = "window.weekday"
)

// Check returns what is wrong with the window, located within it ("from", "weekdays[1]"); none: it is usable.
func (w *Window) Check() []Fault {
	if w == nil {
		return nil
	}
	faults := w.checkHours(w.checkWeekdays())
	if w.Holidays != "" && w.Holidays != HolidaysAvoid {
		faults = append(faults, Because(faultWindowHolidays).At("holidays", w.Holidays))
	}
	return faults
}

func (w *Window) checkWeekdays() (faults []Fault) {
	if n := len(w.Weekdays); n > 7 { // the number is checked first, because there may be very many
		return []Fault{Because(faultWindowTooManyDays, strconv.Itoa(n)).At("weekdays", nil)}
	}
	for i, day := range w.Weekdays {
		switch {
		case day < 1 || day > 7:
			faults = append(faults, Because(faultWindowWeekday).At(fmt.Sprintf("weekdays[%d]", i), day))
		case slices.Contains(w.Weekdays[:i], day):
			faults = append(faults, Because(faultWindowDayTwice).At(fmt.Sprintf("weekdays[%d]", i), day))
		}
	}
	return faults
}

func (w *Window) checkHours(faults []Fault) []Fault {
	if w.From == "" && w.To == "" {
		return faults
	}
	before := len(faults)
	for _, side := range [...]struct{ name, text string }{{"from", w.From}, {"to", w.To}} {
		if side.text == "" {
			faults = append(faults, Because(faultWindowFromAndTo).At(side.name, nil))
		} else if _, err := ParseTimeOfDay(side.text); err != nil {
			faults = append(faults, Because(FaultMustBeTime).At(side.name, side.text))
		}
	}
	if len(faults) == before && w.From == w.To {
		faults = append(faults, Because(faultWindowFromIsTo).At("to", w.To))
	}
	return faults
}

// Contains reports whether clocks in loc show at t a moment inside the window.
func (w *Window) Contains(t time.Time, loc *time.Location) bool {
	if w.Always() {
		return true
	}
	at := t.UnixMicro()
	_, seconds := t.In(loc).Zone()
	wall := at + int64(seconds)*microSecond
	return w.closeWall(wall) > wall
}

// Next returns the first moment inside the window that is not before t: t itself when it is inside. It reports false
// when the window does not open within two years.
func (w *Window) Next(t time.Time, loc *time.Location) (time.Time, bool) {
	if w.Always() {
		return t, true
	}
	at := t.UnixMicro()
	limit := at + windowReach
	for from := at; from <= limit; {
		s := stretchAt(from, loc)
		end := min(s.end, limit+1)
		if wall := w.nextWall(from+s.offset, end+s.offset); wall < end+s.offset {
			if wall-s.offset == at {
				return t, true
			}
			return time.UnixMicro(wall - s.offset).UTC(), true
		}
		from = end
	}
	return time.Time{}, false
}

// Last returns the last whole minute inside the window that begins before t. It reports false when there is none
// within two years.
func (w *Window) Last(t time.Time, loc *time.Location) (time.Time, bool) {
	at := t.UnixMicro()
	limit := at - windowReach
	for before := at; before > limit; {
		s := stretchAt(before-1, loc)
		start := max(s.start, limit)
		if wall, ok := w.lastWall(before+s.offset, start+s.offset); ok {
			return time.UnixMicro(wall - s.offset).UTC(), true
		}
		before = start
	}
	return time.Time{}, false
}

// Opened returns the day on which the window's opening that contains t began.
func (w *Window) Opened(t time.Time, loc *time.Location) Date {
	t = t.In(loc)
	day := DateOf(t)
	if w.Always() {
		return day
	}
	from, _ := w.hours()
	hour, minute, _ := t.Clock()
	if int64(60*hour+minute)*microMinute < from {
		return day.AddDays(-1) // the window began on the day before
	}
	return day
}

// Until returns the moment at which the window next closes after t, which is inside it. If that is further away than a given time, it
// returns t plus that time.
func (w *Window) Until(t time.Time, loc *time.Location, atMost time.Duration) time.Time {
	limit := t.UnixMicro() + atMost.Microseconds()
	if w.Always() {
		return time.UnixMicro(limit).UTC()
	}
	for at := t.UnixMicro(); ; {
		s := stretchAt(at, loc)
		end := min(s.end, limit)
		closes := w.closeWall(at+s.offset) - s.offset
		if closes <= at {
			return time.UnixMicro(at).UTC()
		}
		if at = min(closes, end); at >= limit {
			return time.UnixMicro(limit).UTC()
		}
	}
}

// Always reports whether the window sets no condition, and so is always open.
func (w *Window) Always() bool {
	return w == nil || len(w.Weekdays) == 0 && w.From == "" && w.To == "" && w.Holidays == "" && len(w.Closed) == 0
}

// hours returns the window's hours in microseconds after the midnight that begins its day. The end is exclusive. It is
// past 24 hours when the window crosses midnight. Unreadable hours, which Check refuses, are no hours.
func (w *Window) hours() (from, to int64) {
	to = microDay
	if w.From != "" {
		d, err := ParseTimeOfDay(w.From)
		if err != nil {
			return 0, 0
		}
		from = d.Microseconds()
	}
	if w.To != "" {
		d, err := ParseTimeOfDay(w.To)
		if err != nil {
			return 0, 0
		}
		to = d.Microseconds()
		if to < from {
			to += microDay
		}
	}
	return from, to
}

// nextWall returns the first open wall time that is not before wall, or end when there is none before end.
func (w *Window) nextWall(wall, end int64) int64 {
	from, to := w.hours()
	if from >= to {
		return end
	}
	day := floorDiv(wall, microDay)
	if to > microDay {
		day-- // yesterday's night
	}
	for ; day*microDay+from < end; day++ {
		if closes := day*microDay + to; closes > wall && w.openOn(day) {
			return max(wall, day*microDay+from)
		}
	}
	return end
}

// lastWall returns the last whole open minute that begins before wall and not before start.
func (w *Window) lastWall(wall, start int64) (int64, bool) {
	from, to := int64(0), microDay
	if w != nil {
		from, to = w.hours()
	}
	if from >= to {
		return 0, false
	}
	latest := floorDiv(wall-1, microMinute) * microMinute
	for day := floorDiv(latest, microDay); day*microDay+to > start; day-- {
		minute := min(latest, day*microDay+to-microMinute)
		if minute >= day*microDay+from && minute >= start && w.openOn(day) {
			return minute, true
		}
	}
	return 0, false
}

// closeWall returns the wall time at which the window closes after wall; wall itself when it is outside.
func (w *Window) closeWall(wall int64) int64 {
	from, to := w.hours()
	day := floorDiv(wall, microDay)
	if to > microDay && wall < (day-1)*microDay+to && w.openOn(day-1) {
		return (day-1)*microDay + to
	}
	if wall >= day*microDay+from && wall < day*microDay+to && w.openOn(day) {
		return day*microDay + to
	}
	return wall
}

// openOn reports whether the window begins on a day, given as days since 1 January 1970.
func (w *Window) openOn(day int64) bool {
	if w == nil {
		return true
	}
	if len(w.Weekdays) > 0 && !w.onWeekday(day) {
		return false
	}
	if w.Holidays != HolidaysAvoid && len(w.Closed) == 0 {
		return true
	}
	date := DateOf(time.Unix(day*24*60*60, 0).UTC())
	if w.Holidays == HolidaysAvoid && date.IsHoliday() {
		return false
	}
	return !slices.Contains(w.Closed, date)
}

func (w *Window) onWeekday(day int64) bool {
	weekday := int((day%7+7+3)%7) + 1 // day 0 was a Thursday
	return slices.Contains(w.Weekdays, weekday)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
