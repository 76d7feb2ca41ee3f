package control

import (
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/booking"
	"puntuale/internal/control/request"
	"puntuale/internal/plan"
)

// BookingCall is a request to make or to change a booking. A member that is nil or empty leaves the booking's value as it
// is.
type BookingCall struct {
	Reference string
	Sequence  string
	Phone     string
	Session   *string // "": the sequence's
	Zone      *string // "": the client's
	Status    string
	AsOf      json.RawMessage
	Fields    map[string]json.RawMessage // the body's members; those with reserved names are left out
	Silent    bool
	Noted     bool   // somebody reads the remarks about the person and the date: not of one booking among many
	Replan    bool   // the booking's messages become those of its sequence as it is now, even if nothing else is new
	Unseen    bool   // nobody has looked at the booking's present state, so a page may not set every status
	Revision  *int64 // the booking must still have this revision (0: there must be none); nil: any
	DryRun    bool
	Known     []puntuale.Version // the stored version must be one of these; empty: any version
	Door      puntuale.BookingDoor
	Body      []byte // the request's body, unchanged
	Faults    []puntuale.Fault

	location string // of the reference: "path.reference" unless set
	start    bool   // the call is the contract's start
	answer   *bookingAnswer
	former   string // of a rule: see [puntuale.PutBooking]
	moved    bool   // see [booking.Put]; also quiet
	quiet    bool
}

// BookingAnswer is what a change of a booking did.
type BookingAnswer struct {
	puntuale.PutBookingResult
	Zone  *time.Location
	Notes puntuale.StartNotes // of a call that says nothing new, or is not Noted, at most Unused
}

// Pending returns the messages that are planned after the change, in the order in which they leave.
func (a *BookingAnswer) Pending() []puntuale.MessageID {
	type planned struct {
		id puntuale.MessageID
		at time.Time
	}
	var all []planned
	for _, i := range a.BookingDifference.Pending {
		all = append(all, planned{a.Before[i].Message, a.Before[i].Next})
	}
	for i, id := range a.IDs {
		all = append(all, planned{id, a.New[i].Due})
	}
	slices.SortFunc(all, func(x, y planned) int { return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.id, y.id)) })
	ids := make([]puntuale.MessageID, len(all))
	for i, p := range all {
		ids[i] = p.id
	}
	return ids
}

// Codes of the faults in this file.
const (
	faultBookingRunReference  puntuale.ReasonCode = "booking.run_reference"
	faultBookingOtherSequence puntuale.ReasonCode = "booking.other_sequence"
	faultBookingNotUTF8       puntuale.ReasonCode = "booking.not_utf8"
	faultBookingAsOf          puntuale.ReasonCode = "booking.as_of"
	faultBookingFieldsTooLong puntuale.ReasonCode = "booking.fields_too_long"
	faultBookingNoIfRunning   puntuale.ReasonCode = "booking.no_if_running"
	faultBookingNoAddress     puntuale.ReasonCode = "booking.no_address"
)

// errBookingChanged says that a booking was changed between the read and the transaction, so that the call must be
// planned again.
var errBookingChanged = errors.New("the booking changed since it was read")

// putAttempts is how often a call is planned again because the booking changed meanwhile.
const putAttempts = 5

// errForBookings says that a sequence is for bookings, so a start of it is a change of a booking.
var errForBookings = errors.New("the sequence is for bookings")

func forBookings(err error) bool { return errors.Is(err, errForBookings) }

// PutBooking makes or changes a booking. Its messages become those that its new state wants, in one transaction. A call
// that changes nothing does not count. Codes: invalid, not_found (the booking's sequence was deleted, and the call plans),
// conflict, stale, precondition_failed, cap_reached, forbidden. After an error nothing has changed.
func (c *Client) PutBooking(ctx context.Context, call BookingCall) (a BookingAnswer, err error) {
	for range putAttempts {
		if a, err = c.putBooking(ctx, call); !errors.Is(err, errBookingChanged) {
			return a, err
		}
	}
	return a, err
}

