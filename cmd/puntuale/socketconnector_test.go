//go:build !nosocket

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"google.golang.org/protobuf/proto"

	"puntuale/internal/connector/socket/whatsapptest"
	"puntuale/internal/store/storetest"
)

const (
	shopNumber = "393330000001"
	annaNumber = "393330000002"
)

// TestSocket links a number through the API, sends a sequence, and waits for receipts. It runs with one server, and
// with two servers: one sends, and the other answers calls.
func TestSocket(t *testing.T) {
	t.Parallel()
	t.Run("one server", func(t *testing.T) {
		t.Parallel()
		net := whatsapptest.New(t)
		term := newConsole(t, nil)
		term.program.whatsApp = net.HTTPClient()
		server := start(t, term, "serve", "--addr", "127.0.0.1:0", "--data", "data")
		newSocketRig(t, net, term, []string{"--data", "data"}, server).rehearse()
	})
	t.Run("two servers", func(t *testing.T) {
		t.Parallel()
		net := whatsapptest.New(t)
		env := map[string]string{"PUNTUALE_DATABASE": storetest.Postgres(t).Config.Database, "PUNTUALE_KEY": strings.Repeat("k", 32)}
		sender := newConsole(t, env)
		sender.program.whatsApp = net.HTTPClient()
		start(t, sender, "serve", "--addr", "127.0.0.1:0", "--roles", "dispatch")
		term := newConsole(t, env)
		server := start(t, term, "serve", "--addr", "127.0.0.1:0", "--roles", "api")
		newSocketRig(t, net, term, nil, server).rehearse()
	})
}

// socketRig is a client with a Socket session, on a server that reaches the simulated WhatsApp in net.
type socketRig struct {
	t       *testing.T
	net     *whatsapptest.Network
	shop    *whatsapptest.Account
	anna    *whatsapptest.Phone
	server  *running
	base    string
	key     string
	session string // path of the session in the API
	id      string
}

func newSocketRig(t *testing.T, net *whatsapptest.Network, term *console, data []string, server *running) *socketRig {
	t.Helper()
	r := &socketRig{t: t, net: net, shop: net.Account(shopNumber), anna: net.Phone(annaNumber), server: server, base: server.logged.waitFor(t, `"url":"([^"]+)"`)}
	beside := newConsole(t, nil)
	beside.program.lookupEnv, beside.dir = term.program.lookupEnv, term.dir
	args := append([]string{"partner", "create", "--name", "A", "--email", "a@example.com", "--password", "una frase lunga", "--json"}, data...)
	if code := beside.run(context.Background(), args); code != exitDone {
		t.Fatalf("exit code %d: %s", code, beside.errs.String())
	}
	_, body := call(t, "POST", r.base+"/api/client/create", field(t, beside.out.String(), "api_key"), `{"name": "Studio", "email": "a@b", "password": "x", "phone": "+390212345678"}`)
	r.key = field(t, body, "api_key")
	r.id = field(t, r.must("POST", "/api/sessions", `{"name": "banco", "connection_type": "Socket", "pace": {"per_minute": 0, "jitter": 0, "cold_per_minute": 0}}`), "id")
	r.session = "/api/sessions/" + r.id
	return r
}

func (r *socketRig) must(method, path, body string) string {
	r.t.Helper()
	status, answer := call(r.t, method, r.base+path, r.key, body)
	if status != http.StatusOK {
		r.t.Fatalf("%s %s %s: %d %s", method, path, body, status, answer)
	}
	return answer
}

