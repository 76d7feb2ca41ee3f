//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"puntuale/internal/connector/official/graphtest"
)

// TestRepliesKilled kills the server with SIGKILL while people write: 10 times, or 100 times with PUNTUALE_LONG=1. Meta
// repeats each delivery until the answer is 200. Meta sends some deliveries twice at the same time, and some again
// later. The sandbox's phone does the same. At the end each reply is stored once, with its effect. Each opt-out has one
// proof, one entry in the blacklist and one answer. Other replies withdrew nothing.
func TestRepliesKilled(t *testing.T) {
	beside(t)
	kills := 10
	if long {
		kills = 100
	}
	databases(t, func(t *testing.T, database string) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		number := graphtest.NewNumber("101")
		peer := graphtest.New(t, number)
		journal := filepath.Join(t.TempDir(), "ledger")
		peer.Journal(journal)
		s := serve(t, database, "--lease", "2s", "--official-api-url", peer.URL, "--official-rate", "1000")
		partner := createPartner(t, database)
		meta, sandbox := newReplyClient(t, s.base, partner, 47, behaviours), newReplyClient(t, s.base, partner, 48, behaviours[:4])
		meta.throughMeta(peer, number)
		sandbox.throughSandbox()

		tellers := newDeliverers(seed)
		for range kills {
			var all [][]delivery
			for range 4 {
				for _, k := range []*replyClient{meta, sandbox} {
					for _, b := range k.behaviours {
						all = append(all, k.deliveries(k.add(b)))
					}
				}
			}
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			enough := tellers.whenAnswered(1 + random.Int64N(int64(len(all))))
			for _, part := range all {
				tellers.queue <- part
			}
			select {
			case <-enough:
			case <-time.After(10 * time.Second):
			}
			s.kill()
			s.start()
		}
		tellers.end()
		meta.verify(func() map[string][]string { return textsOf(readJournal(t, journal)) })
		sandbox.verify(func() map[string][]string {
			texts := map[string][]string{}
			for _, m := range ledger(t, s.base, sandbox.key) {
				texts[m.Phone] = append(texts[m.Phone], m.Text)
			}
			return texts
		})
		t.Logf("%d kills, %d people, %d calls of networks, of which %d had no answer", kills, len(meta.people)+len(sandbox.people),
			tellers.calls.Load(), tellers.lost.Load())
	})
}

// behaviour describes what a person does, and the effects that this must have.
type behaviour struct {
	name      string
	words     []string // the texts that the person writes; the person writes each text after the delivery of the previous text was answered
	effects   []string // the effects of each reply, as the API names them; "": none
	changes   []string // the changes of the person's consent
	blacklist bool
	confirmed bool
	marketing string // final state of the marketing message that is due an hour later
	waiting   string // final state of the messages of a sequence that stops on a reply
	due       string // final state of the message that is due soon
}

const (
	optOutText     = "Basta!"
	preferenceText = "(preference)" // the person sets this in WhatsApp, and writes no message
)

// The sandbox uses all behaviours except the last one.
var behaviours = []behaviour{
	{name: "opt-out", words: []string{optOutText}, effects: []string{"opt_out"}, changes: []string{"withdraw"}, blacklist: true, confirmed: true,
		marketing: "CANCELLED", waiting: "CANCELLED", due: "BLACKLISTED"},
	{name: "undo", words: []string{optOutText, "Start"}, effects: []string{"opt_out", "opt_in"}, changes: []string{"withdraw", "undo"}, confirmed: true,
		marketing: "CANCELLED", waiting: "CANCELLED", due: "COMPLETED"},
	{name: "late", words: []string{"Stop, arrivo tardi"}, effects: []string{"stopped"}, marketing: "PENDING", waiting: "CANCELLED", due: "COMPLETED"},
	{name: "twice", words: []string{"sì", "a domani"}, effects: []string{"stopped", ""}, marketing: "PENDING", waiting: "CANCELLED", due: "COMPLETED"},
	{name: "preference", words: []string{"ciao", preferenceText}, effects: []string{"stopped"}, changes: []string{"withdraw"}, marketing: "CANCELLED", waiting: "CANCELLED", due: "COMPLETED"},
}

// soon is how many seconds after the start the first messages are due.
const soon = 15

// writer is one person of the test.
type writer struct {
	behaviour
	phone    string
	messages map[string]string // ids of messages, by sequence
	dueAt    time.Time
	optedOut atomic.Int64 // when the opt-out was answered, in microseconds since 1970
}

