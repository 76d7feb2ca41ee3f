// Package calendar finds the appointment in an entry of a calendar: who comes, and under which phone number. People
// write both somewhere in an event, in their own words. A wrong number would tell a stranger about somebody's
// appointment. Therefore the package prefers to find nothing: what is not certain gets a code, and a person corrects the
// event.
//
// A [Reader] reads the feeds that are due, and changes the bookings of their entries. Everything else in the package is
// pure: which entries are understood, what has changed, and what becomes of the bookings.
package calendar

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/icalendar"
)

// Sources of a phone number, the names of [Rules].PhoneFrom; see [puntuale.CalendarSources].
const (
	FromAttendee    = "attendee"    // the address of an attendee ("tel:…"), or a number in the displayed name
	FromLocation    = "location"    //
	FromDescription = "description" //
	FromTitle       = "title"       //
)

// Rules are a client's settings for one calendar.
type Rules struct {
	PhoneFrom []string // sources in the order in which they are searched; others are not searched
	Own       []string // numbers that never are a person's, as "+" and digits: those of the client itself
	Country   string   // ISO code of the country of numbers without calling code, such as "IT"
	AllDay    bool     // whether an entry without a time is an appointment
}

// Appointment is what a booking needs.
type Appointment struct {
	// Reference names the appointment; it is equal in every reading of the calendar, also if the appointment moves. It
	// has at most [puntuale.MaxReference] characters.
	Reference string
	Phone     string // "+" and digits
	Name      string // of the person; may be empty
	Start     time.Time
	Title     string // as in the calendar
	Cancelled bool
}

// Codes of entries that are no appointment.
const (
	CodeAllDay    puntuale.ReasonCode = "calendar.all_day"    // no time, and the rules want one
	CodeNoPhone   puntuale.ReasonCode = "calendar.no_phone"   // no source has a valid number
	CodeTwoPhones puntuale.ReasonCode = "calendar.two_phones" // one source has two different numbers

	CodeZone  puntuale.ReasonCode = "calendar.zone_unknown"
	CodeStart puntuale.ReasonCode = "calendar.start_unreadable"
	CodeRule  puntuale.ReasonCode = "calendar.rule_unreadable"
	CodeBusy  puntuale.ReasonCode = "calendar.rule_too_often"
)

// problems are the codes of entries that the reader could not read.
var problems = map[icalendar.Problem]puntuale.ReasonCode{
	icalendar.ProblemZone:  CodeZone,
	icalendar.ProblemStart: CodeStart,
	icalendar.ProblemRule:  CodeRule,
	icalendar.ProblemBusy:  CodeBusy,
}

// Understand returns the appointment of an entry. If the code is not empty, there is none, and the code says why. Even
// then the appointment has its reference, start, title and Cancelled, so that a cancellation without a number finds the
// booking.
//
// The phone number is the one in the first source that has any. The name is the title without numbers. If the number is
// an attendee's, or if the title has no letters, the name is the attendee's.
func Understand(e icalendar.Entry, r Rules) (Appointment, puntuale.ReasonCode) {
	a := Appointment{Reference: referenceOf(e), Start: e.Start, Title: e.Title, Cancelled: e.Cancelled}
	switch {
	case e.Problem != "":
		return a, problems[e.Problem]
	case e.AllDay && !r.AllDay:
		return a, CodeAllDay
	}
	f := finder{rules: r}
	title := f.text(e.Title)
	var attendee string
	for _, source := range r.PhoneFrom {
		var found []string
		switch source {
		case FromAttendee:
			found, attendee = f.attendees(e.Attendees)
		case FromLocation:
			found = f.text(prose(e.Location)).phones()
		case FromDescription:
			found = f.text(prose(e.Description)).phones()
		case FromTitle:
			found = title.phones()
		}
		switch len(found) {
		case 0:
			continue
		case 1:
			a.Phone, a.Name = found[0], nameOf(title, attendee, e.Attendees, f)
			return a, ""
		}
		return a, CodeTwoPhones
	}
	return a, CodeNoPhone
}

// attendees returns the different numbers of attendees. If there is one, name is its attendee's.
func (f *finder) attendees(all []icalendar.Person) (phones []string, name string) {
	for _, p := range all {
		found := f.text(p.Name)
		numbers := found.phones()
		if number, ok := f.address(p.Address); ok {
			numbers = append(numbers, number)
		}
		for _, number := range numbers {
			if !slices.Contains(phones, number) {
				phones, name = append(phones, number), personName(found)
			}
		}
	}
	return phones, name
}

// nameOf returns the name of the person. attendee is the name of the attendee whose number it is, or "".
func nameOf(title text, attendee string, all []icalendar.Person, f finder) string {
	if attendee != "" {
		return attendee
	}
	if name := title.without(); hasLetter(name) {
		return name
	}
	for _, p := range all {
		if name := personName(f.text(p.Name)); name != "" {
			return name
		}
	}
	return ""
}

// personName returns the name in a displayed name. Many programs display the e-mail address, which is no name.
func personName(displayed text) string {
	if name := displayed.without(); hasLetter(name) && !strings.Contains(name, "@") {
		return name
	}
	return ""
}

func hasLetter(text string) bool { return strings.IndexFunc(text, unicode.IsLetter) >= 0 }

// readable is how many characters of a long reference stay readable before its hash.
const readable = 180

// referenceOf returns the reference of an entry. Callers may not use the prefix of started runs, so it is not the
// beginning of an appointment's reference either.
func referenceOf(e icalendar.Entry) string {
	reference := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.TrimSpace(e.UID))
	if e.Recurrence != "" {
		reference += "/" + e.Recurrence
	}
	if strings.HasPrefix(strings.ToLower(reference), puntuale.RunReference) {
		reference = "ical-" + reference
	}
	if utf8.RuneCountInString(reference) <= puntuale.MaxReference {
		return reference
	}
	sum := sha256.Sum256([]byte(reference))
	return string([]rune(reference)[:readable]) + "-" + hex.EncodeToString(sum[:])
}
