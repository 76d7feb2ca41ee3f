package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
)

// TestOfficialSession: a session's secrets can be set, tested and replaced, but are never shown again.
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
		// A call may replace one secret, and the other secrets do not change. If no secrets are stored yet, a call
		// must contain all of them.
		s.must(&made, "PUT", path+"/official", key, `{"access_token":"EAAcanaryold"}`)
		says(`"ok":false`, `"message":"Token di accesso scaduto o revocato`)
		s.must(&made, "PUT", path+"/official", key, `{"access_token":" EAAcanary ","app_secret":null}`)
		says(`"ok":true`, `"phone_number_id":"101","business_account_id":"55101"`)
		s.refusedAt(422, "PUT", path+"/official", key, `{"phone_number_id":"+39"}`, "body.phone_number_id")
		says(`"ok":true`)
		s.owner.peer.Look(func() graphtest.Reply { return graphtest.Reply{Status: 502, Body: "x"} })
		says(`"ok":false`, `"message":"I server di Meta non rispondono`)
		s.owner.peer.Look(nil)

		if a := s.call("POST", path+"/pair", key, `{"method":"qr"}`); a.status != 409 {
			t.Errorf("pair: %d %s", a.status, a.body)
		}
		s.must(&made, "PUT", path+"/official", key, strings.Replace(officialKeys, "EAAcanary", "EAAcanaryold", 1))
		says(`"state":"unlinked"`)
		s.must(&made, "DELETE", path+"/pair", key, "") // secrets can be removed even if they are invalid
		says(`"ok":false`, `"message":"Mancano le credenziali di Meta"`)
		s.refusedAt(422, "PUT", path+"/official", key, `{"access_token":"EAAcanary"}`, "body.phone_number_id", "body.app_secret", "body.verify_token")

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

// TestReceiptsInDetails: the details show the times of receipts as soon as these are known. The times come after the
// contract's members.
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
		tell := func(k puntuale.ReceiptKind, after time.Duration) {
			t.Helper()
			e := puntuale.DeliveryReceipt{MessageRef: item, Session: session, Kind: k, At: morning.Add(after), Reason: puntuale.Quoted("Il destinatario non riceve su WhatsApp"), Detail: puntuale.Quoted("Meta 131026")}
			if _, err := s.owner.store.KeepReceipts(t.Context(), s.clock.Now(), []puntuale.DeliveryReceipt{e}); err != nil {
				t.Fatal(err)
			}
		}
		tell(puntuale.ReceiptFailed, time.Second)
		if got := s.must(nil, "GET", details, a.Key, ""); !strings.Contains(got.body, `"stato":"FAILED"`) || !strings.Contains(got.body, `"risposta":"Il destinatario non riceve su WhatsApp"`) {
			t.Error(got.body)
		}
		tell(puntuale.ReceiptDelivered, 2*time.Second)
		tell(puntuale.ReceiptRead, 3*time.Second)
		got := s.must(nil, "GET", details, a.Key, "")
		if !strings.Contains(got.body, `"stato":"COMPLETED"`) || !strings.HasSuffix(got.body, `,"consegnato":"2026-11-20T09:30:02.123456Z","letto":"2026-11-20T09:30:03.123456Z"}]}`) {
			t.Error(got.body)
		}
	})
}

