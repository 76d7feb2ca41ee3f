package booking_test

import (
	"fmt"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/booking"
)

// TestDifference: what becomes of one row of the ledger, if the new state wants its key with the same or another content,
// or does not want it.
func TestDifference(t *testing.T) {
	t.Parallel()
	const person, alias = "+393331110001", "+393331110002"
	key := puntuale.BookingKey{Sequence: 7, Step: "a", Occurrence: 1}
	due := now.Add(time.Hour)
	row := func(change func(*puntuale.BookingStep)) puntuale.BookingStep {
		s := puntuale.BookingStep{Key: key, Phone: person, Message: 5, Timing: "t", Digest: "d", There: true, State: puntuale.Pending, Desired: due, Due: due, Next: due.Add(time.Minute), ValidUntil: due.Add(time.Hour)}
		if change != nil {
			change(&s)
		}
		return s
	}
	for name, test := range map[string]struct {
		row puntuale.BookingStep
		// What happens if the same content is wanted, another content at the same time, another time, or nothing.
		same, text, time, none string
		cancelled              string // nothing is wanted, because the booking is cancelled; "": as none
		moved                  string // the key no longer exists; "": as none
	}{
		"pending":                  {row(nil), "stays", "replaced in time", "replaced", "taken back", "", ""},
		"pending for an alias":     {row(func(s *puntuale.BookingStep) { s.Phone = alias }), "stays", "replaced in time", "replaced", "taken back", "", ""},
		"pending for another":      {row(func(s *puntuale.BookingStep) { s.Phone = "+39333999" }), "new, taken back", "new, taken back", "new, taken back", "taken back", "", ""},
		"in flight":                {row(func(s *puntuale.BookingStep) { s.Intent = 9 }), "in flight", "in flight", "in flight", "in flight, stopped", "", ""},
		"stopped in flight":        {row(func(s *puntuale.BookingStep) { s.Intent, s.Stopped = 9, true }), "in flight", "in flight", "in flight", "in flight", "", ""},
		"left":                     {row(func(s *puntuale.BookingStep) { s.State, s.Intent = puntuale.Completed, -1 }), "", "", "", "", "", ""},
		"failed":                   {row(func(s *puntuale.BookingStep) { s.State = puntuale.Failed }), "", "", "", "", "", ""},
		"cancelled by a person":    {row(func(s *puntuale.BookingStep) { s.State = puntuale.Cancelled }), "", "", "", "", "", ""},
		"archived":                 {row(func(s *puntuale.BookingStep) { s.There = false }), "", "", "", "", "", ""},
		"withdrawn":                {row(func(s *puntuale.BookingStep) { s.Fate, s.State = puntuale.FateWithdrawn, puntuale.Cancelled }), "new", "new", "new", "", "", ""},
		"withdrawn and archived":   {row(func(s *puntuale.BookingStep) { s.Fate, s.There = puntuale.FateWithdrawn, false }), "new", "new", "new", "", "", ""},
		"withdrawn too late":       {row(func(s *puntuale.BookingStep) { s.Fate, s.State = puntuale.FateWithdrawn, puntuale.Completed }), "", "", "", "", "", ""},
		"moved by hand":            {row(func(s *puntuale.BookingStep) { s.Fate = puntuale.FateByHand }), "stays", "stays", "stays", "stays", "taken back", "taken back"},
		"moved by hand, in flight": {row(func(s *puntuale.BookingStep) { s.Fate, s.Intent = puntuale.FateByHand, 9 }), "in flight", "in flight", "in flight", "in flight, stopped", "", ""},
	} {
		old := puntuale.BookingState{Booking: puntuale.Booking{Sequence: 7, Phone: person}, Names: []string{person, alias}, Steps: []puntuale.BookingStep{test.row}}
		wants := func(what, timing, digest string, want string, status puntuale.BookingStatus, keys ...puntuale.BookingKey) {
			t.Helper()
			next := puntuale.Booking{Sequence: 7, Phone: person, Status: status}
			var wanted []puntuale.WantedMessage
			if timing != "" {
				wanted = []puntuale.WantedMessage{{Key: key, Timing: timing, Digest: digest, PlannedMessage: puntuale.PlannedMessage{Due: now.Add(9 * time.Hour)}}}
			}
			got, err := booking.Difference(old, next, wanted, keys)
			if said := told(got, due); err != nil || said != want {
				t.Errorf("%s, %s: %q, want %q (%v)", name, what, said, want, err)
			}
		}
		none := func(s string) string { return map[bool]string{true: test.none, false: s}[s == ""] }
		wants("the same", "t", "d", test.same, puntuale.BookingOpen, key)
		wants("another text", "t", "e", test.text, puntuale.BookingOpen, key)
		wants("another time", "u", "f", test.time, puntuale.BookingOpen, key)
		wants("nothing", "", "", test.none, puntuale.BookingConfirmed, key)
		wants("nothing, cancelled", "", "", none(test.cancelled), puntuale.BookingCancelled, key)
		wants("nothing, moved", "", "", none(test.moved), puntuale.BookingOpen, puntuale.BookingKey{Sequence: 7, Step: "a", Occurrence: 2})
	}
}

// told summarises a difference with at most one row in the ledger. due is when the row's message was due.
func told(d puntuale.BookingDifference, due time.Time) (text string) {
	say := func(word string) {
		if text != "" {
			text += ", "
		}
		text += word
	}
	for _, n := range d.New {
		switch {
		case !n.Same:
			say("new")
		case n.Due.Equal(due) && n.Next.Equal(due.Add(time.Minute)) && n.ValidUntil.Equal(due.Add(time.Hour)):
			say("replaced in time")
		default:
			say("replaced")
		}
	}
	for range d.Pending {
		say("stays")
	}
	for range d.InFlight {
		say("in flight")
	}
	for range d.Stop {
		say("stopped")
	}
	for range d.Withdraw {
		say("taken back")
	}
	if len(d.Skipped) > 0 {
		say(fmt.Sprint("skipped ", len(d.Skipped)))
	}
	return text
}
