package icalendar

import (
	"slices"
	"strings"
	"time"
)

// expander makes entries of events.
type expander struct {
	o       Options
	zones   *zones
	work    *effort
	groups  [][]*event // events with the same UID, in the order of the feed
	left    map[uint64]version
	entries []Entry
	lost    int // entries with a problem that may be outside of the period
	skipped int
}

func newExpander(p *parser) *expander {
	x := &expander{o: p.o, work: &effort{maxFeedEffort}, left: p.left}
	x.zones = newZones(p.o, x.work)
	place := map[string]int{}
	for _, e := range p.events {
		i, known := place[e.uid]
		if !known {
			i = len(x.groups)
			place[e.uid] = i
			x.groups = append(x.groups, nil)
		}
		x.groups[i] = append(x.groups[i], e)
	}
	return x
}

func (x *expander) all() error {
	for _, group := range x.groups {
		x.group(group)
		if len(x.entries) > x.o.MaxEntries {
			return ErrTooMany
		}
	}
	return nil
}

const (
	utcForm  = "20060102T150405Z"
	dateForm = "20060102"
)

// override is an event that replaces one instance, or all from one on.
type override struct {
	*event
	key      string    // as in [Entry].Recurrence
	original time.Time // wall time of the original start
}

// group makes the entries of all events with one UID: a master, and overrides.
func (x *expander) group(events []*event) {
	var master *event
	for _, e := range events {
		if e.override() || x.outdated(e) {
			continue
		}
		if master != nil && e.version == master.version && e.start != master.start {
			x.skipped++ // two events have one UID; some programs number events of each day anew
		}
		if master == nil || !e.version.less(master.version) {
			master = e
		}
	}
	overrides := map[string]override{}
	for _, e := range events {
		if !e.override() || x.outdated(e) {
			continue
		}
		key, original, ok := x.recurrence(e, master)
		if !ok {
			x.problem(e, "", ProblemZone)
			continue
		}
		if before, twice := overrides[key]; !twice || !e.version.less(before.version) {
			overrides[key] = override{e, key, original}
		}
	}
	for _, o := range overrides {
		e := *o.event
		if master != nil && e.cancelled { // often only the start is there
			e.title, e.location, e.description = orElse(e.title, master.title), orElse(e.location, master.location), orElse(e.description, master.description)
			if len(e.attendees) == 0 {
				e.attendees = master.attendees
			}
		}
		if master != nil && master.cancelled {
			e.cancelled = true
		}
		x.single(&e, o.key)
	}
	switch {
	case master == nil:
	case master.series():
		x.series(master, overrides)
	default:
		x.single(master, "")
	}
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// outdated reports whether a newer copy of the event was left out, because it is outside of the period.
func (x *expander) outdated(e *event) bool {
	newer, ok := x.left[e.fingerprint()]
	return ok && e.version.less(newer)
}

// moment resolves a timestamp. A time without a zone is in the zone given. Without a time, the result is midnight.
func (x *expander) moment(t timestamp, c *calendar, without zone) (time.Time, zone) {
	in := without
	if t.tzid != "" && t.kind != dateOnly {
		in = x.zones.named(c, t.tzid)
	}
	switch t.kind {
	case utc:
		if in.location == nil {
			in = x.zones.of(c)
		}
		in.warning = ""
		return t.clock().In(in.location), in
	case dateOnly:
		in = x.zones.of(c)
		in.warning = ""
	}
	if in.location == nil {
		return time.Time{}, in
	}
	return at(t.clock(), in.location), in
}

// recurrence returns which instance an override replaces. Some programs write a date where the series has times, or a
// time where it has dates.
func (x *expander) recurrence(e, master *event) (key string, original time.Time, ok bool) {
	t := e.recurrence
	if t.kind == unreadable {
		return "", original, true
	}
	_, in := x.moment(e.start, e.calendar, x.zones.of(e.calendar))
	if master != nil && (in.location == nil || t.tzid == "" && t.kind == local && e.start.kind != local) {
		_, in = x.moment(master.start, master.calendar, x.zones.of(master.calendar))
	}
	if master != nil && t.kind == dateOnly && master.start.kind != dateOnly && master.start.kind != unreadable {
		clock := master.start.wall % 86400
		t = timestamp{t.wall + clock, master.start.tzid, master.start.kind}
	}
	instant, zone := x.moment(t, e.calendar, in)
	if zone.location == nil {
		instant, zone = x.moment(timestamp{t.wall, "", t.kind}, e.calendar, in)
	}
	if zone.location == nil {
		return "", original, false
	}
	original = wallOf(instant)
	if t.kind == dateOnly || master != nil && master.start.kind == dateOnly {
		return original.Format(dateForm), original.Truncate(24 * time.Hour), true
	}
	return instant.UTC().Format(utcForm), original, true
}

// single adds the entry of an event without a rule, or of an override.
func (x *expander) single(e *event, key string) {
	if e.start.kind == noTime || e.start.kind == unreadable || e.recurrence.kind == unreadable {
		x.problem(e, key, ProblemStart)
		return
	}
	start, zone := x.moment(e.start, e.calendar, x.zones.of(e.calendar))
	if zone.location == nil {
		x.problem(e, key, ProblemZone)
		return
	}
	x.add(x.entry(e, key, start, zone))
}

// entry makes an entry without a problem.
func (x *expander) entry(e *event, key string, start time.Time, in zone) Entry {
	if in.warning == WarnZoneCustom {
		start = start.In(x.o.Zone)
	}
	warning := in.warning
	if e.derived {
		warning = WarnNoUID
	}
	return Entry{UID: e.uid, Recurrence: key, Start: start, Zone: in.name, AllDay: e.start.kind == dateOnly, Title: e.title, Location: e.location,
		Description: e.description, Attendees: e.attendees, Cancelled: e.cancelled || e.calendar.cancelled, Warning: warning}
}

// add adds an entry that starts in the period. Once there are too many, it only counts.
func (x *expander) add(e Entry) {
	if e.Start.Before(x.o.From) || !e.Start.Before(x.o.To) || e.AllDay && !x.o.AllDay || len(x.entries) > x.o.MaxEntries {
		return
	}
	x.entries = append(x.entries, e)
}

// problem adds an entry that cannot be read. Its start may be unknown, or that of a series.
func (x *expander) problem(e *event, key string, code Problem) {
	entry := x.entry(e, key, time.Time{}, zone{name: x.o.Zone.String()})
	entry.Problem = code
	if code == ProblemRule || code == ProblemBusy {
		if start, zone := x.moment(e.start, e.calendar, x.zones.of(e.calendar)); zone.location != nil {
			entry.Start, entry.Zone = start, zone.name
		}
	}
	inside := x.within(e)
	switch {
	case entry.AllDay && !x.o.AllDay, len(x.entries) > x.o.MaxEntries:
	case code == ProblemZone && !e.series() && !inside:
	case !inside && x.lost >= maxProblems:
		x.skipped++
	default:
		if !inside {
			x.lost++
		}
		x.entries = append(x.entries, entry)
	}
}

// within reports whether an event may start in the period, in whatever zone.
func (x *expander) within(e *event) bool {
	const far = 14 * 3600
	return e.start.kind != noTime && e.start.kind != unreadable && e.start.wall+far >= x.o.From.Unix() && e.start.wall-far < x.o.To.Unix()
}

// series adds the instances of a series that are in the period, except those that overrides replace.
func (x *expander) series(e *event, overrides map[string]override) {
	if e.start.kind == unreadable || e.start.kind == noTime {
		x.problem(e, "", ProblemStart)
		return
	}
	begin, in := x.moment(e.start, e.calendar, x.zones.of(e.calendar))
	if in.location == nil {
		x.problem(e, "", ProblemZone)
		return
	}
	if e.excess {
		x.problem(e, "", ProblemBusy)
		return
	}
	s := &series{expander: x, event: e, in: in, overrides: overrides, shown: map[string]bool{}}
	if e.start.kind == utc { // it recurs in UTC, though people see it in a zone
		s.clock = time.UTC
	} else {
		s.clock = in.location
	}
	s.exceptions()
	s.ranges()
	found := len(x.entries)
	if code := s.expand(wallOf(begin.In(s.clock))); code != "" {
		x.entries = x.entries[:found]
		x.problem(e, "", code)
	}
}

// series is one series while it is expanded.
type series struct {
	*expander
	event     *event
	in        zone
	clock     *time.Location // in which it recurs
	overrides map[string]override
	onwards   []override      // those for later instances too, the latest first
	shift     time.Duration   // the furthest that one of them moves instances
	except    map[string]bool // keys of instances, and dates
	shown     map[string]bool
}

func (s *series) exceptions() {
	s.except = map[string]bool{}
	for _, t := range s.event.except {
		instant, zone := s.moment(t, s.event.calendar, s.in)
		switch {
		case t.kind == dateOnly:
			s.except[t.clock().Format(dateForm)] = true
		case zone.location == nil:
		case s.event.start.kind == dateOnly:
			s.except[wallOf(instant).Format(dateForm)] = true
		default:
			s.except[instant.UTC().Format(utcForm)] = true
		}
	}
}

// maxShift bounds how far an override moves all later instances.
const maxShift = 366 * 24 * time.Hour

func (s *series) ranges() {
	for _, o := range s.overrides {
		if by := s.by(o); o.onwards && by <= maxShift && by >= -maxShift {
			s.onwards, s.shift = append(s.onwards, o), max(s.shift, by, -by)
		}
	}
	slices.SortFunc(s.onwards, func(a, b override) int { return strings.Compare(b.key, a.key) })
}

// by returns how far an override moves its instance.
func (s *series) by(o override) time.Duration {
	start, zone := s.moment(o.start, o.calendar, s.zones.of(o.calendar))
	if zone.location == nil {
		return 0
	}
	return wallOf(start).Sub(o.original)
}

// expand adds the instances. begin is the wall time of the first one.
func (s *series) expand(begin time.Time) Problem {
	first, last := s.o.From.UTC().Add(-margin-s.shift), s.o.Expand.UTC().Add(margin+s.shift)
	for _, t := range s.event.dates {
		instant, zone := s.moment(t, s.event.calendar, s.in)
		if zone.location != nil {
			s.instance(wallOf(instant.In(s.clock)))
		}
	}
	if len(s.event.rules) == 0 {
		s.instance(begin)
	}
	for i := range s.event.rules {
		r := &s.event.rules[i]
		end := s.until(r)
		if code := r.each(begin, first, last, s.work, func(wall time.Time) bool {
			if !end.IsZero() && at(wall, s.clock).After(end) {
				return false
			}
			if !wall.Before(first) {
				s.instance(wall)
			}
			return len(s.entries) <= s.o.MaxEntries
		}); code != "" {
			return code
		}
	}
	return ""
}

// until returns the last moment of a rule. If it is a date, it is the end of this day in the zone of the series.
func (s *series) until(r *rule) time.Time {
	switch r.until.kind {
	case noTime:
		return time.Time{}
	case utc:
		return r.until.clock()
	case dateOnly:
		return at(r.until.clock().AddDate(0, 0, 1), s.in.location).Add(-time.Second)
	}
	return at(r.until.clock(), s.clock)
}

// instance adds one instance, unless it was excepted or replaced.
func (s *series) instance(wall time.Time) {
	start := at(wall, s.clock)
	key, day := start.UTC().Format(utcForm), wall.Format(dateForm)
	if s.event.start.kind == dateOnly {
		key = day
	} else {
		day = wallOf(start.In(s.in.location)).Format(dateForm)
	}
	if _, replaced := s.overrides[key]; replaced || s.except[key] || s.except[day] || s.shown[key] {
		return
	}
	s.shown[key] = true
	if !start.Before(s.o.Expand) {
		return
	}
	e := s.event
	for _, o := range s.onwards {
		if o.key <= key {
			e, start = o.event, at(wall.Add(s.by(o)), s.clock)
			break
		}
	}
	entry := s.entry(e, key, start.In(s.in.location), s.in)
	entry.UID, entry.AllDay = s.event.uid, s.event.start.kind == dateOnly
	entry.Cancelled = entry.Cancelled || s.event.cancelled
	s.add(entry)
}
