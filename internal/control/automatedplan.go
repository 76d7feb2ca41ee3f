package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/automation"
	"puntuale/internal/plan"
)

// AutomatedPlan plans the runs that an automation starts and the messages that it sends, in the same way as a start
// call. It is not safe for concurrent use.
type AutomatedPlan struct {
	client   *Client
	sequence puntuale.Sequence
	session  puntuale.Session
	purposes []puntuale.Purpose
	zone     *time.Location
	files    map[puntuale.FileID]plan.UploadedFile
	named    bool // true: the plan starts a sequence; false: it sends a single message
}

// PlannerOf returns a planner for a client's automations. Codes: not_found; forbidden (the client is suspended or
// expired). The planner of an expired client can still be used to take things back.
func (c *Control) PlannerOf(ctx context.Context, id puntuale.ClientID) (automation.Planner, error) {
	client, err := c.OfNetwork(ctx, id)
	if err != nil {
		return nil, err
	}
	if client.account.Suspended {
		return nil, forbidden(puntuale.FaultCallerSuspended)
	}
	return automatedPlanner{client}, client.MayCreate()
}

type automatedPlanner struct{ *Client }

// Sequence reads the sequence that an automation starts. Codes: not_found.
func (c automatedPlanner) Sequence(ctx context.Context, id puntuale.SequenceID) (automation.Plan, error) {
	info, err := c.startInfo(ctx, id, c.control.clock.Now())
	if err != nil {
		return nil, err
	}
	files, err := c.planFiles(ctx, info.sequence, info.session)
	if err != nil {
		return nil, err
	}
	zone, err := c.zone()
	return &AutomatedPlan{c.Client, info.sequence, info.session, info.purposes, zone, files, true}, err
}

// Send prepares the plan of a single message. Session 0 means the default session. Codes: not_found.
func (c automatedPlanner) Send(ctx context.Context, session puntuale.SessionID, a puntuale.Action) (automation.Plan, error) {
	s := puntuale.Sequence{Steps: []puntuale.Step{a.Step()}}
	s.Purpose, _ = puntuale.ParsePurpose(a.Purpose)
	filled, err := c.expand(ctx, s)
	if err != nil {
		return nil, err
	}
	if unfilled(&filled[0].Steps[0]) {
		return nil, puntuale.NotFound(puntuale.NoTemplate)
	}
	p := &AutomatedPlan{client: c.Client, sequence: filled[0]}
	if p.session, err = c.automatedSession(ctx, session); err != nil {
		return nil, err
	}
	if p.purposes, err = c.purposesOf(ctx, p.session, p.sequence); err != nil {
		return nil, err
	}
	if p.files, err = c.planFiles(ctx, p.sequence, p.session); err != nil {
		return nil, err
	}
	p.zone, err = c.zone()
	return p, err
}

// automatedSession returns the session with the id. Session 0 means the default session.
func (c automatedPlanner) automatedSession(ctx context.Context, id puntuale.SessionID) (puntuale.Session, error) {
	if id != 0 {
		s, err := c.tenant.Session(ctx, id)
		if puntuale.CodeOf(err) != puntuale.CodeNotFound {
			return s, err
		}
	}
	return c.sessionFor(ctx, nil, "")
}

// DefaultPair returns the default start and stop sequences of a session; 0 means none. Session 0 means the default
// session.
func (c automatedPlanner) DefaultPair(ctx context.Context, session puntuale.SessionID) (start, stop puntuale.SequenceID, err error) {
	s, err := c.automatedSession(ctx, session)
	return s.Start, s.Stop, err
}

// Mark returns the keyed hash by which the blacklist stores a phone.
func (c automatedPlanner) Mark(phone string) string { return c.mark(phone) }

// Zone returns the client's time zone.
func (c automatedPlanner) Zone() (*time.Location, error) { return c.zone() }

// Closed returns the client's own holidays.
func (c automatedPlanner) Closed() []puntuale.Date { return c.account.Closed }

// Steps returns the steps of the sequence.
func (p *AutomatedPlan) Steps() []puntuale.Step { return p.sequence.Steps }

// Fields returns the fields that the steps contain.
func (p *AutomatedPlan) Fields() []puntuale.Field { return plan.Fields(p.sequence) }

