package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/webhook"
	"puntuale/internal/httpapi/docs"
	"puntuale/internal/httpkit"
)

// operation describes a call, for its registration.
type operation struct {
	id, method, path, summary string
	description               string // what the summary leaves out, in whole sentences

	body       any                      // a zero value of the type that documents the body; nil: the call accepts no body
	optional   bool                     // the body may be absent
	upload     int64                    // the largest body in bytes, if the verb itself reads the body while it arrives; 0: the body is read before the verb runs
	bodyBytes  int64                    // the largest body, in bytes; 0: admission.MaxBody
	creates    func(*http.Request) bool // reports whether the call creates or sends, which an expired account may not do; nil: the call never does
	proven     func(*http.Request) bool // reports whether the verb's own transaction checks the caller again, so that the server may find the caller in memory; nil: the transaction never checks
	strict     bool                     // a query parameter that is not documented is a fault
	prevents   bool                     // the call prevents sends, so the gate admits it before other calls
	versioned  bool                     // the answer has the header ETag
	idempotent bool                     // a repeat with the same Idempotency-Key gets the first answer
	refusals   []int                    // statuses of refusals, except those that every call has
}

// replayedHeader is set in an answer that was given before, to an earlier call with the same Idempotency-Key.
const replayedHeader = "Idempotent-Replayed"

// answer wraps a body in the form that huma sends.
type answer struct{ Body writtenBytes }

// clientVerb and partnerVerb answer one call. I contains the values of the path, the query and the headers. The call
// contains the body.
type (
	clientVerb[I, T any]  func(context.Context, *control.Client, *call, *I) (T, error)
	partnerVerb[I, T any] func(context.Context, *account.Partner, *call, *I) (T, error)
)

// client registers a call that requires a client's key.
func client[I, T any](a *api, op operation, verb clientVerb[I, T]) {
	register(a, puntuale.ClientSide, op, func(ctx context.Context, c *call, in *I) (T, error) {
		return verb(ctx, c.client, c, in)
	})
}

// partner registers a call that requires a partner's key.
func partner[I, T any](a *api, op operation, verb partnerVerb[I, T]) {
	register(a, puntuale.PartnerSide, op, func(ctx context.Context, c *call, in *I) (T, error) {
		return verb(ctx, c.partner, c, in)
	})
}

// eitherSide stands for calls that accept a client's key or a partner's key.
const eitherSide puntuale.Side = "client or partner"

// ownerVerb answers one call about webhooks.
type ownerVerb[I, T any] func(context.Context, *webhook.Owner, *call, *I) (T, error)

// registerOwned registers a call about webhooks. The caller's key decides whether a client or a partner owns the
// webhooks.
func registerOwned[I, T any](a *api, op operation, verb ownerVerb[I, T]) {
	register(a, eitherSide, op, func(ctx context.Context, c *call, in *I) (out T, err error) {
		owner, err := c.owner(a)
		if err != nil {
			return out, err
		}
		return verb(ctx, owner, c, in)
	})
}

// owner returns access to the webhooks of the call's client or partner.
func (c *call) owner(a *api) (*webhook.Owner, error) {
	if c.partner != nil {
		return a.webhooks.OfPartner(c.partner.ID(), c.key), nil
	}
	return a.webhooks.OfClient(c.client, c.key)
}

// clientOnce and partnerOnce register calls that have their effect only once for each Idempotency-Key. Their verbs may
// return the answer of an earlier call, as a [*puntuale.Replayed] error.
func clientOnce[I, T any](a *api, op operation, verb clientVerb[I, T]) {
	op.idempotent = true
	client(a, op, func(ctx context.Context, c *control.Client, in *call, p *I) (onceAnswer[T], error) {
		value, err := verb(ctx, c, in, p)
		return onceAnswerOf(in, value, err)
	})
}

