package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/store/storetest"
)

// TestOfficial creates an Official session through the API. It sends text, a location and a template with a sequence.
// It waits until receipts say that all messages were read. The test runs with one server, and with two servers: one
// sends, and the other answers calls.
func TestOfficial(t *testing.T) {
	t.Parallel()
	t.Run("one server", func(t *testing.T) {
		t.Parallel()
		peer := graphtest.New(t, graphtest.NewNumber("101"))
		term := newConsole(t, nil)
		server := start(t, term, "serve", "--addr", "127.0.0.1:0", "--data", "data", "--official-api-url", peer.URL)
		newOfficial(t, peer, term, []string{"--data", "data"}, server).rehearse()
	})
	t.Run("two servers", func(t *testing.T) {
		t.Parallel()
		peer := graphtest.New(t, graphtest.NewNumber("101"))
		database := storetest.Postgres(t).Config.Database
		env := map[string]string{"PUNTUALE_DATABASE": database, "PUNTUALE_KEY": strings.Repeat("k", 32), "PUNTUALE_OFFICIAL_API_URL": peer.URL}
		sender := newConsole(t, env)
		start(t, sender, "serve", "--addr", "127.0.0.1:0", "--roles", "dispatch")
		term := newConsole(t, env)
		server := start(t, term, "serve", "--addr", "127.0.0.1:0", "--roles", "api")
		newOfficial(t, peer, term, nil, server).rehearse()
	})
}

// officialRig is a client with an Official session, on a server that reaches the peer.
type officialRig struct {
	t       *testing.T
	peer    *graphtest.Peer
	server  *running
	base    string
	key     string
	session string // the session's id
	webhook string // the webhook's address
}

func newOfficial(t *testing.T, peer *graphtest.Peer, term *console, data []string, server *running) *officialRig {
	t.Helper()
	r := &officialRig{t: t, peer: peer, server: server, base: server.logged.waitFor(t, `"url":"([^"]+)"`)}
	beside := newConsole(t, nil)
	beside.program.lookupEnv, beside.dir = term.program.lookupEnv, term.dir
	args := append([]string{"partner", "create", "--name", "A", "--email", "a@example.com", "--password", "una frase lunga", "--json"}, data...)
	if code := beside.run(context.Background(), args); code != exitDone {
		t.Fatalf("exit code %d: %s", code, beside.errs.String())
	}
	_, body := call(t, "POST", r.base+"/api/client/create", field(t, beside.out.String(), "api_key"), `{"name": "Studio", "email": "a@b", "password": "x", "phone": "+390212345678"}`)
	r.key = field(t, body, "api_key")
	return r
}

func (r *officialRig) must(method, path, body string) string {
	r.t.Helper()
	status, answer := call(r.t, method, r.base+path, r.key, body)
	if status != http.StatusOK {
		r.t.Fatalf("%s %s %s: %d %s", method, path, body, status, answer)
	}
	return answer
}

// connect creates the session and waits until it is online.
func (r *officialRig) connect(n graphtest.Number) {
	r.t.Helper()
	body := r.must("POST", "/api/sessions", `{"name": "ufficiale", "connection_type": "Official", "official": `+n.Keys()+`}`)
	r.session = field(r.t, body, "id")
	r.webhook = r.base + field(r.t, body, "webhook_path")
	eventually(r.t, "the session is online", func() bool {
		return strings.Contains(r.must("GET", "/api/sessions/"+r.session, ""), `"state":"online"`)
	})
}

// ids makes a call that schedules messages, and returns the messages' ids.
func (r *officialRig) ids(path, body string) []string {
	r.t.Helper()
	var answer struct {
		IDs []string `json:"id"`
	}
	if err := json.Unmarshal([]byte(r.must("POST", path, body)), &answer); err != nil || len(answer.IDs) == 0 {
		r.t.Fatalf("%s %s: %v, %v", path, body, answer.IDs, err)
	}
	return answer.IDs
}

func (r *officialRig) state(id string) (state, text string) {
	r.t.Helper()
	text = r.must("GET", "/api/messages/details?message_ids[]="+id, "")
	_, state, _ = strings.Cut(text, `"stato":"`)
	state, _, _ = strings.Cut(state, `"`)
	return state, text
}

