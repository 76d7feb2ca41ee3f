package automation

import (
	"context"
	"errors"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/plan"
)

// faultBookedTwice says that two actions of a rule would change the same booking.
const faultBookedTwice puntuale.ReasonCode = "automation.booked_twice"

// bookingOf returns the reference of the booking that a trigger concerns; "": none.
func bookingOf(o Occasion) string { return o.Fields[puntuale.ReferenceField] }

// referenceOf returns the reference of the booking that an action names.
func referenceOf(x *puntuale.Action, o Occasion, c *puntuale.Contact, phone string, now time.Time) (string, error) {
	if x.Reference == "" {
		return bookingOf(o), nil
	}
	s := puntuale.Sequence{Steps: []puntuale.Step{{Text: x.Reference, Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}}}
	built, err := plan.Build(plan.Input{Sequence: s, Phone: phone, Fields: fields(o, c, plan.Fields(s)), Now: now})
	if err != nil {
		return "", err //nolint:wrapcheck // its faults go to the rule's log
	}
	return puntuale.Trimmed(built.Messages[0].Content.Text), nil
}

// book plans a change of a booking into act.
func (w *clientWork) book(ctx context.Context, a *puntuale.Automation, x *puntuale.Action, o Occasion, c *puntuale.Contact, act *puntuale.AutomationAct) (puntuale.ReasonCode, string, error) {
	reference, err := referenceOf(x, o, c, act.Phone, w.now)
	if err == nil && reference != "" && slices.ContainsFunc(act.Bookings, func(b puntuale.PutBooking) bool { return b.Reference == reference }) {
		err = puntuale.Invalid(puntuale.Because(faultBookedTwice).At("body.reference", nil))
	}
	var put puntuale.PutBooking
	if err == nil {
		put, w.change, err = w.planner.Booking(ctx, BookingOrder{
			Cancel: x.Kind == puntuale.ActionCancelBooking, Reference: reference, Sequence: x.Sequence.ID(), Phone: act.Phone, Status: x.Status,
			AsOf: o.Fields[puntuale.AsOfField], Silent: x.Silent, Name: a.Name, Depth: act.Depth + 1, Dry: w.dry,
			Fields: func(wanted []puntuale.Field) (given, missing map[string]plan.Value) {
				if o.Kind == puntuale.TriggerBooking && reference == bookingOf(o) { // its own values need not be given again
					return nil, fields(Occasion{}, c, wanted)
				}
				return fields(o, nil, wanted), fields(o, c, wanted)
			},
			Request: func(values map[string]plan.Value) []byte {
				return puntuale.ActRequest(a.ID, act.Occurrence, act.Phone, texts(values))
			},
		})
	}
	switch puntuale.CodeOf(err) {
	case "":
		act.Bookings = append(act.Bookings, put)
		return "", "", nil
	case puntuale.CodeInvalid:
		w.faults = faultsOf(err)
		return puntuale.FiringRefused, firstFault(w.faults), nil
	case puntuale.CodeConflict:
		return puntuale.FiringRefused, refusalOf(err).Stored(), nil
	case puntuale.CodeNotFound:
		if refusalOf(err).Code == puntuale.NoBooking {
			return puntuale.FiringNoBooking, "", nil
		}
		return puntuale.FiringGone, "", nil
	}
	return "", "", err
}

// refusalOf returns the reason of an error with a code.
func refusalOf(err error) puntuale.Reason {
	if e, ok := errors.AsType[*puntuale.Error](err); ok {
		return e.Reason
	}
	return puntuale.Reason{}
}
