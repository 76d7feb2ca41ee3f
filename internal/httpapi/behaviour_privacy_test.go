package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"puntuale"
)

func behaviourContentsBlanked(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	// Identifiers depend on the database's clock, so the test sets this clock far into the future.
	s.clock.Set(morning.AddDate(30, 0, 0))
	id := s.newSequence(a.Key, `{"text":"Ciao {{nome}}","timing":{"anchor":"start","offset":{"amount":0}}},
 {"latitude":45.5,"longitude":9.25,"timing":{"anchor":"start","offset":{"amount":0}}},
 {"media":"https://x.it/a.pdf","timing":{"anchor":"start","offset":{"amount":0}}}`)
	var run, single started
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","nome":"Anna"}`)
	s.must(&single, "POST", "/api/messages", a.Key, `{"phone":"3331234567","text":"segreto","name":"Promemoria"}`)
	for _, id := range append(run.ID, single.ID...) {
		s.end(a, id, "+393331234567", sent)
	}
	query := "/api/messages/details?message_ids[]=" + strings.Join(append(run.ID, single.ID...), ",")
	before := s.must(nil, "GET", query, a.Key, "")
	if strings.Contains(before.body, "rimossi") || !strings.Contains(before.body, "Anna") {
		t.Error(before.body)
	}
	s.maintain()
	s.clock.Set(morning.AddDate(32, 0, 0).Add(-time.Second))
	s.maintain()
	if now := s.must(nil, "GET", query, a.Key, ""); now.body != before.body {
		t.Errorf("a second before its time:\n%s", now.body)
	}
	s.clock.Set(morning.AddDate(32, 0, 0))
	s.maintain()
	now := s.must(nil, "GET", query, a.Key, "")
	if strings.Count(now.body, `"contenuti_rimossi":true`) != 4 || strings.Contains(now.body, "Anna") || strings.Contains(now.body, "segreto") {
		t.Error(now.body)
	}
	for i, d := range s.details(a.Key, append(run.ID, single.ID...)...) {
		if d.Richiesta != "" || d.Contenuto != "" || d.MediaURL != nil || d.MediaName != nil || d.Latitudine != nil || d.Longitudine != nil ||
			d.Telefono != "+393331234567" || d.Stato != "COMPLETED" || *d.Detail != "wamid.1" || i == 3 && d.NomeInvio != "Promemoria" {
			t.Errorf("%+v", d)
		}
	}
	if list := s.must(nil, "GET", "/api/messages", a.Key, ""); strings.Count(list.body, `"contenuti_rimossi":true`) != 4 {
		t.Error(list.body)
	}
	var fresh started
	s.must(&fresh, "POST", "/api/messages", a.Key, `{"phone":"3331234567","text":"nuovo"}`)
	s.refusedAt(409, "POST", resendAll, a.Key, `{"id":["`+fresh.ID[0]+`","`+run.ID[0]+`"]}`, "body.id[1]")
	if d := s.details(a.Key, fresh.ID[0])[0]; d.Stato != "PENDING" || d.Contenuto != "nuovo" {
		t.Errorf("%+v", d)
	}
}

