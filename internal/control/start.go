package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/plan"
)

// StartCall is a request to start a sequence for one recipient, or for a preview of this start.
type StartCall struct {
	Sequence  string                     // the sequence's id, as in the path
	Phone     string                     // a number or a group id
	Fields    map[string]json.RawMessage // the body's members; members that no step uses are ignored
	Timezone  string                     // from the query; "": the body's zone
	BodyZone  string                     // from the body; "": the client's zone
	IfRunning string                     // "": the sequence's own setting
	Reference Reference
	Body      []byte // the request's body, unchanged; the API's member is named richiesta

	Faults []puntuale.Fault // the faults that the calling package already found; the error reports them together with the others

	// Scope and Key identify repeats of the call. A repeat gets the first answer. Scope is, for example, "POST
	// /api/start/12". An empty Key means that no call is a repeat.
	Scope, Key string
}

// Started is the answer to a start.
type Started struct {
	puntuale.StartedRun
	Replayed bool // true: this is the stored answer of an earlier call
}

// startOnce makes a repeat of a start return the first answer. The store contains the run, not the bytes of the answer.
func startOnce(scope, key string, body []byte) *Keyed[puntuale.StartedRun] {
	return Once[puntuale.StartedRun]{Scope: scope, Key: key, Body: body, Answer: func(r puntuale.StartedRun) ([]byte, error) {
		return json.Marshal(r)
	}}.keyed()
}

// startedBefore returns the answer of an earlier call, if the error contains one. It returns any other error unchanged.
func startedBefore(err error) (Started, error) {
	kept := &puntuale.Replayed{}
	if !errors.As(err, &kept) {
		return Started{}, err
	}
	started := Started{Replayed: true}
	if err := json.Unmarshal(kept.Answer, &started.StartedRun); err != nil {
		return Started{}, fmt.Errorf("read a kept answer: %w", err)
	}
	return started, nil
}

// Start schedules all messages of a sequence for one recipient. The call counts once in the client's usage. Codes:
// not_found (the sequence does not exist), invalid, conflict, busy, cap_reached, forbidden. Conflict means that
// if_running is "reject", or that a call with a different body used the idempotency key. If Start returns an error,
// nothing is scheduled or counted.
func (c *Client) Start(ctx context.Context, call StartCall) (Started, error) {
	if c.remembered {
		started, proven, err := c.startFromMemory(ctx, call)
		if proven {
			return started, err
		}
		if c, err = c.reload(ctx); err != nil {
			return Started{}, err
		}
	}
	if err := c.MayCreate(); err != nil {
		return Started{}, err
	}
	sequence, err := sequenceID(call.Sequence)
	if err != nil {
		return Started{}, err
	}
	once, clash, err := startOnce(call.Scope, call.Key, call.Body).look(ctx, c.tenant)
	if err != nil {
		return startedBefore(err)
	}
	now := c.control.clock.Now()
	p, err := c.plan(ctx, sequence, call, now, rand.Uint64()|1) //nolint:gosec // the random number only spreads load
	if forBookings(err) {
		return c.startBooking(ctx, call, once, clash)
	}
	if err != nil {
		return Started{}, err
	}
	if clash != nil { // faults in the request are reported before a conflict
		return Started{}, clash
	}
	return c.start(ctx, p, call.Body, once, now)
}

// startFromMemory plans a start with data from memory, and starts it. If proven is true, the store found the client
// unchanged, and the result is valid. If proven is false, the caller must plan the start again with data from the
// store.
func (c *Client) startFromMemory(ctx context.Context, call StartCall) (_ Started, proven bool, err error) {
	sequence, err := sequenceID(call.Sequence)
	if err != nil {
		return Started{}, false, err
	}
	if err := c.MayCreate(); err != nil {
		return Started{}, false, err
	}
	now := c.control.clock.Now()
	p, err := c.plan(ctx, sequence, call, now, rand.Uint64()|1) //nolint:gosec // the random number only spreads load
	if err != nil {
		return Started{}, false, err
	}
	started, err := c.start(ctx, p, call.Body, startOnce(call.Scope, call.Key, call.Body), now)
	return started, !errors.Is(err, puntuale.ErrStale), err
}

// Preview contains the messages that a start would schedule.
type Preview struct {
	Messages []puntuale.PlannedMessage
	Skipped  []puntuale.SkippedStep
	Notes    puntuale.StartNotes
}

