//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale/internal/connector/official/graphtest"
)

// metaTable lists Meta's codes by the effect that they must have, as Meta's documentation says. It is written
// independently of the product's table.
var metaTable = map[string][]int{
	"again":     {1, 2, 131000, 131016, 131057, 133004, 130429},
	"pair":      {131056},
	"number":    {131048, 131042, 368, 131031, 131045, 133010, 33, 4, 80007},
	"country":   {130497},
	"category":  {131064},
	"path":      {131063}, // concerns only marketing templates, and those of the test are not
	"access":    {0, 190, 10, 3, 200, 250, 299, 131005},
	"template":  {132000, 132001, 132005, 132007, 132012, 132015, 132016, 132018, 132068, 132069},
	"message":   {131047, 131051, 131053, 131008, 131009, 100, 131021, 135000, 134011},
	"recipient": {131026, 130403},
	"opted out": {131050},
	"tomorrow":  {131049},
	"for good":  {130472},
}

// tableCode is the test of one code. It has its own number, persons and messages, so that the codes' effects do not
// mix.
type tableCode struct {
	*metaTableRig
	row     string
	code    int
	number  graphtest.Number
	session string            // the session's id
	webhook string            // the webhook's address
	by      map[string]string // ids of sequences, by the template of the sequence's only step
	person  string            // the person whose message Meta refuses
	other   string
	first   string // the message that was refused
	second  string // the message that begins while the refusal has its effect
	third   string
	free    string // a message with another template
}

// metaTableRig contains the parts that all codes share.
type metaTableRig struct {
	t    *testing.T
	s    *server
	who  tenant
	peer *graphtest.Peer

	mu      sync.Mutex
	refuses map[string]int // for each person, the code with which Meta refuses the person's next message
	asked   map[string]int // how many requests Meta got for each person
}

// TestOfficialTable checks the effect of each of Meta's codes through the API of the built server. Some codes come in
// Meta's answer, and some come by webhook after Meta accepted the message.
func TestOfficialTable(t *testing.T) {
	beside(t)
	databases(t, func(t *testing.T, database string) {
		r := &metaTableRig{t: t, peer: graphtest.New(t), refuses: map[string]int{}, asked: map[string]int{}}
		r.peer.Answer(r.answer)
		r.s = serve(t, database, "--official-api-url", r.peer.URL)
		partner := createPartner(t, database)
		r.who = createTenant(t, r.s.base, partner, "full", step("x", 0, ""))
		must(t, "PATCH", r.s.base+"/api/client/"+r.who.id, partner, map[string]any{"quotas": map[string]any{"sessions": 100}}) // each code needs its own session
		for _, name := range []string{"uno", "due"} {
			must(t, "POST", r.s.base+"/api/templates", r.who.key, map[string]any{"name": name, "text": "Ciao", "official": map[string]any{"name": name, "language": "it"}})
		}
		var codes []*tableCode
		for row, all := range metaTable {
			for _, code := range all {
				codes = append(codes, r.newCode(row, code, len(codes)))
			}
		}
		each := func(do func(*tableCode)) {
			for _, c := range codes {
				do(c)
			}
		}
		each((*tableCode).online)
		each((*tableCode).refuse)
		each((*tableCode).refused)
		each((*tableCode).sendDuringRefusal)
		each((*tableCode).checkOutcomes)
		each((*tableCode).fails)
		t.Logf("%d codes, by answer and by webhook", len(codes))
	})
}

func (r *metaTableRig) answer(m graphtest.Message) graphtest.Reply {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[m.To]++
	code, refuses := r.refuses[m.To]
	if !refuses {
		return graphtest.Reply{}
	}
	delete(r.refuses, m.To)
	return graphtest.Reply{Code: code, Refuse: true, Details: "per prova"}
}

// askedFor returns how many requests Meta got for a message to a person.
func (r *metaTableRig) askedFor(phone string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[phone]
}

