package control

import (
	"context"
	"fmt"
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
	zone, err := c.zone()
	return &AutomatedPlan{c.Client, info.sequence, info.session, info.purposes, zone, true}, err
}

// Send prepares the plan of a single message. Session 0 means the default session. Codes: not_found.
func (c automatedPlanner) Send(ctx context.Context, session puntuale.SessionID, a puntuale.Action) (automation.Plan, error) {
	s := puntuale.Sequence{Steps: []puntuale.Step{a.Step()}}
	s.Purpose, _ = puntuale.ParsePurpose(a.Purpose)
	filled, err := c.expand(ctx, s)
	if err != nil {
		return nil, err
	}
	if unfilled(filled[0].Steps[0]) {
		return nil, puntuale.NotFound(puntuale.NoTemplate)
	}
	p := &AutomatedPlan{client: c.Client, sequence: filled[0]}
	if p.session, err = c.automatedSession(ctx, session); err != nil {
		return nil, err
	}
	if p.purposes, err = c.purposesOf(ctx, p.session, p.sequence); err != nil {
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
		Now: r.AsOf, Seed: r.Seed, Media: p.client.control.media,
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
		run.Steps[i] = puntuale.FrozenStep{Step: m.Step, ID: puntuale.FrozenID(m.StepID), Content: m.Content, Window: m.Window}
		built.Messages[i].Purpose = p.purposes[m.Step]
	}
	start := puntuale.StartRun{Run: run, Messages: built.Messages, Skipped: built.Skipped, Day: puntuale.DateOf(r.Now.In(p.zone)), Now: r.Now, IfRunning: puntuale.IfRunningAllow}
	if p.named {
		start.IfRunning = p.sequence.IfRunning
	}
	return start, nil
}
