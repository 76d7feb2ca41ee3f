package httpapi_test

import (
	"strings"
	"testing"

	"puntuale/internal/connector/official/graphtest"
)

// TestTemplateValues: what Meta refuses in a template's values is a fault of the start call, at the field. A client may
// have its values flattened instead.
func TestTemplateValues(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		key := s.newClient("values@x", "full")
		var made struct{ ID string }
		s.must(&made, "POST", "/api/sessions", key, `{"name":"Ufficiale","connection_type":"Official","official":`+officialKeys+`}`)
		s.owner.peer.SetTemplates("55101", graphtest.NewTemplate("lungo", strings.Repeat("x", 1000)+" {{1}}."))
		s.must(nil, "POST", "/api/sessions/"+made.ID+"/test", key, "")
		s.must(nil, "POST", "/api/templates", key, `{"name":"L","text":"Ciao","official":{"name":"lungo","language":"it","body":[{"text":"{{nome}}"}]}}`)
		var sequence struct{ ID string }
		s.must(&sequence, "POST", "/api/sequences", key, `{"name":"s","id_sessione":"`+made.ID+`","steps":[{"template":"L","timing":{"anchor":"start","offset":{"amount":0}}}]}`)
		start := "/api/start/" + sequence.ID
		s.refusedAt(422, "POST", start, key, `{"phone":"+393331234567","nome":"Anna\nRossi"}`, "body.nome")
		s.refusedAt(422, "POST", start, key, `{"phone":"+393331234567","nome":"`+strings.Repeat("y", 23)+`"}`, "body.nome")
		s.must(nil, "POST", start, key, `{"phone":"+393331234567","nome":"`+strings.Repeat("y", 22)+`"}`)
		s.refusedAt(422, "POST", "/api/messages", key, `{"phone":"+393331234567","id_sessione":"`+made.ID+`","template":"L","nome":"a\tb"}`, "body.nome")
		if a := s.must(nil, "PATCH", "/api/settings", key, `{"flatten_values":true}`); !strings.Contains(a.body, `"flatten_values":true`) {
			t.Error(a.body)
		}
		s.must(nil, "POST", start, key, `{"phone":"+393331234567","nome":"Anna\n     Rossi"}`)
		var content string
		if err := s.db.SQL.QueryRow("select content from run order by id desc limit 1").Scan(&content); err != nil || !strings.Contains(content, `"body":[{"text":"Anna Rossi"}]`) {
			t.Errorf("%s, %v", content, err)
		}
	})
}
