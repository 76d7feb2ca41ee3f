package request

import (
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/plan"
)

// Period is the time from one minute to another, including both. A caller wrote both minutes in the client's zone.
// Clocks may show a minute twice. In this case, a period begins with the first such minute, and ends with the second.
// Each bound contains the name that the caller used for it ("start", "from" …).
type Period struct{ Start, End []Bound }

// Bound is one end of a period. If a caller gives the same bound under several names, all values must agree.
type Bound struct{ Name, Text string }

// outcomeLayout is the contract's form: dd/mm/YYYY HH:ii.
const outcomeLayout = "02/01/2006 15:04"

// Codes of the faults that this file reports.
const (
	faultCallNotSameAs puntuale.ReasonCode = "call.not_same_as"
	FaultAfterEnd      puntuale.ReasonCode = "fault.after_end"
	faultNotDate       puntuale.ReasonCode = "fault.not_date"
	faultNotMinute     puntuale.ReasonCode = "fault.not_minute"
)

// Strict parses a period. Both bounds are required, in the contract's form. An end before the start is a fault.
func (p Period) Strict(f *Faults, loc *time.Location) (from, to time.Time) {
	read := func(bounds []Bound, name string) (Bound, plan.Moment) {
		bound, ok := chosenBound(f, bounds)
		if !ok {
			f.Add("query."+name, puntuale.FaultRequired, nil)
			return bound, plan.Moment{}
		}
		wall, err := time.Parse(outcomeLayout, strings.TrimSpace(bound.Text))
		if err != nil {
			f.Add("query."+bound.Name, faultNotMinute, bound.Text)
		}
		return bound, plan.Moment{Date: puntuale.DateOf(wall), Time: TimeOfDay(wall), HasTime: true}
	}
	bound, start := read(p.Start, "start")
	_, end := read(p.End, "end")
	if len(*f) > 0 {
		return time.Time{}, time.Time{}
	}
	from, to = firstMoment(start, loc), lastMoment(end, loc)
	if backwards(start, end, from, to) {
		f.Add("query."+bound.Name, FaultAfterEnd, bound.Text)
	}
	return from, to
}

// Loose parses a period. Both bounds are optional, in any form that a date field accepts. A start without a time of day
// means the beginning of its day. An end without a time of day means the end of its day.
func (p Period) Loose(f *Faults, loc *time.Location) (from, to time.Time) {
	read := func(bounds []Bound) (bound Bound, m plan.Moment, ok bool) {
		if bound, ok = chosenBound(f, bounds); !ok {
			return bound, m, false
		}
		m, err := plan.ParseMoment(strings.TrimSpace(bound.Text))
		if err != nil {
			f.Add("query."+bound.Name, faultNotDate, bound.Text)
		}
		return bound, m, err == nil
	}
	bound, start, begins := read(p.Start)
	_, end, ends := read(p.End)
	if begins {
		from = firstMoment(start, loc)
	}
	if ends {
		to = lastMoment(end, loc)
	}
	if begins && ends && backwards(start, end, from, to) {
		f.Add("query."+bound.Name, FaultAfterEnd, bound.Text)
	}
	return from, to
}

// backwards reports whether the start is after the end. The two may be the same time only if a clock change skips the
// whole period.
func backwards(start, end plan.Moment, from, to time.Time) bool {
	if !from.Equal(to) {
		return from.After(to)
	}
	return start.Zone != nil || end.Zone != nil || end.Date.Before(start.Date) || end.Date == start.Date && end.HasTime && end.Time.Truncate(time.Minute) < start.Time.Truncate(time.Minute)
}

// firstMoment returns the first time at which clocks show m or later. If clocks show m twice, the result is the first
// of the two times. If a clock change skips m, the result is the time of the change.
func firstMoment(m plan.Moment, loc *time.Location) time.Time {
	t, _ := instant(m, loc)
	return t
}

// lastMoment returns the end of the minute that clocks show as m. If m has no time of day, the result is the end of the
// day. If clocks show the minute twice, the result is the end of the second one, so that neighbouring periods have no
// gap. If a clock change skips m, the result is the time of the change.
func lastMoment(m plan.Moment, loc *time.Location) time.Time {
	if !m.HasTime {
		m.Date = m.Date.AddDays(1)
		return firstMoment(m, loc)
	}
	m.Time = m.Time.Truncate(time.Minute)
	t, skipped := instant(m, loc)
	if skipped {
		return t
	}
	if m.Zone == nil {
		t = secondMoment(t, loc)
	}
	return t.Add(time.Minute)
}

// secondMoment returns the second time at which clocks show the local time of t. If there is no second time, it returns
// t.
func secondMoment(t time.Time, loc *time.Location) time.Time {
	local := t.In(loc)
	_, change := local.ZoneBounds()
	if change.IsZero() {
		return t
	}
	_, before := local.Zone()
	_, after := change.Zone()
	second := t.Add(time.Duration(before-after) * time.Second)
	if before <= after || second.Before(change) {
		return t
	}
	return second
}

// instant returns the first time at which clocks show m. If a clock change skips m, it returns the time of the change.
func instant(m plan.Moment, loc *time.Location) (t time.Time, skipped bool) {
	t = m.At(0, loc)
	if m.Zone != nil {
		return t, false
	}
	local := t.In(loc)
	if puntuale.DateOf(local) == m.Date && TimeOfDay(local) == m.Time {
		return t, false
	}
	change, _ := local.ZoneBounds() // clocks skip m, so At returned a time after the change, at which the zone's present period begins
	return change, true
}

// chosenBound returns the bound that the caller gave, under any of its names.
func chosenBound(f *Faults, bounds []Bound) (Bound, bool) {
	bounds = slices.DeleteFunc(slices.Clone(bounds), func(b Bound) bool { return strings.TrimSpace(b.Text) == "" })
	if len(bounds) == 0 {
		return Bound{}, false
	}
	for _, other := range bounds[1:] {
		if strings.TrimSpace(other.Text) != strings.TrimSpace(bounds[0].Text) {
			f.Add("query."+other.Name, faultCallNotSameAs, other.Text, bounds[0].Name)
		}
	}
	return bounds[0], true
}