// TestLinkInTerminal links a session with the code that the command shows.
func TestLinkInTerminal(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	term := newConsole(t, nil)
	term.program.whatsApp = net.HTTPClient()
	server := start(t, term, "serve", "--addr", "127.0.0.1:0", "--data", "data")
	r := newSocketRig(t, net, term, []string{"--data", "data"}, server)
	beside := newConsole(t, nil)
	beside.program.stdin = strings.NewReader(r.key + "\n")
	linking := start(t, beside, "link", "--session", r.id, "--server", r.base, "--phone", "+"+shopNumber)
	code := linking.printed.waitFor(t, `  ([0-9A-Z]{4}-[0-9A-Z]{4})`)
	if err := r.shop.EnterCode(t.Context(), code); err != nil {
		t.Fatal(err)
	}
	linking.printed.waitFor(t, `(linked \+`+shopNumber+`)`)
	again := newConsole(t, nil)
	again.program.stdin = strings.NewReader(r.key + "\n")
	if got := again.run(t.Context(), []string{"link", "--session", r.id, "--server", r.base}); got != exitFailed || !strings.Contains(again.errs.String(), "linked already") {
		t.Errorf("linking again: %d %s", got, again.errs.String())
	}
	r.must("DELETE", r.session+"/pair", "")
	scanning := newConsole(t, nil)
	scanning.program.stdin = strings.NewReader(r.key + "\n")
	drawn := start(t, scanning, "link", "--session", r.id, "--server", r.base)
	drawn.printed.waitFor(t, `(▀[▀▄█ ]{20,})`)
	if err := r.shop.ScanQR(t.Context(), field(t, r.must("GET", r.session, ""), "qr")); err != nil {
		t.Fatal(err)
	}
	drawn.printed.waitFor(t, `(linked \+`+shopNumber+`)`)
}

// is waits until the session is in a state. The state must have a sentence that says what to do.
func (r *socketRig) is(state string) string {
	r.t.Helper()
	var answer string
	eventually(r.t, "the session is "+state, func() bool {
		answer = r.must("GET", r.session, "")
		return strings.Contains(answer, `"state":"`+state+`"`)
	})
	if field(r.t, answer, "hint") == "" {
		r.t.Errorf("%s has no hint: %s", state, answer)
	}
	return answer
}

// pair links the session by QR code.
func (r *socketRig) pair() {
	r.t.Helper()
	code := field(r.t, r.must("POST", r.session+"/pair", `{"method": "qr"}`), "qr")
	if err := r.shop.ScanQR(r.t.Context(), code); err != nil {
		r.t.Fatal(err)
	}
	if answer := r.is("online"); strings.Contains(answer, `"qr"`) || field(r.t, answer, "number") != "+"+shopNumber {
		r.t.Errorf("linked: %s", answer)
	}
	if strings.Contains(r.server.logged.String(), code) {
		r.t.Error("the code was logged")
	}
}

// write sends one message and returns its id.
func (r *socketRig) write(phone, text string) string {
	r.t.Helper()
	var made struct{ ID []string }
	body, err := json.Marshal(map[string]string{"phone": phone, "text": text, "id_sessione": r.id})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(r.must("POST", "/api/messages", string(body))), &made); err != nil || len(made.ID) != 1 {
		r.t.Fatalf("%v: %v", made, err)
	}
	return made.ID[0]
}

// becomes waits until a message's details have all these parts.
func (r *socketRig) becomes(id string, parts ...string) string {
	r.t.Helper()
	var answer string
	eventually(r.t, fmt.Sprintf("message %s has %v", id, parts), func() bool {
		answer = r.must("GET", "/api/messages/details?message_ids[]="+id, "")
		for _, part := range parts {
			if !strings.Contains(answer, part) {
				return false
			}
		}
		return true
	})
	return answer
}

func (r *socketRig) rehearse() {
	r.t.Helper()
	if answer := r.is("unlinked"); !strings.Contains(answer, `"pace":{"per_minute":0,"per_day":1000,"cold_per_minute":0,"cold_per_day":50,"jitter":0}`) {
		r.t.Errorf("the pace: %s", answer)
	}
	r.passkey()
	r.pair()
	r.receipts()
	r.replies()
	r.files()
	r.waiting()
	r.replaced()
	r.loggedOut()
	r.deleted()
}

// passkey: the phone asks for a passkey. The session then says what to do, and shows no more codes.
func (r *socketRig) passkey() {
	t := r.t
	t.Helper()
	r.shop.RequirePasskey(true)
	code := field(t, r.must("POST", r.session+"/pair", `{"method": "qr"}`), "qr")
	if err := r.shop.ScanQR(t.Context(), code); !errors.Is(err, whatsapptest.ErrPasskey) {
		t.Fatalf("scanned: %v", err)
	}
	eventually(t, "the hint names the passkey", func() bool {
		answer := r.must("GET", r.session, "")
		return strings.Contains(answer, `"state":"pairing"`) && strings.Contains(field(t, answer, "hint"), "passkey") && !strings.Contains(answer, `"qr"`)
	})
	r.shop.RequirePasskey(false)
	r.must("DELETE", r.session+"/pair", "")
	r.is("unlinked")
}

