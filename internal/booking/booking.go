// Package booking computes what a change makes of a booking: its new state, and the difference between the messages
// that this state wants and those that there are. Its functions are pure, so a call, its dry run, a page and the
// transaction all decide alike.
package booking

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"puntuale"
)

// Put is a request to make or to change a booking. A member that is nil or empty leaves the booking's value as it is.
type Put struct {
	Reference string
	Sequence  puntuale.SequenceID
	Phone     string
	Session   *puntuale.SessionID
	Zone      *string
	Status    *puntuale.BookingStatus
	AsOf      puntuale.AsOf
	Door      puntuale.BookingDoor
	Forced    bool                  // the caller has seen the present state, so it may set every status
	Reopen    bool                  // a cancelled booking becomes open again, whatever cancelled it
	Silent    bool                  // no message tells the person of this change
	Quiet     bool                  // silent, and no event tells of it either
	Moved     bool                  // the appointment goes on under another reference, so this is final, however old the put is
	Answer    *puntuale.GivenAnswer // see [Put.Answered]
	Page      string                // name of the page of the confirmation, if the booking has none for this person yet
	Now       time.Time

	MovedSteps []string // ids of the steps that tell of a new date
}

// Codes of this package's refusals.
const (
	FaultStale    puntuale.ReasonCode = "booking.stale"
	FaultAsOfKind puntuale.ReasonCode = "booking.as_of_kind"
)

// Merged returns the fields after a change: an absent member stays, and null removes a field. Both arguments contain
// valid JSON.
func Merged(stored, given map[string]json.RawMessage) map[string]json.RawMessage {
	merged := make(map[string]json.RawMessage, len(stored)+len(given))
	maps.Copy(merged, stored)
	for name, raw := range given {
		if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] == 'n' {
			delete(merged, name)
			continue
		}
		merged[name] = raw
	}
	return merged
}

// change collects what a put changes.
type change struct {
	*Put
	old  puntuale.BookingState
	next puntuale.BookingChange
}

// Next returns the state after a put, and the members that were kept although the caller wanted another value. fields
// and date are those of the new state. Codes: conflict, if the put is older than the booking; invalid.
func (p *Put) Next(old puntuale.BookingState, fields map[string]json.RawMessage, date time.Time) (puntuale.BookingChange, []string, error) {
	c := change{Put: p, old: old, next: puntuale.BookingChange{Booking: old.Booking, By: p.Door}}
	if err := c.order(); err != nil {
		return puntuale.BookingChange{}, nil, err
	}
	n := &c.next.Booking
	if n.Moments = maps.Clone(old.Moments); n.Moments == nil {
		n.Moments = map[string]puntuale.BookingMoment{}
	}
	if old.Revision == 0 {
		n.Reference, n.Created, n.StatusBy, n.Date = p.Reference, p.Now, p.Door, date
		c.note("created", "", puntuale.EventBookingCreated)
	}
	if c.renamed() {
		n.Reference = p.Reference
		c.note("reference", "", 0)
	}
	c.values(fields)
	c.date(date)
	kept := c.status()
	c.answer()
	if c.next.Changed = len(c.next.What) > 0; c.next.Changed {
		n.Revision, n.Updated = old.Revision+1, p.Now
		if n.Page == "" {
			n.Page = p.Page
		}
	}
	return c.next, kept, nil
}

// renamed reports whether the booking gets another reference, because its program gives an appointment a new one when it
// moves.
func (c *change) renamed() bool {
	return c.old.Revision != 0 && c.Reference != "" && c.old.Reference != c.Reference
}

// Replanned makes a change of a difference that an edited sequence causes in a booking that is otherwise unchanged. It
// changes nothing if there is no difference.
func (p *Put) Replanned(c *puntuale.BookingChange) {
	if c.Changed || len(c.New)+len(c.Withdraw)+len(c.Stop) == 0 {
		return
	}
	c.Changed, c.Revision, c.Updated, c.What = true, c.Revision+1, p.Now, []string{"replanned"}
}

// note records a change. anchor names the messages that tell of it; "": none.
func (c *change) note(what, anchor string, event puntuale.EventType) {
	c.next.What = append(c.next.What, what)
	if event != 0 && !c.Quiet {
		c.next.Events = append(c.next.Events, event)
	}
	if anchor != "" && !c.Silent && !c.Quiet {
		c.next.Moments[anchor] = puntuale.BookingMoment{Revision: c.old.Revision + 1, At: c.Now}
	}
}

// Stale returns the error of a put that is older than the booking.
func Stale() error {
	return &puntuale.Error{Code: puntuale.CodeStale, Reason: puntuale.Because(FaultStale)}
}

