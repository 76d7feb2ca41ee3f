package httpapi_test

import (
	"strings"
	"testing"
)

// A session gets the pace that the call contains. If the call contains no pace, a session of a real number gets a
// cautious pace. If a change does not contain a value of the pace, the stored value does not change.
func TestSessionPace(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "full")
		const cautious = `"pace":{"per_minute":20,"per_day":1000,"cold_per_minute":3,"cold_per_day":50,"jitter":3}`
		const none = `"pace":{"per_minute":0,"per_day":0,"cold_per_minute":0,"cold_per_day":0,"jitter":0}`
		own := "/api/sessions/" + a.Session
		if got := s.must(nil, "GET", own, a.Key, ""); !strings.Contains(got.body, cautious) {
			t.Errorf("the default session: %s", got.body)
		}
		for body, want := range map[string]string{
			`{"name":"x","connection_type":"Socket"}`:                                                   cautious,
			`{"name":"x","connection_type":"Socket","pace":{}}`:                                         cautious,
			`{"name":"x","connection_type":"Socket","sandbox":true}`:                                    none,
			`{"name":"x","connection_type":"Official"}`:                                                 none,
			`{"name":"x","connection_type":"Socket","pace":{"per_minute":0,"jitter":0}}`:                `"pace":{"per_minute":0,"per_day":1000,"cold_per_minute":3,"cold_per_day":50,"jitter":0}`,
			`{"name":"x","connection_type":"Socket","sandbox":true,"pace":{"per_day":5,"jitter":null}}`: `"pace":{"per_minute":0,"per_day":5,"cold_per_minute":0,"cold_per_day":0,"jitter":0}`,
		} {
			if got := s.must(nil, "POST", "/api/sessions", a.Key, body); !strings.Contains(got.body, want) {
				t.Errorf("%s: %s", body, got.body)
			}
		}
		changed := s.must(nil, "PUT", own, a.Key, `{"pace":{"per_minute":7,"cold_per_day":0}}`)
		const want = `"pace":{"per_minute":7,"per_day":1000,"cold_per_minute":3,"cold_per_day":0,"jitter":3}`
		if read := s.must(nil, "GET", own, a.Key, ""); !strings.Contains(changed.body, want) || read.body != changed.body {
			t.Errorf("changed: %s %s", changed.body, read.body)
		}
		named := s.must(nil, "PUT", own, a.Key, `{"name":"Segreteria 2"}`)
		if read := s.must(nil, "GET", own, a.Key, ""); !strings.Contains(named.body, `"name":"Segreteria 2"`) || !strings.Contains(named.body, want) || read.body != named.body {
			t.Errorf("renamed: %s %s", named.body, read.body)
		}
		s.refusedAt(422, "PUT", own, a.Key, `{}`, "body")
		s.refusedAt(422, "PUT", own, a.Key, `{"name":" "}`, "body.name")
		s.refusedAt(422, "PUT", own, a.Key, `{"name":"`+strings.Repeat("x", 201)+`"}`, "body.name")
		s.refusedAt(400, "PUT", own, a.Key, `{"name":["x"]}`, "body.name")
		s.refusedAt(422, "PUT", own, a.Key, `{"pace":{"per_minute":-1,"per_day":1000001,"jitter":601}}`, "body.pace.per_minute", "body.pace.per_day", "body.pace.jitter")
		s.refusedAt(400, "PUT", own, a.Key, `{"pace":{"per_minute":1.5}}`, "body.pace.per_minute")
		s.refusedAt(400, "PUT", own, a.Key, `{"pace":7}`, "body.pace")
		s.refusedAt(422, "POST", "/api/sessions", a.Key, `{"name":"x","connection_type":"Socket","pace":{"cold_per_minute":9999}}`, "body.pace.cold_per_minute")
	})
}
