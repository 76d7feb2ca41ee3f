package automation

import (
	"context"
	"errors"
	"maps"
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

// BookingReferences returns the references of a call's booking, now and before a move, as the rule's first action about
// bookings names it.
func BookingReferences(a *puntuale.Automation, values map[string]string, now time.Time) (reference, former string) {
	reference, former = values[puntuale.ReferenceField], values[puntuale.FormerField]
	for i := range a.Actions {
		x := &a.Actions[i]
		if x.Kind != puntuale.ActionBook && x.Kind != puntuale.ActionCancelBooking || x.Reference == "" {
			continue
		}
		named := func(reference string) string {
			if reference == "" {
				return ""
			}
			o := Occasion{Fields: maps.Clone(values)}
			o.Fields[puntuale.ReferenceField] = reference
			text, _ := referenceOf(x, o, nil, "", now) // a reference that cannot be written names no booking
			return text
		}
		return named(reference), named(former)
	}
	return reference, former
}

// book plans a change of a booking into act.
func (w *clientWork) book(ctx context.Context, a *puntuale.Automation, x *puntuale.Action, o Occasion, c *puntuale.Contact, act *puntuale.AutomationAct) (puntuale.ReasonCode, string, error) {
	order, err := w.orderOf(a, x, o, c, act)
	if err == nil && order.Reference != "" && slices.ContainsFunc(act.Bookings, func(b puntuale.PutBooking) bool { return b.Reference == order.Reference }) {
		err = puntuale.Invalid(puntuale.Because(faultBookedTwice).At("body.reference", nil))
	}
	if err == nil {
		err = w.put(ctx, order, act)
	}
	switch puntuale.CodeOf(err) {
	case "":
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

// orderOf returns the change that an action wants.
func (w *clientWork) orderOf(a *puntuale.Automation, x *puntuale.Action, o Occasion, c *puntuale.Contact, act *puntuale.AutomationAct) (BookingOrder, error) {
	order := BookingOrder{
		Cancel: x.Kind == puntuale.ActionCancelBooking, Sequence: x.Sequence.ID(), Phone: act.Phone, Status: x.Status,
		AsOf: o.Fields[puntuale.AsOfField], Silent: x.Silent, Name: a.Name, Depth: act.Depth + 1, Dry: w.dry,
		Request: func(values map[string]plan.Value) []byte {
			return puntuale.ActRequest(a.ID, act.Occurrence, act.Phone, texts(values))
		},
	}
	var err error
	if order.Reference, err = referenceOf(x, o, c, act.Phone, w.now); err != nil {
		return order, err
	}
	order.Fields = func(wanted []puntuale.Field) (given, missing map[string]plan.Value) {
		if o.Kind == puntuale.TriggerBooking && order.Reference == bookingOf(o) { // its own values need not be given again
			return nil, fields(Occasion{}, c, wanted)
		}
		return fields(o, nil, wanted), fields(o, c, wanted)
	}
	if a.Trigger.Preset == "" || x.Kind != puntuale.ActionBook {
		return order, nil
	}
	order.Told, order.Status, order.Moved = true, o.Fields[puntuale.StatusField], o.Fields[puntuale.MovedField] != ""
	order.Date, order.Zone = o.Fields[puntuale.DateField], o.Fields[puntuale.ZoneField]
	if former := o.Fields[puntuale.FormerField]; former != "" {
		before := o
		before.Fields = maps.Clone(o.Fields)
		before.Fields[puntuale.ReferenceField] = former
		if order.Former, err = referenceOf(x, before, c, act.Phone, w.now); order.Former == order.Reference {
			order.Former = "" // the action's reference does not depend on the program's
		}
	}
	return order, err
}

// put plans an order into act. If the booking before a move still is one of its own, because the calls came in another
// order, this one ends.
func (w *clientWork) put(ctx context.Context, order BookingOrder, act *puntuale.AutomationAct) error {
	put, change, err := w.planner.Booking(ctx, order)
	if err != nil {
		return err //nolint:wrapcheck // the caller reads its code
	}
	w.change = change
	put.Run.Rule = act.Rule
	act.Bookings = append(act.Bookings, put)
	if order.Former == "" || slices.Contains(change.What, "reference") {
		return nil
	}
	order.Reference, order.Former, order.Moved, order.Status = order.Former, "", true, puntuale.BookingCancelled.String()
	order.Told, order.Cancel = false, true
	switch put, _, err = w.planner.Booking(ctx, order); {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		return nil
	case err != nil:
		return err //nolint:wrapcheck // the caller reads its code
	}
	put.Run.Rule = act.Rule
	act.Bookings = append(act.Bookings, put)
	return nil
}

// refusalOf returns the reason of an error with a code.
func refusalOf(err error) puntuale.Reason {
	if e, ok := errors.AsType[*puntuale.Error](err); ok {
		return e.Reason
	}
	return puntuale.Reason{}
}