func (c *Client) putBooking(ctx context.Context, call BookingCall) (BookingAnswer, error) {
	p, err := c.newBookingPut(ctx, call)
	if err != nil {
		return BookingAnswer{}, err
	}
	change, err := p.decide(p.stored)
	if err != nil {
		return BookingAnswer{}, err
	}
	unchanged := !change.Changed && p.stored.Revision != 0
	if call.DryRun || unchanged && change.AsOf == p.stored.AsOf {
		usage, err := c.tenant.Usage(ctx, p.day)
		if err != nil {
			return BookingAnswer{}, fmt.Errorf("read the usage: %w", err)
		}
		all := make([]*puntuale.PlannedMessage, len(change.New))
		for i := range change.New {
			all[i] = &change.New[i].PlannedMessage
		}
		refused, err := c.tellPlanned(ctx, p.info.session, change.Phone, all, p.info.purposes)
		if err != nil {
			return BookingAnswer{}, err
		}
		a := p.answer(puntuale.PutBookingResult{BookingChange: change, Before: p.stored.Steps, Usage: usage})
		a.Notes.Warnings = append(a.Notes.Warnings, refused...)
		return a, nil
	}
	if unchanged {
		p.unchanged = &change
	}
	return p.store(ctx, nil)
}

// CancelBooking cancels a booking. silent plans no message that tells of it. Codes: not_found, precondition_failed.
func (c *Client) CancelBooking(ctx context.Context, call BookingCall) (BookingAnswer, error) {
	if _, err := c.bookingState(ctx, call.Reference); err != nil {
		return BookingAnswer{}, err
	}
	call.Status = puntuale.BookingCancelled.String()
	return c.PutBooking(ctx, call)
}

// bookingPut is one change of a booking.
type bookingPut struct {
	client *Client
	call   BookingCall
	put    booking.Put
	stored puntuale.BookingState // as it was read before the transaction
	info   startInfo             // the sequence of the new state; without an id, if it was deleted
	zone   *time.Location        // of the new state
	day    puntuale.Date
	seed   uint64
	site   string // address of the page of the confirmation, without its name
	files  map[puntuale.FileID]plan.UploadedFile
	valued bool // a value of the booking may name a file, which is looked for before the transaction
	barred bool // the person is on the blacklist

	nothing   bool                    // the call says nothing new, so the sequence was not read
	unchanged *puntuale.BookingChange // what the call makes of stored, if at most as_of is new
}

func (c *Client) newBookingPut(ctx context.Context, call BookingCall) (*bookingPut, error) {
	now := c.control.clock.Now()
	day, err := c.today(now)
	if err != nil {
		return nil, err
	}
	p := &bookingPut{client: c, call: call, day: day, seed: rand.Uint64() | 1, //nolint:gosec // the random number only spreads load
		put: booking.Put{Reference: call.Reference, Door: call.Door, Silent: call.Silent, Reopen: call.start, Now: now, Forced: len(call.Known) > 0 || call.Door == puntuale.DoorPage && !call.Unseen, Page: cryptorand.Text(), Quiet: call.quiet || call.moved, Moved: call.moved}}
	f := request.Faults(slices.Clone(call.Faults))
	f.Request(call.Body)
	switch {
	case call.Door == puntuale.DoorRule:
		p.put.Phone = call.Phone // of a trigger, so it may be any name of a person
	case call.Phone != "" || call.start:
		p.put.Phone = c.recipient(&f, "body.phone", call.Phone)
	}
	if err := p.reference(ctx, &f); err != nil {
		return nil, err
	}
	if err := puntuale.CheckVersion(p.stored.Version(), call.Known); err != nil {
		return nil, err
	}
	p.status(&f)
	p.asOf(&f)
	p.answered(p.stored)
	if err := p.session(ctx, &f); err != nil {
		return nil, err
	}
	records := call.answer != nil && p.put.Status == nil // such an answer plans nothing
	if p.nothing = len(f) == 0 && (records || !call.Replan && p.saysNothing()); !p.nothing {
		if err := p.sequence(ctx, &f); err != nil {
			return nil, err
		}
	}
	if p.stored.Revision == 0 && call.Phone == "" && !call.start {
		f.Add("body.phone", puntuale.FaultRequired, nil)
	}
	if err := f.Err(); err != nil {
		if p.info.sequence.Booking != "" { // all faults at once: also those that planning finds
			_, planning := p.decide(p.stored)
			f = append(f, request.FaultsOf(planning)...)
		}
		return nil, f.Err()
	}
	if !p.nothing && call.Noted {
		if p.barred, err = c.isBlacklisted(ctx, cmp.Or(p.put.Phone, p.stored.Phone)); err != nil {
			return nil, err
		}
	}
	if !p.cancels() && !records {
		return p, c.MayCreate()
	}
	return p, nil
}

