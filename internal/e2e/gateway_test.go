//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale/internal/connector/sendapp/gatewaytest"
)

// gatewayNumber is the number of the gateway's only instance.
const gatewayNumber = "390117654321"

// killedGateway is a server that sends through a gateway and is killed again and again.
type killedGateway struct {
	t        *testing.T
	s        *server
	key      string
	session  string
	webhook  string
	instance string
	peer     *gatewaytest.Peer
	random   *rand.Rand

	ids     map[string]string // ids of messages, by recipient
	known   int               // so many recipients of the field asked were already handled by the method settle
	settled int               // how many uncertain messages an echo settled

	mu    sync.Mutex
	asked []string        // recipients, in the order in which the gateway got their messages
	left  int             // how many more calls the gateway answers before the call in hold
	hold  *heldCall       // the call at which the test stops the server; nil: that call has come already, or none is planned
	never map[string]bool // recipients whose messages the gateway did not send
}

// heldCall is the call in progress when the server is killed.
type heldCall struct {
	how  int           // one of the constants below
	to   string        // the recipient of the call
	came chan struct{} // closed when the call has arrived
	end  chan struct{} // closed after the server was killed
}

const (
	sendsBefore = iota // the gateway sends the message, and the server is killed before the answer
	sendsAfter         // the server is killed, and then the gateway sends the message
	sendsNever         // the server is killed, and the gateway does not send the message
	answers            // the gateway answers, and the server is killed at a random time after that
	ways
)

// TestGatewayKilled kills the server with SIGKILL while it sends through a gateway: 5 times, or 100 times with
// PUNTUALE_LONG=1. Some of the gateway's answers are lost, and some do not say whether the message was sent. The
// gateway's ledger has no message twice. If an answer says that the gateway sent the message, the message is COMPLETED.
// Every other message with an attempt is uncertain. An uncertain message becomes COMPLETED only if its echo comes.
func TestGatewayKilled(t *testing.T) {
	beside(t)
	kills, each := 5, 60
	if long {
		kills, each = 100, 80
	}
	databases(t, func(t *testing.T, database string) {
		g := newKilledGateway(t, database)
		begun := time.Now()
		for kill := range kills {
			g.online()
			held := g.arm(each)
			for i := range each {
				g.begin(fmt.Sprintf("39347%03d%04d", kill, i))
			}
			g.waitFor(held)
			g.s.kill()
			g.release(held)
			g.s.start()
			g.settle()
		}
		g.online()
		eventually(t, 2*time.Minute, "all were tried", func() bool { return rowsOf(t, database, "select count(*) from message where intent = 0") == 0 })
		g.settle()
		unsent := g.compare()
		t.Logf("%d kills in %v, %d messages: the gateway sent %d, of which echoes settled %d; %d were never sent and are uncertain",
			kills, time.Since(begun).Round(time.Second), len(g.ids), len(g.peer.Sent()), g.settled, unsent)
	})
}

func newKilledGateway(t *testing.T, database string) *killedGateway {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := &killedGateway{t: t, peer: gatewaytest.New(t), random: rand.New(rand.NewPCG(seed, 0)), ids: map[string]string{}, never: map[string]bool{}}
	g.instance = g.peer.Linked(gatewayNumber)
	g.peer.Answer(g.answer)
	g.s = prepare(t, database, "--lease", "2s", "--gateway-allow", "127.0.0.0/8")
	g.s.args = append(g.s.args, "--public-url", g.s.base)
	g.s.start()
	who := createTenant(t, g.s.base, createPartner(t, database), "full", step("ciao", 0, "seconds"))
	var made struct{ ID string }
	must(t, "POST", g.s.base+"/api/sessions", who.key, map[string]any{
		"name": "gateway", "connection_type": "Send_app", "sandbox": false, "pace": map[string]any{"per_minute": 0, "jitter": 0},
		"gateway": map[string]any{"base_url": g.peer.URL, "access_token": gatewaytest.Token, "instance_id": g.instance}}).into(t, &made)
	g.key, g.session = who.key, made.ID
	g.online()
	g.webhook = g.peer.Webhook(gatewayNumber)
	return g
}

// online waits until the session can send.
func (g *killedGateway) online() {
	g.t.Helper()
	eventually(g.t, 30*time.Second, "the number is online", func() bool {
		var session struct{ State string }
		must(g.t, "GET", g.s.base+"/api/sessions/"+g.session, g.key, nil).into(g.t, &session)
		return session.State == "online"
	})
}

// answer decides the gateway's answer to a call. A few calls fail without a kill.
func (g *killedGateway) answer(s gatewaytest.Sent) gatewaytest.Reply {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, s.To)
	if g.left--; g.left < 0 && g.hold != nil {
		return g.answerHeld(s.To)
	}
	switch n := len(g.asked); {
	case n%40 == 0:
		return gatewaytest.Reply{Drop: true}
	case n%41 == 5:
		return gatewaytest.Reply{Body: "[]", Sends: true}
	case n%43 == 7:
		g.never[s.To] = true
		return gatewaytest.Reply{Bare: true}
	}
	return gatewaytest.Reply{}
}