// Plan plans a run for one recipient. Codes: invalid.
func (p *AutomatedPlan) Plan(r automation.Recipient) (puntuale.StartRun, error) {
	built, err := plan.Build(plan.Input{
		Sequence: p.sequence, Phone: r.Phone, Fields: r.Fields, Location: p.zone, Closed: p.client.account.Closed,
		Now: r.AsOf, Seed: r.Seed, Media: p.client.control.media, Files: p.files,
	})
	if err != nil {
		return puntuale.StartRun{}, fmt.Errorf("plan an automation: %w", err)
	}
	run := puntuale.Run{
		Client: p.client.account.ID, Sequence: p.sequence.ID, Session: p.session.ID, Phone: r.Phone, Origin: puntuale.OriginAutomation, Name: r.Name,
		Zone: p.zone.String(), Received: r.Now, Request: r.Request, Depth: r.Depth, ClientName: p.client.account.Name, SequenceName: p.sequence.Name,
		Steps: make([]puntuale.FrozenStep, len(built.Messages)),
	}
	for i, m := range built.Messages {
		run.Steps[i] = puntuale.FrozenOf(&m)
		built.Messages[i].Purpose = p.purposes[m.Step]
	}
	start := puntuale.StartRun{Run: run, Messages: built.Messages, Skipped: built.Skipped, Day: puntuale.DateOf(r.Now.In(p.zone)), Now: r.Now, IfRunning: puntuale.IfRunningAllow}
	if p.named {
		start.IfRunning = p.sequence.IfRunning
	}
	return start, nil
}

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
	call := BookingCall{Reference: o.Reference, Status: o.Status, Silent: o.Silent, Door: puntuale.DoorRule, location: "body.reference", former: o.Former, moved: o.Moved}
	if o.AsOf != "" {
		call.AsOf, _ = json.Marshal(o.AsOf) // encoding a text cannot fail
	}
	var state puntuale.BookingState
	var err error
	if o.Reference != "" {
		if state, err = c.tenant.MovedBookingState(ctx, o.Reference, o.Former, o.Phone); err != nil {
			return puntuale.PutBooking{}, puntuale.BookingChange{}, fmt.Errorf("read a booking: %w", err)
		}
	}
	there := state.Revision != 0 && !state.Erased
	if o.Told {
		told(&o, &call, state)
	}
	if cancels := o.Cancel || call.Status == puntuale.BookingCancelled.String(); cancels && !there && (o.Cancel || c.MayCreate() != nil) {
		return puntuale.PutBooking{}, puntuale.BookingChange{}, puntuale.NotFound(puntuale.NoBooking)
	}
	if o.Cancel {
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

// told adapts an order to the status that a program tells. A program repeats that an appointment stands, which must not
// take a confirmation back. A cancellation needs no other values. If it comes before the appointment, it leaves a
// cancelled booking of which nobody is told, so that the late call changes nothing.
func told(o *automation.BookingOrder, call *BookingCall, state puntuale.BookingState) {
	if o.Zone != "" {
		call.Zone = &o.Zone
	}
	switch there := state.Revision != 0 && !state.Erased; {
	case o.Status == puntuale.BookingOpen.String() && state.Status != puntuale.BookingCancelled:
		call.Status = ""
	case o.Status == puntuale.BookingCancelled.String() && (there || o.Date == "" && state.MovedOn == 0):
		o.Cancel, call.Zone = true, nil
	case o.Status == puntuale.BookingCancelled.String():
		call.quiet = true
	}
}

// automatedFields completes the call of an action that makes or changes a booking.
func (c automatedPlanner) automatedFields(ctx context.Context, call *BookingCall, state puntuale.BookingState, o automation.BookingOrder) error {
	info, err := c.startInfo(ctx, o.Sequence, c.control.clock.Now())
	if err != nil {
		return err
	}
	same := state.Revision != 0 && (state.Phone == o.Phone || slices.Contains(state.Names, state.Phone))
	call.Sequence = o.Sequence.String()
	if !same {
		call.Phone = o.Phone
	}
	given, missing := o.Fields(plan.Fields(info.sequence))
	if o.Told && o.Date != "" && info.sequence.Booking != "" {
		given[info.sequence.Booking] = plan.Value{Kind: plan.Text, Text: o.Date}
	}
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