// Preview plans a start in the same way as Start, but stores and counts nothing. Codes: not_found, invalid.
func (c *Client) Preview(ctx context.Context, call StartCall) (Preview, error) {
	if c.remembered {
		fresh, err := c.reload(ctx)
		if err != nil {
			return Preview{}, err
		}
		c = fresh
	}
	sequence, err := sequenceID(call.Sequence)
	if err != nil {
		return Preview{}, err
	}
	p, err := c.plan(ctx, sequence, call, c.control.clock.Now(), 0)
	if forBookings(err) {
		return c.previewBooking(ctx, call)
	}
	if err != nil {
		return Preview{}, err
	}
	refused, err := c.tellPlanned(ctx, p.session, p.phone, pointers(p.Messages), p.purposes)
	if err != nil {
		return Preview{}, err
	}
	p.notes.Warnings = append(p.notes.Warnings, refused...)
	p.notes.Blacklisted, err = c.isBlacklisted(ctx, p.phone)
	return Preview{p.Messages, p.Skipped, p.notes}, err
}

// planned is a start that is ready to be stored.
type planned struct {
	plan.Plan
	origin    puntuale.Origin
	name      string // set only for a single send
	sequence  puntuale.Sequence
	session   puntuale.Session
	phone     string
	reference string
	zone      *time.Location
	ifRunning puntuale.IfRunning
	purposes  []puntuale.Purpose // purpose of each step
	notes     puntuale.StartNotes
}

// Codes of the faults that this file reports.
const (
	faultCallOtherReference   puntuale.ReasonCode = "call.other_reference"
	faultCallOtherTimezone    puntuale.ReasonCode = "call.other_timezone"
	faultSequenceTemplateGone puntuale.ReasonCode = "sequence.template_gone"
)

// plan checks a whole start call, and plans it. seed determines the random delays; seed 0 means a dry run.
func (c *Client) plan(ctx context.Context, id puntuale.SequenceID, call StartCall, now time.Time, seed uint64) (planned, error) {
	info, err := c.startInfo(ctx, id, now)
	if err != nil {
		return planned{}, err
	}
	sequence := info.sequence
	if sequence.Booking != "" {
		return planned{}, errForBookings
	}
	p := planned{origin: puntuale.OriginSequence, sequence: sequence, session: info.session, purposes: info.purposes}
	f := slices.Clone(request.Faults(call.Faults))
	f.Request(call.Body)
	for i, step := range puntuale.Texts(sequence.Steps) {
		if unfilled(step) {
			f.Add(request.At("steps", i)+".template", faultSequenceTemplateGone, nil)
		}
	}
	p.phone = c.recipient(&f, "body.phone", call.Phone)
	if p.zone, err = c.callZone(&f, call); err != nil {
		return planned{}, err
	}
	p.ifRunning = sequence.IfRunning
	if call.IfRunning != "" {
		if p.ifRunning, err = puntuale.ParseIfRunning(call.IfRunning); err != nil {
			f.Add("query.if_running", puntuale.FaultNotOneOf, call.IfRunning, "allow, skip, restart, reject")
		}
	}
	if !sane(call.Key) {
		f.Add("header.Idempotency-Key", faultCallBadIdempotencyKey, nil, strconv.Itoa(maxIdempotencyKey))
	}
	p.reference = call.Reference.text(&f, sequence)
	files, err := c.planFiles(ctx, sequence, p.session, call.Fields)
	if err != nil {
		return planned{}, err
	}
	in := plan.Input{
		Files: files, Sequence: sequence, Phone: shownPhone(p.phone), Fields: values(sequence, call.Fields), Location: p.zone,
		Closed: c.account.Closed, Now: now, Seed: seed, Media: c.control.media,
	}
	p.Plan, err = plan.Build(in)
	p.notes = puntuale.StartNotes{Warnings: append(passedDates(in, p.Plan), insteadOf(p.Messages, p.session)...), Unused: unusedMembers(sequence, call.Fields)}
	if err := f.Take(err); err != nil {
		return planned{}, fmt.Errorf("plan sequence %d: %w", id, err)
	}
	return p, f.Err()
}

// startInfo reads the data for the plan of a start. If the client was found in memory, startInfo looks in memory for
// these data, too.
func (c *Client) startInfo(ctx context.Context, id puntuale.SequenceID, now time.Time) (startInfo, error) {
	key := startKey{c.account.ID, id, c.account.Revision}
	if c.remembered {
		if info, ok := c.control.cache.start(key, now); ok {
			return info, nil
		}
	}
	sequence, session, err := c.tenant.StartInfo(ctx, id)
	if err != nil {
		return startInfo{}, fmt.Errorf("read sequence %d to start: %w", id, err)
	}
	filled, err := c.expand(ctx, sequence)
	if err != nil {
		return startInfo{}, err
	}
	purposes, err := c.purposesOf(ctx, session, filled[0])
	if err != nil {
		return startInfo{}, err
	}
	info := startInfo{filled[0], session, purposes}
	c.control.cache.keepStart(key, info, now) // the data were read after the revision, so they are not older than the revision
	return info, nil
}

