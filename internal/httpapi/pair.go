package httpapi

import (
	"context"
	"net/http"

	"puntuale"
	"puntuale/internal/control"
)

func registerPairs(a *api) {
	const path = "/api/session/{id_session}/defaultSequence"
	client(a, operation{id: "getDefaultSequences", method: http.MethodGet, path: path, versioned: true,
		summary: "Get a session's default sequences", refusals: []int{http.StatusNotFound}}, getPair)
	client(a, operation{id: "setDefaultSequences", method: http.MethodPut, path: path, body: pairBody{}, versioned: true,
		summary: "Set a session's default sequences, as a pair", refusals: changes(http.StatusNotFound)}, withBody(setPair))
}

type pairInput struct {
	ID string `path:"id_session" doc:"ID of the session"`
}

type pairChangeInput struct {
	ID    string `path:"id_session" doc:"ID of the session"`
	Match string `header:"If-Match" doc:"Entity tags, as ETag showed them: the change is made if what is stored has one of them, else the answer is 412. * or nothing: it is made in any case"`
}

// pairBody documents the body of the call that sets a session's default sequences. Null means no sequence. An absent
// member is refused, because the caller may expect that the value does not change.
type pairBody struct {
	Start string `json:"start" read:"id,given" nullable:"true" doc:"ID of the start sequence; empty or null: none. A number is taken too."`
	Stop  string `json:"stop" read:"id,given" nullable:"true" doc:"ID of the stop sequence; empty or null: none. A number is taken too."`
}

type pairAnswer struct {
	Start string `json:"start" doc:"ID of the start sequence; empty: none"`
	Stop  string `json:"stop" doc:"ID of the stop sequence; empty: none"`
}

func getPair(ctx context.Context, c *control.Client, in *call, p *pairInput) (pairAnswer, error) {
	s, err := c.Session(ctx, p.ID)
	if err != nil {
		return pairAnswer{}, err
	}
	in.tagged(s.PairVersion())
	return pairOf(s), nil
}

func setPair(ctx context.Context, c *control.Client, in *call, p *pairChangeInput, body *pairBody) (pairAnswer, error) {
	known, faults := in.knownVersions()
	s, err := c.SetDefaultPair(ctx, p.ID, body.Start, body.Stop, known, append(in.refused, faults...)...)
	if err != nil {
		return pairAnswer{}, err
	}
	in.tagged(s.PairVersion())
	return pairOf(s), nil
}

func pairOf(s control.Session) pairAnswer {
	text := func(id puntuale.SequenceID) string {
		if id == 0 {
			return ""
		}
		return id.String()
	}
	return pairAnswer{text(s.Start), text(s.Stop)}
}
