package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/retention"
)

// TestEverythingIsWhatErasureRemoves: wherever the database has a person's number, name or another text about the
// person, the document about the person has the row. After an erasure, no table has such a text.
func TestEverythingIsWhatErasureRemoves(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("all@x", "full")
		const phone, other = "+393331234567", "IT.anonima77"
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"keep_replies":"all","keep_media":true,"remember":true}`)
		runner := s.runner()
		rule := func(trigger, actions string) (m madeAutomation) {
			t.Helper()
			s.must(&m, "POST", "/api/automations", a.Key, `{"name":"Regola","trigger":`+trigger+`,"actions":[`+actions+`]}`)
			return m
		}
		const send = `{"kind":"send","text":"Ciao {{nome|}}"}`
		step := s.newSequence(a.Key, stepNow)
		greeting := s.newSequence(a.Key, `{"text":"Auguri {{nome}}","timing":{"anchor":"nascita","offset":{"amount":0,"unit":"days","direction":"after"},"at":"20:00"}}`)
		form := rule(`{"kind":"hook","map":{"phone":"tel","nome":"nome"}}`, send)
		rule(`{"kind":"date","field":"nascita","repeat":"yearly"}`, `{"kind":"start","sequence":"`+greeting+`"}`)
		rule(`{"kind":"no_reply","sequence":"`+step+`","hours":24}`, send)

		s.must(nil, "POST", "/api/contacts", a.Key, `{"phone":"3331234567","name":"Beatrice","tags":["rossa"],"language":"de","source":"fiera","fields":{"nascita":"1990-11-21","targa":"ZZ999ZZ"}}`)
		list := s.sendingCampaign(a, `[{"phone":"3331234567","nome":"Beatrice","colore":"amaranto"}]`)
		var run started
		s.must(&run, "POST", "/api/start/"+step, a.Key, `{"phone":"3331234567","nome":"Beatrice","testo":"segreto","reference":"pratica-77"}`)
		s.end(a, run.ID[0], phone, sent)
		s.must(nil, "POST", "/api/sandbox/replies", a.Key, `{"phone":"3331234567","text":"eccomi"}`)
		s.sendsKept(a, phone, "referto di Beatrice.jpg")
		var visits struct{ ID string }
		s.must(&visits, "POST", "/api/sequences", a.Key, `{"name":"Visita","booking":{"date":"quando"},"steps":[`+stepLater+`]}`)
		s.must(nil, "PUT", "/api/bookings/pratica-78", a.Key, `{"sequence":"`+visits.ID+`","phone":"3331234567","testo":"otturazione","quando":"2027-01-20 10:00"}`)
		var moved struct{ ID string }
		s.must(&moved, "POST", "/api/sequences", a.Key, `{"name":"Spostata","booking":{"date":"quando"},"steps":[{"text":"Ciao","timing":{"anchor":"start","offset":{"amount":0}}}]}`)
		program := rule(`{"kind":"hook","preset":"calcom"}`, `{"kind":"book","sequence":"`+moved.ID+`"}`)
		s.callHook(program.Path, `{"triggerEvent":"BOOKING_RESCHEDULED","payload":{"uid":"pratica-80","rescheduleUid":"pratica-79","startTime":"2027-01-20T10:00:00Z","attendees":[{"phoneNumber":"+393331234567"}]}}`)
		s.callHook(form.Path, `{"tel":"3331234567","nome":"Beatrice","nota":"diario"}`, "Idempotency-Key", "ordine-9")
		s.act(runner)
		s.must(nil, "POST", "/api/contacts/consent", a.Key, `{"phone":"3331234567","purpose":"marketing","change":"grant","source":"form","words":"accetto tutto"}`)
		s.must(nil, "GET", "/api/events", a.Key, "") // from now on there are events
		s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"3331234567","reason":"litigio"}`)
		s.number()
		s.must(nil, "DELETE", "/api/blacklist/remove", a.Key, `{"phone":"3331234567"}`) // this event has no number yet
		s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"3331234567","reason":"litigio"}`, "Idempotency-Key", "k")
		s.sql("insert into alias (client_id, session_id, alias, phone) select client_id, id, '" + other + "', '" + phone + "' from session where client_id = " + a.ID)
		s.sql("insert into official_pause (client_id, session_id, account, scope, subject, code, reason, final, detail, at, until) select client_id, id, '', 1, '" + phone + "', 131026, 'x', 1, 'segreto', 1, 2 from session where client_id = " + a.ID)
		s.sql("insert into official_pause (client_id, session_id, account, scope, subject, code, reason, final, detail, at, until) select client_id, id, '', 7, '" + phone + "', 132015, 'x', 0, 'direttissima', 1, 2 from session where client_id = " + a.ID)
		s.sql("insert into number_change (client_id, id, session_id, mark, old_phone, new_phone, names, at, noted_at) values (" + a.ID + ", 1, 1, 'm', '" + other + "', '" + phone + "', '[]', 1, 1)")
		s.sql("insert into former_name (client_id, name, change_id, at) values (" + a.ID + ", '" + other + "', 1, 1)")
		s.sql("insert into calendar_entry (client_id, calendar_id, reference, start_at, phone, name, title) values (" + a.ID + ", 1, 'x', 1, '" + phone + "', 'Beatrice', 'Visita di Beatrice')")
		s.sql("insert into chatwoot_conversation (client_id, phone, webhook_id, contact_id, conversation_id) values (" + a.ID + ", '" + phone + "', 1, 4711, 4712)")
		s.sql(fmt.Sprintf("insert into link (client_id, run_id, step, n, code, address) values (%s, %s, 0, 1, '23456789', 'https://negozio.example/?chi=Beatrice')", a.ID, run.ID[0]))
		s.clock.Advance(time.Minute)
		s.callHook(form.Path, `{"tel":"3331234567","nome":"Beatrice","nota":"diario"}`, "Idempotency-Key", "ordine-10") // this trigger waits

		texts := []string{phone[3:], "Beatrice", "rossa", "fiera", "ZZ999ZZ", "amaranto", "segreto", "pratica-77", "pratica-78", "pratica-79", "otturazione", "direttissima", "eccomi", "ordine-9", "diario", "accetto tutto", "litigio", other}
		var document map[string]json.RawMessage
		told := s.must(nil, "POST", "/api/contacts/everything", a.Key, `{"phone":"3331234567"}`).body
		if err := json.Unmarshal([]byte(told), &document); err != nil {
			t.Fatalf("%v: %s", err, told)
		}
		personal, filled := retention.PersonalTables(), map[string]bool{}
		for _, place := range s.found(texts...) {
			table, row, _ := strings.Cut(place, " : ")
			filled[table] = true
			switch member, known := personal[table]; {
			case !known:
				t.Errorf("table %s has data about the person, but neither the erasure nor the document knows it: %s", table, row)
			case len(document[member]) < 4:
				t.Errorf("member %q of the document has nothing of table %s: %s", member, table, row)
			}
		}
		for _, text := range append(texts, "1990-11-21", `"campaign":`+list, "4711") {
			if !strings.Contains(told, text) {
				t.Errorf("the document lacks %q: %s", text, told)
			}
		}
		for table := range personal {
			// These tables name the person only by ids, or have tests of their own (storetest/erase.go).
			if !filled[table] && !strings.Contains(" message person_word sandbox_message automation_date event consent_state campaign delivery conversation contact automation_firing ", " "+table+" ") {
				t.Errorf("the test stores nothing in %s", table)
			}
		}
		b := s.newAccount("other@x", "full")
		if none := s.must(nil, "POST", "/api/contacts/everything", b.Key, `{"phone":"3331234567"}`).body; strings.Contains(none, "Beatrice") || strings.Contains(none, "diario") {
			t.Errorf("of another client: %s", none)
		}

		s.must(nil, "POST", eraseCall, a.Key, `{"phone":"3331234567"}`)
		if places := s.found(texts...); len(places) > 0 {
			t.Errorf("after the erasure:\n%s", strings.Join(places, "\n"))
		}
		after := s.must(nil, "POST", "/api/contacts/everything", a.Key, `{"phone":"3331234567"}`).body
		for _, member := range []string{"contacts", "recipients", "replies", "messages", "names", "hooks", "automations"} {
			if !strings.Contains(after, strconv.Quote(member)+":[]") {
				t.Errorf("after the erasure, %s is not empty: %s", member, after)
			}
		}
	})
}

// sendingCampaign starts a campaign with recipients, and returns its id.
func (s *service) sendingCampaign(a clientAccount, recipients string) string {
	s.t.Helper()
	var made struct{ ID string }
	s.must(&made, "POST", "/api/campaigns", a.Key, `{"name":"Saldi","content":{"text":"Ciao {{nome}} {{colore}}"},"purpose":"service","recipients":`+recipients+`,"start":true}`)
	return made.ID
}

// sendsKept lets a person send a file, which the client keeps. The client has the same bytes already, under a name of its own,
// so only the reply has the person's name for it.
func (s *service) sendsKept(a clientAccount, phone, name string) {
	s.t.Helper()
	ctx := s.t.Context()
	client, session := idsOf(s.t, a, a.Session)
	var own struct{ ID puntuale.FileID }
	s.must(&own, "POST", "/api/files?name=modulo.txt", a.Key, "Ciao")
	err := s.intake.Take(ctx, session, puntuale.InboundBatch{Messages: []puntuale.InboundMessage{{
		Client: client, Session: session, Phone: phone, At: s.clock.Now(), ID: name, Kind: puntuale.ReplyDocument, Media: &puntuale.ReplyMedia{Type: "text/plain", Ref: []byte("x")},
	}}})
	if err != nil {
		s.t.Fatal(err)
	}
	due, _, err := s.store.DueIncoming(ctx, s.clock.Now(), 0)
	if err != nil || len(due) != 1 {
		s.t.Fatalf("files to keep: %+v, %v", due, err)
	}
	x, ok, err := s.store.ClaimIncoming(ctx, due[0], s.clock.Now().Add(time.Minute))
	if err != nil || !ok {
		s.t.Fatalf("claim: %v, %v", ok, err)
	}
	f, err := s.store.Tenant(client).File(ctx, own.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	f.ID, f.Name, f.For = "0"+f.ID[1:], name, &x
	if _, err := s.store.Tenant(client).CreateFile(ctx, f); err != nil {
		s.t.Fatal(err)
	}
}