func (r *officialRig) deliver(body []byte) {
	r.t.Helper()
	if status := r.peer.Deliver(r.webhook, "101", body); status != http.StatusOK {
		r.t.Fatalf("the webhook answered %d to %s", status, body)
	}
}

// checks tests the session, and compares what it still needs.
func (r *officialRig) checks(want ...string) {
	r.t.Helper()
	var answer struct {
		Checks []struct{ Check, State string }
	}
	text := r.must("POST", "/api/sessions/"+r.session+"/test", "")
	if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Checks) != 5 {
		r.t.Fatalf("%v: %s", err, text)
	}
	for _, k := range answer.Checks {
		for _, w := range want {
			if name, state, _ := strings.Cut(w, " "); name == k.Check && state != k.State {
				r.t.Errorf("%s is %s, want %s", k.Check, k.State, state)
			}
		}
	}
}

func (r *officialRig) rehearse() {
	t, number := r.t, graphtest.NewNumber("101")
	r.peer.SetApps(number.Account) // none gets the account's reports, so the test subscribes the app
	r.connect(number)
	if v := view(t, "GET", r.base+"/api/sessions/"+r.session, r.key, ""); v.Number != "+39021234101" {
		t.Errorf("the number is %q", v.Number)
	}
	if answer := r.must("POST", "/api/sessions/"+r.session+"/test", ""); !strings.Contains(answer, `"ok":true,"message":"Tutto a posto`) {
		t.Errorf("the test says %s", answer)
	}
	r.checks("webhook to_do", "subscription ok", "display_name ok", "payment ok", "portfolio unknown")
	r.handshake(number)
	r.checks("webhook unknown")

	const phone = "+393331234567"
	free := r.ids("/api/messages", `{"phone": "`+phone+`", "text": "fuori", "id_sessione": "`+r.session+`"}`)[0]
	eventually(t, "free text outside of the window is FAILED", func() bool { state, _ := r.state(free); return state == "FAILED" })
	if _, text := r.state(free); !strings.Contains(text, "finestra di 24 ore") || r.peer.Asked() != 0 {
		t.Errorf("outside of the window: %s, %d asked", text, r.peer.Asked())
	}

	r.must("POST", "/api/templates", `{"name": "promemoria", "text": "Gentile {{nome}}, a domani", "official": {"name": "promemoria_it", "language": "it", "body": [{"name": "nome", "text": "{{nome}}"}], "buttons": [{"index": 0, "type": "url", "text": "{{nome}}"}]}}`) // its button makes it leave as a template also inside the window
	const now = `"timing": {"anchor": "start", "offset": {"amount": 0}}`
	sequence := field(t, r.must("POST", "/api/sequences", `{"name": "s", "id_sessione": "`+r.session+`", "steps": [{"template": "promemoria", `+now+`}, {"text": "Ciao {{nome}}", `+now+`},
 {"latitude": 45.5, "longitude": 9.25, "text": "Studio\nVia Roma 1", `+now+`}]}`), "id")
	r.deliver(r.peer.Wrote("101", phone, time.Now()))
	r.checks("webhook ok")
	started := r.ids("/api/start/"+sequence, `{"phone": "`+phone+`", "nome": "Ada"}`)
	eventually(t, "three messages are with Meta", func() bool { return len(r.peer.Taken()) == 3 })
	var types []string
	for _, m := range r.peer.Taken() {
		types = append(types, m.Message.Type)
		for _, status := range []string{"sent", "delivered", "read", "sent"} {
			r.deliver(r.peer.Status(m, status, time.Now()))
		}
	}
	if got := strings.Join(types, " "); got != "template text location" {
		t.Errorf("Meta took %s", got)
	}
	for _, id := range started {
		if state, text := r.state(id); state != "COMPLETED" || !strings.Contains(text, `"consegnato":"`) || !strings.Contains(text, `"letto":"`) {
			t.Errorf("message %s: %s", id, text)
		}
	}
	r.choose(phone)
	r.secretsAreKept(number)
}

