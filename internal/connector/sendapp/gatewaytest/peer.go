// Package gatewaytest simulates a gateway of SendApp's family for tests, on loopback. The gateway accepts only correct
// requests, and has a ledger of the messages that it sent. It links numbers by QR code, and replaces {a|b} in texts.
// Tests can make it fail in all known ways of the family. Its JSON looks like the JSON of the gateways' code of
// November 2026.
package gatewaytest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rsc.io/qr"
)

// Token is the access token of the gateway's only account.
const Token = "tok5f2a9c0e1b7d4"

// Base is the path of the API.
const Base = "/api"

// Sent is a message that the gateway sent.
type Sent struct {
	ID       string `json:"id"` // the network's id
	Instance string `json:"instance"`
	To       string `json:"to"` // digits, or a group's id
	Text     string `json:"text"`
	Media    string `json:"media,omitempty"`
	Filename string `json:"filename,omitempty"`
}

// Reply is the answer to a request to send a message. The comment of each field says what the gateway does if the field
// is set.
type Reply struct {
	Refuse string          // answer with an error and this text, and send nothing
	Text   string          // answer with a success and this text, and send nothing
	Bare   bool            // answer with a success and no other members, and send nothing
	Body   string          // answer with this text; Sends says whether the message is sent
	Status int             // the HTTP status; used only with Body
	Drop   bool            // send the message, and break the connection
	Break  bool            // break the connection, and send nothing
	Sends  bool            // send the message; used only with Body
	Wait   <-chan struct{} // wait until this channel is closed
	Early  func(Sent)      // called after the message was sent and before the answer
}

// instance is the account of one number at the gateway.
type instance struct {
	id      string
	number  string // digits; "": the instance was never linked
	online  bool
	used    bool // the instance was linked at least once
	webhook string
	codes   int
}

// Peer is the simulated gateway.
type Peer struct {
	URL string // the API's address
	t   testing.TB

	server *httptest.Server
	client *http.Client

	mu        sync.Mutex
	newer     bool // behave like the newer generation of the family
	instances map[string]*instance
	sent      []Sent
	files     map[string][]byte // encrypted files; the key is the address
	answer    func(Sent) Reply
	asked     int
	faults    []string
	last      int
	down      bool
	undrawn   bool
}

// New starts a gateway without numbers. If a request had a fault, the test fails when it ends.
func New(t testing.TB) *Peer {
	t.Helper()
	p := &Peer{t: t, instances: map[string]*instance{}, files: map[string][]byte{}, client: &http.Client{Timeout: 30 * time.Second}}
	p.server = httptest.NewServer(p)
	p.URL = p.server.URL + Base
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
		p.client.CloseIdleConnections()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, fault := range p.faults {
			t.Errorf("gateway: %s", fault)
		}
	})
	return p
}

// Newer makes the gateway answer like the newer generation.
func (p *Peer) Newer() { p.locked(func() { p.newer = true }) }

// Answer sets the function that returns the answers to send requests. With nil, the gateway sends all messages.
func (p *Peer) Answer(decide func(Sent) Reply) { p.locked(func() { p.answer = decide }) }

// Down(true) makes the gateway answer every request with a proxy's page. Down(false) ends this.
func (p *Peer) Down(down bool) { p.locked(func() { p.down = down }) }

// Undrawn makes the gateway answer get_qrcode with a picture without a code.
func (p *Peer) Undrawn() { p.locked(func() { p.undrawn = true }) }

