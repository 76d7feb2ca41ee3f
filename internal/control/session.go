package control

import (
	"context"
	"fmt"
	"time"

	"puntuale"
)

// SessionState says whether a session could send.
type SessionState string

const (
	SessionOnline   SessionState = "online"
	SessionUnlinked SessionState = "unlinked"
)

// Session is a client's session with its present state.
type Session struct {
	puntuale.Session
	State SessionState
}

// NewSession is a request to create a session.
type NewSession struct {
	Name    string
	Type    string // Socket, Send_app, Official
	Sandbox *bool  // nil: as the server is set
}

// CreateSession creates a session beside the client's default one. Codes: invalid, forbidden.
func (c *Client) CreateSession(ctx context.Context, r NewSession) (Session, error) {
	if err := c.MayCreate(); err != nil {
		return Session{}, err
	}
	var f faults
	f.required("body.name", r.Name, puntuale.MaxName)
	kind, err := puntuale.ParseConnectionType(r.Type)
	switch {
	case r.Type == "":
		f.add("body.connection_type", "is required", nil)
	case err != nil:
		f.add("body.connection_type", "is not one of Socket, Send_app, Official", r.Type)
	}
	if err := f.err(); err != nil {
		return Session{}, err
	}
	s := puntuale.Session{Client: c.account.ID, Name: r.Name, Type: kind, Sandbox: c.control.sandbox, Created: c.control.clock.Now()}
	if r.Sandbox != nil {
		s.Sandbox = *r.Sandbox
	}
	s.ID, err = c.tenant.CreateSession(ctx, s)
	if err != nil {
		return Session{}, fmt.Errorf("create a session: %w", err)
	}
	c.control.hint(s.ID, time.Time{})
	return stateOf(s), nil
}

// Session returns one session. Codes: not_found.
func (c *Client) Session(ctx context.Context, id string) (Session, error) {
	wanted, err := puntuale.ParseID[puntuale.SessionID](id)
	if err != nil {
		return Session{}, puntuale.NotFound("session")
	}
	s, err := c.tenant.Session(ctx, wanted)
	if err != nil {
		return Session{}, fmt.Errorf("read session %d: %w", wanted, err)
	}
	return stateOf(s), nil
}

// Sessions lists the client's sessions by id. Codes: invalid.
func (c *Client) Sessions(ctx context.Context, p Page) ([]Session, string, error) {
	rows, next, err := list(p, func(p puntuale.Page) ([]puntuale.Session, string, error) { return c.tenant.Sessions(ctx, p) })
	if err != nil {
		return nil, "", fmt.Errorf("list sessions: %w", err)
	}
	sessions := make([]Session, len(rows))
	for i, s := range rows {
		sessions[i] = stateOf(s)
	}
	return sessions, next, nil
}

func stateOf(s puntuale.Session) Session {
	if s.Sandbox {
		return Session{s, SessionOnline}
	}
	return Session{s, SessionUnlinked}
}
