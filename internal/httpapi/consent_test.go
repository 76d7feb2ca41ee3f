package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestConsentAndReplies: a client adds a consent with proof, reads people's replies, and downloads all its data about a
// person.
func TestConsentAndReplies(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("people@x", "full")
		const phone = "+393331234567"
		consents := func(query string) (all []struct{ Purpose, Change, Source, Words, At, By string }) {
			t.Helper()
			var got struct {
				Consents []struct{ Purpose, Change, Source, Words, At, By string }
			}
			s.must(&got, "GET", "/api/contacts/consent"+query, a.Key, "")
			return got.Consents
		}
		s.must(nil, "POST", "/api/contacts/consent", a.Key, `{"phone":"333 1234567","purpose":"marketing","change":"grant","source":"modulo","words":"Accetto"}`)
		if all := consents("?phone=3331234567"); len(all) != 1 || all[0].Change != "grant" || all[0].Words != "Accetto" || all[0].By != "api" {
			t.Errorf("the ledger: %+v", all)
		}
		for body, locations := range map[string][]string{
			`{}`: {"body.phone", "body.purpose", "body.change", "body.source"},
			`{"phone":"x","purpose":"spam","change":"undo","source":" "}`: {"body.phone", "body.purpose", "body.change", "body.source"},
		} {
			answer := s.call("POST", "/api/contacts/consent", a.Key, body)
			for _, location := range locations {
				if answer.status != 422 || !strings.Contains(answer.body, `"`+location+`"`) {
					t.Errorf("%s: %d %s", body, answer.status, answer.body)
				}
			}
		}
		var made struct{ ID string }
		s.must(&made, "POST", "/api/sequences", a.Key, `{"name":"Offerta","purpose":"marketing","steps":[{"text":"Sconto","timing":{"anchor":"start","offset":{"amount":1,"unit":"hours"}}}]}`)
		s.must(nil, "POST", "/api/start/"+made.ID, a.Key, `{"phone":"3331234567"}`)
		s.must(nil, "POST", "/api/sandbox/replies", a.Key, `{"phone":"3331234567","text":"Stop, arrivo tardi","network_id":"n1"}`)
		s.must(nil, "POST", "/api/sandbox/replies", a.Key, `{"phone":"3331234567","text":"Stop, arrivo tardi","network_id":"n1"}`)
		if all := consents(""); len(all) != 1 {
			t.Errorf("a sentence changed consent: %+v", all)
		}
		s.clock.Advance(time.Second)
		s.must(nil, "POST", "/api/sandbox/replies", a.Key, `{"phone":"3331234567","text":"Basta!"}`)
		if all := consents(""); len(all) != 2 || all[1].Change != "withdraw" || all[1].Words != "Basta!" {
			t.Errorf("after the opt-out: %+v", all)
		}
		var replies struct {
			Replies []struct {
				ID, Phone, Text, Kind string
				Effect                *string
				Read                  bool
			}
		}
		s.must(&replies, "GET", "/api/replies?unread=true", a.Key, "")
		if all := replies.Replies; len(all) != 2 || all[0].Text != "Basta!" || all[0].Effect == nil || *all[0].Effect != "opt_out" || all[0].Read || all[0].Phone != phone || all[1].Effect != nil {
			t.Errorf("replies: %+v", all) // a planned message makes the person known, so both replies are stored
		}
		var messages struct {
			Messages []struct{ Stato string }
		}
		s.must(&messages, "GET", "/api/messages?phone=3331234567", a.Key, "")
		if len(messages.Messages) != 1 || messages.Messages[0].Stato != "CANCELLED" {
			t.Errorf("pending marketing: %+v", messages.Messages)
		}
		if list := s.call("GET", "/api/blacklist", a.Key, ""); !strings.Contains(list.body, phone) || !strings.Contains(list.body, "Disiscrizione: Basta!") {
			t.Errorf("the blacklist: %s", list.body)
		}
		if got := s.call("POST", "/api/replies/read", a.Key, `{"phone":"3331234567"}`); got.body != "{\"read\":2}\n" && got.body != `{"read":2}` {
			t.Errorf("marked: %s", got.body)
		}
		everything := s.call("POST", "/api/contacts/everything", a.Key, `{"phone":"3331234567"}`).body
		for _, part := range []string{`"phone":"+393331234567"`, `"blacklisted":true`, "Accetto", "Basta!", "Sconto", `"replies":[`} {
			if !strings.Contains(everything, part) {
				t.Errorf("the document lacks %s: %s", part, everything)
			}
		}
		csv := s.call("GET", "/api/contacts/consent/export", a.Key, "").body
		if !strings.HasPrefix(csv, "phone,purpose,change,source,words,message,by,at,entered_at,applied\n") || strings.Count(csv, "\n") != 2 {
			t.Errorf("the export: %q", csv)
		}
		s.clock.Advance(time.Second)
		s.must(nil, "POST", "/api/sandbox/replies", a.Key, `{"phone":"3331234567","text":"riprendi"}`)
		if all := consents(""); len(all) != 3 || all[2].Change != "grant" {
			t.Errorf("after the undo: %+v", all)
		}
	})
}

