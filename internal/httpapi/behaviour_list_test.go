package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"puntuale"
)

// Every call with a recipient accepts a group id unchanged, and a phone number in the forms in which people dial it.
func behaviourRecipients(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, stepLater)
	for given, want := range map[string]string{
		"120363025246125016@g.us": "120363025246125016@g.us", "39333-1600000000@g.us": "39333-1600000000@g.us", "20482973843@lid": "20482973843@lid",
		"AbCdEfGhIjKlMnOpQrStUv": "AbCdEfGhIjKlMnOpQrStUv", " 333 123-4567 ": "+393331234567", "0039 333 1234567": "+393331234567", "393331234567": "+393331234567",
		"34612345678": "+34612345678", " 351 912 345 678": "+351912345678", "3331234567.0": "+393331234567", "3,331234567E+09": "+393331234567",
	} {
		var run started
		s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"`+given+`","testo":"t"}`)
		if got := s.details(a.Key, run.ID[0])[0].Telefono; got != want {
			t.Errorf("%q became %q", given, got)
		}
		s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"`+given+`"}`)
		if got := s.must(nil, "GET", "/api/blacklist", a.Key, ""); !strings.Contains(got.body, `"phone":"`+want+`"`) {
			t.Errorf("%q: %s", given, got.body)
		}
		if got := s.must(nil, "DELETE", "/api/blacklist/remove", a.Key, `{"phone":"`+want+`"}`); !strings.Contains(got.body, "rimosso") {
			t.Errorf("%q: %s", given, got.body)
		}
		if got := messages(t, s.must(nil, "POST", "/api/messages/cancel/pending", a.Key, `{"phones":["`+given+`"]}`)); len(got) != 1 {
			t.Errorf("%q: %s", given, got)
		}
	}
	// A text that looks almost like a group id is treated as a phone number, which is not valid.
	for _, given := range []string{" 20482973843@lid", "AbCdEfGhIjKlMnOpQrStUvW", "x@g.us", "333-1@lid", "AbCdEfGhIjKlMnOpQrStU", "800 12 34 56x", "899123456", "333 123 45678", "3.33E+09"} {
		s.refusedAt(422, "POST", "/api/start/"+id, a.Key, `{"phone":"`+given+`","testo":"t"}`, "body.phone")
		s.refusedAt(422, "POST", "/api/stop/"+id, a.Key, `{"phone":"`+given+`"}`, "body.phone")
		s.refusedAt(422, "POST", "/api/messages/cancel/pending", a.Key, `{"phones":["`+given+`"]}`, "body.phones[0]")
		s.refusedAt(422, "POST", "/api/blacklist", a.Key, `{"phone":"`+given+`"}`, "body.phone")
		s.refusedAt(422, "DELETE", "/api/blacklist/remove", a.Key, `{"phone":"`+given+`"}`, "body.phone")
	}
}

// An earlier version took a Spanish number without "+" for an Italian voicemail number. What it stored stays reachable,
// by the same text and by the number that lists show.
func behaviourFormerNumber(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, stepLater)
	const text, former = "34612345678", "+3934612345678"
	start := func(phone string) string {
		var run started
		s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"`+phone+`","testo":"t"}`)
		return run.ID[0]
	}
	both := func() (ids []string) {
		ids = append(ids, start("+34600000001"), start(text))
		s.sql("update message set phone = '" + former + "' where phone = '+34600000001'")
		s.sql("update run set phone = '" + former + "' where phone = '+34600000001'")
		return ids
	}
	for _, door := range []struct{ path, body string }{
		{"/api/stop/" + id, `{"phone":"` + text + `"}`},
		{"/api/messages/cancel/pending", `{"phones":["` + text + `"]}`},
	} {
		ids := both()
		if got := s.must(nil, "POST", door.path, a.Key, door.body).body; !strings.Contains(got, ids[0]) || !strings.Contains(got, ids[1]) {
			t.Errorf("%s: %s, want %v", door.path, got, ids)
		}
		ids = both()
		if got := s.must(nil, "POST", door.path, a.Key, strings.ReplaceAll(door.body, text, former)).body; !strings.Contains(got, ids[0]) || strings.Contains(got, ids[1]) {
			t.Errorf("%s with the former number: %s, want %v", door.path, got, ids[:1])
		}
		s.must(nil, "POST", door.path, a.Key, door.body)
	}
	s.refusedAt(422, "POST", "/api/start/"+id, a.Key, `{"phone":"`+former+`","testo":"t"}`, "body.phone")
	remove := func(phone string) string {
		s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"+34600000001"}`)
		s.sql("update blacklist set phone = '" + former + "' where phone = '+34600000001'")
		return s.must(nil, "DELETE", "/api/blacklist/remove", a.Key, `{"phone":"`+phone+`"}`).body
	}
	for _, phone := range []string{text, former} {
		if got := remove(phone); !strings.Contains(got, "rimosso") {
			t.Errorf("removed by %s: %s", phone, got)
		}
	}
	ids := both()
	if got := s.must(nil, "GET", "/api/messages?phone=%2B3934612345678&state=PENDING", a.Key, "").body; !strings.Contains(got, ids[0]) || strings.Contains(got, ids[1]) {
		t.Errorf("listed: %s", got)
	}
	if got := s.must(nil, "POST", "/api/contacts/everything", a.Key, `{"phone":"`+text+`"}`).body; !strings.Contains(got, ids[0]) || !strings.Contains(got, ids[1]) {
		t.Errorf("everything: %s", got)
	}
	s.must(nil, "POST", eraseCall, a.Key, `{"phone":"`+text+`"}`)
	if found := s.found("34612345678"); len(found) != 0 {
		t.Errorf("after an erasure the number is in %v", found)
	}
}

