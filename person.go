package puntuale

import (
	"strings"
	"time"
)

// Person is the person that a call means. The store adds the names that it knows: the other forms of numbers, and the aliases that
// networks reported.
type Person struct {
	Names []string                 // at least one name, "+…" or an id; several names belong to one person
	Mark  func(name string) string // returns the mark of a name; see [BlacklistEntry]; nil: no name has a mark
}

// Marks returns the marks of the given names.
func (p Person) Marks(names []string) []string {
	if p.Mark == nil {
		return nil
	}
	var all []string
	for _, name := range names {
		if mark := p.Mark(name); mark != "" {
			all = append(all, mark)
		}
	}
	return all
}

// OtherForm returns the other form of a mobile number, or "" if there is none. Brazil added a 9 to its mobile numbers,
// Mexico removed a 1, and Argentina writes a 9 only for callers from abroad. WhatsApp uses the form in which the person
// registered. So both forms reach the same person.
func OtherForm(phone string) string {
	switch {
	case strings.HasPrefix(phone, "+55"):
		const area, short, long = 5, 13, 14 // the area's two digits follow the country; then 8 or 9 digits
		switch {
		case len(phone) == short && phone[area] >= '6': // landlines begin with 2 to 5, and have one form
			return phone[:area] + "9" + phone[area:]
		case len(phone) == long && phone[area] == '9' && (phone[area+1] < '2' || phone[area+1] > '5'):
			return phone[:area] + phone[area+1:]
		}
	case strings.HasPrefix(phone, "+52"):
		return withOrWithout(phone, "1")
	case strings.HasPrefix(phone, "+54"):
		return withOrWithout(phone, "9")
	}
	return ""
}

// withOrWithout adds the digit after a calling code of two digits, or removes it. Without the digit, the number has ten
// digits.
func withOrWithout(phone, digit string) string {
	const country, short = 3, 13
	switch {
	case len(phone) == short:
		return phone[:country] + digit + phone[country:]
	case len(phone) == short+1 && phone[country:country+1] == digit:
		return phone[:country] + phone[country+1:]
	}
	return ""
}

// FormKey returns the same text for both forms of a number; see [OtherForm].
func FormKey(phone string) string {
	if other := OtherForm(phone); len(other) > len(phone) {
		return other
	}
	return phone
}

// NumberChange is a network's report that a person has another number or another id.
type NumberChange struct {
	Client  ClientID
	Session SessionID
	ID      string    // the network's id of the report
	Mark    string    // keyed hash of session and ID; a second report with it changes nothing
	At      time.Time // when the person changed
	Old     []string  // the names that ended, at least one
	New     []string  // the names from then on, at least one

	NameMark func(name string) string // returns the mark of a name; see [BlacklistEntry]; nil: no name has a mark
}

// UndoChangeTime is how long a change of a person's number can be undone.
const UndoChangeTime = 30 * 24 * time.Hour

// NotedChange is a change of a person's number that the store applied.
type NotedChange struct {
	ID     int64
	Old    string // the number that ended, or the id
	New    string
	At     time.Time // when the person changed
	Noted  time.Time // when the network told
	Undone time.Time // zero: it was not undone
	Left   bool      // nobody wrote from the old number since, so it still leads to the person
}

// Undoable reports whether the change can be undone.
func (c NotedChange) Undoable(now time.Time) bool {
	return c.Undone.IsZero() && now.Before(c.Noted.Add(UndoChangeTime))
}