func (r *metaTableRig) newCode(row string, code, i int) *tableCode {
	r.t.Helper()
	c := &tableCode{metaTableRig: r, row: row, code: code, number: graphtest.NewNumber(fmt.Sprint(7000 + i)), by: map[string]string{},
		person: fmt.Sprintf("+39331%07d", code), other: fmt.Sprintf("+39332%07d", code)}
	r.peer.SetTemplates(c.number.Account, graphtest.NewTemplate("uno", "Ciao"), graphtest.NewTemplate("due", "Ciao"))
	r.peer.Set(c.number)
	var made struct {
		ID      string
		Webhook string `json:"webhook_path"`
	}
	must(r.t, "POST", r.s.base+"/api/sessions", r.who.key, map[string]any{
		"name": fmt.Sprint(code), "connection_type": "Official", "sandbox": false, "official": json.RawMessage(c.number.Keys())}).into(r.t, &made)
	c.session, c.webhook = made.ID, r.s.base+made.Webhook
	for _, template := range []string{"uno", "due"} {
		var sequence struct{ ID string }
		must(r.t, "POST", r.s.base+"/api/sequences", r.who.key, map[string]any{"name": template, "id_sessione": c.session, "steps": []any{map[string]any{
			"template": template, "timing": map[string]any{"anchor": "start", "offset": map[string]any{"amount": 0}, "valid_for": map[string]any{"amount": 3, "unit": "days"}}}}}).into(r.t, &sequence)
		c.by[template] = sequence.ID
	}
	return c
}

func (c *tableCode) says(format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("%s %d: %s", c.row, c.code, fmt.Sprintf(format, args...))
}

func (c *tableCode) link() (v linkShown) {
	c.t.Helper()
	must(c.t, "GET", c.s.base+"/api/sessions/"+c.session, c.who.key, nil).into(c.t, &v)
	return v
}

type linkShown struct {
	State  string
	Detail string `json:"state_detail"`
}

func (c *tableCode) online() {
	c.t.Helper()
	eventually(c.t, time.Minute, fmt.Sprintf("the number of code %d is online", c.code), func() bool { return c.link().State == "online" })
}

// start begins a message with a template to a person.
func (c *tableCode) start(template, phone string) string {
	c.t.Helper()
	var made struct{ ID []string }
	must(c.t, "POST", c.s.base+"/api/start/"+c.by[template], c.who.key, map[string]string{"phone": phone}).into(c.t, &made)
	return made.ID[0]
}

type messageShown struct {
	State   string    `json:"stato"`
	Says    string    `json:"risposta"`
	Detail  string    `json:"dettaglio_risposta"`
	Planned time.Time `json:"invio_previsto"`
}

func (c *tableCode) message(id string) messageShown {
	c.t.Helper()
	var answer struct{ Messages []messageShown }
	must(c.t, "GET", c.s.base+"/api/messages/details?message_ids[]="+id, c.who.key, nil).into(c.t, &answer)
	return answer.Messages[0]
}

// becomes waits until a message is in a state.
func (c *tableCode) becomes(id, state string) (m messageShown) {
	c.t.Helper()
	eventually(c.t, time.Minute, fmt.Sprintf("%s %d: message %s is %s", c.row, c.code, id, state), func() bool {
		m = c.message(id)
		return m.State == state
	})
	return m
}

// word returns the text with which a message's detail names the code.
func (c *tableCode) word() string { return fmt.Sprintf("Meta %d", c.code) }

// refuse begins the message that Meta refuses.
func (c *tableCode) refuse() {
	c.mu.Lock()
	c.refuses[c.person] = c.code
	c.mu.Unlock()
	c.first = c.start("uno", c.person)
}

