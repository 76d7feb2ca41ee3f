package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
)

// Answers about things that people edit contain a version. A change with If-Match succeeds only if If-Match names the
// thing's present version.
func TestVersions(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, versionsTest)
}

func versionsTest(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	sequence := s.newSequence(a.Key, stepNow)
	var template struct{ ID string }
	s.must(&template, "POST", "/api/templates", a.Key, `{"name":"Saluto","text":"Ciao"}`)
	for _, c := range []struct{ name, key, read, method, change, body, other string }{
		{"sequence", a.Key, "/api/sequences/" + sequence, "PUT", "/api/sequences/" + sequence, `{"name":"A","steps":[` + stepNow + `]}`, `{"name":"B","steps":[` + stepNow + `]}`},
		{"template", a.Key, "/api/templates/" + template.ID, "PUT", "/api/templates/" + template.ID, `{"name":"A","text":"a"}`, `{"name":"B","text":"b"}`},
		{"session", a.Key, "/api/sessions/" + a.Session, "PUT", "/api/sessions/" + a.Session, `{"name":"A"}`, `{"pace":{"per_day":7}}`},
		{"pair", a.Key, "/api/session/" + a.Session + "/defaultSequence", "PUT", "/api/session/" + a.Session + "/defaultSequence", `{"start":"` + sequence + `","stop":""}`, `{"start":"","stop":"` + sequence + `"}`},
		{"client", s.partner, "/api/client/" + a.ID + "/snapshot", "PATCH", "/api/client/" + a.ID, `{"name":"A"}`, `{"name":"B"}`},
	} {
		first := s.must(nil, "GET", c.read, c.key, "").header.Get("ETag")
		if len(first) < 10 || first[0] != '"' || s.must(nil, "GET", c.read, c.key, "").header.Get("ETag") != first {
			t.Fatalf("%s: ETag %q", c.name, first)
		}
		status := func(body, match string) int { return s.call(c.method, c.change, c.key, body, "If-Match", match).status }
		done := s.call(c.method, c.change, c.key, c.body, "If-Match", `"x,y" ,, W/"z", `+first)
		second := done.header.Get("ETag")
		if done.status != http.StatusOK || second == first || s.must(nil, "GET", c.read, c.key, "").header.Get("ETag") != second {
			t.Errorf("%s: %d %s, from %s to %s", c.name, done.status, done.body, first, second)
		}
		refused := s.call(c.method, c.change, c.key, c.other, "If-Match", first)
		if refused.status != http.StatusPreconditionFailed || !strings.Contains(refused.body, `"code":"precondition_failed"`) {
			t.Errorf("%s: an old version: %d %s", c.name, refused.status, refused.body)
		}
		if got := s.must(nil, "GET", c.read, c.key, "").header.Get("ETag"); got != second {
			t.Errorf("%s: a refused change gives %s", c.name, got)
		}
		for match, want := range map[string]int{"W/" + second: 412, `W/"x", "y"`: 412, `""`: 412, "x": 422, `"x`: 422, `"a b"`: 422, ",": 422, `*, "x"`: 422, `"x" "y"`: 422} {
			if got := status(c.other, match); got != want {
				t.Errorf("%s: If-Match %s: %d, want %d", c.name, match, got, want)
			}
		}
		if got := status(c.other, "*"); got != http.StatusOK {
			t.Errorf("%s: any version: %d", c.name, got)
		}
		s.must(nil, c.method, c.change, c.key, c.body)
	}
	if a := s.call("PUT", "/api/sequences/999999", a.Key, `{"name":"A","steps":[`+stepNow+`]}`, "If-Match", `"x"`); a.status != http.StatusNotFound {
		t.Errorf("what is not there: %d", a.status)
	}
}