func partnerOnce[I, T any](a *api, op operation, verb partnerVerb[I, T]) {
	op.idempotent = true
	partner(a, op, func(ctx context.Context, c *account.Partner, in *call, p *I) (onceAnswer[T], error) {
		value, err := verb(ctx, c, in, p)
		return onceAnswerOf(in, value, err)
	})
}

func register[I, T any](a *api, side puntuale.Side, op operation, verb func(context.Context, *call, *I) (T, error)) {
	known := map[string]bool{}
	huma.Register(a.API, a.describe(side, op, known), func(ctx context.Context, in *I) (*answer, error) {
		c := callOf(ctx)
		refund, err := c.spend(ctx, op)
		if err != nil {
			return nil, a.problem(ctx, err)
		}
		body, err := verb(ctx, c, in)
		c.pass.LeaveSeat() // the call has no seat while the answer is sent, because the caller may read slowly
		if err != nil {
			refund()
			return nil, a.problem(ctx, err)
		}
		return &answer{a.written(body)}, nil
	})
	a.documentAnswer(op, reflect.TypeFor[T]())
	a.document(op, known)
}

// written returns the function that writes an answer. All answers have this one type, because the compiler copies huma's
// function for each pair of types, which made the program three megabytes larger.
func (a *api) written(body any) writtenBytes {
	if write, ok := body.(writtenBytes); ok {
		return write
	}
	return func(c huma.Context) {
		c.SetHeader("Content-Type", "application/json")
		c.SetStatus(http.StatusOK)
		if err := a.Marshal(c.BodyWriter(), "application/json", body); err != nil && c.Context().Err() == nil {
			panic(fmt.Errorf("write an answer: %w", err))
		}
	}
}

// documentAnswer describes the answer of an operation. Answers that verbs write are described elsewhere.
func (a *api) documentAnswer(op operation, kind reflect.Type) {
	if kind.Kind() == reflect.Func {
		return
	}
	schema := a.OpenAPI().Components.Schemas.Schema(kind, true, "")
	a.documented(op).Responses["200"].Content = map[string]*huma.MediaType{"application/json": {Schema: schema}}
}

// describe returns what huma needs to know about an operation. The parts of register that do not depend on its types are
// functions of their own, for the same reason.
func (a *api) describe(side puntuale.Side, op operation, known map[string]bool) huma.Operation {
	return huma.Operation{
		OperationID: op.id, Method: op.method, Path: op.path, Summary: op.summary,
		Description:        op.describe(side),
		Tags:               []string{docs.SubjectOf(op.path)},
		Security:           []map[string][]string{{"bearer": {}}, {"query": {}}},
		Responses:          a.responses(op),
		Middlewares:        huma.Middlewares{a.enter(side, op, known)},
		SkipValidateParams: true, // a refusal with not_found must come before the refusal of a parameter
	}
}

