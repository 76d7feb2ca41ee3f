package control

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/plan"
)

// SingleCall is a request to send one message, now or at a date.
type SingleCall struct {
	Phone     string                     // a number or a group id
	Fields    map[string]json.RawMessage // the body's members: text, media, media_name, date, and the fields of the template
	Latitude  *float64                   // set only together with Longitude
	Longitude *float64
	ValidFor  *puntuale.Validity // how long after its due time the message may still leave; nil: 24 hours
	Buttons   []puntuale.StepButton
	Template  string // the name of a client's template, which replaces text and media

	Interactive *puntuale.Interactive // sent as it is written, like Buttons; nil: none

	Session   string // "": the client's default session
	Name      string // a name for the send; the API's member is named nome_invio
	Purpose   string // service or marketing; "": service
	Reference Reference
	Timezone  string // the zone of the date; "": the client's zone
	Body      []byte // the request's body, unchanged; the API's member is named richiesta

	Faults     []puntuale.Fault // the faults that the calling package already found in the request
	Scope, Key string           // see [StartCall]
}

// Members of a single send's body that are not fields of the template.
const (
	singleText  = "text"
	singleMedia = "media"
	singleName  = "media_name"
	singleDate  = "date"
)

// Send schedules one message. The call counts once in the client's usage. A text is sent unchanged. A template's
// placeholders are filled from the members of the body. Codes: invalid, conflict (a call with a different body used the
// idempotency key), busy, cap_reached, forbidden. If Send returns an error, nothing is scheduled or counted.
func (c *Client) Send(ctx context.Context, call SingleCall) (Started, error) {
	if err := c.MayCreate(); err != nil {
		return Started{}, err
	}
	once, clash, err := startOnce(call.Scope, call.Key, call.Body).look(ctx, c.tenant)
	if err != nil {
		return startedBefore(err)
	}
	now := c.control.clock.Now()
	p, err := c.planSingle(ctx, call, now)
	if err != nil {
		return Started{}, err
	}
	if clash != nil { // faults in the request are reported before a conflict
		return Started{}, clash
	}
	return c.start(ctx, p, call.Body, once, now)
}

// planSingle checks a whole single send, and plans it as a sequence of one step.
func (c *Client) planSingle(ctx context.Context, call SingleCall, now time.Time) (planned, error) {
	f := request.Faults(call.Faults)
	p := planned{origin: puntuale.OriginSingle, name: call.Name, ifRunning: puntuale.IfRunningAllow}
	f.Request(call.Body)
	p.phone = c.recipient(&f, "body.phone", call.Phone)
	f.Text("body.name", call.Name, puntuale.MaxName)
	var err error
	if p.zone, err = c.zoneOf(&f, "body.timezone", call.Timezone); err != nil {
		return planned{}, err
	}
	if p.session, err = c.sessionFor(ctx, &f, call.Session); err != nil {
		return planned{}, err
	}
	if !sane(call.Key) {
		f.Add("header.Idempotency-Key", faultCallBadIdempotencyKey, nil, strconv.Itoa(maxIdempotencyKey))
	}
	step, err := c.singleStep(ctx, &f, call)
	if err != nil {
		return planned{}, err
	}
	sequence := puntuale.Sequence{Steps: []puntuale.Step{step}}
	sequence.Purpose = purposeIn(&f, call.Purpose)
	p.reference = call.Reference.text(&f, sequence)
	if p.purposes, err = c.purposesOf(ctx, p.session, sequence); err != nil {
		return planned{}, err
	}
	files, err := c.planFiles(ctx, sequence, p.session, call.Fields)
	if err != nil {
		return planned{}, err
	}
	p.Plan, err = plan.Build(plan.Input{
		Files: files, Sequence: sequence, Phone: shownPhone(p.phone), Fields: values(sequence, call.Fields), Location: p.zone,
		Now: now, Seed: rand.Uint64() | 1, Media: c.control.media, //nolint:gosec // the random number only spreads load
	})
	if puntuale.CodeOf(err) != puntuale.CodeInvalid && err != nil {
		return planned{}, fmt.Errorf("plan a single send: %w", err)
	}
	p.notes.Unused, p.notes.Warnings = unusedMembers(sequence, call.Fields), insteadOf(p.Messages, p.session)
	for _, fault := range request.FaultsOf(err) {
		fault.Location = singleLocation(fault.Location)
		if !f.At(fault.Location) {
			f = append(f, fault)
		}
	}
	return p, f.Err()
}