func (p *Peer) locked(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

// Linked adds an instance with a linked number, and returns the instance's id.
func (p *Peer) Linked(number string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.add()
	i.number, i.online, i.used = number, true, true
	return i.id
}

// add adds an instance that is not linked. The caller holds the lock.
func (p *Peer) add() *instance {
	p.last++
	i := &instance{id: fmt.Sprintf("65F0%09X", p.last)}
	p.instances[i.id] = i
	return i
}

// Scan links a phone by the code that the gateway drew last.
func (p *Peer) Scan(code, number string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.instances {
		if code == codeText(i) {
			i.number, i.online, i.used = number, true, true
			return
		}
	}
	p.t.Errorf("the phone scans a code that the gateway does not show: %s", code)
}

// The method named of runs do with the instance of a number, if there is one.
func (p *Peer) of(number string, do func(*instance)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.instances {
		if i.number == number {
			do(i)
			return
		}
	}
}

// Lose ends the connection of a number. If loggedOut is true, the phone unlinked the number.
func (p *Peer) Lose(number string, loggedOut bool) {
	p.of(number, func(i *instance) {
		i.online = false
		if loggedOut {
			i.number = ""
		}
	})
}

// Back connects a number again after Lose.
func (p *Peer) Back(number string) { p.of(number, func(i *instance) { i.online = true }) }

// Webhook returns the address to which the number's instance reports, or "" if it has none.
func (p *Peer) Webhook(number string) (address string) {
	p.of(number, func(i *instance) { address = i.webhook })
	return address
}

// Instance returns the id of the number's instance, or "" if there is none.
func (p *Peer) Instance(number string) (id string) {
	p.of(number, func(i *instance) { id = i.id })
	return id
}

// Sent returns the ledger, oldest message first.
func (p *Peer) Sent() []Sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

// Asked returns how many send requests came, including those without an answer.
func (p *Peer) Asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// fault records a request that a real gateway would not understand. The caller holds the lock.
func (p *Peer) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

func codeText(i *instance) string { return fmt.Sprintf("2@%s,%d,noise,identity", i.id, i.codes) }

// parameters decodes a request's parameters like a real gateway. It accepts JSON only in the request "send".
func (p *Peer) parameters(r *http.Request, name string) map[string]string {
	all := map[string]string{}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return all
	}
	for key := range r.URL.Query() {
		all[key] = r.URL.Query().Get(key)
	}
	switch kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); {
	case len(body) == 0:
	case kind == "application/json" && name == "send":
		var from map[string]string
		if json.Unmarshal(body, &from) != nil {
			p.fault("%s: the body is no JSON of texts", name)
		}
		for key, value := range from {
			all[key] = value
		}
	case kind == "application/x-www-form-urlencoded":
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if r.ParseForm() == nil {
			for key := range r.PostForm {
				all[key] = r.PostForm.Get(key)
			}
		}
	default:
		p.fault("%s: a body of type %q is not read", name, kind)
	}
	return all
}

// ServeHTTP answers like a real gateway. The status is always 200, even for an error.
func (p *Peer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, Base+"/")
	p.mu.Lock()
	if p.down {
		p.mu.Unlock()
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<html><h1>502 Bad Gateway</h1></html>")
		return
	}
	with := p.parameters(r, name)
	if r.Method != http.MethodPost {
		p.fault("%s: %s", name, r.Method)
	}
	if with["access_token"] != Token {
		p.mu.Unlock()
		say(w, refusal("Access token does not exist"))
		return
	}
	if name == "send" || name == "send_group" {
		p.mu.Unlock()
		p.send(w, name, with)
		return
	}
	defer p.mu.Unlock()
	say(w, p.manage(name, with))
}

type object map[string]any

func refusal(text string) object { return object{"status": "error", "message": text} }

func say(w http.ResponseWriter, o any) {
	w.Header().Set("Content-Type", "text/html; charset=UTF-8") // real gateways use this type, although the answer is JSON
	_ = json.NewEncoder(w).Encode(o)
}

// manage answers requests about the instance itself. The caller holds the lock.
func (p *Peer) manage(name string, with map[string]string) object {
	if name == "create_instance" {
		for _, i := range p.instances { // return the instance that was never linked, if there is one
			if !i.used {
				return object{"status": "success", "message": "Success", "instance_id": i.id}
			}
		}
		return object{"status": "success", "message": "Success", "instance_id": p.add().id}
	}
	i := p.instances[with["instance_id"]]
	switch {
	case with["instance_id"] == "":
		return refusal("Instance ID is required")
	case i == nil:
		return refusal("Instance ID Invalidated")
	}
	switch name {
	case "get_qrcode":
		return p.draw(i)
	case "reconnect":
		return p.reconnect(i)
	case "set_webhook":
		switch {
		case !i.used:
			return refusal("This instance ID has not been activated yet")
		case with["enable"] != "true":
			i.webhook = ""
		default:
			i.webhook = with["webhook_url"]
		}
		return object{"status": "success", "message": "Success"}
	case "reset_instance":
		delete(p.instances, i.id)
		return object{"status": "success", "message": "Success"}
	}
	p.fault("there is no call %q", name)
	return refusal("404")
}

func (p *Peer) draw(i *instance) object {
	if i.used {
		return refusal("Instance ID has been used")
	}
	i.codes++
	text := codeText(i)
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		p.fault("draw a code: %v", err)
		return refusal("Error")
	}
	picture := code.PNG()
	if p.undrawn {
		picture = blank
	}
	return object{"status": "success", "message": "Success", "base64": "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture)}
}