// saysNothing reports whether the booking is already as the call says. An unchanged booking needs no sequence.
func (p *bookingPut) saysNothing() bool {
	sequence, err := puntuale.ParseID[puntuale.SequenceID](cmp.Or(p.call.Sequence, p.stored.Sequence.String()))
	if p.stored.Revision == 0 || p.stored.Erased || p.call.start || err != nil || sequence != p.stored.Sequence {
		return false
	}
	for _, raw := range p.call.Fields {
		if plan.FromJSON(raw).Kind == plan.Other { // a fault, if the sequence has such a field
			return false
		}
	}
	change, _, err := p.put.Next(p.stored, booking.Merged(p.stored.Fields, p.fields()), p.stored.Date)
	return err == nil && !change.Changed
}

// cancels reports whether the call does nothing but cancel. Such a call is never refused for the account's sake.
func (p *bookingPut) cancels() bool {
	return p.put.Status != nil && *p.put.Status == puntuale.BookingCancelled && p.stored.Revision != 0
}

// reference reads the booking that the call names.
func (p *bookingPut) reference(ctx context.Context, f *request.Faults) (err error) {
	location := cmp.Or(p.call.location, "path.reference")
	switch {
	case p.call.Reference == "" && (p.call.start || p.call.Door == puntuale.DoorRule):
		return nil
	case !Nameable(p.call.Reference):
		if f.Required(location, p.call.Reference, puntuale.MaxReference); !utf8.ValidString(p.call.Reference) {
			f.Add(location, faultBookingNotUTF8, nil)
		}
		return nil
	}
	if p.call.Door == puntuale.DoorRule {
		p.stored, err = p.client.tenant.MovedBookingState(ctx, p.call.Reference, p.call.former, p.put.Phone)
	} else {
		p.stored, err = p.client.tenant.BookingState(ctx, p.call.Reference, p.put.Phone)
	}
	if err != nil {
		return fmt.Errorf("read a booking: %w", err)
	}
	if p.stored.Revision == 0 && strings.HasPrefix(p.call.Reference, puntuale.RunReference) {
		f.Add(location, faultBookingRunReference, nil)
	}
	return nil
}

// Nameable reports whether a booking can have a reference.
func Nameable(reference string) bool {
	var f request.Faults
	f.Required("", reference, puntuale.MaxReference)
	return len(f) == 0 && utf8.ValidString(reference)
}

// bookingState reads a booking. Codes: not_found.
func (c *Client) bookingState(ctx context.Context, reference string) (state puntuale.BookingState, err error) {
	if Nameable(reference) {
		if state, err = c.tenant.BookingState(ctx, reference, ""); err != nil {
			return state, fmt.Errorf("read a booking: %w", err)
		}
	}
	if state.Revision == 0 || state.Erased {
		return state, puntuale.NotFound(puntuale.NoBooking)
	}
	return state, nil
}

func (p *bookingPut) status(f *request.Faults) {
	if p.call.Status == "" {
		return
	}
	status, err := puntuale.ParseBookingStatus(p.call.Status)
	if err != nil {
		f.Add("body.status", puntuale.FaultNotOneOf, p.call.Status, strings.Join(puntuale.BookingStatuses(), ", "))
		return
	}
	p.put.Status = &status
}

