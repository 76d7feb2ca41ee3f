package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"puntuale"
)

// taken is a message that a device took.
type taken struct {
	ID      string `json:"message_id"`
	Phone   string
	Text    string
	Attempt string
	Until   string `json:"lease_until"`
}

type takenAnswer struct{ Messages, Held []taken }

// post is a client whose session has devices.
type post struct {
	s *service
	clientAccount
	session string
	calls   int
}

func newPost(s *service) *post {
	s.t.Helper()
	p := &post{s: s, clientAccount: s.newAccount("a@x", "full")}
	if _, err := s.network.fleet.Join(s.t.Context(), time.Hour); err != nil { // a device gets messages only after a node has handled the last failover, and joining does this
		s.t.Fatal(err)
	}
	var made struct{ ID string }
	s.must(&made, "POST", "/api/sessions", p.Key, `{"name":"Telefoni","connection_type":"Send_app","sandbox":false,"device":{}}`)
	p.session = made.ID
	return p
}

// message creates a message that is due now.
func (p *post) message(n int) string {
	p.s.t.Helper()
	var sent started
	p.s.must(&sent, "POST", "/api/messages", p.Key, fmt.Sprintf(`{"phone":"+39333000%04d","text":"Ciao %d","id_sessione":"%s"}`, n, n, p.session))
	return sent.ID[0]
}

// take takes messages for the device and returns them.
func (p *post) take(d linkedDevice, members ...string) []taken {
	p.s.t.Helper()
	p.calls++
	var a takenAnswer
	p.s.must(&a, "POST", "/device/take", d.Token, fmt.Sprintf(`{"take":"%d"%s}`, p.calls, strings.Join(append([]string{""}, members...), ",")))
	return a.Messages
}

// report reports one outcome, and returns the server's result for the report.
func (p *post) report(d linkedDevice, attempt, outcome, detail string) string {
	p.s.t.Helper()
	var a struct {
		Results []struct{ Attempt, Result string }
	}
	p.s.must(&a, "POST", "/device/report", d.Token, `{"reports":[{"attempt":"`+attempt+`","outcome":"`+outcome+`","detail":"`+detail+`"}]}`)
	return a.Results[0].Result
}

// TestDevices follows a device from linking by a code to the outcomes that the client reads.
func TestDevices(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		p := newPost(s)
		code := s.deviceCode(p.Key, p.session)
		if a := s.call("POST", "/device/link", "", `{"code":"00000-00000","name":"x"}`); a.status != 404 {
			t.Errorf("a wrong code: %d %s", a.status, a.body)
		}
		var anna linkedDevice
		typed := strings.ToLower(strings.ReplaceAll(code, "-", " "))
		s.must(&anna, "POST", "/device/link", "", `{"code":" `+typed+` ","name":"Telefono di Anna","assisted":true}`)
		if a := s.call("POST", "/device/link", "", `{"code":"`+code+`","name":"x"}`); a.status != 404 {
			t.Errorf("a used code: %d %s", a.status, a.body)
		}
		late := s.deviceCode(p.Key, p.session)
		s.clock.Advance(puntuale.DeviceCodeTime)
		if a := s.call("POST", "/device/link", "", `{"code":"`+late+`","name":"x"}`); a.status != 404 {
			t.Errorf("a late code: %d %s", a.status, a.body)
		}
		if a := s.call("GET", "/api/sessions/"+p.session, p.Key, ""); !strings.Contains(a.body, `"state":"online"`) || strings.Contains(a.body, late) {
			t.Errorf("the session: %s", a.body)
		}
		ids := []string{p.message(1), p.message(2), p.message(3), p.message(4)}
		var shown takenAnswer
		s.must(&shown, "GET", "/device/due", anna.Token, "")
		if len(shown.Messages) != 4 || shown.Messages[0].ID != ids[0] || shown.Messages[0].Attempt != "" || shown.Messages[0].Text != "Ciao 1" || len(shown.Held) != 0 {
			t.Errorf("due: %+v", shown)
		}
		s.must(nil, "POST", "/api/messages/cancel", p.Key, `{"id":["`+ids[2]+`"]}`)
		if a := s.call("POST", "/device/take", anna.Token, `{"take":"late","message_id":"`+ids[2]+`"}`); a.status != 409 {
			t.Errorf("a cancelled message: %d %s", a.status, a.body)
		}
		for i, c := range []struct{ outcome, detail, state, answer, words string }{
			{"sent", "", "COMPLETED", "Inviato", "dichiarato dall'operatore (Telefono di Anna)"},
			{"refused", "saltato", "FAILED", "Non inviato dal dispositivo", "dichiarato dall'operatore (Telefono di Anna): saltato"},
			{"unknown", "telefono spento", "PENDING", "In attesa di invio", "esito incerto: dichiarato dall'operatore (Telefono di Anna): telefono spento"},
		} {
			if c.outcome == "unknown" {
				ids[i] = p.message(5)
			}
			held := p.take(anna, `"message_id":"`+ids[i]+`"`)
			if len(held) != 1 || held[0].ID != ids[i] {
				t.Fatalf("took %+v", held)
			}
			if r := p.report(anna, held[0].Attempt, c.outcome, c.detail); r != "recorded" {
				t.Errorf("%s: %s", c.outcome, r)
			}
			if r := p.report(anna, held[0].Attempt, c.outcome, c.detail); r != "known" && c.outcome != "unknown" {
				t.Errorf("%s again: %s", c.outcome, r)
			}
			if d := s.details(p.Key, ids[i])[0]; d.Stato != c.state || d.Risposta != c.answer || d.Detail == nil || *d.Detail != c.words {
				t.Errorf("%s: %+v, want %+v", c.outcome, d, c)
			}
		}
		held := p.take(anna, `"max":10`)
		if len(held) != 1 || held[0].ID != ids[3] || p.report(anna, held[0].Attempt, "returned", "") != "recorded" {
			t.Fatalf("took %+v", held)
		}
		if again := p.take(anna); len(again) != 1 || again[0].Attempt == held[0].Attempt {
			t.Errorf("a returned message: %+v", again)
		}
		var listed struct {
			Devices []struct {
				ID, Name string
				Held     int
			}
		}
		s.must(&listed, "GET", "/api/sessions/"+p.session+"/devices", p.Key, "")
		if len(listed.Devices) != 1 || listed.Devices[0].Held != 2 || listed.Devices[0].Name != "Telefono di Anna" {
			t.Errorf("devices: %+v", listed)
		}
		if a := s.call("POST", "/api/contacts/erase", p.Key, `{"phone":"+393330000004"}`); a.status != 409 {
			t.Errorf("an erasure of what is held: %d %s", a.status, a.body)
		}
		if a := s.call("DELETE", "/api/sessions/"+p.session+"?pending=cancel", p.Key, ""); a.status != 409 {
			t.Errorf("a deletion of a session that holds: %d %s", a.status, a.body)
		}
		s.must(nil, "DELETE", "/api/sessions/"+p.session+"/devices/"+listed.Devices[0].ID, p.Key, "")
		if a := s.call("GET", "/device/due", anna.Token, ""); a.status != 401 {
			t.Errorf("an unlinked device: %d %s", a.status, a.body)
		}
		if a := s.call("GET", "/api/sessions/"+p.session, p.Key, ""); !strings.Contains(a.body, `"state":"unlinked"`) {
			t.Errorf("the session: %s", a.body)
		}
		s.must(nil, "DELETE", "/api/sessions/"+p.session+"?pending=cancel", p.Key, "")
	})
}

