package control

import (
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/plan"
)

// Period is a time from one minute to another, both included, as a caller wrote it: each bound under the name it was
// given by ("start", "from" …), in the client's zone.
type Period struct{ Start, End []Bound }

// Bound is one end of a period. Several names for the same bound must agree.
type Bound struct{ Name, Text string }

// outcomeLayout is the contract's form: dd/mm/YYYY HH:ii.
const outcomeLayout = "02/01/2006 15:04"

// strict reads a period whose bounds are both needed and have the contract's form. An end before the start is a fault.
func (p Period) strict(f *faults, loc *time.Location) (from, to time.Time) {
	read := func(bounds []Bound, name string) time.Time {
		bound, ok := one(f, bounds)
		if !ok {
			f.add("query."+name, "is required", nil)
			return time.Time{}
		}
		wall, err := time.Parse(outcomeLayout, strings.TrimSpace(bound.Text))
		if err != nil {
			f.add("query."+bound.Name, "is not a moment of the form dd/mm/YYYY HH:MM", bound.Text)
		}
		return wall
	}
	start, end := read(p.Start, "start"), read(p.End, "end")
	if len(*f) > 0 {
		return start, end
	}
	if end.Before(start) {
		f.add("query."+p.Start[0].Name, "is after the end of the period", p.Start[0].Text)
	}
	return instant(start, loc), instant(end, loc).Add(time.Minute)
}

// loose reads a period of which either bound may be absent, in any form that a date field may have. A day alone begins
// with its midnight and ends with the next one.
func (p Period) loose(f *faults, loc *time.Location) (from, to time.Time) {
	read := func(bounds []Bound) (m plan.Moment, ok bool) {
		bound, ok := one(f, bounds)
		if !ok {
			return m, false
		}
		m, err := plan.ParseMoment(strings.TrimSpace(bound.Text))
		if err != nil {
			f.add("query."+bound.Name, "is not a date, such as 20/11/2026 10:30 or 2026-11-20", bound.Text)
		}
		return m, err == nil
	}
	if m, ok := read(p.Start); ok {
		from = m.At(0, loc)
	}
	if m, ok := read(p.End); ok {
		if m.HasTime {
			to = m.At(0, loc).Truncate(time.Minute).Add(time.Minute)
		} else {
			m.Date = m.Date.AddDays(1)
			to = m.At(0, loc)
		}
	}
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		f.add("query."+p.Start[0].Name, "is after the end of the period", p.Start[0].Text)
	}
	return from, to
}

// one returns the bound that was given, under whichever name.
func one(f *faults, bounds []Bound) (Bound, bool) {
	bounds = slices.DeleteFunc(slices.Clone(bounds), func(b Bound) bool { return strings.TrimSpace(b.Text) == "" })
	if len(bounds) == 0 {
		return Bound{}, false
	}
	for _, other := range bounds[1:] {
		if strings.TrimSpace(other.Text) != strings.TrimSpace(bounds[0].Text) {
			f.add("query."+other.Name, "is not the same as "+bounds[0].Name, other.Text)
		}
	}
	return bounds[0], true
}

// instant returns the moment at which clocks in loc first show what wall shows.
func instant(wall time.Time, loc *time.Location) time.Time {
	return puntuale.DateOf(wall).At(time.Duration(wall.Hour())*time.Hour+time.Duration(wall.Minute())*time.Minute, loc)
}