// replyClient is a client with its people, and the way in which the people write.
type replyClient struct {
	t          *testing.T
	base, key  string
	prefix     int // part of the phones' numbers, different for each replyClient
	behaviours []behaviour
	sequences  map[string]string
	people     []*writer
	deliver    func(p *writer, id, text string) bool // delivers a text once; it returns whether the delivery was answered
}

const confirmation = "Non ricevi più nulla."

func newReplyClient(t *testing.T, base, partner string, prefix int, all []behaviour) *replyClient {
	who := createTenant(t, base, partner, "full", step("promemoria", 0, "seconds"))
	must(t, "PATCH", base+"/api/settings", who.key, map[string]any{"keep_replies": "all", "consent": "free", "opt_out_answer": confirmation})
	return &replyClient{t: t, base: base, key: who.key, prefix: prefix, behaviours: all, sequences: map[string]string{}}
}

// through makes the test's sequences for one session.
func (k *replyClient) through(session string) {
	for name, body := range map[string]map[string]any{
		"due":       {"steps": []any{step("promemoria", soon, "seconds")}},
		"marketing": {"steps": []any{step("offerta", 1, "hours")}, "purpose": "marketing"},
		"waiting":   {"steps": []any{step("tutto bene?", 1, "hours")}, "stop_on_reply": true},
	} {
		body["name"], body["id_sessione"] = name, session
		var made struct{ ID string }
		must(k.t, "POST", k.base+"/api/sequences", k.key, body).into(k.t, &made)
		k.sequences[name] = made.ID
	}
}

// throughMeta makes people write to an Official number.
func (k *replyClient) throughMeta(peer *graphtest.Peer, number graphtest.Number) {
	var session struct {
		ID, State string
		Webhook   string `json:"webhook_path"`
	}
	must(k.t, "POST", k.base+"/api/sessions", k.key, map[string]any{
		"name": "ufficiale", "connection_type": "Official", "sandbox": false, "official": json.RawMessage(number.Keys())}).into(k.t, &session)
	k.through(session.ID)
	eventually(k.t, 30*time.Second, "the number is online", func() bool {
		must(k.t, "GET", k.base+"/api/sessions/"+session.ID, k.key, nil).into(k.t, &session)
		return session.State == "online"
	})
	webhook := k.base + session.Webhook
	k.deliver = func(p *writer, id, text string) bool {
		at := time.Now().Add(time.Second) // Meta drops fractions of a second, so the text must be a second later than the start of the run
		body := peer.Inbound(number.ID, p.phone, id, at, "text", map[string]any{"body": text})
		if text == preferenceText {
			body = peer.Prefers(number.ID, p.phone, "stop", time.Unix(p.dueAt.Unix()-soon, 0)) // every repeat of the delivery is the same
		}
		return post(webhook, body, "X-Hub-Signature-256", graphtest.Signature(number.Secret, body))
	}
}

// throughSandbox makes people write through the sandbox.
func (k *replyClient) throughSandbox() {
	var sessions struct {
		Sessions []struct{ ID string }
	}
	must(k.t, "GET", k.base+"/api/sessions", k.key, nil).into(k.t, &sessions)
	session := sessions.Sessions[0].ID
	k.through(session)
	address := k.base + "/api/sandbox/replies?api_key=" + url.QueryEscape(k.key)
	k.deliver = func(p *writer, id, text string) bool {
		body, err := json.Marshal(map[string]string{"phone": p.phone, "text": text, "network_id": id, "id_sessione": session})
		return err == nil && post(address, body)
	}
}

func post(address string, body []byte, header ...string) bool {
	r, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return false
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := web.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK
}

// add makes a new person, and starts every sequence for the person.
func (k *replyClient) add(b behaviour) *writer {
	p := &writer{behaviour: b, phone: fmt.Sprintf("+393%d%07d", k.prefix, len(k.people)), messages: map[string]string{}}
	for name, sequence := range k.sequences {
		var started struct{ ID []string }
		must(k.t, "POST", k.base+"/api/start/"+sequence, k.key, map[string]any{"phone": p.phone}).into(k.t, &started)
		p.messages[name] = started.ID[0]
	}
	p.dueAt = time.Now().Add(soon * time.Second)
	k.people = append(k.people, p)
	return p
}

// delivery is one delivery of a network. Deliveries about the same person come one after the other.
type delivery struct {
	deliver  func() bool
	answered func()
}

