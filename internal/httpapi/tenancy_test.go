package httpapi_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
)

// tenant is a client with one of everything.
type tenant struct {
	key, session, sequence, message, phone string
}

func newTenant(s *service, email, phone string) tenant {
	s.t.Helper()
	var created struct {
		Key     string `json:"api_key"`
		Session string `json:"id_sessione"`
	}
	s.must(&created, "POST", "/api/client/create", s.partner, `{"name":"x","email":"`+email+`","password":"p","phone":"1"}`)
	c := tenant{key: created.Key, session: created.Session, phone: phone}
	c.sequence = s.newSequence(c.key, stepLater)
	var run started
	s.must(&run, "POST", "/api/start/"+c.sequence, c.key, `{"phone":"`+phone+`","testo":"secret of `+email+`"}`)
	c.message = run.ID[0]
	s.must(nil, "POST", "/api/blacklist", c.key, `{"phone":"`+phone+`","reason":"`+email+`"}`)
	return c
}

// operations are one good call of each documented operation, as the document wants it. own names what belongs to the
// caller; with a foreign thing in its place, missing is a thing that nobody has.
var operations = map[string]struct {
	method, path, body string
	partner            bool
	foreign            string // what must come of a foreign id: "404", or "" when the call names none
}{
	"createClient":          {"POST", "/api/client/create", `{"name":"x","email":"new@x","password":"p","phone":"1"}`, true, ""},
	"createSequence":        {"POST", "/api/sequences", `{"name":"x","id_sessione":"{session}","steps":[` + stepNow + `]}`, false, "422"},
	"listSequences":         {"GET", "/api/sequences?limit=10", "", false, ""},
	"getSequence":           {"GET", "/api/sequences/{sequence}", "", false, "404"},
	"replaceSequence":       {"PUT", "/api/sequences/{sequence}", `{"name":"x","id_sessione":"{session}","steps":[` + stepLater + `]}`, false, "404"},
	"startSequence":         {"POST", "/api/start/{sequence}", `{"phone":"+393331234567","testo":"t"}`, false, "404"},
	"stopSequence":          {"POST", "/api/stop/{sequence}", `{"phone":"+393331234567"}`, false, "404"},
	"getMessageDetails":     {"GET", "/api/messages/details?message_ids[]={message}", "", false, "200"},
	"createSession":         {"POST", "/api/sessions", `{"name":"x","connection_type":"Socket"}`, false, ""},
	"listSessions":          {"GET", "/api/sessions", "", false, ""},
	"getSession":            {"GET", "/api/sessions/{session}", "", false, "404"},
	"addToBlacklist":        {"POST", "/api/blacklist", `{"phone":"+393331234567"}`, false, ""},
	"listBlacklist":         {"GET", "/api/blacklist", "", false, ""},
	"removeFromBlacklist":   {"DELETE", "/api/blacklist/remove", `{"phone":"+393331234567"}`, false, ""},
	"listSandboxMessages":   {"GET", "/api/sandbox/messages", "", false, ""},
	"cancelPendingMessages": {"POST", "/api/messages/cancel/pending", `{"phones":["+393331234567"]}`, false, ""},
	"deleteSequence":        {"DELETE", "/api/sequences/{sequence}?pending=cancel", "", false, "404"},
}

func (c tenant) fill(text string) string {
	return strings.NewReplacer("{session}", c.session, "{sequence}", c.sequence, "{message}", c.message).Replace(text)
}

// documented lists the operations of the OpenAPI document.
func documented(t *testing.T) []string {
	t.Helper()
	d, err := loadDocument()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(d.raw)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			ids = append(ids, op.OperationID)
		}
	}
	slices.Sort(ids)
	return ids
}

