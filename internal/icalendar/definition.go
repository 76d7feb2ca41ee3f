package icalendar

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"
)

// definition is a VTIMEZONE. It is read only if nobody knows the zone by its name.
type definition struct {
	tzid        string
	place       string // X-LIC-LOCATION: an IANA name
	observances []observance
}

func (d *definition) property(p property) {
	switch p.name {
	case "TZID":
		d.tzid = string(p.value)
	case "X-LIC-LOCATION":
		d.place = string(p.value)
	}
}

// observance is a STANDARD or DAYLIGHT part: from each of its times, clocks have another offset.
type observance struct {
	start    timestamp
	from, to int // offsets in seconds
	bad      bool
	summer   bool
	rules    []rule
	dates    []timestamp
}

func (o *observance) property(p property) {
	value := string(p.value)
	ok := true
	switch p.name {
	case "DTSTART":
		o.start = parseTimestamp(value, "", "")
	case "TZOFFSETFROM":
		o.from, ok = parseOffset(value)
	case "TZOFFSETTO":
		o.to, ok = parseOffset(value)
	case "RRULE":
		if len(o.rules) < maxRules {
			o.rules = append(o.rules, parseRule(value))
		}
	case "RDATE":
		for part := range strings.SplitSeq(value, ",") {
			if t := parseTimestamp(part, "", ""); t.kind == local && len(o.dates) < maxList {
				o.dates = append(o.dates, t)
			}
		}
	}
	o.bad = o.bad || !ok
}

// transition is a moment at which clocks change.
type transition struct {
	at     int64 // Unix time in seconds
	from   int
	to     int
	summer bool
}

// transitions returns the changes of a definition around a period, sorted. Nothing is returned if a part is unreadable.
func (d *definition) transitions(o Options, work *effort) (all []transition) {
	first, last := o.From.AddDate(-2, 0, 0).UTC(), o.To.AddDate(2, 0, 0).UTC()
	for _, part := range d.observances {
		if part.bad || part.start.kind != local && part.start.kind != dateOnly {
			return nil
		}
		add := func(wall time.Time) bool {
			all = append(all, transition{wall.Unix() - int64(part.from), part.from, part.to, part.summer})
			return len(all) < 10*maxDates
		}
		add(part.start.clock())
		for _, t := range part.dates {
			add(t.clock())
		}
		for _, r := range part.rules {
			until := func(wall time.Time) bool {
				return (r.until.kind == noTime || wall.Unix()-int64(part.from) <= r.until.wall) && (wall.Before(first) || add(wall))
			}
			if r.each(part.start.clock(), first, last, work, until) != "" {
				return nil
			}
		}
	}
	slices.SortFunc(all, func(a, b transition) int { return int(min(1, max(-1, a.at-b.at))) })
	return slices.CompactFunc(all, func(a, b transition) bool { return a.at == b.at })
}

// custom returns the zone that a definition describes. If a known zone has the same offsets around the period, it is
// that zone: the zone of the options first, then that of the calendar, then the zones of Windows.
func (z *zones) custom(c *calendar, d *definition) zone {
	all := d.transitions(z.o, z.work)
	if len(all) == 0 {
		return zone{}
	}
	location, err := time.LoadLocationFromTZData("Custom", zoneFile(all))
	if err != nil {
		return zone{}
	}
	if z.known == nil {
		for _, name := range windowsIndex().list {
			if known := load(name); known != nil {
				z.known = append(z.known, known)
			}
		}
	}
	moments := z.moments(all)
	for _, known := range append([]*time.Location{z.o.Zone, z.of(c).location}, z.known...) {
		if !slices.ContainsFunc(moments, func(at time.Time) bool { return !sameOffset(at, known, location) }) {
			return zone{location: known, name: known.String()}
		}
	}
	return zone{location, z.o.Zone.String(), WarnZoneCustom}
}

// moments returns the moments at which two zones are compared: around each change, and some in between.
func (z *zones) moments(all []transition) (moments []time.Time) {
	step := max(7*24*time.Hour, z.o.To.Sub(z.o.From)/100)
	for at := z.o.From; !at.After(z.o.To); at = at.Add(step) {
		moments = append(moments, at)
	}
	for _, t := range all {
		if at := time.Unix(t.at, 0); at.After(z.o.From.AddDate(-1, 0, 0)) && at.Before(z.o.To.AddDate(1, 0, 0)) {
			moments = append(moments, at.Add(-time.Second), at)
		}
	}
	return moments
}

func sameOffset(at time.Time, a, b *time.Location) bool {
	_, first := at.In(a).Zone()
	_, second := at.In(b).Zone()
	return first == second
}

// zoneFile writes changes as a file of the IANA zones (RFC 8536), version 2, because package time makes zones only from
// such files. Only the 64-bit block has content.
func zoneFile(all []transition) []byte {
	type kind struct {
		offset int
		summer bool
	}
	kinds := []kind{{all[0].from, false}} // before the first change; no change refers to it
	of := make([]byte, 0, len(all))
	for _, t := range all {
		k := kind{t.to, t.summer}
		i := slices.Index(kinds[1:], k) + 1
		if i == 0 {
			if len(kinds) == 250 {
				return nil
			}
			i, kinds = len(kinds), append(kinds, k)
		}
		of = append(of, byte(i))
	}
	header := func(changes, types, letters int) (b []byte) {
		b = append([]byte("TZif2"), make([]byte, 15)...)
		for _, n := range []int{0, 0, 0, changes, types, letters} {
			b = binary.BigEndian.AppendUint32(b, uint32(n))
		}
		return b
	}
	b := append(header(0, 1, 1), 0, 0, 0, 0, 0, 0, 0)
	b = append(b, header(len(all), len(kinds), 1)...)
	for _, t := range all {
		b = binary.BigEndian.AppendUint64(b, uint64(t.at))
	}
	b = append(b, of...)
	for _, k := range kinds {
		b = binary.BigEndian.AppendUint32(b, uint32(int32(k.offset)))
		b = append(b, map[bool]byte{true: 1}[k.summer], 0)
	}
	return append(b, 0, '\n', '\n')
}
