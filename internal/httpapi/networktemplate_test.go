package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"puntuale/internal/connector/official/graphtest"
)

// TestMakeTemplates: a template is linted, made, rejected, edited, unpaused and deleted by the API. Meta's limits are told
// before a call is made.
func TestMakeTemplates(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		key := s.newClient("make@x", "full")
		var made struct{ ID string }
		s.must(&made, "POST", "/api/sessions", key, `{"name":"Ufficiale","connection_type":"Official","official":`+officialKeys+`}`)
		path := "/api/sessions/" + made.ID + "/templates"
		peer := s.owner.peer
		if a := s.call("POST", path, key, `{"name":"a","language":"it","category":"UTILITY","text":"x"}`); a.status != 409 || !strings.Contains(a.body, "business_account_id") {
			t.Errorf("before the business is known: %d %s", a.status, a.body)
		}
		s.must(nil, "POST", "/api/sessions/"+made.ID+"/test", key, "")

		const good = `{"name":"ordine_pronto","language":"it","category":"UTILITY","text":"Ciao {{Nome|amico}}, il tuo ordine è pronto per il ritiro.","footer":"Bottega",
 "buttons":[{"kind":"quick_reply","text":"Grazie"},{"kind":"url","text":"Apri","url":"https://x.it/o/{{numero}}"}],"examples":{"Nome":"Ada","numero":"17"}}`
		s.refusedAt(422, "POST", path, key, `{"name":"Ordine","language":"italiano","category":"OTHER","text":"Ciao {{nome}}, a te","footer":"{{a}}","header":{"kind":"gif"},"buttons":[{"kind":"url","text":"x"}]}`,
			"body.name", "body.language", "body.category", "body.header.kind", "body.footer", "body.buttons[0].url", "body.examples.nome")
		if a := s.call("POST", path, key, `{"name":"a","language":"it","category":"AUTHENTICATION","text":"Codice"}`); a.status != 422 || !strings.Contains(a.body, "WhatsApp Manager") {
			t.Errorf("authentication: %d %s", a.status, a.body)
		}
		if a := s.must(nil, "POST", path+"/lint", key, `{"name":"a","language":"it","category":"UTILITY","text":"{{nome}}, uno sconto per te"}`); !strings.Contains(a.body, `"code":"lint.edge"`) ||
			!strings.Contains(a.body, `"code":"lint.marketing","location":"text","text":"«sconto» fa pensare`) {
			t.Errorf("lint: %s", a.body)
		}
		if n := len(peer.Managed()); n != 0 {
			t.Errorf("%d calls for what was refused here", n)
		}

		var done struct{ ID, Status, Category string }
		s.must(&done, "POST", path, key, good)
		if done.ID == "" || done.Status != "PENDING" || done.Category != "UTILITY" {
			t.Fatalf("made: %+v", done)
		}
		first := done.ID
		s.must(&done, "POST", path, key, good)
		if done.ID != first || len(peer.Managed()) != 1 {
			t.Errorf("the same call made %+v, %q", done, peer.Managed())
		}
		if a := s.call("POST", path, key, strings.Replace(good, "pronto per", "arrivato per", 1)); a.status != 409 {
			t.Errorf("another text: %d %s", a.status, a.body)
		}
		if at := peer.Template("55101", "ordine_pronto", "it"); at.Format != "NAMED" || fmt.Sprint(at.Components[0]["text"]) != "Ciao {{nome}}, il tuo ordine è pronto per il ritiro." {
			t.Errorf("Meta has %+v", at)
		}
		if a := s.call("PUT", path+"/"+first, key, good); a.status != 409 || !strings.Contains(a.body, "PENDING") {
			t.Errorf("an edit during the review: %d %s", a.status, a.body)
		}

		peer.Review("55101", "ordine_pronto", "it", "REJECTED", "TAG_CONTENT_MISMATCH")
		s.must(nil, "POST", "/api/sessions/"+made.ID+"/test", key, "")
		s.must(&done, "PUT", path+"/"+first, key, strings.Replace(good, "pronto per il ritiro", "pronto: passa a ritirarlo", 1))
		if done.Status != "PENDING" {
			t.Errorf("edited: %+v", done)
		}
		peer.Review("55101", "ordine_pronto", "it", "APPROVED", "NONE")
		s.must(nil, "POST", "/api/sessions/"+made.ID+"/test", key, "")
		s.refusedAt(422, "PUT", path+"/"+first, key, strings.Replace(good, "UTILITY", "MARKETING", 1), "body.category")
		s.refusedAt(422, "PUT", path+"/"+first, key, strings.Replace(good, "ordine_pronto", "altro", 1), "body.name")
		s.must(nil, "PUT", path+"/"+first, key, good)
		peer.Review("55101", "ordine_pronto", "it", "APPROVED", "NONE")
		s.must(nil, "POST", "/api/sessions/"+made.ID+"/test", key, "")
		if a := s.call("PUT", path+"/"+first, key, strings.Replace(good, "Ciao", "Salve", 1)); a.status != 409 || !strings.Contains(a.body, "una volta al giorno") && !strings.Contains(a.body, "once a day") {
			t.Errorf("a second edit in a day: %d %s", a.status, a.body)
		}
		if a := s.call("POST", path+"/"+first+"/unpause", key, ""); a.status != 409 {
			t.Errorf("unpause what is not paused: %d %s", a.status, a.body)
		}
		peer.Review("55101", "ordine_pronto", "it", "PAUSED", "NONE")
		s.must(nil, "POST", "/api/sessions/"+made.ID+"/test", key, "")
		if s.must(&done, "POST", path+"/"+first+"/unpause", key, ""); done.Status != "APPROVED" {
			t.Errorf("unpaused: %+v", done)
		}
		if s.must(&done, "DELETE", path+"/"+first, key, ""); done.Status != "DELETED" {
			t.Errorf("deleted: %+v", done)
		}
		if a := s.call("POST", path, key, good); a.status != 409 || !strings.Contains(a.body, "locked") && !strings.Contains(a.body, "bloccato") {
			t.Errorf("a locked name: %d %s", a.status, a.body)
		}
		if a := s.call("DELETE", path+"/"+first, key, ""); a.status != 409 {
			t.Errorf("delete it twice: %d %s", a.status, a.body)
		}
		if a := s.call("PUT", path+"/999", key, good); a.status != 404 {
			t.Errorf("an unknown template: %d %s", a.status, a.body)
		}

		// Meta's own refusal is told with Meta's words.
		refused := strings.NewReplacer("ordine_pronto", "rifiutato").Replace(good)
		peer.Manage(func(string) graphtest.Reply {
			return graphtest.Reply{Code: 100, Subcode: 2388293, Title: "Troppi parametri", Text: "Accorcia."}
		})
		if a := s.call("POST", path, key, refused); a.status != 422 || !strings.Contains(a.body, "Troppi parametri: Accorcia.") || !strings.Contains(a.body, "too many fields") && !strings.Contains(a.body, "troppi campi") {
			t.Errorf("Meta's refusal: %d %s", a.status, a.body)
		}
		// A lost answer is no second template: the node finds it later.
		peer.Manage(func(string) graphtest.Reply { return graphtest.Reply{Drop: true} })
		lost := strings.NewReplacer("ordine_pronto", "perso").Replace(good)
		if s.must(&done, "POST", path, key, lost); done.Status != "SUBMITTING" || done.ID != "" {
			t.Errorf("a lost answer: %+v", done)
		}
		if a := s.call("POST", path, key, strings.Replace(lost, "Ciao", "Salve", 1)); a.status != 409 {
			t.Errorf("another request meanwhile: %d %s", a.status, a.body)
		}
	})
}