// refused waits until Meta got a request, and the message shows the refusal. If the refusal is final, the message has
// failed with Meta's code.
func (c *tableCode) refused() {
	c.t.Helper()
	switch c.row {
	case "again", "pair": // the message may have left already
		eventually(c.t, time.Minute, fmt.Sprintf("%d was asked", c.code), func() bool { return c.askedFor(c.person) > 0 })
	case "message", "recipient", "opted out", "country", "for good":
		if m := c.becomes(c.first, "FAILED"); !strings.Contains(m.Detail, c.word()+": per prova") || m.Says == "" {
			c.says("the refused message says %q: %q", m.Says, m.Detail)
		}
	default:
		var m messageShown
		eventually(c.t, time.Minute, fmt.Sprintf("%s %d is told", c.row, c.code), func() bool {
			m = c.message(c.first)
			return strings.Contains(m.Detail, c.word()+": per prova")
		})
		if m.State != "PENDING" {
			c.says("the refused message is %+v", m)
		}
		least := map[string]time.Duration{"template": 10 * time.Minute, "category": 10 * time.Minute, "tomorrow": 24*time.Hour - time.Minute}[c.row]
		if wait := time.Until(m.Planned); least > 0 && wait < least { // a message of a held number is looked at all the time
			c.says("tried again in %v, not before %v", wait, least)
		}
	}
	if c.askedFor(c.person) != 1 && c.row != "again" && c.row != "pair" {
		c.says("asked %d times", c.askedFor(c.person))
	}
}

// sendDuringRefusal begins messages while the refusal has its effect: to the same person, to other persons, and with
// other templates.
func (c *tableCode) sendDuringRefusal() {
	c.t.Helper()
	held := map[string]string{"number": "linked", "access": "unlinked"}[c.row]
	if v := c.link(); held != "" && (v.State != held || !strings.Contains(v.Detail, fmt.Sprint(c.code))) || held == "" && v.State != "online" {
		c.says("the number is %+v", v)
	}
	c.second = c.start("uno", c.other)
	switch c.row {
	case "template":
		c.free = c.start("due", strings.Replace(c.other, "+39332", "+39334", 1)) // a different number, because messages to c.other wait for each other
	case "message", "recipient", "opted out":
		c.third = c.start("uno", c.person)
	}
}

// checkOutcomes checks the outcomes of the messages that sendDuringRefusal began. Then it undoes the effects that
// a person can undo.
func (c *tableCode) checkOutcomes() {
	c.t.Helper()
	switch c.row {
	case "again", "pair":
		c.becomes(c.first, "COMPLETED")
	case "number", "access":
		c.letGo()
		c.becomes(c.first, "COMPLETED")
	case "country":
		c.letGo() // the second message stays planned for the end of the wait
		return
	case "category":
		if m := c.message(c.second); m.State != "PENDING" || c.askedFor(c.other) != 0 {
			c.says("another message by a template of the category: %+v, %d asked", m, c.askedFor(c.other))
		}
		return
	case "template":
		c.becomes(c.free, "COMPLETED")
		if m := c.message(c.second); m.State != "PENDING" || c.askedFor(c.other) != 0 {
			c.says("another message by the template: %+v, %d asked", m, c.askedFor(c.other))
		}
		return
	case "message":
		c.becomes(c.third, "COMPLETED")
	case "recipient":
		if c.becomes(c.third, "FAILED"); c.askedFor(c.person) != 1 {
			c.says("asked %d times", c.askedFor(c.person))
		}
	case "opted out":
		c.becomes(c.third, "COMPLETED") // this is a service message, and the person refused only marketing
		c.withdrew()
	}
	c.becomes(c.second, "COMPLETED")
}

// letGo checks that nothing leaves from a number that is held. Then it tests the session, as a person does after
// solving the problem.
func (c *tableCode) letGo() {
	c.t.Helper()
	if m := c.message(c.second); m.State != "PENDING" || c.askedFor(c.other) != 0 {
		c.says("another message of the number: %+v, %d asked", m, c.askedFor(c.other))
	}
	var tried struct{ OK bool }
	must(c.t, "POST", c.s.base+"/api/sessions/"+c.session+"/test", c.who.key, nil).into(c.t, &tried)
	if !tried.OK || c.link().State != "online" {
		c.says("after a test the number is %+v", c.link())
	}
}