// waiting: the network does not answer for a while. The session's state says until when the session waits. Messages
// wait, and leave later without any action of a person.
func (r *socketRig) waiting() {
	t := r.t
	t.Helper()
	r.net.Refuse(true)
	r.shop.Cut()
	answer := r.is("waiting")
	if deadline, err := time.Parse("2006-01-02T15:04:05.000000Z", field(t, answer, "until")); err != nil || time.Since(deadline) > time.Minute || time.Until(deadline) > 10*time.Minute {
		t.Errorf("waiting until %q: %v", field(t, answer, "until"), err)
	}
	waits := r.write("+"+annaNumber, "a rete assente")
	r.becomes(waits, `"stato":"PENDING"`)
	r.net.Refuse(false)
	r.anna.Await(t, whatsapptest.Text("a rete assente"))
	r.becomes(waits, `"stato":"COMPLETED"`)
	if answer := r.is("online"); strings.Contains(answer, `"until"`) {
		t.Errorf("online: %s", answer)
	}
}

// receipts appear in message details. A person without WhatsApp gets nothing.
func (r *socketRig) receipts() {
	t := r.t
	t.Helper()
	id := r.write("+"+annaNumber, "ciao Anna")
	m := r.anna.Await(t, whatsapptest.Text("ciao Anna"))
	answer := r.becomes(id, `"stato":"COMPLETED"`, `"consegnato":"`)
	if !strings.Contains(answer, m.ID) || strings.Contains(answer, `"letto"`) {
		t.Errorf("delivered: %s", answer)
	}
	if err := r.anna.MarkRead(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	r.becomes(id, `"letto":"`)
	r.becomes(r.write("+393339999999", "a nessuno"), `"stato":"FAILED"`, "Il numero non ha WhatsApp")
	if sent := r.net.Messages(shopNumber); len(sent) != 1 {
		t.Errorf("%d messages were sent", len(sent))
	}

	if _, figures := call(t, "GET", r.base+"/metrics", "", ""); strings.Contains(figures, "puntuale_numbers") && !strings.Contains(figures, `puntuale_numbers{state="online",type="Socket"} 1`) {
		t.Error("the figures do not count the number as online")
	}
}

// replies: a reply ends a sequence.
func (r *socketRig) replies() {
	t := r.t
	t.Helper()
	steps := `[{"text": "{{nome}}, ci sei?", "timing": {"anchor": "start", "offset": {"amount": 0}}}, {"text": "poi", "timing": {"anchor": "start", "offset": {"amount": 2, "unit": "days", "direction": "after"}}}]`
	sequence := field(t, r.must("POST", "/api/sequences", `{"name": "s", "stop_on_reply": true, "id_sessione": "`+r.id+`", "steps": `+steps+`}`), "id")
	r.must("POST", "/api/start/"+sequence, `{"phone": "+`+annaNumber+`", "nome": "Anna"}`)
	asked := r.anna.Await(t, whatsapptest.Text("Anna, ci sei?"))
	eventually(t, "the first step is COMPLETED", func() bool {
		return strings.Contains(r.must("GET", "/api/messages?sequence="+sequence+"&state=COMPLETED", ""), `"COMPLETED"`)
	})
	if _, err := r.anna.Reply(t.Context(), asked, "sì"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rest is CANCELLED", func() bool {
		return strings.Contains(r.must("GET", "/api/messages?sequence="+sequence+"&state=CANCELLED", ""), `"CANCELLED"`)
	})
}

// files: the file of a reply is kept, also by a server that does not own the session, and though WhatsApp keeps it encrypted.
func (r *socketRig) files() {
	t := r.t
	t.Helper()
	r.must("PATCH", "/api/settings", `{"keep_media": true}`)
	up, err := r.anna.Client().Upload(t.Context(), photo(t, 50), whatsmeow.MediaImage)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.anna.SendMessage(t.Context(), shopNumber, &waE2E.Message{ImageMessage: &waE2E.ImageMessage{Mimetype: proto.String("image/jpeg"),
		URL: &up.URL, DirectPath: &up.DirectPath, MediaKey: up.MediaKey, FileEncSHA256: up.FileEncSHA256, FileSHA256: up.FileSHA256, FileLength: &up.FileLength}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the file is kept", func() bool {
		return strings.Contains(r.must("GET", "/api/replies", ""), `.jpg"`) && strings.Contains(r.must("GET", "/api/files", ""), `"name":"image.jpg"`)
	})
}

