package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"puntuale"
)

// locations returns the locations of a problem's faults.
func (a response) locations() []string {
	var p struct {
		Errors []struct{ Location string }
	}
	_ = json.Unmarshal([]byte(a.body), &p)
	at := []string{}
	for _, e := range p.Errors {
		at = append(at, e.Location)
	}
	return at
}

// The test begins with a call that has every fault, and corrects one fault after another. Each time, the call is
// refused for the first remaining fault.
func TestOrderOfRefusals(t *testing.T) {
	t.Parallel()
	databases(t, options{}, orderOfRefusalsTest)
}

func orderOfRefusalsTest(t *testing.T, s *service) {
	key, expired := s.newClient("a@x", "test"), s.newClient("b@x", "test")
	if _, err := s.db.SQL.ExecContext(t.Context(), `update client set expires_at = 1 where email = 'b@x'`); err != nil {
		t.Fatal(err)
	}
	suspended := s.newClient("c@x", "test")
	if _, err := s.db.SQL.ExecContext(t.Context(), `update client set suspended = 1 where email = 'c@x'`); err != nil {
		t.Fatal(err)
	}
	id := s.newSequence(key, stepDate)
	good := `{"phone":"3331234567","quando":"2026-12-01 10:00"}`
	for range 99 {
		s.must(nil, "POST", "/api/start/"+id, key, good)
	}
	s.must(nil, "POST", "/api/start/"+id, key, good, "Idempotency-Key", "used")

	huge := `{"phone":"` + strings.Repeat("1", 1<<20) + `"`
	for _, c := range []struct {
		why, key, sequence, body, query string
		status                          int
	}{
		{"no key", "", "0", huge, "?timezone=%zz", 401},
		{"a wrong side", s.partner, "0", huge, "?timezone=%zz", 403},
		{"a suspended client", suspended, "0", huge, "?timezone=%zz", 403},
		{"an expired client", expired, "0", huge, "?timezone=%zz", 403},
		{"too large", key, "0", huge, "?timezone=%zz", 413},
		{"an unreadable query", key, "0", `{"phone":`, "?timezone=%zz", 400},
		{"an unreadable body", key, "0", `{"phone":`, "?timezone=x", 400},
		{"a wrong type", key, "0", `{"phone":[]}`, "?timezone=x", 400},
		{"no such sequence", key, "0", `{"phone":"x"}`, "?timezone=x", 404},
		{"not allowed", key, id, `{"phone":"x"}`, "?timezone=x&if_running=reject", 422},
		{"a conflict of idempotency", key, id, good + " ", "?if_running=reject", 409},
		{"over the cap", key, id, good, "?if_running=allow", 429},
	} {
		header := []string{"Idempotency-Key", "used"}
		if c.status == 429 {
			header = nil
		}
		if a := s.call("POST", "/api/start/"+c.sequence+c.query, c.key, c.body, header...); a.status != c.status {
			t.Errorf("%s: %d %.200s, want %d", c.why, a.status, a.body, c.status)
		}
	}
	// None of the refused calls was counted. A repeated call gets the stored answer even if the cap is reached.
	a := s.must(nil, "POST", "/api/start/"+id, key, good, "Idempotency-Key", "used")
	if a.header.Get("Idempotent-Replayed") != "true" || !strings.Contains(a.body, `"daily_api_used":100,"daily_api_remaining":0`) {
		t.Errorf("%v %s", a.header, a.body)
	}
	if a := s.call("POST", "/api/start/"+id, key, good); a.status != 429 || a.header.Get("Retry-After") != "48600" {
		t.Errorf("%d %v", a.status, a.header)
	}
}

// The daily cap must never prevent an opt-out. So calls that stop messages or change the blacklist are allowed over the
// cap, but they are counted.
func TestStopsWorkOverTheCap(t *testing.T) {
	t.Parallel()
	databases(t, options{}, stopsWorkOverTheCapTest)
}

func stopsWorkOverTheCapTest(t *testing.T, s *service) {
	key := s.newClient("a@x", "test")
	id := s.newSequence(key, stepLater)
	for range 100 {
		s.must(nil, "POST", "/api/start/"+id, key, `{"phone":"3331234567","testo":"t"}`)
	}
	a := s.must(nil, "POST", "/api/stop/"+id, key, `{"phone":"3331234567"}`)
	if !strings.HasPrefix(a.body, `{"message":"100 messaggi annullati"`) ||
		!strings.HasSuffix(a.body, `"daily_api_cap":100,"daily_api_used":101,"daily_api_remaining":0}`) {
		t.Error(a.body)
	}
	s.must(nil, "POST", "/api/messages/cancel/pending", key, "")
	s.must(nil, "POST", "/api/blacklist", key, `{"phone":"3331234567"}`)
	s.must(nil, "DELETE", "/api/blacklist/remove", key, `{"phone":"3331234567"}`)
	if a := s.must(nil, "POST", "/api/stop/"+id, key, `{"phone":"3331234567"}`); !strings.Contains(a.body, `"daily_api_used":105`) {
		t.Error(a.body)
	}
	// For the daily cap, a day ends at midnight in Rome.
	s.clock.Set(time.Date(2026, 11, 20, 22, 59, 59, 0, time.UTC))
	if a := s.call("POST", "/api/start/"+id, key, `{"phone":"3331234567","testo":"t"}`); a.status != 429 || a.header.Get("Retry-After") != "1" {
		t.Errorf("%d %v", a.status, a.header)
	}
	s.clock.Advance(time.Second)
	if a := s.must(nil, "POST", "/api/start/"+id, key, `{"phone":"3331234567","testo":"t"}`); !strings.Contains(a.body, `"daily_api_used":1,`) {
		t.Error(a.body)
	}
}