// TestRepeatedWithdrawalCancels: if the server stops after it stored a withdrawal, a repeat of the call cancels the
// pending marketing. If the person gave consent meanwhile, a repeat cancels nothing.
func TestRepeatedWithdrawalCancels(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		a := s.newAccount("withdraw@x", "full")
		consent := func(change string) {
			s.clock.Advance(time.Second)
			s.must(nil, "POST", "/api/contacts/consent", a.Key, `{"phone":"3331234567","purpose":"marketing","change":"`+change+`","source":"modulo"}`, "Idempotency-Key", change)
		}
		var made struct{ ID string }
		s.must(&made, "POST", "/api/sequences", a.Key, `{"name":"Offerta","purpose":"marketing","steps":[{"text":"Sconto","timing":{"anchor":"start","offset":{"amount":1,"unit":"hours"}}}]}`)
		consent("grant")
		var run started
		s.must(&run, "POST", "/api/start/"+made.ID, a.Key, `{"phone":"3331234567"}`)
		wants := func(what, state string) {
			t.Helper()
			var messages struct {
				Messages []struct{ Stato string }
			}
			s.must(&messages, "GET", "/api/messages?phone=3331234567", a.Key, "")
			if all := messages.Messages; len(all) != 1 || all[0].Stato != state {
				t.Errorf("%s: %+v, want %s", what, all, state)
			}
			s.sql("update message set state = 0, intent = 0, done_at = null, reason = ''") // as if the call had not cancelled yet
		}
		consent("withdraw")
		wants("after the withdrawal", "CANCELLED")
		consent("withdraw")
		wants("after the repeat", "CANCELLED")
		s.clock.Advance(time.Second)
		s.must(nil, "POST", "/api/contacts/consent", a.Key, `{"phone":"3331234567","purpose":"marketing","change":"grant","source":"modulo"}`)
		consent("withdraw")
		wants("after a repeat that is out of date", "PENDING")
	})
}