// withdrew checks that the ledger contains the person's withdrawal once, with proof. The person must not be in the
// blacklist. Marketing does not leave until the person agrees again.
func (c *tableCode) withdrew() {
	c.t.Helper()
	var all struct {
		Consents []struct{ Change, Words string }
	}
	must(c.t, "GET", c.s.base+"/api/contacts/consent?phone="+url.QueryEscape(c.person), c.who.key, nil).into(c.t, &all)
	if len(all.Consents) != 1 || all.Consents[0].Change != "withdraw" || !strings.Contains(all.Consents[0].Words, fmt.Sprint(c.code)) {
		c.says("the ledger is %+v", all.Consents)
	}
	var list struct {
		Blacklist []struct{ Phone string }
	}
	must(c.t, "GET", c.s.base+"/api/blacklist", c.who.key, nil).into(c.t, &list)
	if slices.ContainsFunc(list.Blacklist, func(e struct{ Phone string }) bool { return e.Phone == c.person }) {
		c.says("the person is on the blacklist")
	}
	asked := c.askedFor(c.person)
	if m := c.becomes(c.advertise(), "FAILED"); m.Says != "Consenso mancante" || c.askedFor(c.person) != asked {
		c.says("marketing is %+v, and Meta was asked %d times", m, c.askedFor(c.person)-asked)
	}
	must(c.t, "POST", c.s.base+"/api/contacts/consent", c.who.key, map[string]string{"phone": c.person, "purpose": "marketing", "change": "grant", "source": "prova"})
	c.becomes(c.advertise(), "COMPLETED")
}

// advertise sends marketing to the person.
func (c *tableCode) advertise() string {
	c.t.Helper()
	var made struct{ ID []string }
	must(c.t, "POST", c.s.base+"/api/messages", c.who.key, map[string]string{
		"phone": c.person, "template": "uno", "purpose": "marketing", "id_sessione": c.session,
	}).into(c.t, &made)
	return made.ID[0]
}

// fails makes Meta accept a message, and report the code later.
func (c *tableCode) fails() {
	c.t.Helper()
	if c.row == "category" { // all templates are held
		return
	}
	c.person = strings.Replace(c.person, "+39331", "+39333", 1)
	template := "uno"
	if c.row == "template" { // the first template is already held
		template = "due"
	}
	id := c.start(template, c.person)
	c.becomes(id, "COMPLETED")
	taken := c.peer.Taken()
	i := slices.IndexFunc(taken, func(m graphtest.Taken) bool { return m.Message.To == c.person })
	report := c.peer.Status(taken[i], "failed", time.Now(), c.code)
	for range 2 { // the same report changes nothing
		if status := c.peer.Deliver(c.webhook, c.number.ID, report); status != http.StatusOK {
			c.says("the webhook answered %d", status)
		}
	}
	m := c.message(id)
	if m.State != "FAILED" || m.Says == "" || !strings.Contains(m.Detail, c.word()) || !strings.Contains(m.Detail, taken[i].WAMID) {
		c.says("after its failure the message is %+v", m)
	}
	if before := c.message(c.first); before.State == "FAILED" && before.Says != m.Says {
		c.says("it says %q by webhook, %q in an answer", m.Says, before.Says)
	}
	switch c.row {
	case "number", "access":
		held := map[string]string{"number": "linked", "access": "unlinked"}[c.row]
		eventually(c.t, 20*time.Second, fmt.Sprintf("the number of code %d is %s", c.code, held), func() bool { return c.link().State == held })
	case "recipient":
		if c.becomes(c.start("uno", c.person), "FAILED"); c.askedFor(c.person) != 1 {
			c.says("asked %d times", c.askedFor(c.person))
		}
	case "opted out":
		c.withdrew()
		c.becomes(c.start("uno", c.person), "COMPLETED")
	}
}