// A call that waits for messages answers as soon as a message is due. It never returns messages of a suspended client.
func TestTakeWaits(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	p := newPost(s)
	d := s.linkDevice(p.Key, p.session, "modem")
	answered, others := make(chan []taken, 1), s.clock.Waiters()
	go func() { answered <- p.take(d, `"wait":30`) }()
	within, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.clock.Waiting(within, others+1); err != nil {
		t.Fatal(err)
	}
	id := p.message(1)
	s.clock.Advance(time.Second)
	if held := <-answered; len(held) != 1 || held[0].ID != id {
		t.Errorf("took %+v", held)
	}
	for members, want := range map[string]string{
		`"media":"https://x.it/foto.jpg?a=1&b=2","text":"a {b|c}\n😀"`:                               `"text":"a {b|c}\n😀","media_url":"https://x.it/foto.jpg?a=1\u0026b=2","media_name":"foto.jpg",`,
		`"latitude":45.5,"longitude":-9.25`:                                                         `"latitude":45.5,"longitude":-9.25,`,
		`"text":"Viene?","buttons":[{"label":"Sì","does":"answer"},{"label":"No","does":"answer"}]`: `"text":"Viene?\n\nRispondi con il numero:\n1. Sì\n2. No",`,
	} {
		s.must(nil, "POST", "/api/messages", p.Key, `{"phone":"120363040000000000@g.us","id_sessione":"`+p.session+`",`+members+`}`)
		held := s.must(nil, "POST", "/device/take", d.Token, `{"take":"contents `+fmt.Sprint(len(want))+`"}`)
		if !strings.Contains(strings.ReplaceAll(held.body, `&`, `\u0026`), want) || !strings.Contains(held.body, `"phone":"120363040000000000@g.us"`) {
			t.Errorf("took %s, want %s", held.body, want)
		}
		var a takenAnswer
		if err := json.Unmarshal([]byte(held.body), &a); err != nil {
			t.Fatal(err)
		}
		p.report(d, a.Messages[0].Attempt, "sent", "")
	}
	p.message(2)
	s.must(nil, "PATCH", "/api/client/"+p.ID, s.partner, `{"suspended":true}`)
	if held := p.take(d); len(held) != 0 {
		t.Errorf("a suspended client's device took %+v", held)
	}
}