// TestStartKeepsOwnBlacklistEntry: a client that blacklists a number which had opted out makes the entry its own. START
// takes the withdrawal back, but does not remove the entry.
func TestStartKeepsOwnBlacklistEntry(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("own@x", "full")
		for i, own := range []bool{false, true} {
			phone := fmt.Sprintf("+39333123456%d", i)
			reply := func(text string) {
				s.clock.Advance(time.Second)
				s.must(nil, "POST", "/api/sandbox/replies", a.Key, `{"phone":"`+phone+`","text":"`+text+`"}`)
			}
			reply("STOP")
			if own {
				s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"`+phone+`","reason":"cattivo pagatore"}`)
			}
			reply("START")
			list := s.call("GET", "/api/blacklist", a.Key, "").body
			if strings.Contains(list, phone) != own || strings.Contains(list, "cattivo pagatore") != own || strings.Contains(list, "Disiscrizione") {
				t.Errorf("after START, with an own entry %v: %s", own, list)
			}
		}
	})
}

// TestSettings: the client and its partner change the same settings. A value that is not allowed changes nothing.
func TestSettings(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		a := s.newAccount("settings@x", "full")
		read := func(want string) {
			t.Helper()
			if got := strings.TrimSpace(s.call("GET", "/api/settings", a.Key, "").body); got != want {
				t.Errorf("settings: %s, want %s", got, want)
			}
		}
		const usual = `["STOP","BASTA","CANCELLAMI","DISISCRIVIMI","UNSUBSCRIBE"]`
		const answers = `,"confirm_words":["confermo","confermato","sì","ok","va bene","confirm","confirmed","yes","i confirm"],"cancel_words":["annulla","annullo","disdico","cancel","i cancel"],"button_line":"Rispondi con il numero:","flatten_values":false,"pause_if_marketing":false,"track_links":false,"keep_media":false}`
		read(`{"remember":false,"keep_replies":"known","consent":"required","opt_out_words":` + usual + `,"opt_out_answer":"","takeover_hours":12,"automated_most":5` + answers)
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"keep_replies":"all","opt_out_words":["basta così"],"takeover_hours":0}`)
		s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"consent":"free","remember":true,"opt_out_answer":"Fatto.","automated_most":0}`)
		want := `{"remember":true,"keep_replies":"all","consent":"free","opt_out_words":["basta così"],"opt_out_answer":"Fatto.","takeover_hours":0,"automated_most":0` + answers
		read(want)
		for body, status := range map[string]int{
			`{"consent":"maybe","takeover_hours":721}`: 422, `{"remember":false,"unknown":1}`: 422, `{"opt_out_words":["!"]}`: 422,
			`{"automated_most":101,"remember":false}`: 422, `{"automated_most":-1}`: 422, `{"automated_most":1.5}`: 400, `{"automated_most":"x"}`: 400,
			`{"keep_replies":null}`: 200, // null means the same as an absent member
		} {
			if got := s.call("PATCH", "/api/settings", a.Key, body); got.status != status {
				t.Errorf("%s: %d %s", body, got.status, got.body)
			}
			read(want)
		}
		for _, wrong := range []string{`"keep_replies":"some"`, `"automated_most":101`} {
			if got := s.call("PATCH", "/api/client/"+a.ID, s.partner, `{"name":"Altro",`+wrong+`}`); got.status != 422 {
				t.Errorf("the partner's wrong setting %s: %d %s", wrong, got.status, got.body)
			}
		}
		read(want)
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"opt_out_words":[]}`)
		want = strings.Replace(want, `["basta così"]`, usual, 1)
		read(want)
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"confirm_words":["ci vediamo"],"cancel_words":["salto"],"button_line":"Scrivi il numero:","flatten_values":true,"pause_if_marketing":true,"track_links":true,"keep_media":true}`)
		read(want[:strings.Index(want, `,"confirm_words"`)] + `,"confirm_words":["ci vediamo"],"cancel_words":["salto"],"button_line":"Scrivi il numero:","flatten_values":true,"pause_if_marketing":true,"track_links":true,"keep_media":true}`)
		s.refusedAt(422, "PATCH", "/api/settings", a.Key, `{"confirm_words":["!"],"cancel_words":["`+strings.Repeat("x", 101)+`"],"button_line":"`+strings.Repeat("x", 101)+`"}`,
			"body.confirm_words[0]", "body.cancel_words[0]", "body.button_line")
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"confirm_words":[],"cancel_words":[],"button_line":"","flatten_values":false,"pause_if_marketing":false,"track_links":false,"keep_media":false}`)
		read(want)
	})
}
