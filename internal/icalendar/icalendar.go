// Package icalendar reads the appointments in iCalendar feeds (RFC 5545), as programs really write them. It accepts
// what other programs accept: missing time zones, Windows names of zones, unfolded and broken lines, other encodings.
// An event that it cannot read becomes an entry with a problem; the other events are still read. But a feed that is not
// complete is an error, because callers compare feeds, and a missing event must mean that it was removed.
//
// The package keeps only events that can matter for the period in [Options]. A feed with many old events therefore
// needs little memory. It uses neither the network nor the clock. All its functions are safe for concurrent use.
package icalendar

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"time"
)

// Options say what Read reads.
type Options struct {
	// Zone is the zone of times that have none, unless the feed names one for all of them (X-WR-TIMEZONE). It must have
	// an IANA name, and must not be nil.
	Zone *time.Location
	// From and To bound the period: Read returns the entries that start in [From, To).
	From, To time.Time
	// Expand is when the instances of series end that no override names. Zero: To.
	Expand time.Time
	// AllDay says whether Read also returns entries that have a date but no time.
	AllDay bool
	// MaxEntries bounds the entries, including those with a problem. 0: [DefaultEntries].
	MaxEntries int
}

// Limits of a feed. What is longer than the largest text is cut. If there is more, Read returns [ErrTooMany].
const (
	DefaultEntries = 10_000

	MaxTitle       = 300  // characters
	MaxLocation    = 500  // characters
	MaxDescription = 4000 // characters
	MaxAttendees   = 20

	maxEvents   = 20_000   // events that matter for the period; a whole series is one
	maxKept     = 16 << 20 // bytes of the texts of these events
	maxProblems = 100      // entries with a problem of which nobody knows whether they are in the period
	maxDates    = 2000     // exceptions of one series inside the period, and further dates of one series
)

// Person is somebody who was invited.
type Person struct {
	Name    string // as the calendar displays it; may be empty
	Address string // mostly "mailto:…", sometimes "tel:…"
}

// Entry is one appointment: an event, or one instance of an event that recurs.
type Entry struct {
	UID string // names the event; all instances of a series have the same UID
	// Recurrence is the original start of an instance of a series, even if this instance was moved. It is in UTC, as
	// 20060102T150405Z; for an entry without time it is the date, as 20060102. "": not an instance of a series.
	Recurrence string
	Start      time.Time // an entry without time starts at midnight; zero if a problem hides the start
	Zone       string    // IANA name of the zone in which people see the entry; Start is in this zone
	AllDay     bool      // has a date, but no time

	Title, Location, Description string // plain text, or HTML if the program wrote HTML

	Attendees []Person
	Cancelled bool
	Warning   Warning
	Problem   Problem // if not empty, the entry must not be used
}

// Warning says what Read had to assume about an entry. "": nothing.
type Warning string

const (
	WarnNoUID        Warning = "no_uid"        // UID was computed from the start and the title; it changes with them
	WarnZoneCalendar Warning = "zone_calendar" // the time has no zone; Start is in the zone of the whole calendar
	WarnZoneClient   Warning = "zone_client"   // the time has no zone; Start is in Options.Zone
	WarnZoneCustom   Warning = "zone_custom"   // the feed defines the zone, which has no IANA name; Start is right, Zone is Options.Zone
)

// Problem says why an entry cannot be read. "": it can.
type Problem string

const (
	ProblemZone   Problem = "zone_unknown"     // no zone has this name, and the feed does not define it; Start is zero
	ProblemStart  Problem = "start_unreadable" // Start is zero
	ProblemRule   Problem = "rule_unreadable"  // Start is the beginning of the series, and there are no instances
	ProblemBusy   Problem = "rule_too_often"   // likewise: the rule repeats within a day too often, or takes too long to follow
	maxPersonText         = 200                // characters of a name, and of an address
	maxUID                = 1000               // bytes; of a longer one, the end is replaced by a hash
	maxNesting            = 16
)

// Feed is a calendar.
type Feed struct {
	Name    string  // may be empty
	Entries []Entry // sorted by Start, UID and Recurrence
	Skipped int     // events without start and UID, those whose UID another event has, and problems outside of the period beyond the first hundred
	// Refresh is how long the calendar asks its readers to wait between two readings. 0: it does not say.
	Refresh time.Duration
	// Hash is equal for two readings of the same period if their entries are equal. It does not depend on the order of
	// the feed, nor on properties that Entry does not have.
	Hash [sha256.Size]byte
}

var (
	// ErrNoCalendar means that the text is empty, or something else, such as the page of a sign-in.
	ErrNoCalendar = errors.New("the text is not a calendar")
	// ErrCut means that the end of the calendar is missing, or that the beginning or the end of a part is.
	ErrCut = errors.New("the calendar is cut off")
	// ErrTooMany means that the calendar has more entries, or more events that matter, than allowed.
	ErrTooMany = errors.New("the calendar has too many entries")
)

// Read reads a feed to its end. It does not limit the length of the feed, but what it keeps. Errors: [ErrNoCalendar],
// [ErrCut], [ErrTooMany], and the errors of the reader.
func Read(r io.Reader, o Options) (Feed, error) {
	o.MaxEntries = cmp.Or(o.MaxEntries, DefaultEntries)
	if o.Expand.IsZero() || o.Expand.After(o.To) {
		o.Expand = o.To
	}
	p := newParser(r, o)
	if err := p.read(); err != nil {
		return Feed{}, err
	}
	x := newExpander(p)
	if err := x.all(); err != nil {
		return Feed{}, err
	}
	slices.SortFunc(x.entries, func(a, b Entry) int {
		return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.UID, b.UID), strings.Compare(a.Recurrence, b.Recurrence))
	})
	return Feed{Name: p.name, Entries: x.entries, Skipped: p.skipped + x.skipped, Refresh: p.refresh, Hash: hashOf(x.entries)}, nil
}

// hashOf hashes sorted entries.
func hashOf(entries []Entry) (sum [sha256.Size]byte) {
	h := sha256.New()
	var b []byte
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	for _, e := range entries {
		b = b[:0]
		for _, s := range []string{e.UID, e.Recurrence, e.Zone, e.Title, e.Location, e.Description, string(e.Warning), string(e.Problem)} {
			text(s)
		}
		b = binary.AppendVarint(b, e.Start.Unix())
		for _, yes := range []bool{e.AllDay, e.Cancelled} {
			b = append(b, map[bool]byte{true: 1}[yes])
		}
		for _, p := range slices.SortedFunc(slices.Values(e.Attendees), func(a, b Person) int {
			return cmp.Or(strings.Compare(a.Address, b.Address), strings.Compare(a.Name, b.Name))
		}) {
			text(p.Name)
			text(p.Address)
		}
		b = append(b, '\n')
		_, _ = io.Copy(h, bytes.NewReader(b))
	}
	h.Sum(sum[:0])
	return sum
}
