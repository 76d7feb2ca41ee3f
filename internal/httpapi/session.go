package httpapi

import (
	"context"
	"net/http"

	"puntuale/internal/control"
)

func registerSessions(a *api) {
	const all, one = "/api/sessions", "/api/sessions/{id}"
	client(a, operation{id: "listSessions", method: http.MethodGet, path: all, strict: true,
		summary: "List the sessions, by id"}, listSessions)
	clientOnce(a, operation{id: "createSession", method: http.MethodPost, path: all, creates: always, body: sessionBody{},
		summary: "Create a session beside the default one", refusals: []int{http.StatusConflict}}, createSession)
	client(a, operation{id: "getSession", method: http.MethodGet, path: one,
		summary: "Get a session", refusals: []int{http.StatusNotFound}}, getSession)
	client(a, operation{id: "deleteSession", method: http.MethodDelete, path: one,
		summary: "Delete a session other than the default one", refusals: []int{http.StatusNotFound, http.StatusConflict}}, deleteSession)
}

// sessionBody documents the body of a session.
type sessionBody struct {
	Name    string `json:"name" minLength:"1" maxLength:"200"`
	Type    string `json:"connection_type" enum:"Socket,Send_app,Official" doc:"How it reaches the network; it never changes"`
	Sandbox *bool  `json:"sandbox,omitempty" doc:"Whether the simulated network takes its messages; else as the server is set"`
}

type sessionAnswer struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Type    string `json:"connection_type" enum:"Socket,Send_app,Official"`
	Sandbox bool   `json:"sandbox" doc:"The simulated network takes its messages"`
	Default bool   `json:"default" doc:"Used by sequences that name none"`
	State   string `json:"state" enum:"online,unlinked"`
	Created string `json:"created_at" format:"date-time"`
}

type sessionsAnswer struct {
	Sessions []sessionAnswer `json:"sessions"`
	Next     *string         `json:"next_cursor"`
}

func listSessions(ctx context.Context, c *control.Client, in *call, p *ListInput) (sessionsAnswer, error) {
	rows, next, err := c.Sessions(ctx, p.page(in))
	if err != nil {
		return sessionsAnswer{}, err
	}
	return sessionsAnswer{each(rows, sessionOf), textOrNull(next)}, nil
}

func createSession(ctx context.Context, c *control.Client, in *call, p *OnceInput) (sessionAnswer, error) {
	body, err := in.object()
	if err != nil {
		return sessionAnswer{}, err
	}
	asked := control.NewSession{Name: body.text("name"), Type: body.text("connection_type"), Sandbox: body.flag("sandbox")}
	if err := body.err(); err != nil {
		return sessionAnswer{}, err
	}
	if body.has("official") {
		body.refuse("official", "is not taken: this version does not connect Official sessions yet", nil)
	}
	asked.Faults = *body.refused
	created, err := c.CreateSession(ctx, asked, once(in, p, sessionOf))
	if err != nil {
		return sessionAnswer{}, err
	}
	return sessionOf(created), nil
}

func getSession(ctx context.Context, c *control.Client, _ *call, p *oneInput) (sessionAnswer, error) {
	found, err := c.Session(ctx, p.ID)
	if err != nil {
		return sessionAnswer{}, err
	}
	return sessionOf(found), nil
}

func sessionOf(s control.Session) sessionAnswer {
	return sessionAnswer{s.ID.String(), s.Name, string(s.Type), s.Sandbox, s.Default, string(s.State), stamp(s.Created)}
}

type deleteSessionInput struct {
	ID      string `path:"id" doc:"ID"`
	Pending string `query:"pending" enum:"cancel" doc:"Pending messages are cancelled"`
	MoveTo  string `query:"move_to" doc:"ID of the session that sends pending messages instead"`
}

func deleteSession(ctx context.Context, c *control.Client, _ *call, p *deleteSessionInput) (messageAnswer, error) {
	if err := c.DeleteSession(ctx, p.ID, p.Pending, p.MoveTo); err != nil {
		return messageAnswer{}, err
	}
	return messageAnswer{"Sessione eliminata"}, nil
}