// asOf reads how new the call is: a whole number, or a date with a time of day.
func (p *bookingPut) asOf(f *request.Faults) {
	v := plan.FromJSON(p.call.AsOf)
	if v.Kind == plan.Absent {
		return
	}
	if n, err := strconv.ParseInt(v.Text, 10, 64); err == nil {
		p.put.AsOf = puntuale.AsOf{Kind: puntuale.AsOfNumber, Value: n}
		return
	}
	m, err := plan.ParseMoment(strings.TrimSpace(v.Text))
	loc, failed := p.client.zone()
	if v.Kind != plan.Text || err != nil || failed != nil || !m.HasTime {
		f.Add("body.as_of", faultBookingAsOf, nil)
		return
	}
	p.put.AsOf = puntuale.AsOf{Kind: puntuale.AsOfTime, Value: m.At(0, loc).UnixMicro()}
}

// session reads the session and the zone of the new state.
func (p *bookingPut) session(ctx context.Context, f *request.Faults) error {
	if p.call.Session != nil {
		id := puntuale.SessionID(0)
		if *p.call.Session != "" {
			s, err := p.client.sessionFor(ctx, f, *p.call.Session)
			if err != nil {
				return err
			}
			id = s.ID
		}
		p.put.Session = &id
	}
	name := p.stored.Booking.Zone
	if p.call.Zone != nil {
		name, p.put.Zone = *p.call.Zone, p.call.Zone
	}
	var err error
	p.zone, err = p.client.zoneOf(f, "body.timezone", name)
	return err
}

// sequence reads the sequence of the new state, and the session that sends. If the sequence was deleted, the booking can
// only be cancelled.
func (p *bookingPut) sequence(ctx context.Context, f *request.Faults) error {
	id := p.stored.Sequence
	if p.call.Sequence != "" {
		given, unreadable := puntuale.ParseID[puntuale.SequenceID](p.call.Sequence)
		if (p.call.start || p.call.Door == puntuale.DoorRule || p.call.Door == puntuale.DoorCalendar) && p.stored.Revision != 0 && given != id {
			return puntuale.Conflict(faultBookingOtherSequence)
		}
		if id, p.put.Sequence = given, given; unreadable != nil {
			id = puntuale.SequenceID(puntuale.MaxID) // the id of no sequence, so that the fault is the same
		}
	}
	if id == 0 {
		f.Add("body.sequence", puntuale.FaultRequired, nil)
		return nil
	}
	var err error
	switch p.info, err = p.client.startInfo(ctx, id, p.put.Now); {
	case p.cancels() && id == p.stored.Sequence && (puntuale.CodeOf(err) == puntuale.CodeNotFound || err == nil && p.info.sequence.Booking == ""):
		p.info = startInfo{}
		return nil
	case puntuale.CodeOf(err) == puntuale.CodeNotFound && id != p.stored.Sequence && !p.call.start:
		f.Add("body.sequence", FaultNotOwnSequence, nil)
		return nil
	case err != nil:
		return err
	case p.info.sequence.Booking == "":
		f.Add("body.sequence", puntuale.FaultBookingNotForBookings, nil)
		return nil
	}
	p.put.MovedSteps = movedSteps(p.info.sequence)
	if plan.PrintsPage(p.info.sequence) {
		if p.site, err = p.client.pageSite(ctx); err != nil {
			return err
		}
		if p.site == "" && !p.cancels() {
			f.Add("body.sequence", faultBookingNoAddress, nil)
		}
	}
	for i, step := range puntuale.Texts(p.info.sequence.Steps) {
		if unfilled(step) && !p.cancels() {
			f.Add(request.At("steps", i)+".template", faultSequenceTemplateGone, nil)
		}
	}
	if err = p.sender(ctx); err != nil {
		return err
	}
	for _, step := range puntuale.Texts(p.info.sequence.Steps) {
		p.valued = p.valued || strings.Contains(step.Media, "{{")
	}
	p.files, err = p.client.planFiles(ctx, p.info.sequence, p.info.session, p.stored.Fields, p.call.Fields)
	return err
}

// movedSteps returns the ids of the steps that tell of a new date.
func movedSteps(s puntuale.Sequence) (ids []string) {
	for i, step := range s.Steps {
		if step.Timing.Anchor == puntuale.BookingMovedAnchor {
			ids = append(ids, step.Name(i))
		}
	}
	return ids
}

