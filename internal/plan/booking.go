package plan

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"puntuale"
)

// BookingInput contains everything that the wanted messages of a booking depend on.
type BookingInput struct {
	Input
	Booking puntuale.Booking // its state; the main date must be valid
	Session puntuale.SessionID
	All     bool // true: faults in the contents of steps that are not wanted now are errors, too
}

// Booking returns the messages that a state of a booking wants, in the order of the steps, and the keys of all steps,
// wanted or not. The messages include those whose moment is past, because one of these may replace a message that still
// waits. The errors are those of [Build], except that a step with if_past "reject" is no error here.
func Booking(in BookingInput) (wanted []puntuale.WantedMessage, keys []puntuale.BookingKey, err error) {
	b := newBuilder(&in.Input)
	b.keeps, b.start, b.changes = true, in.Booking.Created, in.Booking.Moments
	var messages []puntuale.PlannedMessage
	var timings []timing
	if in.Sequence.Booking != "" {
		b.entry(in.Sequence.Booking).date = true
	}
	for i := range in.Sequence.Steps {
		step := &in.Sequence.Steps[i]
		anchor := step.Timing.Anchor
		occurrence := b.occurrence(anchor)
		key := puntuale.BookingKey{Sequence: in.Sequence.ID, Step: step.Name(i), Occurrence: occurrence}
		keys = append(keys, key)
		wants := step.WantedIn(in.Booking.Status) && (!puntuale.BookingAnchor(anchor) || told(&in.Booking, anchor))
		if !wants && !in.All {
			continue
		}
		faults := len(b.faults)
		content, variant, all := b.text(i, step)
		if !wants {
			continue
		}
		t := timing{Timing: &step.Timing, loc: b.loc, window: b.freeze(step.Timing.Window)}
		placed, _ := b.place(i, &t)
		if len(b.faults) > faults {
			continue
		}
		placed.Step, placed.StepID, placed.Content, placed.Variant, placed.Variants = i, step.ID, content, variant, all
		w := puntuale.WantedMessage{
			Key: key, Timing: digest(occurrence, b.loc.String(), step.Timing), Past: b.past.reason, Moment: b.past.moment, Reject: b.past.reject,
		}
		w.Digest = digest(w.Timing, content, in.Session)
		if content.Asks != nil { // a question about another date is another question
			w.Asks, w.Digest = in.Booking.Date, digest(w.Digest, in.Booking.Date.UnixMicro())
		}
		messages, timings, wanted = append(messages, placed), append(timings, t), append(wanted, w)
	}
	b.jitter(messages, timings)
	if len(b.faults) > 0 {
		return nil, nil, puntuale.Invalid(b.faults...)
	}
	for i := range wanted {
		wanted[i].PlannedMessage = messages[i]
	}
	return wanted, keys, nil
}

// told reports whether there is a change of this kind that the person is to hear of.
func told(k *puntuale.Booking, anchor string) bool {
	_, changed := k.Moments[anchor]
	return changed && (anchor != puntuale.BookingMovedAnchor || !k.Told.IsZero() && !k.Told.Equal(k.Date))
}

// occurrence returns the number that an anchor's value has in a [puntuale.BookingKey].
func (b *builder) occurrence(anchor string) int64 {
	switch {
	case puntuale.BookingAnchor(anchor):
		return b.changes[anchor].Revision
	case !isFieldAnchor(anchor):
		return b.start.UnixMicro()
	}
	f := b.field(anchor)
	if f.state == fieldGood && f.moment.HasTime {
		return f.moment.At(0, b.loc).UnixMicro()
	}
	return int64(f.moment.Date.Int())
}

// digest returns a hash of values.
func digest(values ...any) string {
	text, err := json.Marshal(values)
	if err != nil { // only a coordinate that is no number fails, and these are refused before
		text = fmt.Append(nil, values...)
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// MainDate returns the instant of a booking's main date. The text must be a date as in [ParseMoment].
func MainDate(v Value, loc *time.Location) (time.Time, bool) {
	m, err := ParseMoment(strings.TrimSpace(v.Text))
	if v.Kind != Text || err != nil {
		return time.Time{}, false
	}
	return m.At(DefaultTime, loc), true
}

// FieldPage is the name under which the texts of a sequence for bookings print the address of the page on which the
// person can confirm or cancel.
const FieldPage = "conferma"

// ReservedInBookings contains the members of a booking that are no fields.
var ReservedInBookings = []string{"sequence", "status", "as_of", "reference", "id_sessione", FieldPage, fieldPhone, fieldTimezone}

// PrintsPage reports whether a text of a sequence for bookings prints the address of the page.
func PrintsPage(s puntuale.Sequence) bool {
	plain := s
	plain.Booking = ""
	return s.Booking != "" && slices.ContainsFunc(Fields(plain), func(f puntuale.Field) bool { return f.Name == FieldPage })
}

// Codes of the faults in this file.
const (
	faultBookingDateName    puntuale.ReasonCode = "booking.date_name"
	faultBookingIfRunning   puntuale.ReasonCode = "booking.if_running"
	faultBookingStopOnReply puntuale.ReasonCode = "booking.stop_on_reply"
	FaultBookingReserved    puntuale.ReasonCode = "booking.reserved"
	faultBookingOnlyIf      puntuale.ReasonCode = "booking.only_if"
)

// booking checks what is particular to a sequence for bookings.
func (c *checker) booking(s *puntuale.Sequence) {
	if c.bookings = s.Booking != ""; !c.bookings {
		return
	}
	switch {
	case isBlank(s.Booking):
		c.add("body.booking.date", puntuale.FaultRequired, nil)
	case !IsFieldName(s.Booking) || isReserved(s.Booking):
		c.add("body.booking.date", faultBookingDateName, clip(s.Booking))
	case slices.Contains(ReservedInBookings, s.Booking):
		c.add("body.booking.date", FaultBookingReserved, s.Booking, s.Booking)
	}
	if s.IfRunning != "" && s.IfRunning != puntuale.IfRunningAllow {
		c.add("body.if_running", faultBookingIfRunning, string(s.IfRunning))
	}
	if s.StopOnReply {
		c.add("body.stop_on_reply", faultBookingStopOnReply, true)
	}
	for i, step := range s.Steps {
		for _, f := range Fields(puntuale.Sequence{Steps: []puntuale.Step{step}}) {
			if slices.Contains(ReservedInBookings, f.Name) && !isReserved(f.Name) && (f.Name != FieldPage || f.Kind == puntuale.FieldDate) {
				c.add(stepLocation("body.", i, ""), FaultBookingReserved, f.Name, f.Name)
			}
		}
	}
}

// onlyIf checks in which statuses a step is wanted.
func (c *checker) onlyIf(step *puntuale.Step) {
	if len(step.OnlyIf) > 0 && !c.bookings {
		c.addCode("only_if", faultBookingOnlyIf, nil)
	}
	for i, word := range step.OnlyIf {
		if _, err := puntuale.ParseBookingStatus(word); err != nil || slices.Contains(step.OnlyIf[:i], word) {
			c.addCode("only_if", faultMustBeOneOf, clip(word), strings.Join(puntuale.BookingStatuses(), ", "))
			return
		}
	}
}