func TestAccountsThatMayNotSend(t *testing.T) {
	t.Parallel()
	databases(t, options{}, accountsThatMayNotSendTest)
}

func accountsThatMayNotSendTest(t *testing.T, s *service) {
	key := s.newClient("a@x", "test")
	id := s.newSequence(key, stepLater)
	fields := `{"phone":"3331234567","testo":"t"}`
	calls := []struct {
		method, path, body string
		creates            bool
	}{
		{"POST", "/api/start/" + id, fields, true},
		{"POST", "/api/sequences", `{"name":"x","steps":[` + stepNow + `]}`, true},
		{"POST", "/api/sessions", `{"name":"x","connection_type":"Socket"}`, true},
		{"POST", "/api/start/" + id + "?dry_run=true", fields, false},
		{"POST", "/api/stop/" + id, `{"phone":"3331234567"}`, false},
		{"POST", "/api/messages/cancel/pending", "", false},
		{"GET", "/api/messages/details?message_ids[]=1", "", false},
		{"GET", "/api/sequences", "", false},
		{"GET", "/api/sequences/" + id, "", false},
		{"PUT", "/api/sequences/" + id, `{"name":"x","steps":[` + stepLater + `]}`, false},
		{"GET", "/api/sessions", "", false},
		{"GET", "/api/blacklist", "", false},
		{"POST", "/api/blacklist", `{"phone":"3331234567"}`, false},
		{"DELETE", "/api/blacklist/remove", `{"phone":"3331234567"}`, false},
		{"GET", "/api/sandbox/messages", "", false},
	}
	check := func(when string, refused func(creates bool) bool) {
		t.Helper()
		for _, c := range calls {
			a := s.call(c.method, c.path, key, c.body)
			if want := refused(c.creates); (a.status == 403) != want || !want && a.status != 200 {
				t.Errorf("%s, %s %s: %d %s", when, c.method, c.path, a.status, a.body)
			}
		}
	}
	// A test account created on 20 November expires after 4 December, in the zone of Rome.
	s.clock.Set(time.Date(2026, 12, 4, 22, 59, 59, 0, time.UTC))
	check("on the last day", func(bool) bool { return false })
	s.clock.Advance(time.Second)
	check("expired", func(creates bool) bool { return creates })
	if _, err := s.db.SQL.ExecContext(t.Context(), `update client set suspended = 1`); err != nil {
		t.Fatal(err)
	}
	check("suspended", func(bool) bool { return true })
}

// brokenStore is a store that finds keys, but fails all other calls.
type brokenStore struct {
	puntuale.Operator
	err error
}

func (b brokenStore) Principal(ctx context.Context, h puntuale.KeyHash, now time.Time) (puntuale.Principal, error) {
	if b.err != nil {
		return puntuale.Principal{}, b.err
	}
	panic("lookup")
}

func TestStoreFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		body   string
	}{
		{puntuale.Unavailable(errors.New("dial 10.1.2.3: refused")), 503,
			`{"title":"Service Unavailable","status":503,"detail":"the store cannot be reached","code":"unavailable","request_id":"test"}`},
		{errors.New("column 10.1.2.3 is missing"), 500,
			`{"title":"Internal Server Error","status":500,"detail":"internal error","code":"internal","request_id":"test"}`},
		{nil, 500, `{"title":"Internal Server Error","status":500,"detail":"internal error","code":"internal","request_id":"test"}`},
	} {
		s := newService(t, options{operator: func(o puntuale.Operator) puntuale.Operator { return brokenStore{o, c.err} }})
		a := s.call("GET", "/api/sequences", s.partner, "")
		if a.status != c.status || a.body != c.body || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%d %s", a.status, a.body)
		}
		if log := s.log.String(); c.err != nil && !strings.Contains(log, "10.1.2.3") || strings.Contains(log, s.partner) {
			t.Errorf("log: %s", log)
		}
		// The server does not ask the store about a key with a wrong checksum. If the partner's key already has a 0 at
		// this place, the key does not change, so any status is allowed.
		if a := s.call("GET", "/api/sequences", s.partner[:60]+"0", ""); a.status != 401 && s.partner[60] != '0' {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
}

func TestUnmatched(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/", 404, ""},
		{"GET", "/api", 404, ""},
		{"GET", "/api/start", 404, ""},
		{"POST", "/api/start/1/2", 404, ""},
		{"POST", "/api//start/1", 404, ""},
		{"POST", "/api/./start/1", 404, ""},
		{"POST", "/api/../api/start/1", 404, ""},
		{"POST", "/api/start/1//", 404, ""},
		{"GET", "/api/sequences%2f1", 404, ""},
		{"GET", "/api/start/1", 405, "POST"},
		{"DELETE", "/api/start/1/", 405, "POST"},
		{"OPTIONS", "/api/sequences", 405, "GET, POST"},
		{"HEAD", "/api/start/1", 405, "POST"},
		{"PATCH", "/api/sequences/1", 405, "GET, PUT, DELETE"},
		{"BREW", "/api/sequences/1", 405, "GET, PUT, DELETE"},
		{"GET", "/api/blacklist/remove", 405, "DELETE"},
		{"POST", "/openapi.json", 405, "GET"},
		{"POST", "/api/start/1", 401, ""},
		{"POST", "/api/start/%00", 401, ""},
		{"HEAD", "/api/sequences", 401, ""},
	} {
		a := s.call(c.method, c.path, "", "")
		if a.status != c.status || a.header.Get("Allow") != c.allow || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %d %v %s", c.method, c.path, a.status, a.header, a.body)
		}
	}
	for _, target := range []string{"*", "example.com:80"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Method, r.URL.Path, r.URL.Host = "OPTIONS", target, ""
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		if w.Code != 404 {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
}
