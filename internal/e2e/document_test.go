//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// documentPath is the repository's copy of the document that the binary serves (TestServedDocument).
var documentPath = filepath.Join("..", "httpapi", "testdata", "openapi.json")

// document compares every call of these tests, and its answer, with the OpenAPI document. Goroutines that belong to no
// test make some calls. Therefore document collects the differences. If there are any, the whole test program fails.
var document comparison

type comparison struct {
	once   sync.Once
	router routers.Router

	others sync.Map // hosts of servers of other versions; these servers have other documents

	mu    sync.Mutex
	seen  map[string]int // number of calls, by operation and status
	wrong []string
}

// Tests under load make the same call thousands of times. document compares the first calls of each kind, and then only
// some calls.
const (
	comparedFirst = 100
	comparedEvery = 25
)

func (c *comparison) open() {
	d, err := openapi3.NewLoader().LoadFromFile(documentPath)
	if err == nil {
		d.Servers = nil
		c.router, err = legacy.NewRouter(d)
	}
	if err != nil {
		c.differs("the document: %v", err)
	}
	c.seen = map[string]int{}
}

// compare stores a difference if the document does not describe the answer. It also stores one if the server accepted a
// request that the document does not describe.
func (c *comparison) compare(sent *http.Request, body []byte, a answer) {
	c.once.Do(c.open)
	if _, other := c.others.Load(sent.URL.Host); other || c.router == nil {
		return
	}
	request, err := http.NewRequest(sent.Method, sent.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return
	}
	request.Header = sent.Header.Clone()
	route, params, err := c.router.FindRoute(request)
	if err != nil {
		if strings.HasPrefix(sent.URL.Path, "/api/") && a.status == http.StatusOK {
			c.differs("%s %s is not in the document", sent.Method, sent.URL.Path)
		}
		return
	}
	if !c.wanted(fmt.Sprint(route.Operation.OperationID, a.status)) {
		return
	}
	in := &openapi3filter.RequestValidationInput{Request: request, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}}
	if a.status == http.StatusOK {
		if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil {
			c.differs("%s %s was accepted with %s: %v", sent.Method, sent.URL.Path, body, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: a.status, Header: a.header, Options: &openapi3filter.Options{IncludeResponseStatus: true},
	}
	out.SetBodyBytes(a.body)
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		c.differs("%s %s was answered %d %s: %v", sent.Method, sent.URL.Path, a.status, a.body, err)
	}
}

func (c *comparison) wanted(kind string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.seen[kind]
	c.seen[kind]++
	return n < comparedFirst || n%comparedEvery == 0
}

func (c *comparison) differs(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) < 20 {
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	}
}

// report writes the differences, and reports whether there were any.
func (c *comparison) report(w io.Writer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range c.wrong {
		fmt.Fprintln(w, "not as in the OpenAPI document:", line)
	}
	return len(c.wrong) > 0
}

// TestServedDocument: the binary serves the document with which calls are compared.
func TestServedDocument(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "puntuale.db"))
	copied, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	if err := json.Unmarshal(copied, &want); err != nil {
		t.Fatal(err)
	}
	must(t, "GET", s.base+"/openapi.json", "", nil).into(t, &got)
	if !reflect.DeepEqual(got, want) {
		t.Error("the binary serves another document than internal/httpapi/testdata/openapi.json")
	}
}