// TestApprovedTemplates: the API stores all data that an approved template needs. The fields that the template needs
// become fields of the sequence, and a start fills them in.
func TestApprovedTemplates(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		key := s.newClient("template@x", "full")
		const official = `{"name":"promo_it","language":"it","header":[{"name":"titolo","text":"Per {{nome}}"}],"body":[{"name":"ora","text":"{{quando:ora}}"}],"buttons":[{"index":1,"type":"url","text":"{{nome}}"}]}`
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
			`"official":{"name":"promo_it","language":"it","header":[{"name":"titolo","text":"Per Ada"}],"body":[{"name":"ora","text":"10:30"}],"buttons":[{"index":1,"type":"url","text":"Ada"}]}`) {
			t.Errorf("%s, %v", content, err)
		}
		for official, at := range map[string]string{
			`{"name":"Promo","language":"it"}`:                                                                                     "body.official.name",
			`{"name":"promo","language":"italiano"}`:                                                                               "body.official.language",
			`{"name":"promo","language":"it","body":[{"text":""}]}`:                                                                "body.official.body[0].text",
			`{"name":"promo","language":"it","body":[{"text":"{{1}}"}]}`:                                                           "body.official.body[0].text",
			`{"name":"promo","language":"it","body":[{"name":"A","text":"x"}]}`:                                                    "body.official.body[0].name",
			`{"name":"promo","language":"it","body":[{"name":"a","text":"x"},{"text":"y"}]}`:                                       "body.official",
			`{"name":"promo","language":"it","buttons":[{"index":0,"type":"call","text":"x"}]}`:                                    "body.official.buttons[0].type",
			`{"name":"promo","language":"it","buttons":[{"index":10,"type":"url","text":"x"}]}`:                                    "body.official.buttons[0].index",
			`{"name":"promo","language":"it","buttons":[{"type":"url","text":"x"}]}`:                                               "body.official.buttons[0].index",
			`{"name":"promo","language":"it","buttons":[{"index":0,"type":"url","text":" "}]}`:                                     "body.official.buttons[0].text",
			`{"name":"promo","language":"it","buttons":[{"index":0,"type":"url","text":"x"},{"index":0,"type":"url","text":"x"}]}`: "body.official.buttons[1].index",
			`{"name":"promo","language":"it","body":[` + strings.Repeat(`{"text":"x"},`, 100) + `{"text":"x"}]}`:                   "body.official.body",
		} {
			s.refusedAt(422, "POST", "/api/templates", key, `{"name":"Altro","text":"x","official":`+official+`}`, at)
		}
	})
}