func (k *replyClient) deliveries(p *writer) (all []delivery) {
	for i, text := range p.words {
		id := p.networkID(i)
		all = append(all, delivery{func() bool { return k.deliver(p, id, text) }, func() {
			if text == optOutText {
				p.optedOut.CompareAndSwap(0, time.Now().UnixMicro())
			}
		}})
	}
	return all
}

func (p *writer) networkID(i int) string { return fmt.Sprintf("wamid.in.%s.%d", p.phone[1:], i) }

// deliverers deliver in the same way as networks do.
type deliverers struct {
	queue                 chan []delivery
	all                   sync.WaitGroup
	calls, answered, lost atomic.Int64

	mu     sync.Mutex
	wanted int64 // how many more answers must come before the channel in the field enough is closed
	enough chan struct{}
}

// whenAnswered returns a channel that is closed after the given number of further answers.
func (n *deliverers) whenAnswered(more int64) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wanted, n.enough = more, make(chan struct{})
	return n.enough
}

func newDeliverers(seed uint64) *deliverers {
	n := &deliverers{queue: make(chan []delivery, 10_000)}
	for i := range 12 {
		n.all.Go(func() { n.work(rand.New(rand.NewPCG(seed, uint64(i)+1))) })
	}
	return n
}

func (n *deliverers) work(random *rand.Rand) {
	var before []delivery
	for part := range n.queue {
		for _, d := range part {
			n.deliver(random, d)
			before = append(before, d)
			if random.IntN(3) == 0 { // acts as if the answer to this delivery was lost
				n.deliver(random, before[random.IntN(len(before))])
			}
		}
	}
}