// order refuses a put that is older than the booking.
func (c *change) order() error {
	given, stored := c.AsOf, c.old.AsOf
	if c.renamed() { // the program's times of two references say nothing about each other
		stored = puntuale.AsOf{}
	}
	switch {
	case c.Moved && stored.Kind != puntuale.AsOfNone && (stored.Kind != given.Kind || given.Value < stored.Value):
		return nil
	case given.Kind == puntuale.AsOfNone:
		return nil
	case stored.Kind != puntuale.AsOfNone && stored.Kind != given.Kind:
		return puntuale.Invalid(puntuale.Fault{Location: "body.as_of", Code: FaultAsOfKind})
	case stored.Kind != puntuale.AsOfNone && given.Value < stored.Value:
		return Stale()
	}
	c.next.AsOf = given
	return nil
}

// values takes over the values that decide nothing else.
func (c *change) values(fields map[string]json.RawMessage) {
	n, made := &c.next.Booking, c.old.Revision == 0
	set := func(what string, changed bool) {
		if changed && !made {
			c.note(what, "", 0)
		}
	}
	if c.Sequence != 0 {
		set("sequence", n.Sequence != c.Sequence)
		n.Sequence = c.Sequence
	}
	if c.Phone != "" && !c.old.Left { // a program that knows only the old number of a person means the same person
		if set("phone", n.Phone != c.Phone); n.Phone != c.Phone { // what another person answered says nothing, and that person's page ends
			n.Answer, n.Page = nil, ""
			if c.Door == puntuale.DoorCalendar && !made && !slices.Contains(c.old.Names, n.Phone) { // an entry with another person is another appointment
				n.Status, n.StatusBy = puntuale.BookingOpen, c.Door
			}
		}
		n.Phone = c.Phone
	}
	if c.Session != nil {
		set("id_sessione", n.Session != *c.Session)
		n.Session = *c.Session
	}
	if c.Zone != nil {
		set("timezone", n.Zone != *c.Zone)
		n.Zone = *c.Zone
	}
	set("fields", !maps.EqualFunc(n.Fields, fields, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }))
	n.Fields = fields
}

// date takes over the main date. Nobody has confirmed Tuesday by confirming Friday, so a new date takes a confirmation
// back.
func (c *change) date(date time.Time) {
	n := &c.next.Booking
	if n.Date.Equal(date) {
		return
	}
	if !c.Silent && !c.Quiet {
		if n.Told.IsZero() || c.heard() {
			n.Told = n.Date
		}
	}
	n.Date, n.Answer = date, nil
	c.note("moved", puntuale.BookingMovedAnchor, puntuale.EventBookingMoved)
	switch n.Status {
	case puntuale.BookingArrived, puntuale.BookingNoShow:
		if !date.After(c.Now) {
			return
		}
	case puntuale.BookingConfirmed:
	case puntuale.BookingOpen, puntuale.BookingCancelled:
		return
	}
	n.Status, n.StatusBy = puntuale.BookingOpen, c.Door
}

// heard reports whether a message about the last move has left, or is leaving.
func (c *change) heard() bool {
	moved := c.old.Moments[puntuale.BookingMovedAnchor]
	return slices.ContainsFunc(c.old.Steps, func(s puntuale.BookingStep) bool {
		return s.Key.Occurrence == moved.Revision && slices.Contains(c.MovedSteps, s.Key.Step) && s.Fate != puntuale.FateWithdrawn &&
			(!s.There || s.State == puntuale.Completed || s.State == puntuale.Pending && s.Intent > 0)
	})
}

// status sets the status, if this door may.
func (c *change) status() (kept []string) {
	n := &c.next.Booking
	if c.Reopen && n.Status == puntuale.BookingCancelled && (c.Status == nil || *c.Status != puntuale.BookingCancelled) {
		n.Status, n.StatusBy = puntuale.BookingOpen, c.Door
		c.note("reopened", "", puntuale.EventBookingCreated)
	}
	if c.Status == nil || *c.Status == n.Status {
		return nil
	}
	foreign := n.Status == puntuale.BookingCancelled && n.StatusBy != c.Door
	undoes := *c.Status == puntuale.BookingOpen && n.Status != puntuale.BookingCancelled
	if !c.Forced && (foreign || undoes) {
		return []string{"status"}
	}
	n.Status, n.StatusBy = *c.Status, c.Door
	switch n.Status {
	case puntuale.BookingOpen:
		if c.renamed() { // it was cancelled because it moved, so it is not made again
			c.note("reopened", "", 0)
			break
		}
		c.note("reopened", "", puntuale.EventBookingCreated)
	case puntuale.BookingConfirmed:
		c.note("confirmed", puntuale.BookingConfirmedAnchor, puntuale.EventBookingConfirmed)
	case puntuale.BookingCancelled:
		c.note("cancelled", puntuale.BookingCancelledAnchor, puntuale.EventBookingCancelled)
	case puntuale.BookingArrived:
		c.note("arrived", puntuale.BookingArrivedAnchor, puntuale.EventBookingArrived)
	case puntuale.BookingNoShow:
		c.note("no_show", puntuale.BookingNoShowAnchor, puntuale.EventBookingNoShow)
	}
	return nil
}