func (p *Peer) reconnect(i *instance) object {
	user := object{"id": i.number + ":7@s.whatsapp.net", "name": "Studio", "avatar": ""}
	switch {
	case !i.used:
		return refusal("This instance ID has not been activated yet")
	case i.number == "":
		return object{"status": "error", "message": "Error", "relogin": true}
	case p.newer:
		user["connected"], user["state"] = i.online, map[bool]string{true: "open", false: "close"}[i.online]
		return object{"status": "success", "message": "Success", "data": user}
	case !i.online:
		return refusal("This WhatsApp account relogin required")
	}
	return object{"status": "success", "message": "Success", "data": user}
}

var spin = regexp.MustCompile(`\{([^{}]*\|[^{}]*)\}`)

// send sends one message. A real gateway replaces {a|b} in a text by a or b, at random. This gateway always uses a.
func (p *Peer) send(w http.ResponseWriter, name string, with map[string]string) {
	s := Sent{Instance: with["instance_id"], To: with["number"], Media: with["media_url"], Filename: with["filename"]}
	if name == "send_group" {
		s.To = with["group_id"]
	}
	s.Text = spin.ReplaceAllStringFunc(with["message"], func(all string) string {
		first, _, _ := strings.Cut(all[1:], "|")
		return first
	})
	p.mu.Lock()
	p.asked++
	decide := p.answer
	if words := p.unfit(name, s, with); words != "" {
		p.mu.Unlock()
		say(w, refusal(words))
		return
	}
	p.mu.Unlock()
	var r Reply
	if decide != nil {
		r = decide(s)
	}
	if r.Wait != nil {
		<-r.Wait
	}
	if r.Break {
		panic(http.ErrAbortHandler)
	}
	if r.Refuse == "" && r.Text == "" && !r.Bare && (r.Body == "" || r.Sends) {
		s = p.enter(s)
		if r.Early != nil {
			r.Early(s)
		}
	}
	p.tell(w, s, r)
}

// tell writes the answer to a send request.
func (p *Peer) tell(w http.ResponseWriter, s Sent, r Reply) {
	p.mu.Lock()
	newer := p.newer
	p.mu.Unlock()
	key := object{"remoteJid": chatOf(s.To), "fromMe": true, "id": s.ID}
	switch {
	case r.Drop:
		panic(http.ErrAbortHandler)
	case r.Body != "":
		if r.Status != 0 {
			w.WriteHeader(r.Status)
		}
		_, _ = io.WriteString(w, r.Body)
	case r.Refuse != "":
		say(w, refusal(r.Refuse))
	case r.Text != "":
		say(w, object{"status": "success", "message": r.Text})
	case r.Bare:
		say(w, object{"status": "success"})
	case newer:
		say(w, object{"status": "success", "message": "Message sent", "chat_id": chatOf(s.To), "data": object{"key": key}})
	default:
		say(w, object{"status": "success", "message": object{"key": key, "message": object{}, "messageTimestamp": "1", "status": "SUCCESS"}})
	}
}

// unfit returns why a real gateway would refuse a message, or "" if it would accept it. The caller holds the lock.
func (p *Peer) unfit(name string, s Sent, with map[string]string) string {
	i := p.instances[s.Instance]
	switch {
	case i == nil:
		return "Instance ID Invalidated"
	case !i.used:
		return "This instance ID has not been activated yet"
	case !i.online:
		return "This WhatsApp account relogin required"
	case s.To == "":
		return "Phone number is required"
	case s.Text == "" && s.Media == "":
		return "Please enter media url or message"
	}
	if with["type"] != "text" && with["type"] != "media" || (with["type"] == "media") != (s.Media != "") {
		p.fault("%s: the type is %q", name, with["type"])
	}
	if name == "send" && strings.Trim(s.To, "0123456789") != "" || name == "send_group" && !strings.HasSuffix(s.To, "@g.us") {
		p.fault("%s to %q", name, s.To)
	}
	return ""
}

// enter adds a message to the ledger.
func (p *Peer) enter(s Sent) Sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.ID = fmt.Sprintf("3EB0%016X", len(p.sent)+1)
	p.sent = append(p.sent, s)
	return s
}

func chatOf(to string) string {
	if strings.HasSuffix(to, "@g.us") {
		return to
	}
	return to + "@s.whatsapp.net"
}
