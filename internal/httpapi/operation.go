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
	"puntuale/internal/httpkit"
)

// operation is what is said about a call when it is registered.
type operation struct {
	id, method, path, summary string

	body       any                      // a zero value of the type that documents the body; nil: the call takes none
	optional   bool                     // the body may be absent
	upload     int64                    // the verb reads the body as it comes, at most so many bytes; 0: it does not
	bodyBytes  int64                    // the body may have as many; 0: httpkit.MaxBody
	creates    func(*http.Request) bool // whether the call creates or sends, which an expired account may not; nil: it does not
	proven     func(*http.Request) bool // whether what it does is proven by the store, so that the caller may be remembered; nil: it is not
	strict     bool                     // a query parameter that is not documented is a fault
	closed     bool                     // so is a member of the body
	prevents   bool                     // keeps messages from being sent, and so goes before other calls
	versioned  bool                     // its answer shows a version
	idempotent bool                     // a repeat under the same Idempotency-Key gives the first answer
	refusals   []int                    // statuses besides those that every call may have
}

// replayedHeader marks the answer of an earlier call.
const replayedHeader = "Idempotent-Replayed"

// answer is what huma sends.
type answer[T any] struct{ Body T }

// clientVerb and partnerVerb answer one call. Input holds the path, the query and the headers; the body is the call's.
type (
	clientVerb[I, T any]  func(context.Context, *control.Client, *call, *I) (T, error)
	partnerVerb[I, T any] func(context.Context, *control.Partner, *call, *I) (T, error)
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
	partner(a, op, func(ctx context.Context, c *control.Partner, in *call, p *I) (reply[T], error) {
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
		SkipValidateParams: true, // a faulty parameter comes after a thing that is not there
	}
	huma.Register(a.API, described, func(ctx context.Context, in *I) (*answer[T], error) {
		c := callOf(ctx)
		body, err := verb(ctx, c, in)
		c.pass.Rest() // a slow reader needs no place
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

// documentBody describes the body. It is done after the registration: huma reads every body that it knows of, and this
// one is read before, within the order of refusals.
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

// responses documents what a call may be refused with.
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
