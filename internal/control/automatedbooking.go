package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/automation"
	"puntuale/internal/plan"
)

// Booking plans a change of a booking, as a call does. The values that are missing come from the contact, but only for
// fields that the booking lacks, or if the booking gets another person. Codes: invalid, not_found, conflict, forbidden.
func (c automatedPlanner) Booking(ctx context.Context, o automation.BookingOrder) (put puntuale.PutBooking, change puntuale.BookingChange, err error) {
	for range putAttempts {
		if put, change, err = c.booking(ctx, o); !errors.Is(err, errBookingChanged) {
			break
		}
	}
	return put, change, err
}

func (c automatedPlanner) booking(ctx context.Context, o automation.BookingOrder) (puntuale.PutBooking, puntuale.BookingChange, error) {
	call := BookingCall{Reference: o.Reference, Status: o.Status, Silent: o.Silent, Door: puntuale.DoorRule, location: "body.reference"}
	if o.AsOf != "" {
		call.AsOf, _ = json.Marshal(o.AsOf) // encoding a text cannot fail
	}
	var state puntuale.BookingState
	var err error
	if o.Reference != "" {
		if state, err = c.tenant.BookingState(ctx, o.Reference, o.Phone); err != nil {
			return puntuale.PutBooking{}, puntuale.BookingChange{}, fmt.Errorf("read a booking: %w", err)
		}
	}
	if o.Cancel {
		if state.Revision == 0 || state.Erased {
			return puntuale.PutBooking{}, puntuale.BookingChange{}, puntuale.NotFound(puntuale.NoBooking)
		}
		call.Status = puntuale.BookingCancelled.String()
		call.Body = o.Request(nil)
	} else if err := c.automatedFields(ctx, &call, state, o); err != nil {
		return puntuale.PutBooking{}, puntuale.BookingChange{}, err
	}
	p, err := c.newBookingPut(ctx, call)
	if err != nil {
		return puntuale.PutBooking{}, puntuale.BookingChange{}, err
	}
	if p.stored.Revision != state.Revision {
		return puntuale.PutBooking{}, puntuale.BookingChange{}, errBookingChanged
	}
	if o.Dry {
		p.seed = 0
	}
	change, err := p.decide(p.stored)
	if err != nil && puntuale.CodeOf(err) != puntuale.CodeStale { // the transaction finds that it is stale, and logs it
		return puntuale.PutBooking{}, change, err
	}
	put := p.request()
	put.Run.Origin, put.Run.Name, put.Run.Depth = puntuale.OriginAutomation, o.Name, o.Depth
	put.Decide = func(s puntuale.BookingState) (puntuale.BookingChange, error) {
		if s.Revision != p.stored.Revision { // the values were chosen for another state
			return puntuale.BookingChange{}, errBookingChanged
		}
		return p.decide(s)
	}
	return put, change, nil
}

// automatedFields completes the call of an action that makes or changes a booking.
func (c automatedPlanner) automatedFields(ctx context.Context, call *BookingCall, state puntuale.BookingState, o automation.BookingOrder) error {
	info, err := c.startInfo(ctx, o.Sequence, c.control.clock.Now())
	if err != nil {
		return err
	}
	same := state.Revision != 0 && slices.Contains(append(state.Names, o.Phone), state.Phone)
	call.Sequence = o.Sequence.String()
	if !same {
		call.Phone = o.Phone
	}
	given, missing := o.Fields(plan.Fields(info.sequence))
	values := map[string]plan.Value{}
	for name, v := range missing {
		if _, has := state.Fields[name]; !has || !same {
			values[name] = v
		}
	}
	for name, v := range given {
		values[name] = v
	}
	call.Fields = make(map[string]json.RawMessage, len(values))
	for name, v := range values {
		if call.Fields[name], err = json.Marshal(v.Text); err != nil {
			return fmt.Errorf("write a field: %w", err)
		}
	}
	call.Body = o.Request(values)
	return nil
}
