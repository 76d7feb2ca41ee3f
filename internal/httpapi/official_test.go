package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
)

// TestOfficialSession: keys are taken, tried and replaced, and never shown again.
func TestOfficialSession(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		key := s.newClient("official@x", "full")
		body := `{"name":"Ufficiale","connection_type":"Official","official":` + officialKeys + `}`
		var made struct {
			ID, State, Number string
			Webhook           string `json:"webhook_path"`
		}
		s.must(&made, "POST", "/api/sessions", key, body, "Idempotency-Key", "k1")
		again := s.must(nil, "POST", "/api/sessions", key, body, "Idempotency-Key", "k1")
		if again.header.Get("Idempotent-Replayed") != "true" || !strings.Contains(again.body, `"id":"`+made.ID+`"`) {
			t.Errorf("again: %s", again.body)
		}
		path := "/api/sessions/" + made.ID
		if made.State != "unlinked" || made.Webhook != "/webhooks/official/"+made.ID {
			t.Errorf("made: %+v", made)
		}
		says := func(want ...string) {
			t.Helper()
			a := s.must(nil, "POST", path+"/test", key, "")
			for _, w := range want {
				if !strings.Contains(a.body, w) {
					t.Errorf("the test says %s, want %s", a.body, w)
				}
			}
		}
		says(`"ok":true`, `"message":"Tutto a posto: il numero +39021234101 può inviare"`, `"state":"online"`)
		s.must(&made, "PUT", path+"/official", key, strings.Replace(officialKeys, "EAAcanary", "EAAcanaryold", 1))
		says(`"ok":false`, `"message":"Token di accesso scaduto o revocato`, `"state":"unlinked"`)
		s.must(&made, "PUT", path+"/official", key, strings.Replace(officialKeys, "101", "102", 1))
		says(`"ok":false`, `phone_number_id non esiste`)
		s.must(&made, "PUT", path+"/official", key, officialKeys)
		says(`"ok":true`)
		s.owner.peer.Look(func() graphtest.Reply { return graphtest.Reply{Status: 502, Body: "x"} })
		says(`"ok":false`, `"message":"I server di Meta non rispondono`)
		s.owner.peer.Look(nil)

		if a := s.call("POST", path+"/pair", key, `{"method":"qr"}`); a.status != 409 {
			t.Errorf("pair: %d %s", a.status, a.body)
		}
		s.must(&made, "PUT", path+"/official", key, strings.Replace(officialKeys, "EAAcanary", "EAAcanaryold", 1))
		says(`"state":"unlinked"`)
		s.must(&made, "DELETE", path+"/pair", key, "") // keys that are no good are forgotten, too
		says(`"ok":false`, `"message":"Mancano le credenziali di Meta"`)

		for _, other := range []string{`{"name":"s","connection_type":"Socket","sandbox":true}`, `{"name":"s","connection_type":"Official","sandbox":true}`} {
			s.must(&made, "POST", "/api/sessions", key, other)
			for _, call := range [][2]string{{"POST", "/test"}, {"PUT", "/official"}} {
				if a := s.call(call[0], "/api/sessions/"+made.ID+call[1], key, map[string]string{"PUT": officialKeys}[call[0]]); a.status != 409 {
					t.Errorf("%s of %s: %d %s", call[1], other, a.status, a.body)
				}
			}
		}
		shown := s.must(nil, "GET", "/api/sessions", key, "").body + s.must(nil, "GET", path, key, "").body + s.log.String()
		rows, err := s.db.SQL.Query("select keys from session union all select result from idempotency union all select answer from command union all select detail from command")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var stored []byte
			if err := rows.Scan(&stored); err != nil {
				t.Fatal(err)
			}
			shown += string(stored)
		}
		if err := rows.Err(); err != nil || strings.Contains(shown, "canary") {
			t.Errorf("a key is readable: %v", err)
		}
	})
}