// choose sends a list and a question for the position. The person chooses rows, and answers. Each answer is one reply,
// which names the row and the message, even if Meta tells it twice, late, or without the message that it answers.
func (r *officialRig) choose(phone string) {
	r.t.Helper()
	r.must("PATCH", "/api/settings", `{"keep_replies": "all"}`)
	to := `{"phone": "` + phone + `", "id_sessione": "` + r.session + `", `
	list := r.ids("/api/messages", to+`"text": "Quando?", "interactive": {"list": {"button": "Scegli", "sections": [{"rows": [{"title": "10:00", "payload": "lun.10"}, {"title": "11:00", "text": "con Ugo", "payload": "lun.11"}]}]}}}`)[0]
	ask := r.ids("/api/messages", to+`"text": "Dove sei?", "interactive": {"ask": "location"}}`)[0]
	var taken []graphtest.Taken
	eventually(r.t, "list and question are with Meta", func() bool {
		taken = nil
		for _, m := range r.peer.Taken() {
			if m.Message.Interactive != nil {
				taken = append(taken, m)
			}
		}
		return len(taken) == 2
	})
	if taken[0].Message.Interactive.Type != "list" {
		taken[0], taken[1] = taken[1], taken[0]
	}
	late := time.Now().Add(-21 * 24 * time.Hour)
	for range 2 {
		r.deliver(r.peer.Tap(taken[0], 1, "wamid.late", late))
		r.deliver(r.peer.TapAlone(taken[0], 0, "wamid.alone", time.Now()))
		r.deliver(r.peer.Located(taken[1], 45.07, 7.6869, "wamid.place", time.Now()))
	}
	var all struct {
		Replies []struct {
			Text, Payload, Button string
			To                    int64 `json:"in_reply_to"`
		}
	}
	text := r.must("GET", "/api/replies?phone="+url.QueryEscape(phone), "")
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		r.t.Fatal(err)
	}
	got := map[string]int{}
	for _, y := range all.Replies {
		got[fmt.Sprint(y.Text, "/", y.Payload, "/", y.Button, "/", y.To)]++
	}
	for _, want := range []string{"11:00/lun.11/11:00/" + list, "10:00/lun.10/10:00/" + list, "45.07,7.6869///" + ask} {
		if got[want] != 1 {
			r.t.Errorf("%d replies %q in %s", got[want], want, text)
		}
	}
}

// handshake tests the request with which Meta verifies a webhook's address. It also sends such requests, and reports,
// with wrong tokens and signatures.
func (r *officialRig) handshake(n graphtest.Number) {
	r.t.Helper()
	for query, want := range map[string]string{
		"hub.mode=subscribe&hub.verify_token=" + n.Verify + "&hub.challenge=1158201444":   "200 1158201444",
		"hub.mode=subscribe&hub.verify_token=x&hub.challenge=1158201444":                  "403 ",
		"hub.mode=subscribe&hub.challenge=1158201444":                                     "403 ",
		"hub.mode=subscribe&hub.verify_token=" + n.Verify + "&hub.challenge=%3Cscript%3E": "403 ",
		"": "403 ",
	} {
		status, body := call(r.t, "GET", r.webhook+"?"+query, "", "")
		if got := fmt.Sprint(status, " ", body); got != want {
			r.t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	body := r.peer.Wrote("101", "+393330000000", time.Now())
	for name, try := range map[string][2]string{
		"no signature":       {r.webhook, ""},
		"another secret":     {r.webhook, graphtest.Signature("x", body)},
		"no prefix":          {r.webhook, strings.TrimPrefix(graphtest.Signature(n.Secret, body), "sha256=")},
		"another session":    {r.webhook + "0", graphtest.Signature(n.Secret, body)},
		"no session":         {r.webhook[:strings.LastIndex(r.webhook, "/")] + "/x", graphtest.Signature(n.Secret, body)},
		"of no secret":       {r.webhook + "0", graphtest.Signature("", body)},
		"of another content": {r.webhook, graphtest.Signature(n.Secret, body[1:])},
	} {
		if status := r.peer.DeliverAs(try[0], try[1], body); status != http.StatusUnauthorized {
			r.t.Errorf("%s: %d", name, status)
		}
	}
}

// secretsAreKept checks that no answer and no log line has the keys.
func (r *officialRig) secretsAreKept(n graphtest.Number) {
	r.t.Helper()
	seen := r.server.logged.String() + r.must("GET", "/api/sessions", "") + r.must("GET", "/api/sessions/"+r.session, "")
	for _, secret := range []string{n.Token, n.Secret, n.Verify, "appsecret_proof"} {
		if strings.Contains(seen, secret) {
			r.t.Errorf("%s is shown", secret)
		}
	}
}