// start stores a planned start. One transaction stores the messages and the day's usage.
func (c *Client) start(ctx context.Context, p planned, body []byte, once *Keyed[puntuale.StartedRun], now time.Time) (Started, error) {
	zone, err := c.zone()
	if err != nil {
		return Started{}, err
	}
	day := puntuale.DateOf(now.In(zone))
	run := puntuale.Run{
		Client: c.account.ID, Sequence: p.sequence.ID, Session: p.session.ID, Phone: p.phone,
		Origin: p.origin, Name: p.name, Reference: p.reference, Zone: p.zone.String(), Received: now, Request: body,
		ClientName: c.account.Name, SequenceName: p.sequence.Name,
		Steps: make([]puntuale.FrozenStep, len(p.Messages)),
	}
	var first time.Time
	for i, m := range p.Messages {
		run.Steps[i] = puntuale.FrozenOf(&m)
		p.Messages[i].Purpose = p.purposes[m.Step]
		if first.IsZero() || m.Due.Before(first) {
			first = m.Due
		}
	}
	revision := int64(0)
	if c.remembered {
		revision = c.account.Revision
	}
	started, err := c.tenant.Start(ctx, puntuale.StartRun{
		Run: run, Messages: p.Messages, Skipped: p.Skipped, Notes: p.notes, Day: day, Now: now, IfRunning: p.ifRunning, Idempotency: once.Keep(startedRun), Revision: revision,
	})
	if errors.As(err, new(*puntuale.Replayed)) {
		return startedBefore(err)
	}
	if err != nil {
		return Started{}, fmt.Errorf("start %s, sequence %d: %w", p.origin, p.sequence.ID, untilMidnight(err, request.Midnight(day, zone).Sub(now)))
	}
	if len(started.IDs) > 0 && !first.IsZero() {
		c.control.wakeup(p.session.ID, first)
	}
	return Started{StartedRun: started}, nil
}

// startedRun is the store's result of a start.
func startedRun(stored any) puntuale.StartedRun {
	r, _ := stored.(puntuale.StartedRun)
	return r
}

// callZone returns the zone in which a start is planned: the call's zone, or else the client's zone.
func (c *Client) callZone(f *request.Faults, call StartCall) (*time.Location, error) {
	location, name := "query.timezone", call.Timezone
	if name == "" {
		location, name = "body.timezone", call.BodyZone
	} else if call.BodyZone != "" && call.BodyZone != name {
		f.Add(location, faultCallOtherTimezone, name)
	}
	return c.zoneOf(f, location, name)
}

// zoneOf returns the zone with a name. "" means the client's zone.
func (c *Client) zoneOf(f *request.Faults, location, name string) (*time.Location, error) {
	if name != "" {
		loc, err := c.control.zones.Named(name)
		if err == nil {
			return loc, nil
		}
		f.Add(location, puntuale.FaultNotZone, name)
	}
	return c.zone()
}

// Reference is the reference in a call, such as a booking's number.
type Reference struct {
	Query string // from the query; "": the body's reference
	Body  string // from the body's member "reference"; "": there is none
}

// text returns the reference. If the sequence has a field named reference, the body's member is the value of this field
// and not the reference.
func (r Reference) text(f *request.Faults, s puntuale.Sequence) string {
	const field = "reference"
	if slices.ContainsFunc(plan.Fields(s), func(named puntuale.Field) bool { return named.Name == field }) {
		r.Body = ""
	}
	location, text := "query.reference", r.Query
	switch {
	case text == "":
		location, text = "body.reference", r.Body
	case r.Body != "" && r.Body != text:
		f.Add(location, faultCallOtherReference, text)
	}
	f.Text(location, text, puntuale.MaxReference)
	return text
}

// values returns the values of the fields that the sequence's steps use. It takes the values from the body.
func values(s puntuale.Sequence, body map[string]json.RawMessage) map[string]plan.Value {
	fields := map[string]plan.Value{}
	for _, field := range plan.Fields(s) {
		fields[field.Name] = plan.FromJSON(body[field.Name])
	}
	return fields
}

