package httpapi_test

import (
	"strings"
	"testing"
)

// TestGatewaySessions: a Send_app session needs a gateway, unless the session is a sandbox. All faults of the
// gateway's address, token and instance are reported together. The token is never shown. The secret address of the
// session's webhook is shown.
func TestGatewaySessions(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "full")
		const token = "tok5f2a9c0e1b7d4"
		var made struct{ ID string }
		created := s.must(&made, "POST", "/api/sessions", a.Key, `{"name":"Gateway","connection_type":"Send_app","sandbox":false,"gateway":{"access_token":" `+token+` ","instance_id":"65F0A1"}}`)
		if !strings.Contains(created.body, `"state":"unlinked"`) || !strings.Contains(created.body, `"webhook_path":"/webhooks/gateway/`) || strings.Contains(created.body, token) {
			t.Errorf("created: %s", created.body)
		}
		if !strings.Contains(created.body, `"per_minute":20`) {
			t.Errorf("a gateway's number has no pace: %s", created.body)
		}
		again := s.call("POST", "/api/sessions", a.Key, `{"name":"Doppia","connection_type":"Send_app","sandbox":false,"gateway":{"access_token":"`+token+`","instance_id":"65F0A1"}}`)
		if again.status != 409 {
			t.Errorf("the same number twice: %d %s", again.status, again.body)
		}
		// Who knows the instance but not its token can neither occupy it nor learn that it is used.
		var stranger struct{ ID string }
		b := s.newAccount("b@x", "full")
		s.must(&stranger, "POST", "/api/sessions", b.Key, `{"name":"Altrui","connection_type":"Send_app","sandbox":false,"gateway":{"access_token":"t","instance_id":"65F0A1"}}`)
		s.must(nil, "DELETE", "/api/sessions/"+stranger.ID, b.Key, "")
		for body, at := range map[string][]string{
			`{"name":"x","connection_type":"Send_app","sandbox":false}`:                                                                {"body.gateway"},
			`{"name":"x","connection_type":"Send_app","sandbox":false,"gateway":{}}`:                                                   {"body.gateway.access_token"},
			`{"name":"x","connection_type":"Socket","gateway":{"access_token":"t"}}`:                                                   {"body.gateway"},
			`{"name":"x","connection_type":"Send_app","gateway":{"base_url":"http://example.com","access_token":"a b"}}`:               {"body.gateway.base_url", "body.gateway.access_token"},
			`{"name":"x","connection_type":"Send_app","gateway":{"base_url":"https://u:p@example.com/api","access_token":"t"}}`:        {"body.gateway.base_url"},
			`{"name":"x","connection_type":"Send_app","gateway":{"base_url":"https://example.com:65536","access_token":"t"}}`:          {"body.gateway.base_url"},
			`{"name":"x","connection_type":"Send_app","gateway":{"base_url":"ftp://example.com","access_token":"t"}}`:                  {"body.gateway.base_url"},
			`{"name":"x","connection_type":"Send_app","gateway":{"access_token":"t","instance_id":"` + strings.Repeat("A", 65) + `"}}`: {"body.gateway.instance_id"},
			`{"name":"x","connection_type":"Send_app","gateway":{"access_token":"` + strings.Repeat("t", 513) + `"}}`:                  {"body.gateway.access_token"},
		} {
			s.refusedAt(422, "POST", "/api/sessions", a.Key, body, at...)
		}
		keys := "/api/sessions/" + made.ID + "/gateway"
		for body, at := range map[string][]string{
			`{"access_token":"a b"}`:                            {"body.access_token"},
			`{"base_url":"https://gateway.example.com/x"}`:      {"body.access_token"}, // the stored token must not be sent to another server
			`{"instance_id":"` + strings.Repeat("A", 65) + `"}`: {"body.instance_id"},
		} {
			s.refusedAt(422, "PUT", keys, a.Key, body, at...)
		}
		for _, body := range []string{`{}`, `{"access_token":"other"}`, `{"base_url":"https://gateway.example.com/x","access_token":"other","instance_id":"65F0A2"}`} {
			if changed := s.must(nil, "PUT", keys, a.Key, body); strings.Contains(changed.body, "other") {
				t.Errorf("shown again: %s", changed.body)
			}
		}
		var other struct{ ID string }
		s.must(&other, "POST", "/api/sessions", a.Key, `{"name":"x","connection_type":"Socket"}`)
		if refused := s.call("PUT", "/api/sessions/"+other.ID+"/gateway", a.Key, `{"access_token":"t"}`); refused.status != 409 {
			t.Errorf("keys of a session without a gateway: %d %s", refused.status, refused.body)
		}
		if n := s.count("select count(*) from session where type = 'Send_app' and deleted_at = 0"); n != 1 {
			t.Errorf("%d sessions were stored, want 1", n)
		}
	})
}