// answerHeld decides the answer to the call in progress during the kill. The caller of answerHeld holds the lock.
func (g *killedGateway) answerHeld(to string) gatewaytest.Reply {
	held := g.hold
	g.hold, held.to = nil, to
	close(held.came)
	switch held.how {
	case sendsBefore:
		return gatewaytest.Reply{Early: func(gatewaytest.Sent) { <-held.end }, Drop: true}
	case sendsAfter:
		return gatewaytest.Reply{Wait: held.end}
	case answers:
		return gatewaytest.Reply{}
	}
	g.never[to] = true
	return gatewaytest.Reply{Wait: held.end, Break: true}
}

// arm makes the gateway answer some of the next calls, and hold the call after them.
func (g *killedGateway) arm(each int) *heldCall {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left = g.random.IntN(each)
	g.hold = &heldCall{how: g.random.IntN(ways), came: make(chan struct{}), end: make(chan struct{})}
	return g.hold
}

func (g *killedGateway) waitFor(held *heldCall) {
	g.t.Helper()
	select {
	case <-held.came:
	case <-time.After(time.Minute):
		g.t.Fatal("the server never made the call that is held")
	}
}

// release lets the gateway finish the held call. If the gateway sends the message then, release waits until the
// gateway's ledger has it.
func (g *killedGateway) release(held *heldCall) {
	g.t.Helper()
	close(held.end)
	eventually(g.t, 20*time.Second, "the gateway sends", func() bool {
		return held.how != sendsAfter || slices.ContainsFunc(g.peer.Sent(), func(s gatewaytest.Sent) bool { return s.To == held.to })
	})
}

func (g *killedGateway) begin(phone string) {
	g.t.Helper()
	var made struct{ ID []string }
	must(g.t, "POST", g.s.base+"/api/messages", g.key, map[string]any{"phone": "+" + phone, "text": "Ciao {a|b} " + phone, "id_sessione": g.session}).into(g.t, &made)
	g.ids[phone] = made.ID[0]
}

// begunFor returns the recipients of the gateway's calls.
func (g *killedGateway) begunFor() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.asked)
}

type gatewayMessage struct {
	State     string `json:"stato"`
	Detail    string `json:"dettaglio_risposta"`
	Delivered string `json:"consegnato"`
}

func (m gatewayMessage) uncertain() bool {
	return m.State == "PENDING" && strings.Contains(m.Detail, "esito incerto")
}

// details returns the messages to these recipients.
func (g *killedGateway) details(phones []string) map[string]gatewayMessage {
	g.t.Helper()
	all := map[string]gatewayMessage{}
	for part := range slices.Chunk(phones, 500) {
		ids := make([]string, len(part))
		for i, phone := range part {
			ids[i] = g.ids[phone]
		}
		var answer struct{ Messages []gatewayMessage }
		must(g.t, "GET", g.s.base+"/api/messages/details?message_ids[]="+strings.Join(ids, ","), g.key, nil).into(g.t, &answer)
		for i, m := range answer.Messages {
			all[part[i]] = m
		}
	}
	return all
}

// settle waits until each message for which the gateway was called is COMPLETED or uncertain. Then the gateway reports
// the uncertain messages that it sent.
func (g *killedGateway) settle() {
	g.t.Helper()
	begun := g.begunFor()[g.known:]
	g.known += len(begun)
	var found map[string]gatewayMessage
	eventually(g.t, time.Minute, "the server knows that it does not know", func() bool {
		found = g.details(begun)
		for _, m := range found {
			if m.State != "COMPLETED" && !m.uncertain() {
				return false
			}
		}
		return true
	})
	sent := map[string]gatewaytest.Sent{}
	for _, s := range g.peer.Sent() {
		sent[s.To] = s
	}
	var echoed []string
	for phone, m := range found {
		s, ok := sent[phone]
		switch {
		case !ok && m.State == "COMPLETED":
			g.t.Errorf("the message to %s was not sent, and is COMPLETED", phone)
		case ok && m.uncertain():
			g.report("messages.upsert", gatewaytest.Echo(s, time.Now()))
			echoed = append(echoed, phone)
		}
	}
	for phone, m := range g.details(echoed) {
		if m.State != "COMPLETED" {
			g.t.Errorf("after its echo the message to %s is %s: %s", phone, m.State, m.Detail)
		}
	}
	g.settled += len(echoed)
}

func (g *killedGateway) report(event string, payload any) {
	g.t.Helper()
	if status := g.peer.Report(g.webhook, g.instance, event, payload); status != 200 {
		g.t.Fatalf("the webhook answered %d", status)
	}
}

// compare compares all messages with the ledger, after the gateway acknowledged each sent message. It returns how many
// messages were never sent. The gateway did not send these messages, or the server was killed right before the call.
func (g *killedGateway) compare() (unsent int) {
	g.t.Helper()
	sent := map[string]bool{}
	for _, s := range g.peer.Sent() {
		if sent[s.To] {
			g.t.Errorf("the message to %s was sent twice", s.To)
		}
		sent[s.To] = true
		g.report("messages.update", gatewaytest.Ack(s, 3))
	}
	for phone, m := range g.details(slices.Collect(maps.Keys(g.ids))) {
		switch {
		case sent[phone] && g.never[phone]:
			g.t.Errorf("the message to %s was sent after the gateway had given it up", phone)
		case sent[phone] && (m.State != "COMPLETED" || m.Delivered == ""):
			g.t.Errorf("the message to %s was sent, and is %s: %s", phone, m.State, m.Detail)
		case !sent[phone] && !m.uncertain():
			g.t.Errorf("the message to %s was not sent, and is %s: %s", phone, m.State, m.Detail)
		case !sent[phone]:
			unsent++
		}
	}
	return unsent
}
