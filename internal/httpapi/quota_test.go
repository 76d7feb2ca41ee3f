package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestQuotas: a partner limits the number of a client's sessions, sequences and other things. If a call would exceed a
// limit, the refusal names the limit.
func TestQuotas(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	key := s.newClient("quota@example.com", "full")
	var listed struct {
		Clients []struct {
			ID     string `json:"id_client"`
			Quotas map[string]int64
		}
	}
	list := func() map[string]int64 {
		t.Helper()
		s.must(&listed, "GET", "/api/clients", s.partner, "")
		return listed.Clients[len(listed.Clients)-1].Quotas
	}
	if got := fmt.Sprint(list()); got != "map[keys:20 sequences:1000 sessions:10 templates:1000 users:50]" {
		t.Errorf("by default: %s", got)
	}
	client := "/api/client/" + listed.Clients[len(listed.Clients)-1].ID
	s.refusedAt(422, "PATCH", client, s.partner, `{"quotas":{"sessions":-1}}`, "body.quotas.sessions")
	s.refusedAt(422, "PATCH", client, s.partner, `{"quotas":{"users":201}}`, "body.quotas.users")
	s.refusedAt(422, "PATCH", client, s.partner, `{"quotas":{"cars":1}}`, "body.quotas.cars")
	s.must(nil, "PATCH", client, s.partner, `{"quotas":{"sessions":1,"sequences":0,"templates":0,"keys":1}}`)
	for what, call := range map[string]struct{ path, key, body string }{
		"limit of 1 sessions":  {"/api/sessions", key, `{"name":"Banco","connection_type":"Socket","sandbox":true}`},
		"limit of 0 sequences": {"/api/sequences", key, `{"name":"x","steps":[` + stepNow + `]}`},
		"limit of 0 templates": {"/api/templates", key, `{"name":"x","text":"Ciao"}`},
		"limit of 1 keys":      {client + "/keys", s.partner, `{"name":"CRM"}`},
	} {
		r := s.call("POST", call.path, call.key, call.body)
		if r.status != http.StatusConflict || !strings.Contains(r.body, `"code":"quota_reached"`) || !strings.Contains(r.body, what) || !strings.Contains(r.body, `"location":"quotas.`) {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
	}
	s.must(nil, "PATCH", client, s.partner, `{"quotas":{"sessions":null,"sequences":1}}`)
	if got := list(); got["sessions"] != 10 || got["sequences"] != 1 || got["templates"] != 0 {
		t.Errorf("after null: %v", got)
	}
	s.must(nil, "POST", "/api/sessions", key, `{"name":"Banco","connection_type":"Socket","sandbox":true}`)
}