// replaced: another program connects with the same number. A person then makes this server connect again.
func (r *socketRig) replaced() {
	t := r.t
	t.Helper()
	r.shop.Kick(whatsapptest.Replaced)
	r.is("replaced")
	waits := r.write("+"+annaNumber, "in attesa")
	logins := len(r.net.Logins())
	if status, answer := call(t, "POST", r.base+r.session+"/pair", r.key, `{"method": "qr"}`); status != http.StatusConflict {
		t.Errorf("pairing what is linked: %d %s", status, answer)
	}
	r.must("POST", r.session+"/reconnect", "")
	r.is("online")
	if again := len(r.net.Logins()); again != logins+1 { // only the login that the person asked for may happen
		t.Errorf("%d logins by itself", again-logins-1)
	}
	r.anna.Await(t, whatsapptest.Text("in attesa"))
	r.becomes(waits, `"stato":"COMPLETED"`)
}

// loggedOut: the phone ends the link. A person links the session again, and the waiting messages leave.
func (r *socketRig) loggedOut() {
	t := r.t
	t.Helper()
	r.shop.Kick(whatsapptest.Removed)
	r.is("logged_out")
	waits := r.write("+"+annaNumber, "ancora in attesa")
	if status, answer := call(t, "POST", r.base+r.session+"/reconnect", r.key, ""); status != http.StatusConflict {
		t.Errorf("reconnecting what is not linked: %d %s", status, answer)
	}
	r.pair()
	r.anna.Await(t, whatsapptest.Text("ancora in attesa"))
	r.becomes(waits, `"stato":"COMPLETED"`)
}

// deleted: the phone no longer lists a deleted session as a device.
func (r *socketRig) deleted() {
	t := r.t
	t.Helper()
	if n := len(r.shop.Devices()); n != 2 {
		t.Errorf("%d devices", n)
	}
	r.must("DELETE", r.session, "")
	eventually(t, "the phone lists it no more", func() bool { return len(r.shop.Devices()) == 1 })
}

// TestSocketRepeats: a message that nobody acknowledges stays PENDING, and is repeated three times under its id. After
// that the server waits for a receipt of the phone. The test takes as long as the repeats.
func TestSocketRepeats(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	term := newConsole(t, nil)
	term.program.whatsApp = net.HTTPClient()
	server := start(t, term, "serve", "--addr", "127.0.0.1:0", "--data", "data")
	r := newSocketRig(t, net, term, []string{"--data", "data"}, server)
	r.is("unlinked")
	r.pair()
	r.anna.SwitchOff()
	defer net.Inject(whatsapptest.Fault{From: shopNumber, DropAck: true})()
	id := r.write("+"+annaNumber, "una volta sola")
	last := time.Now()
	for n := 1; n <= 4; n++ {
		for late := last.Add(3 * time.Minute); len(net.Messages(shopNumber)) < n; <-time.After(20 * time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("try %d never came", n)
			}
		}
		if answer := r.becomes(id, `"stato":"PENDING"`); strings.Contains(answer, "COMPLETED") {
			t.Errorf("after try %d: %s", n, answer)
		}
		if n == 2 && time.Since(last) > 15*time.Second { // the connector notices the loss within 5 s, and repeats within 10 s after that
			t.Errorf("the first repeat came %v after the message", time.Since(last))
		}
		last = time.Now()
	}
	r.becomes(id, `"stato":"PENDING"`, "esito incerto")
	if err := r.anna.SwitchOn(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := r.anna.Await(t, whatsapptest.Text("una volta sola"))
	r.becomes(id, `"stato":"COMPLETED"`, m.ID)
	all := net.Messages(shopNumber)
	if len(all) != 4 {
		t.Errorf("%d tries, want the first and three repeats", len(all))
	}
	for _, one := range all {
		if one.ID != m.ID {
			t.Errorf("tried under %s, shown as %s", one.ID, m.ID)
		}
	}
	r.anna.AwaitSettled(t)
	if shown := r.anna.Messages(); len(shown) != 1 {
		t.Errorf("the phone shows %+v", shown)
	}
}