// document completes the document of an operation that huma knows, and notes the names of its query parameters in known.
func (a *api) document(op operation, known map[string]bool) {
	documented := a.documented(op)
	for _, p := range documented.Parameters {
		if p.In == "query" {
			known[p.Name] = true
		}
	}
	if op.body != nil {
		a.documentBody(documented, op)
	}
	documentExample(documented)
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

// documented returns an operation's entry in the OpenAPI document.
func (a *api) documented(op operation) *huma.Operation {
	item := a.OpenAPI().Paths[op.path]
	return map[string]*huma.Operation{
		http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put, http.MethodDelete: item.Delete,
		http.MethodPatch: item.Patch,
	}[op.method]
}

// describe returns the description of an operation: its own sentences, and what follows from its registration.
func (op operation) describe(side puntuale.Side) string {
	sentences := []string{op.description}
	switch side {
	case puntuale.ClientSide:
		sentences = append(sentences, "Takes a client's key.")
	case puntuale.PartnerSide:
		sentences = append(sentences, "Takes a partner's key.")
	case puntuale.DeviceSide:
		sentences = append(sentences, "Takes a device's token.")
	case eitherSide:
		sentences = append(sentences, "Takes a client's or a partner's key.")
	}
	if op.idempotent {
		sentences = append(sentences, "A repeat with the same `Idempotency-Key` gets the first answer, and has no further effect.")
	}
	if op.versioned {
		sentences = append(sentences, "The answer has an `ETag`. A change with `If-Match` is refused with 412 if there is a newer version.")
	}
	return strings.TrimSpace(strings.Join(sentences, " "))
}

// documentExample adds the example of an answer, if there is one.
func documentExample(documented *huma.Operation) {
	for _, content := range documented.Responses["200"].Content {
		content.Example = docs.AnswerOf(documented.OperationID)
	}
}

// documentBody describes the body in the document. It must run after the registration: if huma knew the body then, huma
// itself would read the body of each call. This package must read the bodies, because refusals come in a fixed order.
func (a *api) documentBody(documented *huma.Operation, op operation) {
	schema := a.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(op.body), true, op.id+"Request")
	documented.RequestBody = &huma.RequestBody{
		Required: !op.optional,
		Content:  map[string]*huma.MediaType{"application/json": {Schema: schema, Example: docs.ExampleOf(op.id)}},
	}
	if slices.ContainsFunc(membersOf(reflect.TypeOf(op.body)), func(m bodyMember) bool { return m.check == closedCheck{} }) {
		a.strictBodies[path.Base(schema.Ref)] = true
	}
}

// responses documents the statuses and forms of a call's answers, including all refusals.
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

// writtenBytes is an answer that the verb itself writes, because the answer may be too long for memory.
type writtenBytes = func(huma.Context)

// spoolMemory is the largest number of bytes that a spool holds in memory.
const spoolMemory = 64 << 10

// spool stores the bytes of an answer until the answer is sent. At most spoolMemory bytes are in memory. All other
// bytes are in a file without a name.
type spool struct {
	folder string
	memory bytes.Buffer
	file   *os.File // nil: all bytes are in memory so far
}

func (s *spool) Write(p []byte) (int, error) {
	if s.memory.Len()+len(p) > spoolMemory {
		if err := s.flush(); err != nil {
			return 0, err
		}
	}
	return s.memory.Write(p)
}

// flush moves the bytes in memory into the file.
func (s *spool) flush() error {
	if s.file == nil {
		if err := os.MkdirAll(s.folder, 0o700); err != nil {
			return fmt.Errorf("keep an answer on disk: %w", err)
		}
		f, err := os.CreateTemp(s.folder, "answer-*")
		if err != nil {
			return fmt.Errorf("keep an answer on disk: %w", err)
		}
		s.file = f
		if err := os.Remove(f.Name()); err != nil {
			return fmt.Errorf("keep an answer on disk: %w", err)
		}
	}
	if _, err := s.memory.WriteTo(s.file); err != nil {
		return fmt.Errorf("keep an answer on disk: %w", err)
	}
	return nil
}

// answer writes begin, then the stored bytes, and then end.
func (s *spool) answer(to io.Writer, begin, end []byte) error {
	parts := []io.Reader{bytes.NewReader(begin), &s.memory, bytes.NewReader(end)}
	if s.file != nil {
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("read an answer from disk: %w", err)
		}
		parts = []io.Reader{parts[0], s.file, parts[1], parts[2]}
	}
	for _, part := range parts {
		if _, err := io.CopyBuffer(plainWriter{to}, part, make([]byte, 32<<10)); err != nil {
			return err
		}
	}
	return nil
}

// plainWriter hides a writer's method ReadFrom, because ReadFrom would bypass the time limits for slow readers.
type plainWriter struct{ io.Writer }

func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// listWriter writes the entries of a JSON list, separated by commas and without the brackets.
type listWriter struct {
	to   io.Writer
	more bool
}

func (l *listWriter) add(entry any) error {
	text, err := render(entry)
	if err != nil {
		return err
	}
	if l.more {
		text = append([]byte{','}, text...)
	}
	l.more = true
	_, err = l.to.Write(text)
	return err
}
