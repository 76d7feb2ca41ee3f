package puntuale

import (
	"slices"
	"strconv"
	"time"
)

// A calendar is the address of an iCalendar feed whose entries are appointments. Every reading of the feed is compared
// with the entries that are stored; what is new, moved, changed, cancelled or gone changes the entry's booking, through
// the door [DoorCalendar]. Nothing is planned before a person has seen a reading and started the calendar.

// CalendarID names a calendar.
type CalendarID int64

func (id CalendarID) String() string { return strconv.FormatInt(int64(id), 10) }

// Limits of calendars.
const (
	MaxCalendars       = 20    // of one client
	MaxCalendarEntries = 5_000 // of one calendar, yet to come
	MaxCalendarAddress = 2_048 // characters
	// CalendarEvery is how often a feed is read. A feed may ask for a longer time, but for at most a day.
	CalendarEvery = 15 * time.Minute
	// CalendarAgain is how long a person must wait between two readings.
	CalendarAgain = 10 * time.Second
	// CalendarHorizon is how far ahead recurring entries are expanded, and CalendarReach how far ahead others are read.
	CalendarHorizon = 60 * 24 * time.Hour
	CalendarReach   = 400 * 24 * time.Hour
	// CalendarAgreed is how many readings must agree that an entry is gone, before its booking is cancelled.
	CalendarAgreed = 2
	// GoneAtOnce is how many entries may be gone at once, or GoneShare of all entries yet to come if that is more. If more
	// are gone, a person decides.
	GoneAtOnce = 3
	GoneShare  = 0.2
)

// CalendarSources are the parts of an entry in which a phone number may be, in the usual order.
func CalendarSources() []string { return []string{"attendee", "location", "description", "title"} }

// SealedCalendar is the argument purpose of Vault.Seal for the address of a calendar. The place names the client and the
// time of creation.
const SealedCalendar = "calendar"

// SealPlace returns the place name that the vault needs to seal the calendar's address.
func (c *Calendar) SealPlace() string {
	return "calendar " + c.Client.String() + " " + strconv.FormatInt(c.Created.UnixMicro(), 10)
}

// Codes about calendars that several packages use.
const (
	NoCalendar            ReasonCode = "calendar.not_found"
	FaultCalendarTooMany  ReasonCode = "calendar.too_many"
	FaultCalendarUnread   ReasonCode = "calendar.unread"
	FaultCalendarGone     ReasonCode = "calendar.gone_changed"
	NoticeCalendarGone    ReasonCode = "notice.calendar_gone"    // {1}: how many entries are gone
	NoticeCalendarRefused ReasonCode = "notice.calendar_refused" // {1}: how many entries could not be booked
	NoticeCalendarPaused  ReasonCode = "notice.calendar_paused"  // the database lost its last records, so a person must start it again
)

// Calendar is a feed of appointments.
type Calendar struct {
	ID        CalendarID
	Client    ClientID
	Name      string
	Host      string // of the address, which itself is a secret
	Sealed    []byte // the address
	Sequence  SequenceID
	PhoneFrom []string // see [CalendarSources]; a source that is missing is not searched
	AllDay    bool     // entries without a time of day are appointments, too
	Created   time.Time
	Started   time.Time // when a person started it; zero: nothing is planned yet

	Reading  int64     // number of the latest reading that began, or of the latest change by a person; numbers grow, and none is used again
	Next     time.Time // when it is read next
	Taken    time.Time // Next while it is read; only for the node that reads it
	Tried    time.Time // when the latest reading ended; zero: never
	Read     time.Time // when the latest good reading ended; zero: never
	ETag     string    // validators of the latest good reading
	Modified string
	Digest   string // of what the latest good reading said
	Failures int    // bad readings since the latest good one
	Fault    Reason // why the latest reading was bad; its code is "": it was good
	Told     bool   // people know that it cannot be read
	Asked    int    // so many entries are gone at once that a person must decide; 0: none
	Cancels  int    // so many may be cancelled at once by the next reading, because a person decided so

	// Counts of the entries yet to come.
	Entries, Understood int
}

// CalendarEntry is one appointment of a calendar, as it was read last.
type CalendarEntry struct {
	Reference string // of its booking
	Start     time.Time
	AllDay    bool
	Title     string
	Place     string
	Phone     string // "": none was understood
	Name      string
	Cancelled bool
	Problem   ReasonCode // why it is no appointment; "": it is one
	Warning   ReasonCode // what people should know about it, such as a time zone that was guessed; "": nothing
	Digest    string     // of all that matters for the booking
	Applied   string     // Digest of what the booking got last; "": there is no booking
	Withdrawn bool       // the booking was cancelled, because the entry was cancelled or gone
	Missing   int        // how many readings agree that the entry is gone, or is no appointment any more
	Refused   string     // why the booking could not be changed, as [Reason.Stored] wrote it; "": it could
}

// Live reports whether the entry has a booking that was not cancelled.
func (e *CalendarEntry) Live() bool { return e.Applied != "" && !e.Withdrawn }

// CalendarPatch changes a calendar. A nil member changes nothing. A new address, other sources or AllDay change what is
// understood, so that a person must start the calendar again.
type CalendarPatch struct {
	Name      *string
	Sealed    []byte // the new address; nil: no change
	Host      *string
	Sequence  *SequenceID
	PhoneFrom []string
	AllDay    *bool
}

// Apply returns the calendar after a patch.
func (c Calendar) Apply(p CalendarPatch, now time.Time) Calendar {
	if p.Name != nil {
		c.Name = *p.Name
	}
	if p.Sequence != nil {
		c.Sequence = *p.Sequence
	}
	anew := len(p.Sealed) > 0
	if anew {
		c.Sealed, c.Host = p.Sealed, *p.Host
	}
	if p.PhoneFrom != nil && !slices.Equal(p.PhoneFrom, c.PhoneFrom) {
		c.PhoneFrom, anew = p.PhoneFrom, true
	}
	if p.AllDay != nil && *p.AllDay != c.AllDay {
		c.AllDay, anew = *p.AllDay, true
	}
	if anew {
		c.Started, c.Read, c.Next, c.ETag, c.Modified, c.Digest, c.Asked, c.Cancels = time.Time{}, time.Time{}, now, "", "", "", 0, 0
	}
	return c
}
