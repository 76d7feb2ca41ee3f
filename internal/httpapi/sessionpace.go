package httpapi

import (
	"context"

	"puntuale"
	"puntuale/internal/control"
)

// paceBody documents how fast a session sends.
type paceBody struct {
	PerMinute     *int `json:"per_minute,omitempty" minimum:"0" maximum:"6000" doc:"Messages a minute at most, evenly; 0: no limit"`
	PerDay        *int `json:"per_day,omitempty" minimum:"0" maximum:"1000000" doc:"Messages in any 24 hours at most; 0: no limit"`
	ColdPerMinute *int `json:"cold_per_minute,omitempty" minimum:"0" maximum:"6000" doc:"Of these, to people who neither wrote to the number nor got anything from it; 0: no limit"`
	ColdPerDay    *int `json:"cold_per_day,omitempty" minimum:"0" maximum:"1000000" doc:"Likewise in any 24 hours; 0: no limit"`
	Jitter        *int `json:"jitter,omitempty" minimum:"0" maximum:"600" doc:"Seconds, by up to which the time between two messages is longer at random"`
}

type paceAnswer struct {
	PerMinute     int `json:"per_minute" doc:"0: no limit"`
	PerDay        int `json:"per_day"`
	ColdPerMinute int `json:"cold_per_minute"`
	ColdPerDay    int `json:"cold_per_day"`
	Jitter        int `json:"jitter" doc:"Seconds"`
}

func paceOf(p puntuale.Pace) paceAnswer {
	return paceAnswer{p.PerMinute, p.PerDay, p.ColdPerMinute, p.ColdPerDay, p.Jitter}
}

// readPace reads the member pace. It returns nil if there is none.
func readPace(body *object) *control.PaceChange {
	inner := body.object("pace")
	if inner == nil {
		return nil
	}
	return &control.PaceChange{
		PerMinute: inner.wholeOrNil("per_minute"), PerDay: inner.wholeOrNil("per_day"), ColdPerMinute: inner.wholeOrNil("cold_per_minute"), ColdPerDay: inner.wholeOrNil("cold_per_day"), Jitter: inner.wholeOrNil("jitter"),
	}
}

// sessionChangeBody documents the body of the call that changes a session.
type sessionChangeBody struct {
	Name *string   `json:"name,omitempty" maxLength:"200" doc:"What people call it"`
	Pace *paceBody `json:"pace,omitempty" doc:"What is left out stays as it is"`
}

func updateSession(ctx context.Context, c *control.Client, in *call, p *changeInput) (sessionAnswer, error) {
	body, err := in.object()
	if err != nil {
		return sessionAnswer{}, err
	}
	requested := control.SessionChange{Pace: readPace(body)}
	if body.has("name") {
		requested.Name = new(body.text("name"))
	}
	if err := body.err(); err != nil {
		return sessionAnswer{}, err
	}
	known, faults := in.known()
	requested.Known, requested.Faults = known, append(*body.refused, faults...)
	found, err := c.ChangeSession(ctx, p.ID, requested)
	if err != nil {
		return sessionAnswer{}, err
	}
	in.tagged(found.Version())
	return sessionOf(found), nil
}