// Each client has its own blacklist. The blacklist is checked when a message is due. If the blacklist stopped a
// message, the message does not leave after the number is removed.
func behaviourBlacklist(t *testing.T, s *service) {
	a, b := s.newAccount("a@x", "test"), s.newAccount("b@x", "test")
	start := func(c clientAccount) string {
		var run started
		s.must(&run, "POST", "/api/start/"+s.newSequence(c.Key, stepNow), c.Key, `{"phone":"3331234567"}`)
		return run.ID[0]
	}
	state := func(c clientAccount, id string) string { return s.details(c.Key, id)[0].Stato }
	s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"3331234567","reason":"lo ha chiesto"}`)
	s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"3331234567"}`)
	blocked, free := start(a), start(b)
	if state(a, blocked) != "PENDING" {
		t.Error("the blacklist was looked at before the message was due")
	}
	s.begin(a, blocked, "+393331234567")
	s.end(b, free, "+393331234567", sent)
	if state(a, blocked) != "BLACKLISTED" || state(b, free) != "COMPLETED" {
		t.Errorf("%s, another client's %s", state(a, blocked), state(b, free))
	}
	s.must(nil, "DELETE", "/api/blacklist/remove", a.Key, `{"phone":"3331234567"}`)
	if state(a, blocked) != "BLACKLISTED" {
		t.Error("removal brought a message back")
	}
	s.end(a, start(a), "+393331234567", sent)
	if got := s.must(nil, "GET", "/api/client/"+a.ID+"/snapshot", s.partner, ""); !strings.Contains(got.body, `"credits":"99"`) {
		t.Errorf("a blacklisted message cost a credit: %s", got.body)
	}
}