// TestNetworkTemplates: testing a session reads the business's templates from Meta. The list shows which values each
// template needs. Sequences get warnings about future problems, in both languages.
func TestNetworkTemplates(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		key := s.newClient("templates@x", "full")
		var made struct{ ID string }
		s.must(&made, "POST", "/api/sessions", key, `{"name":"Ufficiale","connection_type":"Official","official":`+officialKeys+`}`)
		path := "/api/sessions/" + made.ID
		promo := graphtest.NewTemplate("promo", "Ciao {{1}}, alle {{2}}")
		promo.Components = append(promo.Components, map[string]any{"type": "BUTTONS", "buttons": []any{map[string]any{"type": "URL", "text": "Apri", "url": "https://x/{{1}}"}}})
		paused := graphtest.NewTemplate("ferma", "Ciao")
		paused.Status = "PAUSED"
		named := graphtest.NewTemplate("promo_nomi", "Ciao {{nome}}, alle {{ora}}")
		named.Format = "NAMED"
		s.owner.peer.SetTemplates("55101", promo, paused, named)
		shows := func(method, path, body string, want ...string) {
			t.Helper()
			a := s.must(nil, method, path, key, body)
			for _, w := range want {
				if !strings.Contains(a.body, w) {
					t.Errorf("%s %s: %s, want %s", method, path, a.body, w)
				}
			}
		}
		count := 0
		sequence := func(official, step string) string {
			count++
			name := fmt.Sprint("T", count)
			s.must(nil, "POST", "/api/templates", key, `{"name":"`+name+`","text":"x","official":`+official+`}`)
			return `{"name":"s","id_sessione":"` + made.ID + `","steps":[{"template":"` + name + `",` + step + `"timing":{"anchor":"start","offset":{"amount":0}}}]}`
		}
		shows("POST", "/api/sequences", `{"name":"s","id_sessione":"`+made.ID+`","steps":[`+stepNow+`]}`,
			`"warnings":[{"step":0,"message":"Senza un template approvato parte solo entro 24 ore dall'ultimo messaggio del destinatario","message_en":"Without an approved`)
		if a := s.must(nil, "POST", "/api/sequences", key, `{"name":"s","steps":[`+stepNow+`]}`); strings.Contains(a.body, "warnings") {
			t.Errorf("of another session: %s", a.body)
		}
		unknown := sequence(`{"name":"nonesi","language":"it"}`, "")
		if a := s.must(nil, "POST", "/api/sequences", key, unknown); strings.Contains(a.body, "warnings") { // the list of templates was not read yet, so there is no warning
			t.Errorf("before the list: %s", a.body)
		}
		shows("GET", path+"/templates", "", `{"status":{`, `"templates":[]`)
		shows("POST", path+"/test", "", `"ok":true`, `"message_en":"All is well, this number can send: +39021234101"`, `"templates":{"phone_number_id":"101","business_account_id":"55101","synchronised_at":"`)
		shows("GET", path+"/templates", "", `{"name":"ferma","language":"it"`, `"status":"PAUSED","usable":false,"why":"Template in pausa per bassa qualità","why_en":"The template is paused`,
			`"text":"Ciao {{1}}, alle {{2}}","places":["1","2"]`, `"buttons":[{"type":"URL","text":"Apri","url":"https://x/{{1}}","open":true}]`)
		var page struct {
			Templates []struct{ Name string }
			Next      string `json:"next_cursor"`
		}
		s.must(&page, "GET", path+"/templates?limit=2", key, "")
		next := page.Next
		page.Next = ""
		s.must(&page, "GET", path+"/templates?limit=2&cursor="+next, key, "")
		if len(page.Templates) != 1 || page.Templates[0].Name != "promo_nomi" || page.Next != "" {
			t.Errorf("the second page: %+v", page)
		}
		shows("POST", "/api/sequences", unknown, `"message":"Template non esistente o non approvato in questa lingua"`)
		shows("POST", "/api/sequences", sequence(`{"name":"ferma","language":"it"}`, ""), `"message":"Template in pausa per bassa qualità"`)
		for official, fits := range map[string]bool{
			`{"name":"promo","language":"it","body":[{"text":"a"},{"text":"b"}],"buttons":[{"index":0,"type":"url","text":"c"}]}`:                         true,
			`{"name":"promo","language":"it","body":[{"text":"a"},{"text":"b"}]}`:                                                                         false,
			`{"name":"promo","language":"it","body":[{"text":"a"}],"buttons":[{"index":0,"type":"url","text":"c"}]}`:                                      false,
			`{"name":"promo","language":"it","body":[{"name":"x","text":"a"},{"name":"y","text":"b"}],"buttons":[{"index":0,"type":"url","text":"c"}]}`:   false,
			`{"name":"promo","language":"it","header":[{"text":"h"}],"body":[{"text":"a"},{"text":"b"}],"buttons":[{"index":0,"type":"url","text":"c"}]}`: false,
			`{"name":"promo_nomi","language":"it","body":[{"name":"ora","text":"a"},{"name":"nome","text":"b"}]}`:                                         true,
			`{"name":"promo_nomi","language":"it","body":[{"name":"ora","text":"a"},{"name":"ora","text":"b"}]}`:                                          false,
		} {
			body := sequence(official, `"on_uncertain":"resend",`)
			var stored struct{ ID string }
			a := s.must(&stored, "POST", "/api/sequences", key, body)
			if !strings.Contains(a.body, `"on_uncertain":"resend"`) || strings.Contains(a.body, "I valori non corrispondono") == fits {
				t.Errorf("%s: %s", official, a.body)
			}
			if again := s.must(nil, "GET", "/api/sequences/"+stored.ID, key, ""); strings.Contains(again.body, "I valori non corrispondono") == fits {
				t.Errorf("asked for again: %s", again.body)
			}
			var templates struct{ Templates []struct{ ID string } }
			var sequences struct{ Sequences []struct{ ID string } }
			s.must(&sequences, "GET", "/api/sequences", key, "")
			for _, q := range sequences.Sequences {
				s.must(nil, "DELETE", "/api/sequences/"+q.ID, key, "")
			}
			s.must(&templates, "GET", "/api/templates", key, "")
			for _, m := range templates.Templates {
				s.must(nil, "DELETE", "/api/templates/"+m.ID, key, "")
			}
		}
		s.refusedAt(422, "POST", "/api/sequences", key, `{"name":"s","steps":[{"text":"x","on_uncertain":"always","timing":{"anchor":"start","offset":{"amount":0}}}]}`, "body.steps[0].on_uncertain")
		s.owner.peer.List(func() graphtest.Reply { return graphtest.Reply{Code: 200} })
		shows("POST", path+"/test", "", `"ok":true`, `"problem":"Il token non ha il permesso whatsapp_business_management (codice Meta 200)","problem_en":"The token lacks the permission whatsapp_business_management (Meta code 200)"`)
		s.refusedAt(422, "PUT", path+"/official", key, strings.Replace(officialKeys, "55101", "x1", 1), "body.business_account_id")
		s.refusedAt(400, "PUT", path+"/official", key, strings.Replace(officialKeys, "{", `{"groups_api":"x",`, 1), "body.groups_api")
		s.must(nil, "PUT", path+"/official", key, strings.Replace(officialKeys, "{", `{"groups_api":true,`, 1))
		s.must(nil, "PUT", path+"/official", key, `{"business_account_id":""}`)
		shows("POST", path+"/test", "", `"templates":{"phone_number_id":"101"}`)
		shows("GET", path+"/templates", "", `"templates":[]`)
	})
}