// TestTemplateQuota: the hundredth and first creation of an hour is refused before Meta is called, and the answer says
// when the next one may be.
func TestTemplateQuota(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		key := s.newClient("quota@x", "full")
		var made struct{ ID string }
		s.must(&made, "POST", "/api/sessions", key, `{"name":"Ufficiale","connection_type":"Official","official":`+officialKeys+`}`)
		s.must(nil, "POST", "/api/sessions/"+made.ID+"/test", key, "")
		path := "/api/sessions/" + made.ID + "/templates"
		body := func(n int) string {
			return fmt.Sprintf(`{"name":"avviso_%d","language":"it","category":"UTILITY","text":"Il tuo ordine numero %d è pronto."}`, n, n)
		}
		for n := range 3 {
			s.must(nil, "POST", path, key, body(n))
		}
		// The other ninety-seven are written by hand, because each call waits for the node.
		if _, err := s.db.SQL.Exec(fmt.Sprintf(`insert into template_request (client_id, id, session_id, account, kind, name, language, draft, state, made_at, due_at, called_at)
 select client_id, id + 1000 + x.n, session_id, account, kind, name || x.n, language, draft, state, made_at, due_at, called_at from template_request, (%s) x where name = 'avviso_0'`, numbers(97))); err != nil {
			t.Fatal(err)
		}
		a := s.call("POST", path, key, body(100))
		if a.status != 429 || a.header.Get("Retry-After") == "" || len(s.owner.peer.Managed()) != 3 {
			t.Errorf("the 101st: %d %s %q, %d calls", a.status, a.body, a.header.Get("Retry-After"), len(s.owner.peer.Managed()))
		}
		s.clock.Advance(time.Hour)
		if a := s.call("POST", path, key, body(100)); a.status != 200 {
			t.Errorf("an hour later: %d %s", a.status, a.body)
		}
	})
}

// numbers returns a query of the numbers from 1 to n.
func numbers(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("select %d as n", i+1)
	}
	return strings.Join(all, " union all ")
}