// The simulated network's ledger contains the messages that it received from the key's client. A list of the ledger
// begins with the oldest message, and comes in pages.
func behaviourSandboxLedger(t *testing.T, s *service) {
	a, b := s.newAccount("a@x", "full"), s.newAccount("b@x", "full")
	receive := func(c clientAccount, id int, at time.Time, content puntuale.Content) {
		t.Helper()
		client, _ := strconv.ParseInt(c.ID, 10, 64)
		m := puntuale.SandboxMessage{Client: puntuale.ClientID(client), Message: puntuale.MessageID(id), ConnectorID: fmt.Sprint("c", id),
			Phone: "+393331234567", Content: content, Received: at}
		if err := s.network.ledger.Receive(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	receive(a, 1, morning, puntuale.Content{Text: "uno"})
	receive(b, 9, morning, puntuale.Content{Text: "altrui"})
	receive(a, 2, morning.Add(time.Second), puntuale.Content{Text: "due", MediaURL: "https://x.it/foto.jpg"})
	receive(a, 1, morning.Add(time.Second), puntuale.Content{Text: "uno"}) // a repeat with the same connector id is shown once
	receive(a, 3, morning.Add(time.Second), puntuale.Content{Latitude: new(45.5), Longitude: new(9.25)})
	s.clock.Advance(time.Minute)
	type page struct {
		Messages []json.RawMessage
		Next     *string `json:"next_cursor"`
	}
	var first, rest page
	s.must(&first, "GET", "/api/sandbox/messages?limit=2", a.Key, "")
	if len(first.Messages) != 2 || first.Next == nil ||
		string(first.Messages[0]) != `{"message_id":1,"phone":"+393331234567","text":"uno","media_url":null,"media_name":null,"latitude":null,"longitude":null,"received_at":"2026-11-20T09:30:00.123456Z"}` ||
		!strings.Contains(string(first.Messages[1]), `"media_url":"https://x.it/foto.jpg","media_name":"foto.jpg"`) {
		t.Fatalf("%s", first.Messages)
	}
	s.must(&rest, "GET", "/api/sandbox/messages?cursor="+*first.Next, a.Key, "")
	if len(rest.Messages) != 1 || rest.Next != nil || !strings.Contains(string(rest.Messages[0]), `"message_id":3,"phone":"+393331234567","text":"","media_url":null,"media_name":null,"latitude":45.5,"longitude":9.25`) {
		t.Errorf("%s", rest.Messages)
	}
	s.refusedAt(422, "GET", "/api/sandbox/messages?phone=x", a.Key, "", "query.phone")
}

// A session is created with the server's defaults, unless the call gives other values. A sandbox session is marked as a
// sandbox. A session's type never changes.
func behaviourSandboxSessions(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"quotas":{"sessions":20}}`)
	gateway := map[string]string{"Send_app": `,"gateway":{"access_token":"t"}`}
	for _, kind := range []string{"Socket", "Send_app", "Official"} {
		for member, want := range map[string]string{"": "true", `,"sandbox":null`: "true", `,"sandbox":true`: "true", `,"sandbox":false`: "false"} {
			var made struct{ ID string }
			created := s.must(&made, "POST", "/api/sessions", a.Key, `{"name":"x","connection_type":"`+kind+`"`+gateway[kind]+member+`}`)
			one := s.must(nil, "GET", "/api/sessions/"+made.ID, a.Key, "")
			rest, _, health := strings.Cut(one.body, `,"health":`) // only the answer about one session has it
			if health != (kind == "Official" && want == "false") || !strings.HasPrefix(created.body, rest) || !health && created.body != one.body || !strings.Contains(one.body, `"connection_type":"`+kind+`","sandbox":`+want) {
				t.Errorf("%s%s: %s\n%s", kind, member, created.body, one.body)
			}
			if state := map[string]string{"true": `"state":"online"`, "false": `"state":"unlinked"`}[want]; !strings.Contains(one.body, state) {
				t.Errorf("%s%s: %s", kind, member, one.body)
			}
			for method, want := range map[string]int{"PUT": 422, "PATCH": 405} { // PATCH may change the session's pace; no method changes its type
				if got := s.call(method, "/api/sessions/"+made.ID, a.Key, `{"connection_type":"Socket"}`); got.status != want {
					t.Errorf("%s: %d", method, got.status)
				}
			}
		}
	}
	s.refusedAt(422, "POST", "/api/sessions", a.Key, `{"name":"x","connection_type":"Telegram"}`, "body.connection_type")
	s.refusedAt(422, "POST", "/api/sessions", a.Key, `{}`, "body.name", "body.connection_type")
}

// A page of a list has 100 rows by default and at most 1000. Rows that are added while a caller reads a list do not
// change the list's pages.
func behaviourListSizes(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, strings.TrimPrefix(strings.Repeat(","+stepLater, 50), ","))
	start := func() (run started) {
		s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t"}`)
		return run
	}
	var all []string
	for range 3 {
		all = append(start().ID, all...)
	}
	seen := map[string]int{}
	read := func(query string) (rows int, next string) {
		var page struct {
			Messages []struct{ ID int64 }
			Next     *string `json:"next_cursor"`
		}
		s.must(&page, "GET", "/api/messages?"+query, a.Key, "")
		for _, m := range page.Messages {
			seen[fmt.Sprint(m.ID)]++
		}
		if page.Next != nil {
			next = *page.Next
		}
		return len(page.Messages), next
	}
	if rows, next := read("limit=1000"); rows != 150 || next != "" {
		t.Errorf("%d rows, then %q", rows, next)
	}
	clear(seen)
	rows, next := read("")
	late := start() // added after the first page was read; the list is newest first, so this row belongs before the first page
	more, end := read("cursor=" + next)
	if rows != 100 || more != 50 || end != "" {
		t.Errorf("%d rows, then %d, then %q", rows, more, end)
	}
	for _, id := range all {
		if seen[id] != 1 {
			t.Errorf("%s was listed %d times", id, seen[id])
		}
	}
	if seen[late.ID[0]] != 0 {
		t.Error("what came later is in the middle")
	}
	for _, path := range []string{"messages", "sequences", "sessions", "templates", "blacklist", "sandbox/messages"} {
		for _, query := range []string{"limit=1001", "limit=0", "limit=x"} {
			s.refusedAt(422, "GET", "/api/"+path+"?"+query, a.Key, "", "query.limit")
		}
		s.refusedAt(422, "GET", "/api/"+path+"?unknown=1", a.Key, "", "query.unknown")
	}
	s.refusedAt(422, "GET", "/api/clients?limit=1001", s.partner, "", "query.limit")
}
