package icalendar

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// parser reads a feed and keeps the events that matter. The zones of their times are resolved after the end, because a
// feed may define a zone after the events.
type parser struct {
	o     Options
	in    period
	lines *lineReader

	open         [maxNesting]string // kinds of the parts that are open, the outermost first
	depth        int                // number of open parts, also of those beyond maxNesting
	begun, ended int
	calendars    int
	complete     bool // the last line that counts was END:VCALENDAR

	calendar    *calendar
	event       *event // nil outside of an event
	last        string // name of the property before
	zone        *definition
	onset       *observance
	definitions int
	onsets      int

	name    string
	refresh time.Duration
	events  []*event
	kept    int // bytes
	left    map[uint64]version
	skipped int
}

// maxLeft bounds for how many events that are not kept the version is remembered.
const maxLeft = 200_000

func newParser(r io.Reader, o Options) *parser {
	return &parser{o: o, in: periodOf(o), lines: newLineReader(r), left: map[uint64]version{}}
}

// read reads the feed to its end.
func (p *parser) read() error {
	for first := true; ; first = false {
		line, err := p.lines.next()
		switch {
		case errors.Is(err, io.EOF):
			if p.calendars == 0 {
				return ErrNoCalendar
			}
			if !p.complete || p.begun != p.ended {
				return ErrCut
			}
			return nil
		case err != nil:
			return fmt.Errorf("read a calendar: %w", err)
		}
		if first {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
			if bytes.HasPrefix(bytes.TrimSpace(line), []byte("<")) {
				return ErrNoCalendar
			}
		}
		if err := p.line(line); err != nil {
			return err
		}
	}
}

func (p *parser) line(line []byte) error {
	name, rest := split(line)
	switch {
	case name == "BEGIN":
		p.begin(strings.ToUpper(string(bytes.TrimSpace(rest[1:]))))
		return nil
	case name == "END":
		return p.end(strings.ToUpper(string(bytes.TrimSpace(rest[1:]))))
	case p.depth == 0 || p.depth > maxNesting:
		return nil
	}
	kind := p.open[p.depth-1]
	if name == "" {
		// The program did not escape a line break in a text.
		if kind == "VEVENT" && p.event != nil && p.last == "DESCRIPTION" && len(p.event.description) < MaxDescription {
			p.event.description = plain(append([]byte(p.event.description+"\n"), line...), MaxDescription)
		}
		return nil
	}
	if kind == "VEVENT" {
		p.last = name
	}
	if !matters(kind, name) {
		return nil
	}
	property, ok := parse(name, rest)
	if !ok {
		return nil
	}
	switch {
	case kind == "VCALENDAR" && p.depth == 1:
		p.header(property)
	case kind == "VEVENT" && p.event != nil:
		p.event.property(property, p.in)
	case kind == "VTIMEZONE" && p.zone != nil:
		p.zone.property(property)
	case p.onset != nil:
		p.onset.property(property)
	}
	return nil
}

// matters reports whether a property of a part is read. The others, mostly long, are not even split.
func matters(kind, name string) bool {
	switch kind {
	case "VCALENDAR":
		switch name {
		case "METHOD", "X-WR-CALNAME", "NAME", "X-WR-TIMEZONE", "REFRESH-INTERVAL", "X-PUBLISHED-TTL":
			return true
		}
	case "VEVENT":
		switch name {
		case "UID", "DTSTART", "RECURRENCE-ID", "RRULE", "EXRULE", "EXDATE", "RDATE", "SUMMARY", "LOCATION", "DESCRIPTION", "ATTENDEE", "STATUS",
			"SEQUENCE", "LAST-MODIFIED", "DTSTAMP", "X-MICROSOFT-CDO-ALLDAYEVENT", "X-MICROSOFT-MSNCALENDAR-ALLDAYEVENT":
			return true
		}
	case "VTIMEZONE":
		return name == "TZID" || name == "X-LIC-LOCATION"
	case "STANDARD", "DAYLIGHT":
		switch name {
		case "DTSTART", "TZOFFSETFROM", "TZOFFSETTO", "RRULE", "RDATE":
			return true
		}
	}
	return false
}

func (p *parser) begin(kind string) {
	p.begun++
	p.complete = false
	parent := ""
	if p.depth > 0 && p.depth <= maxNesting {
		parent = p.open[p.depth-1]
	}
	if p.depth < maxNesting {
		p.open[p.depth] = kind
	}
	p.depth++
	switch {
	case kind == "VCALENDAR" && p.depth == 1:
		p.calendars++
		p.calendar = &calendar{zones: map[string]*definition{}}
	case kind == "VEVENT" && parent == "VCALENDAR" && p.depth == 2:
		p.event, p.last = &event{calendar: p.calendar}, ""
	case kind == "VTIMEZONE" && parent == "VCALENDAR" && p.depth == 2:
		p.zone = &definition{}
	case (kind == "STANDARD" || kind == "DAYLIGHT") && parent == "VTIMEZONE" && p.zone != nil:
		p.onset = &observance{summer: kind == "DAYLIGHT"}
	}
}

// end closes the innermost part, whatever its name: a part that was closed twice or not at all shows in the counts.
func (p *parser) end(kind string) error {
	p.ended++
	if p.depth == 0 {
		return nil
	}
	p.depth--
	p.complete = p.depth == 0 && kind == "VCALENDAR"
	if p.depth >= maxNesting {
		return nil
	}
	switch p.open[p.depth] {
	case "VEVENT":
		if p.event != nil && p.depth == 1 {
			e := p.event
			p.event = nil
			return p.keep(e)
		}
	case "VTIMEZONE":
		p.define()
	case "STANDARD", "DAYLIGHT":
		if p.onset != nil && p.zone != nil && p.onsets < maxOnsets {
			p.onsets++
			p.zone.observances = append(p.zone.observances, *p.onset)
		}
		p.onset = nil
	}
	return nil
}

// Bounds of the zones that a feed defines. iCloud writes the whole history of a zone, about a hundred onsets.
const (
	maxDefinitions = 200
	maxOnsets      = 5000
)

func (p *parser) define() {
	if p.zone != nil && p.depth == 1 && p.zone.tzid != "" && p.definitions < maxDefinitions {
		p.definitions++
		p.calendar.zones[p.zone.tzid] = p.zone
	}
	p.zone = nil
}

func (p *parser) header(h property) {
	value := string(h.value)
	switch h.name {
	case "METHOD":
		p.calendar.cancelled = strings.EqualFold(value, "CANCEL")
	case "X-WR-CALNAME", "NAME":
		if p.name == "" {
			p.name = plain(h.value, MaxTitle)
		}
	case "X-WR-TIMEZONE":
		p.calendar.zone = value
	case "REFRESH-INTERVAL", "X-PUBLISHED-TTL":
		p.refresh = max(p.refresh, parseDuration(value))
	}
}

// keep stores an event if it can matter for the period. Of the others it remembers the version only, because an older
// copy of the same event may be inside the period.
func (p *parser) keep(e *event) error {
	if !e.finish() {
		p.skipped++
		return nil
	}
	if !e.matters(p.in) {
		if key := e.fingerprint(); len(p.left) < maxLeft && p.left[key].less(e.version) {
			p.left[key] = e.version
		}
		return nil
	}
	p.kept += e.size()
	if len(p.events) >= maxEvents || p.kept > maxKept {
		return ErrTooMany
	}
	p.events = append(p.events, e)
	return nil
}