// deliver repeats a delivery until it is answered. Meta does the same, after longer waits.
func (n *deliverers) deliver(random *rand.Rand, d delivery) {
	again := func() bool {
		n.calls.Add(1)
		if !d.deliver() {
			n.lost.Add(1)
			return false
		}
		return true
	}
	if random.IntN(4) == 0 {
		n.all.Go(func() { again() }) // the network delivers the reply twice at the same time
	}
	for !again() {
		<-time.After(time.Duration(5+random.IntN(50)) * time.Millisecond) // the wait of a network before it delivers again
	}
	d.answered()
	n.answered.Add(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wanted--; n.wanted == 0 {
		close(n.enough)
	}
}

func (n *deliverers) end() {
	close(n.queue)
	n.all.Wait()
}

// textsOf returns the texts that Meta accepted, by person.
func textsOf(all []graphtest.Taken) map[string][]string {
	texts := map[string][]string{}
	for _, m := range all {
		text := ""
		if m.Message.Text != nil {
			text = m.Message.Text.Body
		}
		texts[m.Message.Recipient()] = append(texts[m.Message.Recipient()], text)
	}
	return texts
}

// pages reads a list to its end, page by page.
func pages[T any](k *replyClient, address, member string) (all []T) {
	k.t.Helper()
	for cursor := ""; ; {
		var answer map[string]json.RawMessage
		must(k.t, "GET", k.base+address+"?limit=1000&cursor="+url.QueryEscape(cursor), k.key, nil).into(k.t, &answer)
		var page []T
		var next *string
		if err := json.Unmarshal(answer[member], &page); err != nil {
			k.t.Fatalf("%s: %v", address, err)
		}
		if err := json.Unmarshal(answer["next_cursor"], &next); err != nil {
			k.t.Fatalf("%s: %v", address, err)
		}
		all = append(all, page...)
		if next == nil || *next == "" {
			return all
		}
		cursor = *next
	}
}

type listedReply struct {
	Phone, Text string
	Effect      *string
}

type listedConsent struct {
	Phone, Purpose, Change, Source, Words string
	Message                               *string
	Applied                               bool
}

type listedBlock struct{ Phone, Reason string }

func byPhone[T any](all []T, phone func(T) string) map[string][]T {
	m := map[string][]T{}
	for _, one := range all {
		m[phone(one)] = append(m[phone(one)], one)
	}
	return m
}

// verify compares the answers of the API, and the messages that reached the network, with what each person wrote.
func (k *replyClient) verify(network func() map[string][]string) {
	t := k.t
	t.Helper()
	replies := byPhone(pages[listedReply](k, "/api/replies", "replies"), func(y listedReply) string { return y.Phone })
	consents := byPhone(pages[listedConsent](k, "/api/contacts/consent", "consents"), func(c listedConsent) string { return c.Phone })
	blocked := byPhone(pages[listedBlock](k, "/api/blacklist", "blacklist"), func(b listedBlock) string { return b.Phone })
	var ids []string
	confirms := map[string][]string{}
	for _, m := range pages[struct {
		ID        int64
		Telefono  string
		Contenuto string
	}](k, "/api/messages", "messages") {
		if m.Contenuto == confirmation {
			id := fmt.Sprint(m.ID)
			confirms[m.Telefono] = append(confirms[m.Telefono], id)
			ids = append(ids, id)
		}
	}
	for _, p := range k.people {
		for _, id := range p.messages {
			ids = append(ids, id)
		}
	}
	var found map[string]detail
	eventually(t, time.Minute, "nothing is due any more", func() bool {
		found = details(t, k.base, k.key, ids)
		return !slices.ContainsFunc(k.people, func(p *writer) bool { m := found[p.messages["due"]]; return m.State == "PENDING" && !uncertain(m) }) &&
			!slices.ContainsFunc(ids, func(id string) bool {
				m := found[id]
				return m.Text == confirmation && m.State == "PENDING" && !uncertain(m)
			})
	})
	arrived := network()
	checked := 0
	for _, p := range k.people {
		fail := func(format string, args ...any) {
			t.Errorf("%s (%s): "+format, append([]any{p.name, p.phone}, args...)...)
		}
		p.verifyReplies(replies[p.phone], fail)
		p.verifyConsents(consents[p.phone], fail)
		if b := blocked[p.phone]; p.blacklist && (len(b) != 1 || b[0].Reason != "Disiscrizione: "+optOutText) || !p.blacklist && len(b) > 0 {
			fail("in the blacklist: %+v", b)
		}
		c, sent := confirms[p.phone], timesIn(arrived[p.phone], confirmation)
		switch {
		case !p.confirmed && len(c)+sent > 0:
			fail("it was confirmed: %v, %d arrived", c, sent)
		case p.confirmed && len(c) != 1:
			fail("confirmations: %v", c)
		case p.confirmed && sent != 1 && (sent > 1 || !uncertain(found[c[0]])): // the server was killed between the intent and the answer
			fail("%d confirmations reached the network: %v", sent, found[c[0]])
		}
		for name, want := range map[string]string{"marketing": p.marketing, "waiting": p.waiting} {
			if m := found[p.messages[name]]; m.State != want {
				fail("%s is %v, should be %s", name, m, want)
			}
		}
		due, sent := found[p.messages["due"]], timesIn(arrived[p.phone], "promemoria")
		inTime := p.optedOut.Load() == 0 || time.UnixMicro(p.optedOut.Load()).Before(p.dueAt.Add(-time.Second))
		switch {
		case !inTime: // the message may have left before the opt-out
		case due.State != p.due && !uncertain(due), sent > 1, due.State == "COMPLETED" && sent != 1, due.State == "BLACKLISTED" && sent != 0:
			fail("what was due is %v, should be %s; %d arrived", due, p.due, sent)
		default:
			checked++
		}
	}
	if checked < len(k.people)/2 {
		t.Errorf("only %d of %d people wrote before their message was due", checked, len(k.people))
	}
}

// uncertain reports whether nobody knows if the message arrived.
func uncertain(m detail) bool {
	return m.State == "PENDING" && m.Detail != nil && strings.Contains(*m.Detail, "esito incerto")
}

func timesIn(all []string, text string) (n int) {
	for _, one := range all {
		if one == text {
			n++
		}
	}
	return n
}

func (p *writer) verifyReplies(all []listedReply, fail func(string, ...any)) {
	if len(all) != len(p.effects) {
		fail("wrote %d times, and has %d replies: %+v", len(p.effects), len(all), all)
		return
	}
	slices.Reverse(all) // the list has the newest entries first
	for i, y := range all {
		effect := ""
		if y.Effect != nil {
			effect = *y.Effect
		}
		if y.Text != p.words[i] || effect != p.effects[i] {
			fail("reply %d is %q with the effect %q, should be %q with %q", i, y.Text, effect, p.words[i], p.effects[i])
		}
	}
}

func (p *writer) verifyConsents(all []listedConsent, fail func(string, ...any)) {
	if len(all) != len(p.changes) {
		fail("consents %+v, should be %v", all, p.changes)
		return
	}
	for i, c := range all {
		proof := c.Source == "reply" && c.Words == p.words[i] && c.Message != nil && *c.Message == p.networkID(i)
		if p.name == "preference" {
			proof = c.Source == "whatsapp preference" && c.Words != "" && c.Message == nil
		}
		if c.Purpose != "marketing" || c.Change != p.changes[i] || !c.Applied || !proof {
			fail("consent %d is %+v, should be %s", i, c, p.changes[i])
		}
	}
}