const faultTemplateNoPlace puntuale.ReasonCode = "template.no_place"

// singleStep returns the step of a single send, with its content and its timing.
func (c *Client) singleStep(ctx context.Context, f *request.Faults, call SingleCall) (puntuale.Step, error) {
	step := puntuale.Step{Timing: puntuale.Timing{Anchor: puntuale.AnchorStart, ValidFor: call.ValidFor}, Buttons: call.Buttons, Interactive: call.Interactive, Literal: true}
	if len(call.Buttons) > 0 || call.Interactive != nil {
		*f = append(*f, plan.CheckContent("body", puntuale.Step{Text: "-", Buttons: call.Buttons, Interactive: call.Interactive, Literal: true})...)
		line, err := c.buttonLine(ctx, puntuale.Sequence{Steps: []puntuale.Step{step}})
		if step.ButtonLine = line; err != nil {
			return step, err
		}
	}
	for _, fault := range plan.Check(puntuale.Sequence{Name: "-", Steps: []puntuale.Step{{Text: "-", Timing: step.Timing}}}) {
		fault.Location = "body" + strings.TrimPrefix(fault.Location, "body.steps[0].timing")
		*f = append(*f, fault)
	}
	if hasMember(call.Fields, singleDate) {
		step.Timing.Anchor, step.Timing.IfPast = singleDate, puntuale.PastReject
	}
	located := call.Latitude != nil || call.Longitude != nil
	if call.Template == "" {
		// The planner fills placeholders in one pass. Therefore, braces in a field's value remain unchanged.
		step.Text, step.Media, step.MediaName = "{{text|}}", "{{media|}}", "{{media_name|}}"
		step.Latitude, step.Longitude = call.Latitude, call.Longitude
		if located {
			*f = append(*f, plan.CheckContent("body", puntuale.Step{Latitude: call.Latitude, Longitude: call.Longitude})...)
		}
		if located && hasMember(call.Fields, singleMedia) {
			f.Add("body.media", puntuale.FaultSequenceMediaWithLocation, nil)
		}
		return step, nil
	}
	if located {
		f.Add("body.template", puntuale.FaultGoesWithout, nil, "latitude and longitude")
	}
	templates, err := c.templatesNamed(ctx, []string{call.Template})
	if err != nil {
		return step, err
	}
	t, ok := templates[call.Template]
	if !ok {
		if !located {
			f.Add("body.template", puntuale.FaultNotOwnTemplate, nil)
		}
		step.Text = "-" // a valid text, so that the other faults are found, too
		return step, nil
	}
	step.Template = t.Name
	step = filled(step, t)
	for _, name := range []string{singleText, singleMedia} {
		if hasMember(call.Fields, name) && !names(step, name) {
			f.Add("body."+name, faultTemplateNoPlace, nil)
		}
	}
	return step, nil
}

// names reports whether a step's content contains a field.
func names(step puntuale.Step, name string) bool {
	for _, field := range plan.Fields(puntuale.Sequence{Steps: []puntuale.Step{step}}) {
		if field.Name == name {
			return true
		}
	}
	return false
}

// hasMember reports whether the body has a value for a member. An absent member, null and a blank text are no value.
func hasMember(members map[string]json.RawMessage, name string) bool {
	v := plan.FromJSON(members[name])
	return v.Kind == plan.Other || strings.TrimSpace(v.Text) != ""
}

// singleLocation converts the location of a fault. The location in the single send's step becomes the location in the
// body.
func singleLocation(location string) string {
	rest, ok := strings.CutPrefix(location, "steps[0]")
	switch {
	case !ok:
		return location
	case strings.HasPrefix(rest, ".timing"):
		return "body." + singleDate
	}
	return "body" + rest
}

// sessionFor returns the session with the id. If the id is "", it returns the client's default session.
func (c *Client) sessionFor(ctx context.Context, f *request.Faults, id string) (puntuale.Session, error) {
	if id != "" {
		s, err := c.Session(ctx, id)
		if puntuale.CodeOf(err) == puntuale.CodeNotFound {
			f.Add("body.id_sessione", puntuale.FaultNotOwnSession, nil)
			return puntuale.Session{}, nil
		}
		return s.Session, err
	}
	s, err := c.tenant.DefaultSession(ctx)
	if err != nil {
		return puntuale.Session{}, fmt.Errorf("look for the default session: %w", err)
	}
	return s, nil
}
