package request

import (
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/plan"
)

// Period is a time from one minute to another, both included, as a caller wrote it in the client's zone. If a minute occurs twice, a period
// begins with the first and ends with the second. Each bound keeps the name that the caller used ("start", "from" …).
type Period struct{ Start, End []Bound }

// Bound is one end of a period. Several names for the same bound must agree.
type Bound struct{ Name, Text string }

// outcomeLayout is the contract's form: dd/mm/YYYY HH:ii.
const outcomeLayout = "02/01/2006 15:04"

// Faults of this file.
const (
	faultCallNotSameAs puntuale.ReasonCode = "call.not_same_as"
	faultAfterEnd      puntuale.ReasonCode = "fault.after_end"
	faultNotDate       puntuale.ReasonCode = "fault.not_date"
	faultNotMinute     puntuale.ReasonCode = "fault.not_minute"
)

// Strict reads a period whose bounds are both needed and have the contract's form. An end before the start is a fault.
func (p Period) Strict(f *Faults, loc *time.Location) (from, to time.Time) {
	read := func(bounds []Bound, name string) (Bound, plan.Moment) {
		bound, ok := one(f, bounds)
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
	from, to = first(start, loc), last(end, loc)
	if backwards(start, end, from, to) {
		f.Add("query."+bound.Name, faultAfterEnd, bound.Text)
	}
	return from, to
}

// Loose reads a period whose bounds may both be absent, in any form that a date field may have. A day alone begins with its midnight and
// ends with the next one.
func (p Period) Loose(f *Faults, loc *time.Location) (from, to time.Time) {
	read := func(bounds []Bound) (bound Bound, m plan.Moment, ok bool) {
		if bound, ok = one(f, bounds); !ok {
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
		from = first(start, loc)
	}
	if ends {
		to = last(end, loc)
	}
	if begins && ends && backwards(start, end, from, to) {
		f.Add("query."+bound.Name, faultAfterEnd, bound.Text)
	}
	return from, to
}

// backwards reports whether the start is after the end. A period may be empty only if a clock change skips all of it.
func backwards(start, end plan.Moment, from, to time.Time) bool {
	if !from.Equal(to) {
		return from.After(to)
	}
	return start.Zone != nil || end.Zone != nil || end.Date.Before(start.Date) || end.Date == start.Date && end.HasTime && end.Time.Truncate(time.Minute) < start.Time.Truncate(time.Minute)
}

// first returns the first moment at which clocks show m or later. For a time that occurs twice, it is the first. For a time that a clock
// change skips, it is the change.
func first(m plan.Moment, loc *time.Location) time.Time {
	t, _ := instant(m, loc)
	return t
}

// last returns the end of the minute that clocks show as m, or of the day when m has no time. For a minute that occurs twice, it is the
// second, so that there is no gap between neighbouring periods. A time that a clock change skips ends with the change.
func last(m plan.Moment, loc *time.Location) time.Time {
	if !m.HasTime {
		m.Date = m.Date.AddDays(1)
		return first(m, loc)
	}
	m.Time = m.Time.Truncate(time.Minute)
	t, skipped := instant(m, loc)
	if skipped {
		return t
	}
	if m.Zone == nil {
		t = again(t, loc)
	}
	return t.Add(time.Minute)
}

// again returns the second moment at which clocks show the same time as at t, or t itself if there is none.
func again(t time.Time, loc *time.Location) time.Time {
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

// instant returns the moment at which clocks first show m, or the change of the clocks that skips it.
func instant(m plan.Moment, loc *time.Location) (t time.Time, skipped bool) {
	t = m.At(0, loc)
	if m.Zone != nil {
		return t, false
	}
	local := t.In(loc)
	if puntuale.DateOf(local) == m.Date && TimeOfDay(local) == m.Time {
		return t, false
	}
	change, _ := local.ZoneBounds() // t was moved past the change, by the length of the gap
	return change, true
}

// one returns the bound that was given, under any of its names.
func one(f *Faults, bounds []Bound) (Bound, bool) {
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