// sender sets the session that sends the booking's messages, if the booking has one of its own.
func (p *bookingPut) sender(ctx context.Context) error {
	id := p.stored.Session
	if p.put.Session != nil {
		id = *p.put.Session
	}
	if id == 0 || id == p.info.session.ID {
		return nil
	}
	s, err := p.client.tenant.Session(ctx, id)
	if puntuale.CodeOf(err) == puntuale.CodeNotFound {
		return nil // the session was deleted, so the sequence's own sends
	}
	if err != nil {
		return fmt.Errorf("read session %d: %w", id, err)
	}
	p.info.session = s
	p.info.purposes, err = p.client.purposesOf(ctx, s, p.info.sequence)
	return err
}

// decide computes what the call makes of a state.
func (p *bookingPut) decide(state puntuale.BookingState) (puntuale.BookingChange, error) {
	if err := puntuale.CheckVersion(state.Version(), p.call.Known); err != nil {
		return puntuale.BookingChange{}, err
	}
	if old := p.stored.Booking; state.ID != old.ID || state.Sequence != old.Sequence || state.Session != old.Session || state.Zone != old.Zone || (p.nothing || p.valued) && state.Revision != old.Revision {
		return puntuale.BookingChange{}, errBookingChanged
	}
	if state.MovedOn != 0 || p.call.Revision != nil && state.Revision != *p.call.Revision {
		return puntuale.BookingChange{}, booking.Stale()
	}
	s := &p.info.sequence
	given := p.fields()
	fields, date := booking.Merged(state.Fields, given), state.Date
	if s.ID != 0 && p.call.answer == nil && !p.call.Replan { // neither an answer nor a replan changes the date
		v := plan.FromJSON(fields[s.Booking])
		at, ok := plan.MainDate(v, p.zone)
		_, named := given[s.Booking]
		switch {
		case !ok && state.Revision != 0 && (p.cancels() || !named && v.Kind == plan.Absent): // the field has another name now, or it was blanked
			at = state.Date
		case !ok && v.Kind == plan.Absent:
			return puntuale.BookingChange{}, puntuale.Invalid(puntuale.Fault{Location: "body." + s.Booking, Code: puntuale.FaultRequired})
		case !ok:
			return puntuale.BookingChange{}, puntuale.Invalid(puntuale.Fault{Location: "body." + s.Booking, Code: puntuale.FaultSequenceMustBeDate, Value: v.Text})
		}
		date = at
	}
	effect := p.answered(state)
	c, kept, err := p.put.Next(state, fields, date)
	if c.Kept, c.Effect = kept, effect; err != nil {
		return c, err
	}
	if n := sizeOf(fields); n > puntuale.MaxBookingFields {
		return c, puntuale.Invalid(puntuale.Fault{Location: "body", Code: faultBookingFieldsTooLong, Args: []string{strconv.Itoa(puntuale.MaxBookingFields)}})
	}
	if !c.Changed && !p.call.Replan || p.call.answer != nil && p.put.Status == nil {
		for i, step := range state.Steps {
			if step.Pending() && step.Intent == 0 {
				c.Pending = append(c.Pending, i)
			}
		}
		return c, nil
	}
	if c.Page == "" { // only a replan of a booking without a page
		c.Page = p.put.Page
	}
	var wanted []puntuale.WantedMessage
	var keys []puntuale.BookingKey
	if s.ID != 0 {
		wanted, keys, err = p.wanted(c.Booking, len(given) > 0 || state.Revision == 0 || p.put.Sequence != 0)
		if err != nil && c.Status == puntuale.BookingCancelled && p.cancels() { // a text that lacks a field must not keep a cancellation back
			wanted, err = nil, nil
		}
		if err != nil {
			return c, err
		}
	}
	if c.BookingDifference, err = booking.Difference(state, c.Booking, wanted, keys); err != nil && p.cancels() {
		c.BookingDifference, err = booking.Difference(state, c.Booking, nil, keys)
	}
	if p.call.Replan {
		p.put.Replanned(&c)
	}
	return c, err
}

