package plan

import (
	"slices"
	"strconv"
	"time"

	"puntuale"
)

// Codes of the faults in this file.
const (
	faultQuotedNotTime         puntuale.ReasonCode = "fault.quoted_not_time"
	faultSequenceBeyondHorizon puntuale.ReasonCode = "sequence.beyond_horizon"
	faultSequenceNeverOpen     puntuale.ReasonCode = "sequence.never_open"
)

// defaultValidity is how long after its due time a message may leave if its step has no valid_for.
const defaultValidity = 24 * time.Hour

// timing is the state of a step's timing while the step's due time is computed.
type timing struct {
	*puntuale.Timing
	loc    *time.Location
	window *puntuale.Window // nil: the window is always open
	anchor time.Time
	at     time.Duration // value of At; set only if the step has At
	before bool          // true: the step must leave before its anchor
	itself bool          // true: the desired time is the anchor, so it is no breach to leave then
	own    time.Duration // the step's own time of day: At, or the time of day of the desired time; set only if keeps is true
	keeps  bool          // true: the step keeps its own time of day when the window moves the step back; see the method ownTime
}

// past says why a step whose moment is past would be left out.
type past struct {
	reason puntuale.ReasonCode // "": the moment is not past
	moment time.Time
	reject bool // true: the step refuses a past moment
}

// place computes the times of a step before jitter, or the reason why the step is left out. DueMax is the latest time
// that the jitter of this step allows. place records faults. After a fault, the result must not be used.
func (b *builder) place(i int, t *timing) (m puntuale.PlannedMessage, skip *puntuale.SkippedStep) {
	desired, ok := b.desired(i, t)
	if !ok {
		return m, nil
	}
	if desired.After(b.horizon) {
		b.stepReason(i, "timing", beyondHorizon(desired))
		return m, nil
	}
	due, reason, ok := b.due(i, t, desired)
	if !ok {
		return m, nil
	}
	b.past = past{reason: reason, moment: due, reject: reason != "" && t.IfPast == puntuale.PastReject}
	if reason != "" && !b.keeps {
		return m, &puntuale.SkippedStep{Step: i, Moment: due, Reason: puntuale.Because(reason)}
	}
	if reason != "" { // if the message replaces one that still waits, it leaves now
		if now, fits := t.fit(b.now); fits && !now.Before(b.now) {
			due = now
		}
	}
	m.Window = t.window
	if t.Anchor != "" && t.Anchor != puntuale.AnchorStart || t.Offset.Amount != 0 || t.At != "" {
		m.Desired = desired
	}
	if m.Due, m.DueMax = due, t.latest(due); t.before && due.Equal(t.anchor) {
		m.DueMax, t.before = due, false // it leaves at the date itself, so the date is not its deadline
	}
	if m.Dated = t.fromField(); t.before {
		m.Limit = t.anchor
	}
	return m, nil
}

// freeze returns the window for a message. If the window avoids holidays, freeze adds the client's own holidays.
func (b *builder) freeze(w *puntuale.Window) *puntuale.Window {
	if w.Always() {
		return nil
	}
	if w.Holidays != puntuale.HolidaysAvoid || len(b.in.Closed) == 0 {
		return w
	}
	frozen := *w
	frozen.Closed = slices.Concat(w.Closed, b.in.Closed)
	return &frozen
}

// desired computes a step's time from its anchor, its offset and its "at".
func (b *builder) desired(i int, t *timing) (time.Time, bool) {
	if t.At != "" {
		at, err := puntuale.ParseTimeOfDay(t.At)
		if err != nil {
			b.stepFault(i, "timing.at", faultQuotedNotTime, strconv.Quote(t.At))
			return time.Time{}, false
		}
		t.at = at
	}
	amount := t.Offset.Amount
	if t.Offset.Direction == puntuale.Before {
		amount = -amount
	}
	switch {
	case puntuale.BookingAnchor(t.Anchor):
		t.anchor = b.changes[t.Anchor].At.Add(puntuale.NoticeDelay)
	case !t.fromField():
		t.anchor = b.start
	default:
		f := b.field(t.Anchor)
		if f.state == fieldAbsent {
			b.missing(f)
		}
		if f.state != fieldGood {
			return time.Time{}, false
		}
		t.anchor = f.moment.At(t.atFor(t.Anchor), t.loc)
		t.before = t.Offset.Direction == puntuale.Before
	}
	desired := t.shift(t.anchor, amount, t.Offset.Unit)
	t.own, t.keeps = t.ownTime(desired)
	t.itself = desired.Equal(t.anchor)
	return desired, true
}

// ownTime returns the time of day that stays the same when the window moves the step to an earlier opening. It returns
// false if there is no such time of day.
func (t *timing) ownTime(desired time.Time) (time.Duration, bool) {
	switch t.Offset.Unit {
	case puntuale.Days, puntuale.Weeks, puntuale.Months:
		_, shown := local(desired, t.loc)
		return shown, true
	case puntuale.Seconds, puntuale.Minutes, puntuale.Hours:
	}
	return t.at, t.At != ""
}

// fromField reports whether the step's anchor is a date field.
func (t *timing) fromField() bool { return isFieldAnchor(t.Anchor) }

// atFor returns the time of day for a date field without a time of day.
func (t *timing) atFor(field string) time.Duration {
	if t.At != "" && t.Anchor == field {
		if at, err := puntuale.ParseTimeOfDay(t.At); err == nil {
			return at
		}
	}
	return DefaultTime
}