// TestReceiptsInDetails: the moments are there once they are known, after the contract's members.
func TestReceiptsInDetails(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "full")
		const phone = "+393331234567"
		var made started
		s.must(&made, "POST", "/api/messages", a.Key, `{"phone":"`+phone+`","text":"x"}`)
		id := made.ID[0]
		s.end(a, id, phone, sent)
		details := "/api/messages/details?message_ids[]=" + id
		if got := s.must(nil, "GET", details, a.Key, ""); strings.Contains(got.body, "consegnato") || strings.Contains(got.body, "letto") {
			t.Error(got.body)
		}
		item := s.item(a, id)
		session, err := puntuale.ParseID[puntuale.SessionID](a.Session)
		if err != nil {
			t.Fatal(err)
		}
		tell := func(k puntuale.EvidenceKind, after time.Duration) {
			t.Helper()
			e := puntuale.Evidence{MessageRef: item, Session: session, Kind: k, At: morning.Add(after), Reason: "Il destinatario non riceve su WhatsApp", Detail: "Meta 131026"}
			if _, err := s.owner.store.KeepEvidence(t.Context(), s.clock.Now(), []puntuale.Evidence{e}); err != nil {
				t.Fatal(err)
			}
		}
		tell(puntuale.EvidenceFailed, time.Second)
		if got := s.must(nil, "GET", details, a.Key, ""); !strings.Contains(got.body, `"stato":"FAILED"`) || !strings.Contains(got.body, `"risposta":"Il destinatario non riceve su WhatsApp"`) {
			t.Error(got.body)
		}
		tell(puntuale.EvidenceDelivered, 2*time.Second)
		tell(puntuale.EvidenceRead, 3*time.Second)
		got := s.must(nil, "GET", details, a.Key, "")
		if !strings.Contains(got.body, `"stato":"COMPLETED"`) || !strings.HasSuffix(got.body, `,"consegnato":"2026-11-20T09:30:02.123456Z","letto":"2026-11-20T09:30:03.123456Z"}]}`) {
			t.Error(got.body)
		}
	})
}

// TestApprovedTemplates: what an approved template needs is kept, its fields count, and it is filled at the start.
func TestApprovedTemplates(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		key := s.newClient("template@x", "full")
		const official = `{"name":"promo_it","language":"it","header":[{"name":"titolo","text":"Per {{nome}}"}],"body":[{"name":"ora","text":"{{quando:ora}}"}]}`
		a := s.must(nil, "POST", "/api/templates", key, `{"name":"Promo","text":"Ciao","official":`+official+`}`)
		if !strings.Contains(a.body, `"official":`+official) || !strings.Contains(a.body, `"fields":[{"name":"nome","kind":"text","required":true},{"name":"quando","kind":"date","required":true}]`) {
			t.Error(a.body)
		}
		sequence := s.newSequence(key, `{"template":"Promo","timing":{"anchor":"start","offset":{"amount":0}}}`)
		s.refusedAt(422, "POST", "/api/start/"+sequence, key, `{"phone":"+393331234567","nome":"Ada"}`, "body.quando")
		s.refusedAt(422, "POST", "/api/start/"+sequence, key, `{"phone":"+393331234567","nome":"`+strings.Repeat("x", 1025)+`","quando":"2026-11-21 10:30"}`, "steps[0].template")
		s.must(nil, "POST", "/api/start/"+sequence, key, `{"phone":"+393331234567","nome":"Ada","quando":"2026-11-21 10:30"}`)
		var content string
		if err := s.db.SQL.QueryRow("select content from run").Scan(&content); err != nil || !strings.Contains(content,
			`"official":{"name":"promo_it","language":"it","header":[{"name":"titolo","text":"Per Ada"}],"body":[{"name":"ora","text":"10:30"}]}`) {
			t.Errorf("%s, %v", content, err)
		}
		for official, at := range map[string]string{
			`{"name":"Promo","language":"it"}`:                                                                   "body.official.name",
			`{"name":"promo","language":"italiano"}`:                                                             "body.official.language",
			`{"name":"promo","language":"it","body":[{"text":""}]}`:                                              "body.official.body[0].text",
			`{"name":"promo","language":"it","body":[{"text":"{{1}}"}]}`:                                         "body.official.body[0].text",
			`{"name":"promo","language":"it","body":[{"name":"A","text":"x"}]}`:                                  "body.official.body[0].name",
			`{"name":"promo","language":"it","body":[{"name":"a","text":"x"},{"text":"y"}]}`:                     "body.official",
			`{"name":"promo","language":"it","body":[` + strings.Repeat(`{"text":"x"},`, 100) + `{"text":"x"}]}`: "body.official.body",
		} {
			s.refusedAt(422, "POST", "/api/templates", key, `{"name":"Altro","text":"x","official":`+official+`}`, at)
		}
	})
}