// Every operation is answered 200 when it is called as the document says; one without a row here fails.
func TestDocumentedCalls(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	d, err := loadDocument()
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range documented(t) {
		op, ok := operations[id]
		if !ok {
			t.Errorf("operation %s has no row", id)
			continue
		}
		own := newTenant(s, fmt.Sprintf("own%d@x", i), "+393330000001")
		key := own.key
		if op.partner {
			key = s.partner
		}
		r := httptest.NewRequestWithContext(t.Context(), op.method, own.fill(op.path), strings.NewReader(own.fill(op.body)))
		r.Header.Set("Authorization", "Bearer "+key)
		if op.body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		route, params, err := d.router.FindRoute(r)
		if err != nil || route.Operation.OperationID != id {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if err := openapi3filter.ValidateRequest(t.Context(), &openapi3filter.RequestValidationInput{
			Request: r, PathParams: params, Route: route,
			Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
		}); err != nil {
			t.Errorf("%s: the call is not in the document: %v", id, err)
		}
		r = httptest.NewRequestWithContext(t.Context(), op.method, own.fill(op.path), strings.NewReader(own.fill(op.body)))
		r.Header.Set("Authorization", "Bearer "+key)
		if a := s.send(r); a.status != 200 {
			t.Errorf("%s: %d %s", id, a.status, a.body)
		}
	}
}

// What belongs to another client is, byte for byte, what does not exist; and nothing of it shows or changes.
func TestTenancy(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		own, other := newTenant(s, "own@x", "+393330000001"), newTenant(s, "other@x", "+393331234567")
		missing := tenant{session: "999999", sequence: "999999", message: "9007199254740991"}
		before := everything(s, other)
		for _, id := range documented(t) {
			op := operations[id]
			// The wrong key first: nobody's, a revoked one's shape, the other side's.
			wrong := s.partner
			if op.partner {
				wrong = own.key
			}
			if a := s.call(op.method, own.fill(op.path), wrong, own.fill(op.body)); a.status != 403 {
				t.Errorf("%s with the other side's key: %d %s", id, a.status, a.body)
			}
			if a := s.call(op.method, own.fill(op.path), "", own.fill(op.body)); a.status != 401 {
				t.Errorf("%s without a key: %d %s", id, a.status, a.body)
			}
			if op.foreign != "" {
				foreign := s.call(op.method, other.fill(op.path), own.key, other.fill(op.body))
				none := s.call(op.method, missing.fill(op.path), own.key, missing.fill(op.body))
				if foreign.body != none.body || fmt.Sprint(foreign.status) != op.foreign || none.status != foreign.status {
					t.Errorf("%s: foreign %d %s\nmissing %d %s", id, foreign.status, foreign.body, none.status, none.body)
				}
				continue
			}
			if op.partner {
				continue
			}
			if a := s.call(op.method, own.fill(op.path), own.key, own.fill(op.body)); a.status != 200 || strings.Contains(a.body, "other@x") {
				t.Errorf("%s: %d %s", id, a.status, a.body)
			}
		}
		// A body that names a foreign session, and everything of the caller's own.
		s.must(nil, "POST", "/api/messages/cancel/pending", own.key, "")
		s.must(nil, "DELETE", "/api/blacklist/remove", own.key, `{"phone":"`+other.phone+`"}`)
		mixed := tenant{sequence: own.sequence, session: other.session}
		if a := s.call("PUT", mixed.fill("/api/sequences/{sequence}"), own.key, mixed.fill(operations["replaceSequence"].body)); a.status != 422 {
			t.Errorf("a foreign session: %d %s", a.status, a.body)
		}
		if after := everything(s, other); after != before {
			t.Errorf("the other client was\n%s\nand is\n%s", before, after)
		}
	})
}

// everything is all that a client's key can read.
func everything(s *service, c tenant) string {
	s.t.Helper()
	var all strings.Builder
	for _, path := range []string{"/api/sequences", "/api/sessions", "/api/blacklist", "/api/sandbox/messages", "/api/messages/details?message_ids=" + c.message} {
		all.WriteString(s.must(nil, "GET", path, c.key, "").body + "\n")
	}
	return all.String()
}
