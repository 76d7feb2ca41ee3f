package httpapi_test

import (
	"slices"
	"strings"
	"testing"
)

// A caller's reference is shown in details and lists. A restart, stop or cancellation with a reference affects only the
// runs with this reference.
func behaviourReference(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, stepDate)
	phone := "3331234567"
	begin := func(query, reference string) started {
		t.Helper()
		var run started
		s.must(&run, "POST", "/api/start/"+id+query, a.Key, `{"phone":"`+phone+`","quando":"2026-12-01T10:00"`+reference+`}`)
		return run
	}
	first, second := begin("", `,"reference":"booking-4711"`), begin("?reference=booking-4712", "")
	number := begin("", `,"reference":4713`) // a JSON number is stored as it is written
	details := func(id string) string {
		return s.must(nil, "GET", "/api/messages/details?message_ids[]="+id, a.Key, "").body
	}
	for id, want := range map[string]string{first.ID[0]: `"reference":"booking-4711"`, second.ID[0]: `"reference":"booking-4712"`, number.ID[0]: `"reference":"4713"`} {
		if got := details(id); !strings.Contains(got, want) {
			t.Errorf("%s is missing: %s", want, got)
		}
	}
	if got := details(begin("", "").ID[0]); strings.Contains(got, `"reference"`) {
		t.Errorf("a message without one: %s", got)
	}
	if got := s.must(nil, "GET", "/api/messages?reference=booking-4711", a.Key, "").body; strings.Count(got, `"telefono"`) != 1 || !strings.Contains(got, first.ID[0]) {
		t.Errorf("listed: %s", got)
	}
	moved := begin("?if_running=restart", `,"reference":"booking-4711"`)
	for id, want := range map[string]string{first.ID[0]: "CANCELLED", second.ID[0]: "PENDING", moved.ID[0]: "PENDING"} {
		if got := s.details(a.Key, id)[0].Stato; got != want {
			t.Errorf("after a restart %s is %s, want %s", id, got, want)
		}
	}
	phone = "3337654321" // the booking's person changed
	if kept := begin("?if_running=skip", `,"reference":"booking-4711"`); !slices.Equal(kept.ID, moved.ID) {
		t.Errorf("skipped: %v, want %v", kept.ID, moved.ID)
	}
	if got := s.call("POST", "/api/start/"+id+"?if_running=reject&reference=booking-4711", a.Key, `{"phone":"3337654321","quando":"2026-12-01T10:00"}`); got.status != 409 {
		t.Errorf("rejected: %d %s", got.status, got.body)
	}
	former := moved
	moved = begin("?if_running=restart", `,"reference":"booking-4711"`)
	if got := s.details(a.Key, former.ID[0])[0].Stato; got != "CANCELLED" {
		t.Errorf("a message to the former person is %s", got)
	}
	if got := s.must(nil, "POST", "/api/stop/"+id, a.Key, `{"phone":"3331234567","reference":"booking-4712"}`).body; !strings.Contains(got, `"id":["`+second.ID[0]+`"]`) {
		t.Errorf("stopped: %s", got)
	}
	if got := s.must(nil, "POST", "/api/messages/cancel", a.Key, `{"reference":"booking-4711"}`).body; !strings.Contains(got, moved.ID[0]) || !strings.Contains(got, "1 messaggio annullato") {
		t.Errorf("cancelled: %s", got)
	}
	if got := s.must(nil, "POST", "/api/messages/cancel", a.Key, `{"reference":"booking-4711"}`).body; got != `{"message":"Nessun messaggio annullato","messages":[]}` {
		t.Errorf("cancelled again: %s", got)
	}
	var single started
	s.must(&single, "POST", "/api/messages", a.Key, `{"phone":"3331234567","text":"t","reference":"x","date":"2026-12-01"}`)
	if got := details(single.ID[0]); !strings.Contains(got, `"reference":"x"`) {
		t.Errorf("a single message: %s", got)
	}

	// If the sequence has a field named reference, the member in the body is this field.
	field := s.newSequence(a.Key, `{"text":"Pratica {{reference}}","timing":{"anchor":"start","offset":{"amount":1,"unit":"days"}}}`)
	var run started
	s.must(&run, "POST", "/api/start/"+field+"?reference=q", a.Key, `{"phone":"3331234567","reference":"`+strings.Repeat("9", 300)+`"}`)
	if got := details(run.ID[0]); !strings.Contains(got, "Pratica 999") || !strings.Contains(got, `"reference":"q"`) {
		t.Errorf("a field of this name: %s", got)
	}

	long := strings.Repeat("x", 256)
	start, body := "/api/start/"+id, `{"phone":"3331234567","quando":"2026-12-01T10:00","reference":"`
	s.refusedAt(422, "POST", start, a.Key, body+long+`"}`, "body.reference")
	s.refusedAt(422, "POST", start+"?reference="+long, a.Key, body+long+`"}`, "query.reference")
	s.refusedAt(422, "POST", start+"?reference=a", a.Key, body+`b"}`, "query.reference")
	s.refusedAt(422, "POST", start+"?reference=a&reference=b", a.Key, body+`a"}`, "query.reference")
	s.refusedAt(422, "POST", "/api/messages", a.Key, `{"phone":"3331234567","text":"t","reference":"`+long+`"}`, "body.reference")
	s.refusedAt(422, "POST", "/api/stop/"+id, a.Key, `{"phone":"3331234567","reference":"`+long+`"}`, "body.reference")
	s.refusedAt(422, "POST", "/api/messages/cancel", a.Key, `{"reference":"`+long+`"}`, "body.reference")
	s.refusedAt(422, "POST", "/api/messages/cancel", a.Key, `{"reference":""}`, "body.reference")
	s.refusedAt(422, "POST", "/api/messages/cancel", a.Key, `{"reference":"a","id":["`+single.ID[0]+`"]}`, "body.reference")
}