// wanted returns the messages that a state wants.
func (p *bookingPut) wanted(b puntuale.Booking, all bool) ([]puntuale.WantedMessage, []puntuale.BookingKey, error) {
	s := p.info.sequence
	given := values(s, b.Fields)
	if p.site != "" {
		given[plan.FieldPage] = plan.Value{Kind: plan.Text, Text: p.site + b.Page}
	}
	wanted, keys, err := plan.Booking(plan.BookingInput{Input: plan.Input{
		Sequence: s, Phone: b.Phone, Fields: given, Location: p.zone, Closed: p.client.account.Closed,
		Now: p.put.Now, Seed: p.seed, Media: p.client.control.media, Files: p.files,
	}, Booking: b, Session: p.info.session.ID, All: all})
	if err != nil {
		return nil, nil, fmt.Errorf("plan a booking: %w", err)
	}
	for i := range wanted {
		wanted[i].Purpose = p.info.purposes[wanted[i].Step]
	}
	return wanted, keys, nil
}

// fields returns the members of the call that are fields: texts and numbers with a valid name.
func (p *bookingPut) fields() map[string]json.RawMessage {
	var used []string
	for _, f := range plan.Fields(p.info.sequence) {
		used = append(used, f.Name)
	}
	fields := make(map[string]json.RawMessage, len(p.call.Fields))
	for name, raw := range p.call.Fields {
		other := plan.FromJSON(raw).Kind == plan.Other // only a fault if the sequence names it
		if slices.Contains(plan.ReservedInBookings, name) || !plan.IsFieldName(name) || other && !slices.Contains(used, name) {
			continue
		}
		fields[name] = raw
	}
	return fields
}

func sizeOf(fields map[string]json.RawMessage) (n int) {
	for name, raw := range fields {
		n += len(name) + len(raw)
	}
	return n
}

// store applies the change in one transaction.
func (p *bookingPut) store(ctx context.Context, once *puntuale.Idempotency) (BookingAnswer, error) {
	c := p.client
	loc, err := c.zone()
	if err != nil {
		return BookingAnswer{}, err
	}
	r := p.request()
	r.Keep, r.Unchanged, r.Read = once, p.unchanged, p.stored
	if p.call.answer != nil {
		r.Reply = p.call.answer.message
	}
	result, err := c.tenant.PutBooking(ctx, r)
	if err != nil {
		return BookingAnswer{}, untilMidnight(err, request.Midnight(p.day, loc).Sub(p.put.Now))
	}
	if len(result.New) > 0 {
		first := slices.MinFunc(result.New, func(a, b puntuale.NewBookingMessage) int { return a.Due.Compare(b.Due) })
		c.control.wakeup(p.info.session.ID, first.Due)
	}
	return p.answer(result), nil
}

// request returns what the store needs for the change.
func (p *bookingPut) request() puntuale.PutBooking {
	c := p.client
	erased := ""
	if p.call.Door == puntuale.DoorCalendar || p.call.Revision != nil {
		erased = c.mark(p.call.Reference)
	}
	return puntuale.PutBooking{
		Erased: erased, Reference: p.call.Reference, Follow: p.call.Door == puntuale.DoorRule, Former: p.call.former, Phone: p.put.Phone, Day: p.day, Now: p.put.Now, Always: p.call.start, Unrefused: p.cancels(), Replan: p.call.Replan, Request: p.call.Body,
		Run: puntuale.Run{
			Client: c.account.ID, Sequence: p.info.sequence.ID, Session: p.info.session.ID, Origin: puntuale.OriginSequence, Zone: p.zone.String(),
			Received: p.put.Now, Request: p.call.Body, ClientName: c.account.Name, SequenceName: p.info.sequence.Name,
		},
		Decide: p.decide,
	}
}

func (p *bookingPut) answer(r puntuale.PutBookingResult) BookingAnswer {
	return BookingAnswer{PutBookingResult: r, Zone: p.zone, Notes: p.notes(&r)}
}
