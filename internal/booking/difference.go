package booking

import (
	"slices"
	"strconv"
	"time"

	"puntuale"
)

// Difference compares the messages that a booking's new state wants with its ledger. keys are those of all steps of the
// sequence, wanted or not. Code invalid: a wanted step whose moment is past refuses to be left out.
func Difference(old puntuale.BookingState, next puntuale.Booking, wanted []puntuale.WantedMessage, keys []puntuale.BookingKey) (puntuale.BookingDifference, error) {
	d := comparison{old: old, next: next, keys: keys, filled: make([]bool, len(old.Steps))}
	for _, w := range wanted {
		d.want(w)
	}
	for i := range old.Steps {
		if !d.filled[i] && old.Steps[i].There && old.Steps[i].State == puntuale.Pending {
			d.leave(i)
		}
	}
	for i := range d.New {
		if d.New[i].Before < 0 {
			d.New[i].Before = d.former(d.New[i].Key)
		}
	}
	if len(d.faults) > 0 {
		return puntuale.BookingDifference{}, puntuale.Invalid(d.faults...)
	}
	return d.BookingDifference, nil
}

// comparison collects a difference.
type comparison struct {
	puntuale.BookingDifference
	old    puntuale.BookingState
	next   puntuale.Booking
	keys   []puntuale.BookingKey
	filled []bool // the rows of the ledger whose key is wanted
	faults []puntuale.Fault
}

// same reports whether a row's recipient is the booking's person.
func (d *comparison) same(s *puntuale.BookingStep) bool {
	return s.Phone == d.next.Phone || slices.Contains(d.old.Names, s.Phone)
}

// want decides about one wanted message.
func (d *comparison) want(w puntuale.WantedMessage) {
	i := d.row(w.Key)
	if i < 0 {
		switch {
		case w.Past == "":
			d.New = append(d.New, puntuale.NewBookingMessage{WantedMessage: w, Before: -1})
		case w.Reject:
			d.faults = append(d.faults, puntuale.Because(puntuale.FaultSequenceMomentPassed, w.Moment.Format(time.RFC3339)).At("steps["+strconv.Itoa(w.Step)+"].timing", nil))
		default:
			d.Skipped = append(d.Skipped, puntuale.SkippedStep{Step: w.Step, Moment: w.Moment, Reason: puntuale.Because(w.Past)})
		}
		return
	}
	d.filled[i] = true
	s := &d.old.Steps[i]
	switch {
	case !s.There || s.State != puntuale.Pending: // nothing is repeated because a name was corrected
	case s.Stopped || s.Intent != 0:
		d.InFlight = append(d.InFlight, i)
	case s.Fate == puntuale.FateByHand || s.Digest == w.Digest:
		d.Pending = append(d.Pending, i)
	default:
		n := puntuale.NewBookingMessage{WantedMessage: w, Before: i, Same: true}
		if s.Timing == w.Timing { // a message that already waits for a lost number must not be late because a name was corrected
			n.Desired, n.Due, n.DueMax, n.Next, n.ValidUntil = s.Desired, s.Due, s.Due, s.Next, s.ValidUntil
		}
		d.New = append(d.New, n)
	}
}

// row returns the place of the row that fills a key, or -1. A key whose message was taken back is free, unless the message
// left nevertheless.
func (d *comparison) row(k puntuale.BookingKey) int {
	return slices.IndexFunc(d.old.Steps, func(s puntuale.BookingStep) bool {
		free := s.Fate == puntuale.FateWithdrawn && (!s.There || s.State == puntuale.Cancelled)
		return s.Key == k && d.same(&s) && !free
	})
}

// leave decides about a pending message that is not wanted.
func (d *comparison) leave(i int) {
	s := &d.old.Steps[i]
	if s.Stopped || s.Intent != 0 {
		d.InFlight = append(d.InFlight, i)
		if !s.Stopped {
			d.Stop = append(d.Stop, i)
		}
		return
	}
	if s.Fate == puntuale.FateByHand && d.same(s) && d.next.Status != puntuale.BookingCancelled && slices.Contains(d.keys, s.Key) {
		d.Pending = append(d.Pending, i)
		return
	}
	d.Withdraw = append(d.Withdraw, puntuale.Withdrawal{Step: i, Reason: d.reason(s)})
}

// reason says why a message is not wanted any more.
func (d *comparison) reason(s *puntuale.BookingStep) puntuale.ReasonCode {
	switch {
	case !d.same(s):
		return puntuale.ReasonBookingPerson
	case d.next.Status == puntuale.BookingCancelled:
		return puntuale.ReasonBookingCancelled
	case s.Key.Sequence != d.next.Sequence:
		return puntuale.ReasonBookingSequence
	case !slices.ContainsFunc(d.keys, func(k puntuale.BookingKey) bool { return k.Step == s.Key.Step }):
		return puntuale.ReasonBookingSequence
	case !slices.Contains(d.keys, s.Key):
		return puntuale.ReasonBookingMoved
	case d.next.Status == puntuale.BookingConfirmed:
		return puntuale.ReasonBookingConfirmed
	}
	return puntuale.ReasonBookingOver
}

// former returns the place of the withdrawn message of the same step and person, or -1.
func (d *comparison) former(k puntuale.BookingKey) int {
	found := -1
	for _, w := range d.Withdraw {
		s := &d.old.Steps[w.Step]
		if s.Key.Sequence == k.Sequence && s.Key.Step == k.Step && d.same(s) && (found < 0 || s.Key.Occurrence > d.old.Steps[found].Key.Occurrence) {
			found = w.Step
		}
	}
	return found
}