// TestWebhookAddress: the answer always contains the path. If the service knows its own address, the answer also
// contains the whole address.
func TestWebhookAddress(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]string{"": "", "https://messages.example.com/": "https://messages.example.com"} {
		s := newService(t, options{public: public})
		key := s.newClient("official@x", "full")
		var made struct {
			ID   string
			Path string `json:"webhook_path"`
			URL  string `json:"webhook_url"`
		}
		s.must(&made, "POST", "/api/sessions", key, `{"name":"Ufficiale","connection_type":"Official"}`)
		if want != "" {
			want += "/webhooks/official/" + made.ID
		}
		if made.Path != "/webhooks/official/"+made.ID || made.URL != want {
			t.Errorf("made: %+v, want the address %q", made, want)
		}
		if a := s.must(nil, "POST", "/api/sessions", key, `{"name":"QR","connection_type":"Socket"}`); strings.Contains(a.body, "webhook") {
			t.Errorf("a linked number: %s", a.body)
		}
	}
}

// TestWays: dry runs and details say in which way a message of an Official session leaves. A session's settings decide
// whether Direct Send is one of the ways.
func TestWays(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		key := s.newClient("ways@x", "full")
		var session struct{ ID string }
		s.must(&session, "POST", "/api/sessions", key, `{"name":"Ufficiale","connection_type":"Official","official":`+officialKeys+`}`)
		path := "/api/sessions/" + session.ID
		s.must(nil, "POST", path+"/test", key, "")
		s.must(nil, "POST", "/api/templates", key, `{"name":"Promo","text":"Ciao","official":{"name":"promo","language":"it"}}`)
		sequence := func(step, purpose string) string {
			var made struct{ ID string }
			s.must(&made, "POST", "/api/sequences", key, `{"name":"S","id_sessione":"`+session.ID+`","purpose":"`+purpose+`","steps":[{`+step+`,"timing":{"anchor":"start","offset":{"amount":0}}}]}`)
			return made.ID
		}
		const free, both = `"text":"Ciao"`, `"template":"Promo"`
		says := func(step, purpose string, want ...string) {
			t.Helper()
			got := s.must(nil, "POST", "/api/start/"+sequence(step, purpose)+"?dry_run=true", key, `{"phone":"+393331234567"}`)
			for _, w := range want {
				if !strings.Contains(got.body, w) {
					t.Errorf("%s, %s: %s, want %s", step, purpose, got.body, w)
				}
			}
		}
		says(free, "service", `"way":"refused","way_reason":"Fuori dalla finestra di 24 ore e senza template: Meta lo rifiuterebbe"`, `"warnings":[{"step":0,`)
		says(both, "service", `"way":"template"`)
		got := s.must(nil, "PUT", path, key, `{"ways":{"direct_send":true}}`)
		if want := `"ways":{"direct_send":true,"marketing_messages":false,"creative_features":false}`; !strings.Contains(got.body, want) {
			t.Errorf("%s, want %s", got.body, want)
		}
		says(free, "service", `"way":"direct_send","way_reason":"Fuori dalla finestra di 24 ore: parte con Direct Send, senza template"`)
		says(both, "service", `"way":"direct_send"`)
		says(free, "marketing", `"way":"refused"`)
		says(both, "marketing", `"way":"template"`)

		var made started
		s.must(&made, "POST", "/api/messages", key, `{"phone":"+393331234567","text":"x","id_sessione":"`+session.ID+`","date":"2026-12-20"}`)
		if got := s.must(nil, "GET", "/api/messages/details?message_ids[]="+made.ID[0], key, ""); !strings.Contains(got.body, `"way":"direct_send"`) {
			t.Error(got.body)
		}
		var other struct{ ID string }
		s.must(&other, "POST", "/api/sessions", key, `{"name":"s","connection_type":"Socket","sandbox":true}`)
		s.refusedAt(422, "PUT", "/api/sessions/"+other.ID, key, `{"ways":{"direct_send":true}}`, "body.ways")
	})
}