// shownPhone replaces a refused recipient by an example number, so that the planner finds all other faults.
func shownPhone(phone string) string {
	if phone == "" {
		return "+39"
	}
	return phone
}

// untilMidnight sets RetryAfter of an error to wait, if the error says that the daily cap is reached. wait is the time
// until the client's midnight.
func untilMidnight(err error, wait time.Duration) error {
	e := &puntuale.Error{}
	if puntuale.CodeOf(err) != puntuale.CodeCapReached || !errors.As(err, &e) || e.RetryAfter > 0 {
		return err
	}
	refused := *e
	refused.RetryAfter = wait
	return &refused
}

// bookingOf returns the contract's start as a change of a booking.
func (c *Client) bookingOf(call StartCall) BookingCall {
	f := request.Faults(slices.Clone(call.Faults))
	if call.IfRunning != "" {
		f.Add("query.if_running", faultBookingNoIfRunning, call.IfRunning)
	}
	if call.Timezone != "" && call.BodyZone != "" && call.BodyZone != call.Timezone {
		f.Add("query.timezone", faultCallOtherTimezone, call.Timezone)
	}
	b := BookingCall{
		Reference: call.Reference.text(&f, puntuale.Sequence{}), Sequence: call.Sequence, Phone: call.Phone, Fields: call.Fields, Door: puntuale.DoorAPI,
		Status: statusIn(call.Fields), AsOf: call.Fields["as_of"], Body: call.Body, location: "body.reference", start: true, Noted: true,
	}
	if zone := cmp.Or(call.Timezone, call.BodyZone); zone != "" {
		b.Zone = &zone
	}
	b.Faults = f
	return b
}

// statusIn returns the member status of a start.
func statusIn(fields map[string]json.RawMessage) string { return plan.FromJSON(fields["status"]).Text }

// startBooking answers a start of a sequence for bookings.
func (c *Client) startBooking(ctx context.Context, call StartCall, once *Keyed[puntuale.StartedRun], clash error) (started Started, err error) {
	for range putAttempts {
		if started, err = c.tryStartBooking(ctx, call, once, clash); !errors.Is(err, errBookingChanged) {
			break
		}
	}
	return started, err
}

func (c *Client) tryStartBooking(ctx context.Context, call StartCall, once *Keyed[puntuale.StartedRun], clash error) (Started, error) {
	b := c.bookingOf(call)
	if !sane(call.Key) {
		b.Faults = append(b.Faults, puntuale.Fault{Location: "header.Idempotency-Key", Code: faultCallBadIdempotencyKey, Args: []string{strconv.Itoa(maxIdempotencyKey)}})
	}
	p, err := c.newBookingPut(ctx, b)
	if err == nil {
		_, err = p.decide(p.stored) // faults in the request are reported before a conflict
	}
	if err != nil {
		return Started{}, err
	}
	if clash != nil {
		return Started{}, clash
	}
	started := func(r puntuale.PutBookingResult) puntuale.StartedRun {
		a := p.answer(r)
		return puntuale.StartedRun{IDs: a.Pending(), Usage: r.Usage, Skipped: r.Skipped, Notes: a.Notes}
	}
	a, err := p.store(ctx, once.Keep(func(stored any) puntuale.StartedRun {
		r, _ := stored.(puntuale.PutBookingResult)
		return started(r)
	}))
	if err != nil {
		return startedBefore(err)
	}
	return Started{StartedRun: started(a.PutBookingResult)}, nil
}

// previewBooking returns the messages that a start of a sequence for bookings would plan.
func (c *Client) previewBooking(ctx context.Context, call StartCall) (Preview, error) {
	b := c.bookingOf(call)
	p, err := c.newBookingPut(ctx, b)
	if err != nil {
		return Preview{}, err
	}
	p.seed = 0
	change, err := p.decide(p.stored)
	if err != nil {
		return Preview{}, err
	}
	preview := Preview{Skipped: change.Skipped}
	for _, n := range change.New {
		preview.Messages = append(preview.Messages, n.PlannedMessage)
	}
	preview.Notes = p.notes(&puntuale.PutBookingResult{BookingChange: change})
	refused, err := c.tellPlanned(ctx, p.info.session, p.put.Phone, pointers(preview.Messages), p.info.purposes)
	preview.Notes.Warnings = append(preview.Notes.Warnings, refused...)
	return preview, err
}

// pointers returns pointers to the messages.
func pointers(messages []puntuale.PlannedMessage) []*puntuale.PlannedMessage {
	all := make([]*puntuale.PlannedMessage, len(messages))
	for i := range messages {
		all[i] = &messages[i]
	}
	return all
}
