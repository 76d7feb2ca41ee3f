package control

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
)

// PaceChange is a request to change a pace. A nil member changes nothing.
type PaceChange struct{ PerMinute, PerDay, ColdPerMinute, ColdPerDay, Jitter *int }

// WaysChange is a request to change which of Meta's optional ways a session may use. A nil member changes nothing.
type WaysChange struct{ DirectSend, Marketing, Creative *bool }

// SessionChange is a request to change a session. A nil member changes nothing.
type SessionChange struct {
	Name   *string
	Pace   *PaceChange
	Ways   *WaysChange        // only for an Official session
	Known  []puntuale.Version // the session's version must be one of these; empty: any version
	Faults []puntuale.Fault   // the faults that the calling package already found in the request
}

// applyTo applies the change to the pace p, and returns the result.
func (r *PaceChange) applyTo(p puntuale.Pace, f *request.Faults) puntuale.Pace {
	if r == nil {
		return p
	}
	for _, part := range []struct {
		name    string
		wanted  *int
		stored  *int
		maximum int
	}{
		{"per_minute", r.PerMinute, &p.PerMinute, puntuale.MaxPerMinute}, {"per_day", r.PerDay, &p.PerDay, puntuale.MaxPerDay},
		{"cold_per_minute", r.ColdPerMinute, &p.ColdPerMinute, puntuale.MaxPerMinute}, {"cold_per_day", r.ColdPerDay, &p.ColdPerDay, puntuale.MaxPerDay},
		{"jitter", r.Jitter, &p.Jitter, puntuale.MaxPaceDelay},
	} {
		if part.wanted == nil {
			continue
		}
		if *part.wanted < 0 || *part.wanted > part.maximum {
			f.Add("body.pace."+part.name, puntuale.FaultMustBeInRange, *part.wanted, "0", strconv.Itoa(part.maximum))
		}
		*part.stored = *part.wanted
	}
	return p
}

// applyTo applies the change to the ways of a session, and returns the result.
func (r *WaysChange) applyTo(s puntuale.Session, f *request.Faults) puntuale.WaySettings {
	if r == nil {
		return s.Ways
	}
	if s.Type != puntuale.Official || s.Sandbox {
		f.Add("body.ways", faultSessionGoesWithType, nil, "Official")
	}
	for _, part := range []struct{ wanted, stored *bool }{{r.DirectSend, &s.Ways.DirectSend}, {r.Marketing, &s.Ways.Marketing}, {r.Creative, &s.Ways.Creative}} {
		if part.wanted != nil {
			*part.stored = *part.wanted
		}
	}
	return s.Ways
}

// Codes of the faults that this file reports.
const (
	faultSessionNothingChanged      puntuale.ReasonCode = "session.nothing_changed"
	faultSessionOnlyLinkedReconnect puntuale.ReasonCode = "session.only_linked_reconnect"
)

// ChangeSession changes a session's name, its pace and its ways, or some of them. The changes apply to the next message. Codes:
// forbidden, not_found, invalid, precondition_failed.
func (c *Client) ChangeSession(ctx context.Context, id string, r SessionChange) (Session, error) {
	if err := c.MayCreate(); err != nil {
		return Session{}, err
	}
	found, err := c.Session(ctx, id)
	if err != nil {
		return Session{}, err
	}
	f := request.Faults(r.Faults)
	if r.Name == nil && r.Pace == nil && r.Ways == nil && !f.At("body.name") && !f.At("body.pace") && !f.At("body.ways") {
		f.Add("body", faultSessionNothingChanged, nil)
	}
	if r.Name != nil {
		f.Required("body.name", *r.Name, puntuale.MaxName)
	}
	pace := r.Pace.applyTo(found.Pace, &f)
	ways := r.Ways.applyTo(found.Session, &f)
	if err := f.Err(); err != nil {
		return Session{}, err
	}
	var patch puntuale.SessionPatch
	if r.Name != nil {
		patch.Name = puntuale.ChangeTo(*r.Name)
	}
	if pace != found.Pace {
		patch.Pace = puntuale.ChangeTo(pace)
	}
	if ways != found.Ways {
		patch.Ways = puntuale.ChangeTo(ways)
	}
	if err := c.tenant.UpdateSession(ctx, found.ID, patch, r.Known...); err != nil {
		return Session{}, fmt.Errorf("change session %d: %w", found.ID, err)
	}
	if patch.Pace.Set {
		c.control.wakeup(found.ID, time.Time{})
	}
	return c.Session(ctx, id)
}

// Reconnect makes a session's node connect the session immediately. This helps if another connection replaced the
// session's connection, or if the session waits before its next try. Codes: not_found, busy (the node did not answer in
// time). conflict: the session is not linked, connects by itself, or must wait until a certain time.
func (c *Client) Reconnect(ctx context.Context, id string) (Session, error) {
	if err := c.MayCreate(); err != nil {
		return Session{}, err
	}
	found, err := c.Session(ctx, id)
	switch {
	case err != nil:
		return Session{}, err
	case found.Type != puntuale.Socket && !found.Sandbox:
		return Session{}, puntuale.Conflict(faultSessionOnlyLinkedReconnect)
	case c.control.vault == nil || !c.control.sessions.links(found.Session):
		return Session{}, puntuale.NoLinker()
	}
	if err := c.command(ctx, found.ID, puntuale.CommandReconnect, nil); err != nil {
		return Session{}, fmt.Errorf("reconnect session %d: %w", found.ID, err)
	}
	return c.Session(ctx, id)
}
