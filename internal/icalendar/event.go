package icalendar

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// calendar is what a VCALENDAR says about all its events. A feed may have several.
type calendar struct {
	zone      string // X-WR-TIMEZONE
	cancelled bool   // METHOD:CANCEL
	zones     map[string]*definition
}

// event is a VEVENT: a single event, a series, or an override, which replaces one instance of a series.
type event struct {
	calendar *calendar
	uid      string
	derived  bool // uid was computed

	start      timestamp
	recurrence timestamp // of an override: the original start of the instance
	onwards    bool      // the override is for all later instances, too
	rules      []rule
	except     []timestamp // EXDATE inside the period
	dates      []timestamp // RDATE
	excess     bool        // more dates than allowed

	title, location, description string
	attendees                    []Person
	cancelled, allDay            bool
	version                      version
}

// version orders the copies of an event in one feed.
type version struct {
	sequence           int
	modified, produced int64 // LAST-MODIFIED and DTSTAMP
}

func (v version) less(other version) bool {
	switch {
	case v.sequence != other.sequence:
		return v.sequence < other.sequence
	case v.modified != other.modified:
		return v.modified < other.modified
	}
	return v.produced < other.produced
}

// size estimates the bytes of an event that stay in memory.
func (e *event) size() int {
	n := 500 + len(e.uid) + len(e.title) + len(e.location) + len(e.description) + 48*(len(e.except)+len(e.dates)) + 500*len(e.rules)
	for _, p := range e.attendees {
		n += 32 + len(p.Name) + len(p.Address)
	}
	return n
}

func (e *event) series() bool   { return len(e.rules)+len(e.dates) > 0 || e.excess }
func (e *event) override() bool { return e.recurrence.kind != noTime }

// property takes what matters of a line.
func (e *event) property(p property, in period) {
	value := string(p.value)
	switch p.name {
	case "UID":
		e.uid = boundUID(value)
	case "DTSTART":
		e.start = parseTimestamp(value, p.kind, p.tzid)
	case "RECURRENCE-ID":
		e.recurrence, e.onwards = parseTimestamp(value, p.kind, p.tzid), p.span == "THISANDFUTURE"
	case "RRULE":
		e.rule(value)
	case "EXRULE": // RFC 5545 removed it; to ignore it would announce appointments that do not take place
		e.rules = append(e.rules, rule{problem: ProblemRule})
	case "EXDATE":
		e.addDates(&e.except, p, value, in)
	case "RDATE":
		e.addDates(&e.dates, p, value, in)
	case "SUMMARY":
		e.title = plain(p.value, MaxTitle)
	case "LOCATION":
		e.location = plain(p.value, MaxLocation)
	case "DESCRIPTION":
		e.description = plain(p.value, MaxDescription)
	case "ATTENDEE":
		if len(e.attendees) < MaxAttendees {
			e.attendees = append(e.attendees, Person{Name: nameText(p.cn), Address: strings.Trim(plain(p.value, maxPersonText), `"`)})
		}
	case "STATUS":
		status := strings.ToUpper(value)
		e.cancelled = status == "CANCELLED" || status == "CANCELED"
	case "SEQUENCE":
		e.version.sequence, _ = strconv.Atoi(value)
	case "LAST-MODIFIED":
		e.version.modified = parseTimestamp(value, "", "").wall
	case "DTSTAMP":
		e.version.produced = parseTimestamp(value, "", "").wall
	case "X-MICROSOFT-CDO-ALLDAYEVENT", "X-MICROSOFT-MSNCALENDAR-ALLDAYEVENT":
		e.allDay = strings.EqualFold(value, "TRUE")
	}
}

// maxRules bounds the rules of one series. Almost all series have one.
const maxRules = 8

func (e *event) rule(value string) {
	if len(e.rules) >= maxRules {
		e.rules[0].problem = ProblemBusy
		return
	}
	e.rules = append(e.rules, parseRule(value))
}

// addDates reads a list of dates, or of periods, of which only the start matters. Those far outside of the period are
// left out. But a series stays one, even if all its dates are left out.
func (e *event) addDates(list *[]timestamp, p property, value string, in period) {
	for part := range strings.SplitSeq(value, ",") {
		begin, _, _ := strings.Cut(part, "/")
		t := parseTimestamp(begin, p.kind, p.tzid)
		if t.kind == unreadable || !in.near(t) && len(*list) > 0 {
			continue
		}
		if len(*list) >= maxDates {
			e.excess = true
			return
		}
		*list = append(*list, t)
	}
}

// boundUID removes invisible characters, which databases refuse, and shortens a long UID so that different ones stay
// different.
func boundUID(uid string) string {
	uid = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, uid))
	if len(uid) <= maxUID {
		return uid
	}
	sum := sha256.Sum256([]byte(uid))
	return strings.ToValidUTF8(uid[:maxUID-100], "") + "-" + hex.EncodeToString(sum[:])
}

// finish completes an event after its last line. It reports whether there is anything to keep.
func (e *event) finish() bool {
	if e.uid == "" {
		if e.start.kind == noTime || e.start.kind == unreadable {
			return false
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", e.start.wall, e.start.tzid, e.title))
		e.uid, e.derived = "no-uid-"+hex.EncodeToString(sum[:16]), true
	}
	if e.start.kind == noTime && e.override() { // a cancellation may have no start
		e.start = e.recurrence
	}
	if e.allDay && e.start.kind == local {
		e.start = timestamp{wall: e.start.wall - e.start.wall%86400, kind: dateOnly}
		e.except, e.dates = datesOnly(e.except), datesOnly(e.dates)
	}
	return true
}

func datesOnly(list []timestamp) []timestamp {
	for i, t := range list {
		if t.kind == local {
			list[i] = timestamp{wall: t.wall - t.wall%86400, kind: dateOnly}
		}
	}
	return list
}

// matters reports whether an event can have entries in the period, or can replace one.
func (e *event) matters(in period) bool {
	switch {
	case e.start.kind == noTime, e.start.kind == unreadable, e.recurrence.kind == unreadable:
		return true
	case e.override():
		return e.onwards || in.near(e.start) || in.near(e.recurrence)
	case !e.series():
		return in.near(e.start)
	}
	for _, t := range e.dates {
		if in.near(t) {
			return true
		}
	}
	if e.start.wall > in.last {
		return false
	}
	for _, r := range e.rules {
		if r.until.kind == noTime || r.until.wall >= in.first {
			return true
		}
	}
	return e.excess || in.near(e.start)
}

// period is the period of the options, with a margin for zones that are not known yet. The unit is the second of a
// timestamp.
type period struct{ first, last int64 }

const margin = 48 * time.Hour

func periodOf(o Options) period {
	return period{first: o.From.Add(-margin).Unix(), last: o.To.Add(margin).Unix()}
}

func (p period) near(t timestamp) bool { return t.wall >= p.first && t.wall <= p.last }

// fingerprint names an event, or one instance, among those that are not kept.
func (e *event) fingerprint() uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s\n%d", e.uid, e.recurrence.wall)
	return h.Sum64()
}