// shift moves a time by an offset, and then to the time of day in "at".
func (t *timing) shift(from time.Time, amount int, unit puntuale.Unit) time.Time {
	if length, ok := elapsed(unit); ok {
		from, amount = from.Add(time.Duration(amount)*length), 0
	}
	if amount == 0 && t.At == "" {
		return from
	}
	day, timeOfDay := local(from, t.loc)
	if t.At != "" {
		timeOfDay = t.at
	}
	return addCalendar(day, amount, unit).At(timeOfDay, t.loc)
}

// elapsed returns the length of a unit of elapsed time. It returns false for days and longer units.
func elapsed(unit puntuale.Unit) (time.Duration, bool) {
	switch unit {
	case puntuale.Seconds:
		return time.Second, true
	case puntuale.Minutes:
		return time.Minute, true
	case puntuale.Hours:
		return time.Hour, true
	}
	return 0, false
}

// addCalendar adds days, weeks or months to a day.
func addCalendar(day puntuale.Date, amount int, unit puntuale.Unit) puntuale.Date {
	switch unit {
	case puntuale.Months:
		return day.AddMonths(amount)
	case puntuale.Weeks:
		return day.AddDays(7 * amount)
	}
	return day.AddDays(amount)
}

// local returns the day and the time of day that clocks in loc show.
func local(t time.Time, loc *time.Location) (puntuale.Date, time.Duration) {
	t = t.In(loc)
	h, m, s := t.Clock()
	return puntuale.DateOf(t), time.Duration(h)*time.Hour + time.Duration(m)*time.Minute +
		time.Duration(s)*time.Second + time.Duration(t.Nanosecond())
}

// due moves the time into the window, and decides about a time in the past. If it returns a reason, the step is left
// out, and due is the past time.
func (b *builder) due(i int, t *timing, desired time.Time) (due time.Time, reason puntuale.ReasonCode, ok bool) {
	due, ok = t.fit(desired)
	if !ok {
		b.stepFault(i, "timing.window", faultSequenceNeverOpen)
		return due, "", false
	}
	if !due.Before(b.now) {
		return due, "", true
	}
	late := b.now.Sub(due) > puntuale.PastGrace
	reason = ReasonPast
	if !late || t.IfPast == puntuale.PastSend {
		now, fits := t.fit(b.now)
		if fits && !now.Before(b.now) {
			return now, "", true
		}
		reason = ReasonAnchorPast
	}
	if t.IfPast == puntuale.PastReject && !b.keeps {
		b.stepFault(i, "timing", puntuale.FaultSequenceMomentPassed, due.Format(time.RFC3339))
		return due, "", false
	}
	return due, reason, true
}

// fit moves a time into the window. If a step must leave before its anchor, and moving forward would reach the anchor,
// fit moves the time back instead. A time that is the anchor itself stays. It returns false if the window does not open.
func (t *timing) fit(m time.Time) (time.Time, bool) {
	fitted, ok := t.window.Next(m, t.loc)
	if ok && t.At != "" && !fitted.Equal(m) {
		fitted = t.atAgain(m, fitted)
	}
	itself := t.itself && fitted.Equal(m) && m.Equal(t.anchor)
	if t.before && (!ok || !fitted.Before(t.anchor) && !itself) {
		if t.anchor.Before(m) {
			m = t.anchor
		}
		return t.lastOpen(m)
	}
	return fitted, ok
}

// lastOpen finds the latest opening of the window before m. If the step's own time of day is in this opening and before
// m, lastOpen returns this time. If not, lastOpen returns the opening's last whole minute before m. It returns false if
// there is no opening within two years.
func (t *timing) lastOpen(m time.Time) (time.Time, bool) {
	last, ok := t.window.Last(m, t.loc)
	if !ok || !t.keeps {
		return last, ok
	}
	opened := t.window.Opened(last, t.loc)
	for _, day := range [...]puntuale.Date{opened.AddDays(1), opened} { // an opening that crosses midnight contains two days
		own := day.At(t.own, t.loc)
		if own.Before(m) && t.window.Contains(own, t.loc) && t.window.Opened(own, t.loc) == opened {
			return own, true
		}
	}
	return last, true
}

// atAgain handles a step that the window moved forward, from one time to another. If the new time is on a later day,
// atAgain tries the time of day "at" on this day. It returns this time if it is inside the window and not before the
// new time. In all other cases atAgain returns the new time.
func (t *timing) atAgain(from, moved time.Time) time.Time {
	day, _ := local(moved, t.loc)
	if before, _ := local(from, t.loc); before == day {
		return moved
	}
	if sameTime := day.At(t.at, t.loc); !sameTime.Before(moved) && t.window.Contains(sameTime, t.loc) {
		return sameTime
	}
	return moved
}

// validUntil returns the deadline of the message. If a step must leave before its anchor, the deadline is never after
// the anchor.
func (t *timing) validUntil(due time.Time) time.Time {
	end := due.Add(defaultValidity)
	if v := t.ValidFor; v != nil {
		if length, ok := elapsed(v.Unit); ok {
			end = due.Add(time.Duration(v.Amount) * length)
		} else {
			day, timeOfDay := local(due, t.loc)
			end = addCalendar(day, v.Amount, v.Unit).At(timeOfDay, t.loc)
		}
	}
	if t.before && t.anchor.Before(end) {
		return t.anchor
	}
	return end
}

func beyondHorizon(moment time.Time) puntuale.Reason {
	return puntuale.Because(faultSequenceBeyondHorizon, moment.Format(time.RFC3339))
}
