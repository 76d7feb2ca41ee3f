package puntuale

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Window says when a message may leave: on these weekdays, from one time of day to another, perhaps not on holidays.
// Each message has its own copy of its window, and the claim checks it again. So retries, resends, and messages
// that waited for their session also stay inside the window.
//
// Times are local times in the run's zone. If a clock change repeats an hour, both hours are inside or both are
// outside. If a clock change skips an hour, the window is shorter. A window that crosses midnight belongs to the day on
// which it began. So Friday's night continues into Saturday, and the night before a holiday continues into the holiday.
//
// A nil Window is always open. The methods only read. Many goroutines may call them at the same time.
type Window struct {
	Weekdays []int  `json:"weekdays,omitempty"` // 1 Monday to 7 Sunday; empty: every day
	From     string `json:"from,omitempty"`     // "HH:MM", inclusive; if From and To are "": the whole day
	To       string `json:"to,omitempty"`       // "HH:MM", exclusive; if From is later than To, the window crosses midnight
	Holidays string `json:"holidays,omitempty"` // HolidaysAvoid, or "": open on holidays, too
	Closed   []Date `json:"closed,omitempty"`   // the client's own holidays, copied when the run starts
}

// HolidaysAvoid closes a window on national holidays and on the days in Closed.
const HolidaysAvoid = "avoid"

// windowReach is how far Next and Last search, in microseconds. A window that does not open within two years counts
// as never open.
const windowReach = 2 * 366 * microDay

// Codes of faults of windows.
const (
	faultWindowDayTwice    ReasonCode = "window.day_twice"
	faultWindowFromAndTo   ReasonCode = "window.from_and_to"
	faultWindowFromIsTo    ReasonCode = "window.from_is_to"
	faultWindowHolidays    ReasonCode = "window.holidays"
	faultWindowTooManyDays ReasonCode = "window.too_many_days"
	faultWindowWeekday     ReasonCode = "window.weekday"
)

// Check returns the faults of the window. The window is usable if there are none. Locations are relative to the window:
// "from", "weekdays[1]".
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
	if n := len(w.Weekdays); n > 7 { // checks the number first, because a caller may send very many
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

// Contains reports whether t is inside the window, by the local time in loc.
func (w *Window) Contains(t time.Time, loc *time.Location) bool {
	if w.Always() {
		return true
	}
	at := t.UnixMicro()
	_, seconds := t.In(loc).Zone()
	wall := at + int64(seconds)*microSecond
	return w.closeWall(wall) > wall
}

// Next returns the first time that is inside the window, t or later. If t is inside, Next returns t. Next returns false
// if the window does not open within two years.
func (w *Window) Next(t time.Time, loc *time.Location) (time.Time, bool) {
	if w.Always() {
		return t, true
	}
	at := t.UnixMicro()
	limit := at + windowReach
	for from := at; from <= limit; {
		s := spanAt(from, loc)
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

// Last returns the last whole minute before t that is inside the window. It returns false if the two years before t
// contain no such minute.
func (w *Window) Last(t time.Time, loc *time.Location) (time.Time, bool) {
	at := t.UnixMicro()
	limit := at - windowReach
	for before := at; before > limit; {
		s := spanAt(before-1, loc)
		start := max(s.start, limit)
		if wall, ok := w.lastWall(before+s.offset, start+s.offset); ok {
			return time.UnixMicro(wall - s.offset).UTC(), true
		}
		before = start
	}
	return time.Time{}, false
}

// Opened returns the day on which the window that contains t opened.
func (w *Window) Opened(t time.Time, loc *time.Location) Date {
	t = t.In(loc)
	day := DateOf(t)
	if w.Always() {
		return day
	}
	from, _ := w.hours()
	hour, minute, _ := t.Clock()
	if int64(60*hour+minute)*microMinute < from {
		return day.AddDays(-1) // the window opened on the day before
	}
	return day
}

// Until returns the time at which the window next closes. t must be inside the window. Until never returns a time later
// than t plus atMost.
func (w *Window) Until(t time.Time, loc *time.Location, atMost time.Duration) time.Time {
	limit := t.UnixMicro() + atMost.Microseconds()
	if w.Always() {
		return time.UnixMicro(limit).UTC()
	}
	for at := t.UnixMicro(); ; {
		s := spanAt(at, loc)
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

// Always reports whether the window sets no limits, and so is always open.
func (w *Window) Always() bool {
	return w == nil || len(w.Weekdays) == 0 && w.From == "" && w.To == "" && w.Holidays == "" && len(w.Closed) == 0
}

// hours returns when the window opens and closes, in microseconds after the midnight that begins its day. The result to
// is exclusive, and is more than 24 hours if the window crosses midnight. If a time cannot be read, which Check
// refuses, from and to are equal.
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

// nextWall returns the first wall time that is inside the window, wall or later. It returns end if there is no such
// time before end.
func (w *Window) nextWall(wall, end int64) int64 {
	from, to := w.hours()
	if from >= to {
		return end
	}
	day := floorDiv(wall, microDay)
	if to > microDay {
		day-- // the window may have opened yesterday
	}
	for ; day*microDay+from < end; day++ {
		if closes := day*microDay + to; closes > wall && w.openOn(day) {
			return max(wall, day*microDay+from)
		}
	}
	return end
}

// lastWall returns the last whole minute that is inside the window, before wall, and not before start. It returns false
// if there is no such minute.
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

// closeWall returns the wall time at which the window next closes after wall. It returns wall if wall is outside.
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

// openOn reports whether the window opens on a day. day counts days since 1 January 1970.
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
	weekday := int((day%7+7+3)%7) + 1 // day 0 was a Thursday, and Monday must give 1
	return slices.Contains(w.Weekdays, weekday)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