func (s *service) maintain() {
	s.t.Helper()
	if err := s.control.Maintain(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

const eraseCall = "/api/contacts/erase"

func behaviourPersonErased(t *testing.T, s *service) {
	a, b := s.newAccount("a@x", "test"), s.newAccount("b@x", "full")
	id := s.newSequence(a.Key, stepNow+","+stepLater)
	var run, single, theirs started
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","nome":"Anna","testo":"segreto"}`)
	s.must(&single, "POST", "/api/messages", a.Key, `{"phone":"+39 333 1234567","text":"Ciao Anna","name":"Per Anna"}`)
	s.must(&theirs, "POST", "/api/messages", b.Key, `{"phone":"3331234567","text":"Ciao Anna"}`)
	s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"3331234568"}`)
	s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"3331234567","reason":"Anna"}`, "Idempotency-Key", "k")
	s.must(nil, "DELETE", "/api/blacklist/remove", a.Key, `{"phone":"3331234567"}`)
	s.end(a, run.ID[0], "+393331234567", sent)
	s.end(a, single.ID[0], "+393331234567", refused)
	s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"3331234567","reason":"Anna"}`)

	// A faulty body is refused, and nothing is erased.
	s.refusedAt(400, "POST", eraseCall, a.Key, "", "body")
	s.refusedAt(422, "POST", eraseCall, a.Key, `{}`, "body.phone")
	s.refusedAt(422, "POST", eraseCall, a.Key, `{"phone":null}`, "body.phone")
	s.refusedAt(422, "POST", eraseCall, a.Key, `{"phone":"Anna"}`, "body.phone")
	s.refusedAt(422, "POST", eraseCall, a.Key, `{"phone":"3331234567","phones":[]}`, "body.phones")
	s.refusedAt(422, "POST", eraseCall+"?dry_run=true", a.Key, `{"phone":"3331234567"}`, "query.dry_run")
	if d := s.details(a.Key, run.ID[1])[0]; d.Stato != "PENDING" {
		t.Errorf("%+v", d)
	}

	used := s.used(a)
	want := `{"message":"Dati del destinatario rimossi","cancelled":1,"messages":3,"sandbox_messages":0,"answers":1,"blacklisted":true}`
	if got := s.must(nil, "POST", eraseCall, a.Key, `{"phone":3331234567}`); got.body != want {
		t.Errorf("%s, want %s", got.body, want)
	}
	if n := s.used(a); n != used+2 { // the call that reads the count is itself counted
		t.Errorf("%d calls, were %d", n, used)
	}
	if got := s.must(nil, "POST", eraseCall, a.Key, `{"phone":"+393331234567"}`); !strings.Contains(got.body, `"cancelled":0,"messages":0`) || !strings.Contains(got.body, `"blacklisted":true`) {
		t.Error(got.body)
	}
	ids := append(run.ID, single.ID...)
	raw := s.must(nil, "GET", "/api/messages/details?message_ids[]="+strings.Join(ids, ","), a.Key, "")
	if strings.Count(raw.body, `"contenuti_rimossi":true`) != 3 {
		t.Error(raw.body)
	}
	for i, d := range s.details(a.Key, ids...) {
		state := []string{"COMPLETED", "CANCELLED", "FAILED"}[i]
		if d.Telefono != "" || d.Richiesta != "" || d.Contenuto != "" || d.NomeInvio != "" || d.Detail != nil || d.Stato != state || d.Cliente != "Studio Bianchi" {
			t.Errorf("%+v", d)
		}
	}
	everything := everything(s, a.Key, s.partner, a.ID)
	for _, text := range []string{"3331234567", "Anna", "segreto"} {
		if strings.Contains(everything, text) {
			t.Errorf("%s is still in %s", text, everything)
		}
	}
	if !strings.Contains(everything, `"phone":"","reason":""`) || !strings.Contains(everything, `"erased":true`) || strings.Count(everything, `"erased"`) != 1 {
		t.Errorf("the blacklist: %s", everything)
	}
	if again := s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"3331234567","reason":"Anna"}`, "Idempotency-Key", "k"); strings.Contains(again.body, "3331234567") {
		t.Error(again.body)
	}
	s.refusedAt(409, "POST", resendAll, a.Key, `{"id":["`+single.ID[0]+`"]}`, "body.id[0]")
	if d := s.details(b.Key, theirs.ID[0])[0]; d.Telefono != "+393331234567" || d.Stato != "PENDING" || d.Contenuto != "Ciao Anna" {
		t.Errorf("another client's: %+v", d)
	}

	// The number is still in the blacklist, it cannot be added twice, and it can be removed.
	s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"3331234567","reason":"Anna"}`)
	if list := s.must(nil, "GET", "/api/blacklist", a.Key, ""); strings.Count(list.body, `"added_at"`) != 2 || strings.Contains(list.body, "Anna") {
		t.Error(list.body)
	}
	var later started
	s.must(&later, "POST", "/api/messages", a.Key, `{"phone":"3331234567","text":"x"}`)
	if _, granted := s.begin(a, later.ID[0], "+393331234567"); granted != puntuale.ClaimBlacklisted {
		t.Errorf("granted %v", granted)
	}
	if got := s.must(nil, "DELETE", "/api/blacklist/remove", a.Key, `{"phone":"3331234567"}`); !strings.Contains(got.body, "rimosso") {
		t.Error(got.body)
	}
	if got := s.must(nil, "DELETE", "/api/blacklist/remove", a.Key, `{"phone":"3331234567"}`); !strings.Contains(got.body, "non trovato") {
		t.Error(got.body)
	}
	if log := s.log.String(); strings.Contains(log, "3331234567") {
		t.Error("the number is in the log")
	}
}

// used returns how many calls of the client are counted today.
func (s *service) used(a clientAccount) (n int64) {
	s.t.Helper()
	var run started
	s.must(&run, "POST", "/api/start/"+s.newSequence(a.Key, stepNow), a.Key, `{"phone":"3339876543"}`)
	return run.Used - 1
}

func behaviourErasedWhileSent(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	var flying started
	s.must(&flying, "POST", "/api/messages", a.Key, `{"phone":"3331234567","text":"x"}`)
	item, _ := s.begin(a, flying.ID[0], "+393331234567")
	got := s.call("POST", eraseCall, a.Key, `{"phone":"3331234567"}`)
	if got.status != http.StatusConflict || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, `"busy"`) {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	if d := s.details(a.Key, flying.ID[0])[0]; d.Telefono == "" || d.Contenuto != "x" {
		t.Errorf("%+v", d)
	}
	s.record(sent, item)
	s.must(nil, "POST", eraseCall, a.Key, `{"phone":"3331234567"}`)
	if d := s.details(a.Key, flying.ID[0])[0]; d.Telefono != "" || d.Contenuto != "" || d.Stato != "COMPLETED" {
		t.Errorf("%+v", d)
	}
}
