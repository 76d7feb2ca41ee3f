package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/httpapi"
	"puntuale/internal/httpapi/docs"
)

// document is the OpenAPI document, with a router that finds the operation for a request.
type document struct {
	raw     []byte
	router  routers.Router
	answers *answerSchemas
}

var loadDocument = sync.OnceValues(func() (document, error) {
	h, err := httpapi.New(httpapi.Config{
		Control: control.New(control.Config{Clock: clock.NewFake(morning)}), Accounts: account.New(account.Config{Clock: clock.NewFake(morning)}), Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return morning },
	})
	if err != nil {
		return document{}, err
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, docs.DocumentPath, nil))
	d, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
	if err != nil {
		return document{}, err
	}
	if err := d.Validate(context.Background(), openapi3.DisableExamplesValidation()); err != nil { // TestAnswersHaveExamples checks the examples
		return document{}, err
	}
	router, err := legacy.NewRouter(d, openapi3.DisableExamplesValidation())
	if err != nil {
		return document{}, err
	}
	answers, err := newAnswerSchemas(w.Body.Bytes())
	return document{w.Body.Bytes(), router, answers}, err
})

// answerSchemas contains the schemas of answers. Each schema is compiled only once, because compiling takes a hundred
// times as long as a check.
type answerSchemas struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema // by their location in the document
}

const documentAddress = "https://example.com/openapi.json"

func newAnswerSchemas(raw []byte) (*answerSchemas, error) {
	d, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	// Answers may get more members in later versions. But in this version, an answer may contain only members that the
	// document names.
	components, _ := d.(map[string]any)["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	if len(schemas) == 0 {
		return nil, fmt.Errorf("the document has no schemas")
	}
	for _, schema := range schemas {
		if s, ok := schema.(map[string]any); ok && s["type"] == "object" && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
	}
	s := &answerSchemas{compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	s.compiler.DefaultDraft(jsonschema.Draft2020)
	s.compiler.AssertFormat()
	return s, s.compiler.AddResource(documentAddress, d)
}

// pointer writes a part of a JSON pointer in an address.
var pointer = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")

// The method at returns the schema of an answer. It fails if the route does not describe the answer's status and media
// type.
func (s *answerSchemas) at(route *routers.Route, status int, kind string) (*jsonschema.Schema, error) {
	key := strconv.Itoa(status)
	if route.Operation.Responses.Value(key) == nil {
		return nil, fmt.Errorf("the status is not described")
	}
	place := documentAddress + "#"
	for _, part := range []string{"paths", route.Path, strings.ToLower(route.Method), "responses", key, "content", kind, "schema"} {
		place += "/" + pointer.Replace(part)
	}
	return s.compile(place)
}

// compile returns the schema at a place of the document.
func (s *answerSchemas) compile(place string) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.compiled[place]; known != nil {
		return known, nil
	}
	schema, err := s.compiler.Compile(place)
	if err != nil {
		return nil, err
	}
	s.compiled[place] = schema
	return schema, nil
}

// check returns an error if the body of an answer does not fit its schema.
func (s *answerSchemas) check(route *routers.Route, a response) error {
	kind, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil {
		return err
	}
	if kind == "text/csv" || kind == "application/octet-stream" {
		return nil // the document has no schema for this media type
	}
	schema, err := s.at(route, a.status, kind)
	if err != nil {
		return err
	}
	body, err := jsonschema.UnmarshalJSON(strings.NewReader(a.body))
	if err != nil {
		return err
	}
	return schema.Validate(body)
}

// checkAgainstDocument fails the test if the OpenAPI document does not describe the answer.
func checkAgainstDocument(t *testing.T, r *http.Request, a response) {
	t.Helper()
	d, err := loadDocument()
	if err != nil {
		t.Fatal(err)
	}
	tidied := r.Clone(r.Context())
	tidied.URL.Path = strings.TrimSuffix(r.URL.Path, "/")
	route, params, err := d.router.FindRoute(tidied)
	if err != nil || a.status == http.StatusMethodNotAllowed || strings.Contains(a.body, `"no such path"`) { // the request reached no operation
		return
	}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: a.status, Header: a.header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: true},
	}
	err = openapi3filter.ValidateResponse(r.Context(), out)
	if err == nil {
		err = d.answers.check(route, a)
	}
	if err != nil {
		t.Errorf("%s %s: the answer %d %s is not in the document: %v", r.Method, r.URL.Path, a.status, a.body, err)
	}
}
