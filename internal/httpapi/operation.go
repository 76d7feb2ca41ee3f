package httpapi

import (
	"context"
	"maps"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/webhook"
	"puntuale/internal/httpkit"
)

// operation describes a call when it is registered.
type operation struct {
	id, method, path, summary string

	body       any                      // a zero value of the type that documents the body; nil: the call takes none
	optional   bool                     // the body may be absent
	upload     int64                    // the verb reads the body while it arrives, at most this many bytes; 0: it does not
	bodyBytes  int64                    // largest body in bytes; 0: httpkit.MaxBody
	creates    func(*http.Request) bool // reports whether the call creates or sends, which an expired account may not do; nil: never
	proven     func(*http.Request) bool // reports whether the store itself checks the caller, so that a remembered caller is enough; nil: never
	strict     bool                     // a query parameter that is not documented is a fault
	closed     bool                     // an undocumented member of the body is a fault
	prevents   bool                     // prevents sending, and so comes before other calls at the gate
	versioned  bool                     // its answer shows a version
	idempotent bool                     // a repeat under the same Idempotency-Key gives the first answer
	refusals   []int                    // statuses of refusals, besides those that every call may have
}

// replayedHeader marks the answer of an earlier call.
const replayedHeader = "Idempotent-Replayed"

// answer is the answer that huma sends.
type answer[T any] struct{ Body T }

// clientVerb and partnerVerb answer one call. Input has the path, the query and the headers. The body is in the call.
type (
	clientVerb[I, T any]  func(context.Context, *control.Client, *call, *I) (T, error)
	partnerVerb[I, T any] func(context.Context, *account.Partner, *call, *I) (T, error)
)

// client registers a call that takes a client's key.
func client[I, T any](a *api, op operation, verb clientVerb[I, T]) {
	register(a, puntuale.ClientSide, op, func(ctx context.Context, c *call, in *I) (T, error) {
		return verb(ctx, c.client, c, in)
	})
}

// partner registers a call that takes a partner's key.
func partner[I, T any](a *api, op operation, verb partnerVerb[I, T]) {
	register(a, puntuale.PartnerSide, op, func(ctx context.Context, c *call, in *I) (T, error) {
		return verb(ctx, c.partner, c, in)
	})
}

// eitherSide is the side of calls that take a client's key or a partner's.
const eitherSide puntuale.Side = "client or partner"

// ownerVerb answers one call about webhooks.
type ownerVerb[I, T any] func(context.Context, *webhook.Owner, *call, *I) (T, error)

// either registers a call about the webhooks of a client, or of a partner, by the key.
func either[I, T any](a *api, op operation, verb ownerVerb[I, T]) {
	register(a, eitherSide, op, func(ctx context.Context, c *call, in *I) (out T, err error) {
		owner, err := c.owner(a)
		if err != nil {
			return out, err
		}
		return verb(ctx, owner, c, in)
	})
}

// owner reaches the webhooks of the call's client or partner.
func (c *call) owner(a *api) (*webhook.Owner, error) {
	if c.partner != nil {
		return a.webhooks.OfPartner(c.partner.ID(), c.key), nil
	}
	return a.webhooks.OfClient(c.client, c.key)
}

// clientOnce and partnerOnce register calls whose verbs may return an earlier call's answer, as a [*puntuale.Replayed].
func clientOnce[I, T any](a *api, op operation, verb clientVerb[I, T]) {
	op.idempotent = true
	client(a, op, func(ctx context.Context, c *control.Client, in *call, p *I) (reply[T], error) {
		value, err := verb(ctx, c, in, p)
		return replyOf(in, value, err)
	})
}

func partnerOnce[I, T any](a *api, op operation, verb partnerVerb[I, T]) {
	op.idempotent = true
	partner(a, op, func(ctx context.Context, c *account.Partner, in *call, p *I) (reply[T], error) {
		value, err := verb(ctx, c, in, p)
		return replyOf(in, value, err)
	})
}

func register[I, T any](a *api, side puntuale.Side, op operation, verb func(context.Context, *call, *I) (T, error)) {
	known := map[string]bool{}
	described := huma.Operation{
		OperationID: op.id, Method: op.method, Path: op.path, Summary: op.summary,
		Tags:               []string{string(side)},
		Security:           []map[string][]string{{"bearer": {}}, {"api_key": {}}},
		Responses:          a.responses(op),
		Middlewares:        huma.Middlewares{a.enter(side, op, known)},
		SkipValidateParams: true, // the refusal of a parameter comes after not_found
	}
	huma.Register(a.API, described, func(ctx context.Context, in *I) (*answer[T], error) {
		c := callOf(ctx)
		body, err := verb(ctx, c, in)
		c.pass.Rest() // a slow reader needs no seat
		if err != nil {
			return nil, a.problem(ctx, err)
		}
		return &answer[T]{body}, nil
	})
	documented := a.documented(op)
	for _, p := range documented.Parameters {
		if p.In == "query" {
			known[p.Name] = true
		}
	}
	if op.body != nil {
		a.documentBody(documented, op)
	}
	if op.versioned {
		documentTag(documented)
	}
	if op.idempotent {
		documented.Responses["200"].Headers = map[string]*huma.Param{replayedHeader: {
			Description: "true when an earlier call's answer is given again",
			Schema:      &huma.Schema{Type: "string", Enum: []any{"true"}},
		}}
	}
}

// documented finds an operation in the document.
func (a *api) documented(op operation) *huma.Operation {
	item := a.OpenAPI().Paths[op.path]
	return map[string]*huma.Operation{
		http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodDelete: item.Delete,
		http.MethodPatch: item.Patch,
	}[op.method]
}

// documentBody describes the body. It must run after the registration: otherwise huma would read the body, but this
// package reads it before, in the order of refusals.
func (a *api) documentBody(documented *huma.Operation, op operation) {
	schema := a.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(op.body), true, op.id+"Request")
	documented.RequestBody = &huma.RequestBody{
		Required: !op.optional,
		Content:  map[string]*huma.MediaType{"application/json": {Schema: schema, Example: exampleOf(op.id)}},
	}
	if op.closed {
		a.strictBodies[path.Base(schema.Ref)] = true
	}
}

// responses documents the refusals of a call.
func (a *api) responses(op operation) map[string]*huma.Response {
	statuses := map[int]bool{400: true, 401: true, 403: true, 413: true, 422: true, 429: true, 500: true, 503: true}
	for _, status := range op.refusals {
		statuses[status] = true
	}
	schema := a.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[httpkit.Problem](), true, "Problem")
	responses := map[string]*huma.Response{}
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status),
			Content:     map[string]*huma.MediaType{httpkit.ProblemType: {Schema: schema}},
		}
	}
	return responses
}
