package httpapi_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/booking"
	"puntuale/internal/control"
)

// asking is a sequence for bookings that asks at once, reminds the day before, and tells of a confirmation and of a
// cancellation.
const asking = `{"name":"Visita","booking":{"date":"appuntamento"},"steps":[
{"text":"{{nome}}, confermi?","timing":{"anchor":"start","offset":{"amount":0}},
 "buttons":[{"label":"Confermo","does":"confirm"},{"label":"Non posso","does":"cancel"},{"label":"Chiamatemi","does":"answer"}]},
{"text":"A domani","timing":{"anchor":"appuntamento","offset":{"amount":1,"unit":"days","direction":"before"}}},
{"text":"Grazie","timing":{"anchor":"booking.confirmed","offset":{"amount":0}}},
{"text":"Annullato","timing":{"anchor":"booking.cancelled","offset":{"amount":0}}}]}`

// givenOf is what a person answered.
type givenOf struct {
	Does, Label, Step, Matched string
	Stale                      bool
}

func (a *givenOf) String() string {
	if a == nil {
		return "none"
	}
	return say(a.Does, a.Label, a.Step, a.Matched, a.Stale)
}

// replyRow is one row of the list of replies.
type replyRow struct {
	ID, Phone, Text, Kind            string
	Effect, Payload, Button, Matched *string
	InReply                          *int64 `json:"in_reply_to"`
	Run                              *int64
}

const (
	ada   = "+393331234567"
	other = "+393339876543"
)

// newAsking returns a client whose sequence asks, and which keeps every reply.
func newAsking(t *testing.T, s *service) *booked {
	t.Helper()
	b := &booked{service: s, clientAccount: s.newAccount("visite@x", "full")}
	var made struct{ ID string }
	s.must(&made, "POST", "/api/sequences", b.Key, asking)
	b.sequence = made.ID
	s.must(nil, "PATCH", "/api/settings", b.Key, `{"keep_replies":"all"}`)
	return b
}

// ask makes a booking, and lets its question leave. It returns the question's id.
func (b *booked) ask(reference string) string {
	b.t.Helper()
	id := b.book(reference).ID[0]
	b.sendNow(id)
	b.clock.Advance(time.Minute)
	return id
}

// hear takes a message of a person as a network tells it.
func (b *booked) hear(id string, m puntuale.InboundMessage) {
	b.t.Helper()
	item := b.item(b.clientAccount, "1")
	session, err := puntuale.ParseID[puntuale.SessionID](b.Session)
	if err != nil {
		b.t.Fatal(err)
	}
	b.heard = id
	m.Client, m.Session, m.At, m.ID = item.Client, session, b.clock.Now(), id
	if m.Phone == "" {
		m.Phone = ada
	}
	if m.Kind == "" {
		m.Kind = puntuale.ReplyText
	}
	if err := b.intake.Take(b.t.Context(), session, puntuale.InboundBatch{Messages: []puntuale.InboundMessage{m.Storable()}}); err != nil {
		b.t.Fatal(err)
	}
}

// tap returns the press of a button of a message.
func (b *booked) tap(message string, button int) puntuale.InboundMessage {
	b.t.Helper()
	ref := b.item(b.clientAccount, message)
	label := []string{"Confermo", "Non posso", "Chiamatemi"}[button]
	return puntuale.InboundMessage{Kind: puntuale.ReplyButton, Text: label, Payload: b.vault.TapPayload(ref.Client, puntuale.Tap{Message: ref.ID, Button: button})}
}

// latest returns the reply that was heard last as "effect button matched in_reply_to".
func (b *booked) latest() string {
	b.t.Helper()
	var all struct{ Replies []replyRow }
	b.must(&all, "GET", "/api/replies", b.Key, "")
	id := b.rows("select id from reply where network_id = '" + b.heard + "'")
	i := slices.IndexFunc(all.Replies, func(y replyRow) bool { return len(id) == 1 && y.ID == strings.TrimSpace(id[0]) })
	if i < 0 {
		b.t.Fatalf("%v: %+v", id, all.Replies)
	}
	y := all.Replies[i]
	to := int64(0)
	if y.InReply != nil {
		to = *y.InReply
	}
	word := func(p *string) string {
		if p == nil {
			return "-"
		}
		return *p
	}
	return say(word(y.Effect), word(y.Button), word(y.Matched), to)
}

// unclear counts the notices about unclear answers.
func (b *booked) unclear() int {
	b.t.Helper()
	return b.count("select count(*) from notice where kind = 13")
}

func TestBookingAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *booked){
		"Tap": answerTap, "Words": answerWords, "Stale": answerStale, "Past": answerPast, "Two": answerTwo, "Run": answerRun, "Kept": answerKept, "Foreign": answerForeign,
		"OptOut": answerOptOut, "Pressed": answerPressed, "Unplannable": answerUnplannable, "Batch": answerBatch, "Once": answerOnce, "Older": answerOlder, "Counted": answerCounted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			databases(t, options{sandbox: true}, func(t *testing.T, s *service) { test(t, newAsking(t, s)) })
		})
	}
}

// A tap confirms the booking, counts as no call, and the same tap twice is one answer.
func answerTap(_ *testing.T, b *booked) {
	id := b.ask("p1")
	used := b.put("p1", `{}`).Used
	b.hear("n1", b.tap(id, 0))
	seen := b.view("p1")
	b.want("the booking", say(seen.Status, seen.Answer, seen.Revision), "confirmed confirm Confermo 0 payload false 2")
	b.want("who", say(seen.History[1].By, seen.History[1].What), "person [confirmed answered]")
	b.want("its messages", b.states("p1"), "[0 COMPLETED 1 PENDING 2 PENDING]")
	b.want("the reply", b.latest(), say("answered Confermo payload", id))
	b.want("calls", b.put("p1", `{}`).Used, used)
	b.hear("n1", b.tap(id, 0)) // the network tells it again
	b.hear("n2", b.tap(id, 0))
	b.want("again", say(b.view("p1").Revision, b.states("p1")), "2 [0 COMPLETED 1 PENDING 2 PENDING]")
	b.want("another reply", b.latest(), say("answered Confermo payload", id))
	b.hear("n3", b.tap(id, 2))
	seen = b.view("p1")
	b.want("only an answer", say(seen.Status, seen.Answer, seen.Revision), "confirmed answer Chiamatemi 0 payload false 3")
	b.hear("n4", b.tap(id, 1))
	seen = b.view("p1")
	b.want("cancelled", say(seen.Status, seen.Answer), "cancelled cancel Non posso 0 payload false")
	b.want("messages of a cancellation", b.states("p1"), "[0 COMPLETED 1 CANCELLED 2 CANCELLED 3 PENDING]")
	b.want("no door resurrects", say(b.put("p1", `{"status":"open"}`).Kept, b.view("p1").Status), "[status] cancelled")
	b.hear("n5", b.tap(id, 0))
	b.want("the person may", b.view("p1").Status, "confirmed")
	b.want("notices", b.unclear(), 0)
	// a tap with the token of somebody else's message, or with a false token, is only stored
	stolen := b.tap(id, 1)
	stolen.Phone = other
	b.hear("n6", stolen)
	b.want("somebody else's", say(b.latest(), b.view("p1").Status), "- Non posso - 0 confirmed")
	forged := b.tap(id, 1)
	forged.Payload = forged.Payload[:len(forged.Payload)-1] + "_"
	b.hear("n7", forged)
	b.want("a false token", say(b.latest(), b.view("p1").Status), "- Non posso - 0 confirmed")
	b.clock.Advance(70 * 24 * time.Hour) // weeks later, after the appointment
	b.hear("n8", b.tap(id, 1))
	b.want("buttons of a past date", say(b.latest(), b.view("p1").Status, b.unclear()), say("unclear Non posso payload", id, "confirmed 1"))
}

// Results count taps and words that answer a question, with the button's label.
func answerCounted(_ *testing.T, b *booked) {
	b.hear("n1", b.tap(b.ask("p1"), 0))
	b.hear("n1", b.tap(b.ask("p2"), 0)) // the network tells the first one again
	made := b.put("p3", `{"sequence":"`+b.sequence+`","phone":"3339876543","nome":"Eva","appuntamento":"20/01/2027 15:30"}`)
	b.sendNow(made.ID[0])
	b.hear("n2", puntuale.InboundMessage{Phone: "+393339876543", Text: "non posso"})
	got := b.results(b.Key, "by=sequence&start=2026-11-01&end=2027-06-30").Total
	b.want("answered", say(*got.Answered, got.Buttons), "2 map[Confermo:1 Non posso:1]")
}

// A text answers the one open question.
func answerWords(_ *testing.T, b *booked) {
	for i, c := range []struct{ text, want, how string }{
		{"1", "confirmed confirm Confermo 0 latest false", "latest"}, {"non posso", "cancelled cancel Non posso 0 latest false", "latest"},
		{"Sì!", "confirmed confirm Confermo 0 word false", "word"}, {"disdico", "cancelled cancel Non posso 0 word false", "word"},
	} {
		reference := string(rune('a' + i))
		phone := "+39333123456" + string(rune('0'+i))
		made := b.put(reference, `{"sequence":"`+b.sequence+`","phone":"`+phone+`","nome":"Ada","appuntamento":"20/01/2027 15:30"}`)
		b.hear("early"+reference, puntuale.InboundMessage{Phone: phone, Text: c.text})
		b.want("before the question", say(b.latest(), b.view(reference).Status), "- - - 0 open")
		b.sendNow(made.ID[0])
		b.hear("n"+reference, puntuale.InboundMessage{Phone: phone, Text: "grazie"})
		b.want("another text", say(b.latest(), b.view(reference).Status), "- - - 0 open")
		b.hear("m"+reference, puntuale.InboundMessage{Phone: phone, Text: c.text})
		seen := b.view(reference)
		b.want(c.text, say(seen.Status, seen.Answer), c.want)
		b.hear("o"+reference, puntuale.InboundMessage{Phone: phone, Text: "2"})
		b.want("after the answer", say(b.latest(), b.view(reference).Status), "- - - 0 "+seen.Status)
	}
	b.must(nil, "PATCH", "/api/settings", b.Key, `{"confirm_words":["ci vediamo"]}`)
	b.ask("own")
	b.hear("x1", puntuale.InboundMessage{Text: "ok"})
	b.want("no word of the client", b.view("own").Status, "open")
	b.hear("x2", puntuale.InboundMessage{Text: "Ci vediamo"})
	b.want("the client's word", b.view("own").Status, "confirmed")
}

// An answer to a question about a former date changes nothing, and people get a notice.
func answerStale(_ *testing.T, b *booked) {
	id := b.ask("p1")
	b.put("p1", `{"appuntamento":"21/01/2027 15:30"}`)
	b.hear("n1", b.tap(id, 0))
	seen := b.view("p1")
	b.want("a tap", say(seen.Status, seen.Answer), "open confirm Confermo 0 payload true")
	b.want("the reply", say(b.latest(), b.unclear()), say("unclear Confermo payload", id, 1))
	b.put("p1", `{"appuntamento":"22/01/2027 15:30"}`)
	b.want("a new date forgets it", b.view("p1").Answer, "none")
	b.hear("n2", puntuale.InboundMessage{Text: "sì"})
	b.want("answered before", say(b.latest(), b.unclear()), "- - - 0 1")
	b.put("p1", `{"appuntamento":"20/01/2027 15:30"}`)
	b.hear("n3", b.tap(id, 0))
	b.want("the first date again", say(b.view("p1").Status, b.view("p1").Answer), "confirmed confirm Confermo 0 payload false")

	second := b.ask("p2")
	b.put("p2", `{"appuntamento":"21/01/2027 15:30"}`)
	b.hear("n4", puntuale.InboundMessage{Text: "sì"})
	b.want("a word", say(b.latest(), b.view("p2").Status, b.view("p2").Answer, b.unclear()), say("unclear Confermo word", second, "open confirm Confermo 0 word true 2"))

	// a question that has not left asks about the new date
	pending := b.put("p3", `{"sequence":"`+b.sequence+`","phone":"3339876543","nome":"Eva","appuntamento":"20/01/2027 15:30"}`)
	moved := b.put("p3", `{"appuntamento":"21/01/2027 15:30"}`)
	asks := slices.IndexFunc(moved.Moved, func(m struct {
		From, To string
		Planned  string `json:"invio_previsto"`
	}) bool {
		return m.From == pending.ID[0]
	})
	if asks < 0 {
		b.t.Fatalf("the question stays: %+v", moved)
	}
	b.end(b.clientAccount, moved.Moved[asks].To, other, sent)
	m := b.tap(moved.Moved[asks].To, 0)
	m.Phone = other
	b.hear("n5", m)
	b.want("a question that left after the move", b.view("p3").Status, "confirmed")
}

// After the main date every answer only records.
func answerPast(_ *testing.T, b *booked) {
	id := b.ask("p1")
	b.clock.Set(time.Date(2027, 1, 20, 14, 30, 0, 0, time.UTC))
	b.hear("n1", b.tap(id, 1))
	b.want("a tap", say(b.view("p1").Status, b.view("p1").Answer, b.unclear()), "open cancel Non posso 0 payload false 1")
	b.hear("n2", puntuale.InboundMessage{Text: "sì"})
	b.want("a word", say(b.latest(), b.view("p1").Status), "- - - 0 open")
}

// With two open questions a text only records; a quote says which one is meant.
func answerTwo(_ *testing.T, b *booked) {
	first, second := b.ask("p1"), b.ask("p2")
	b.hear("n1", puntuale.InboundMessage{Text: "sì"})
	b.want("a text", say(b.latest(), b.view("p1").Status, b.view("p2").Status, b.unclear()), "unclear - - 0 open open 1")
	b.hear("n2", puntuale.InboundMessage{Text: "sì", InReplyTo: b.item(b.clientAccount, second).ID})
	b.want("a quote", say(b.latest(), b.view("p1").Status, b.view("p2").Status), say("answered Confermo quote", second, "open confirmed"))
	b.hear("n3", puntuale.InboundMessage{Text: "2"})
	b.want("the other one", say(b.latest(), b.view("p1").Status, b.view("p2").Status), say("answered Non posso latest", first, "cancelled confirmed"))
	// the network's id of the quoted message, as the network answered it
	third := b.book("p3").ID[0]
	o := sent
	o.Detail = puntuale.Quoted("wamid.HBgMMzkzMzM=")
	b.end(b.clientAccount, third, ada, o)
	b.ask("p4")
	b.hear("n4", puntuale.InboundMessage{Text: "sì", Quoted: "wamid.HBgMMzkzMzM="})
	b.want("a quote by the network's id", say(b.latest(), b.view("p3").Status, b.view("p4").Status), say("answered Confermo quote", third, "confirmed open"))
	b.hear("n5", puntuale.InboundMessage{Text: "sì", Quoted: "wamid.%%%%%%%%"})
	b.want("a quote of something else", say(b.latest(), b.view("p4").Status, b.unclear()), "unclear - - 0 open 2")
	b.hear("n6", puntuale.InboundMessage{Kind: puntuale.ReplyButton, Text: "Annulla", Payload: "Annulla"})
	b.want("a button of another message", say(b.latest(), b.view("p4").Status), "- Annulla - 0 open")
	b.hear("n7", puntuale.InboundMessage{Text: "1", InReplyTo: b.item(b.clientAccount, first).ID})
	b.want("a quote of another question", say(b.latest(), b.view("p4").Status), say("answered Confermo quote", first, "open"))
}

// inCampaign starts a campaign, and returns each recipient's first message.
func (b *booked) inCampaign(campaign string) []puntuale.MessageID {
	b.t.Helper()
	_, session := idsOf(b.t, b.clientAccount, b.Session)
	if err := b.owner.own(session); err != nil {
		b.t.Fatal(err)
	}
	var made campaignOf
	b.must(&made, "POST", "/api/campaigns?start=true", b.Key, campaign)
	return b.feedAll(b.clientAccount, made.ID)
}

// A reply that taps or quotes a message belongs to that message's run, however many messages left since. So do its rules.
func answerRun(_ *testing.T, b *booked) {
	var made struct{ ID string }
	b.must(&made, "POST", "/api/sequences", b.Key, strings.Replace(asking, "Visita", "Controllo", 1))
	rules := map[string]ruled{}
	for _, sequence := range []string{b.sequence, made.ID} {
		rules[sequence] = b.rule(`{"kind":"reply_to","sequence":"`+sequence+`"}`, `{}`, `[{"kind":"tag","add":["ha risposto"]}]`)
	}
	first := b.ask("p1")
	second := b.put("p2", `{"sequence":"`+made.ID+`","phone":"333 123 4567","nome":"Ada","appuntamento":"20/01/2027 15:30"}`).ID[0]
	b.sendNow(second)
	b.clock.Advance(time.Minute)
	campaign := b.inCampaign(`{"name":"Auguri","content":{"text":"Auguri {{nome}}"},"purpose":"service","canary":0,"recipients":[{"phone":"` + other + `","nome":"Eva"},{"phone":"` + ada + `","nome":"Ada"}]}`)[1].String()
	b.sendNow(campaign)
	b.clock.Advance(time.Minute)
	seen := map[string]int{}
	for i, c := range []struct {
		says puntuale.InboundMessage
		run  string
	}{
		{puntuale.InboundMessage{Text: "grazie"}, campaign},
		{b.tap(first, 0), first},
		{puntuale.InboundMessage{Text: "sì", InReplyTo: b.item(b.clientAccount, second).ID}, second},
		{puntuale.InboundMessage{Text: "a dopo", InReplyTo: b.item(b.clientAccount, first).ID}, first},
		{puntuale.InboundMessage{Text: "bello", InReplyTo: b.item(b.clientAccount, campaign).ID}, campaign},
		{puntuale.InboundMessage{Text: "va bene"}, campaign},
	} {
		b.hear(say("n", i), c.says)
		var all struct{ Replies []replyRow }
		b.must(&all, "GET", "/api/replies", b.Key, "")
		b.want(c.says.Text, say(*all.Replies[0].Run), c.run)
		seen[c.run]++
		b.act(rules[b.sequence].run)
		for sequence, run := range map[string]string{b.sequence: first, made.ID: second} {
			if got := strings.Count(rules[sequence].log(), "acted"); got != seen[run] {
				b.t.Errorf("after %q the rule for run %s acted %d times, not %d", c.says.Text, run, got, seen[run])
			}
		}
		b.clock.Advance(time.Minute)
	}
}

// What somebody else cancelled stays cancelled, and people get a notice.
func answerKept(_ *testing.T, b *booked) {
	id := b.ask("p1")
	b.put("p1", `{"status":"cancelled"}`)
	b.hear("n1", b.tap(id, 0))
	b.want("cancelled by the office", say(b.view("p1").Status, b.view("p1").Answer, b.latest(), b.unclear()), say("cancelled confirm Confermo 0 payload false unclear Confermo payload", id, 1))
	// the booking is another person's now
	second := b.ask("p2")
	b.put("p2", `{"phone":"3339876543"}`)
	b.hear("n2", b.tap(second, 1))
	b.want("another person's", say(b.view("p2").Status, b.view("p2").Answer, b.latest(), b.unclear()), say("open none unclear Non posso payload", second, 2))
}

// A payload of somebody else's template is told, and a tap of a message of no booking names the message.
func answerForeign(_ *testing.T, b *booked) {
	b.hear("n1", puntuale.InboundMessage{Kind: puntuale.ReplyButton, Text: "Sì", Payload: "camp42.yes"})
	var all struct{ Replies []replyRow }
	b.must(&all, "GET", "/api/replies", b.Key, "")
	b.want("a foreign payload", say(*all.Replies[0].Payload, *all.Replies[0].Button, all.Replies[0].InReply == nil), "camp42.yes Sì true")
	var made struct{ ID []string }
	b.must(&made, "POST", "/api/messages", b.Key, `{"phone":"3331234567","text":"Ti è piaciuto?","buttons":[{"label":"Sì","does":"answer"},{"label":"No","does":"answer"}]}`)
	b.sendNow(made.ID[0])
	m := b.tap(made.ID[0], 1)
	m.Text = "No"
	b.hear("n2", m)
	b.want("a single message", b.latest(), say("- No payload", made.ID[0]))
	b.refusedAt(422, "POST", "/api/messages", b.Key, `{"phone":"3331234567","text":"x","buttons":[{"label":"Sì","does":"confirm"}]}`, "body.buttons[0].does")
}

// STOP stays an opt-out, also on a button, and never answers a question.
func answerOptOut(_ *testing.T, b *booked) {
	b.must(nil, "PATCH", "/api/settings", b.Key, `{"opt_out_words":["Non posso","STOP"]}`)
	id := b.ask("p1")
	b.hear("n1", puntuale.InboundMessage{Text: "non posso"})
	b.want("an opt-out", say(b.latest(), b.view("p1").Status), "opt_out - - 0 open")
	b.hear("n2", b.tap(id, 1))
	b.want("on a button", say(b.latest(), b.view("p1").Status), say("opt_out Non posso payload", id, "open"))
	b.hear("n3", puntuale.InboundMessage{Kind: puntuale.ReplyButton, Text: "Basta così", Payload: "STOP", Phone: other})
	b.want("as a payload", b.latest(), "opt_out Basta così - 0")
}

// A phone of the simulated network presses buttons.
func answerPressed(_ *testing.T, b *booked) {
	made := b.book("p1")
	ref := b.item(b.clientAccount, made.ID[0])
	content := puntuale.Content{Text: "Ada, confermi?", Asks: &puntuale.ButtonSet{Buttons: []puntuale.StepButton{{Label: "Confermo", Does: puntuale.ButtonConfirms}, {Label: "Non posso", Does: puntuale.ButtonCancels}}}}
	if err := b.network.ledger.Receive(b.t.Context(), puntuale.SandboxMessage{Client: ref.Client, Message: ref.ID, ConnectorID: puntuale.ConnectorID(ref.ID, 0), Phone: ada, Content: content, Received: b.clock.Now()}); err != nil {
		b.t.Fatal(err)
	}
	b.sendNow(made.ID[0])
	var list struct {
		Messages []struct{ Buttons []string }
	}
	b.must(&list, "GET", "/api/sandbox/messages", b.Key, "")
	b.want("the buttons", list.Messages[0].Buttons, "[Confermo Non posso]")
	b.refusedAt(422, "POST", "/api/sandbox/replies", b.Key, `{"phone":"3331234567","button":"Forse"}`, "body.button")
	b.refusedAt(422, "POST", "/api/sandbox/replies", b.Key, `{"phone":"3331234567","button":"Confermo","message_id":"`+made.ID[1]+`"}`, "body.button")
	b.refusedAt(422, "POST", "/api/sandbox/replies", b.Key, `{"phone":"3331234567","button":"Confermo","text":"sì"}`, "body.text")
	b.must(nil, "POST", "/api/sandbox/replies", b.Key, `{"phone":"3331234567","button":"confermo","message_id":"`+made.ID[0]+`"}`)
	b.heard = strings.TrimSpace(b.rows("select network_id from reply")[0])
	b.want("confirmed", say(b.view("p1").Status, b.latest()), say("confirmed answered Confermo payload", made.ID[0]))
	b.must(nil, "POST", "/api/sandbox/replies", b.Key, `{"phone":"3331234567","button":"Non posso"}`)
	b.want("cancelled", b.view("p1").Status, "cancelled")
}

// If the new state cannot be planned, the answer is only stored, and people get a notice.
func answerUnplannable(_ *testing.T, b *booked) {
	id := b.ask("p1")
	b.must(nil, "PUT", "/api/sequences/"+b.sequence, b.Key, strings.Replace(asking, "Grazie", "Grazie {{titolo}}", 1))
	b.hear("n1", b.tap(id, 0))
	b.want("a confirmation", say(b.view("p1").Status, b.latest(), b.unclear()), say("open unclear Confermo payload", id, 1))
	b.hear("n2", b.tap(id, 1))
	b.want("a cancellation", say(b.view("p1").Status, b.latest()), say("cancelled answered Non posso payload", id))
}

// Messages that a network tells together each have their own effect.
func answerBatch(_ *testing.T, b *booked) {
	id := b.ask("p1")
	item := b.item(b.clientAccount, id)
	session, err := puntuale.ParseID[puntuale.SessionID](b.Session)
	if err != nil {
		b.t.Fatal(err)
	}
	var all []puntuale.InboundMessage
	for i, m := range []puntuale.InboundMessage{
		{Phone: other, Text: "Buongiorno"}, {Phone: other, Text: "STOP"}, b.tap(id, 0), {Phone: "+393330000001", Text: "sì"}, {Phone: other, Text: "START"},
	} {
		m.Client, m.Session, m.At, m.ID = item.Client, session, b.clock.Now(), "n"+string(rune('a'+i))
		if m.Phone == "" {
			m.Phone = ada
		}
		if m.Kind == "" {
			m.Kind = puntuale.ReplyText
		}
		all = append(all, m)
	}
	for range 2 {
		if err := b.intake.Take(b.t.Context(), session, puntuale.InboundBatch{Messages: all}); err != nil {
			b.t.Fatal(err)
		}
	}
	b.want("the booking", say(b.view("p1").Status, b.view("p1").Revision), "confirmed 2")
	effects := b.rows("select effect + case when answer > 0 then answer + 3 else 0 end from reply order by network_id")
	b.want("the replies", strings.Join(strings.Fields(strings.Join(effects, " ")), " "), "0 2 4 0 3")
}

// Two nodes may take the same message at the same time. Only one of them stores it.
func answerOnce(_ *testing.T, b *booked) {
	id := b.ask("p1")
	ref := b.item(b.clientAccount, id)
	tap := b.tap(id, 0)
	tap.Client, tap.Phone, tap.At, tap.ID = ref.Client, ada, b.clock.Now(), "n1"
	m := puntuale.TakenMessage{InboundMessage: tap, Mark: "m1", Matched: puntuale.MatchPayload, Button: "Confermo"}
	m.InReplyTo = ref.ID
	f := booking.FoundAnswer{
		Question: puntuale.Question{Booking: puntuale.BookingID(b.count("select id from booking")), Reference: "p1", Message: ref.ID, Date: time.Date(2027, 1, 20, 14, 30, 0, 0, time.UTC)},
		Button:   puntuale.StepButton{Label: "Confermo", Does: puntuale.ButtonConfirms}, Matched: puntuale.MatchPayload,
	}
	for range 2 {
		if err := b.control.Answer(b.t.Context(), m, f); err != nil {
			b.t.Fatal(err)
		}
		b.put("p1", `{"status":"cancelled"}`)
	}
	b.want("the booking", say(b.view("p1").Status, b.view("p1").Revision, b.count("select count(*) from reply"), b.unclear()), "cancelled 3 1 0")
}

// An answer closes the booking's older questions, and a network that tells an older answer late changes nothing.
func answerOlder(_ *testing.T, b *booked) {
	steps := strings.Replace(asking, `{"text":"A domani",`, `{"text":"Ancora, confermi?","buttons":[{"label":"Va bene","does":"confirm"},{"label":"No","does":"cancel"}],`, 1)
	b.must(nil, "PUT", "/api/sequences/"+b.sequence, b.Key, steps)
	first := b.ask("p1")
	second := b.view("p1").Messages[1].ID
	b.clock.Set(time.Date(2027, 1, 19, 14, 30, 0, 0, time.UTC))
	b.sendNow(second)
	b.clock.Advance(time.Minute)
	b.hear("n1", puntuale.InboundMessage{Text: "1"})
	b.want("the latest question", say(b.view("p1").Status, b.latest()), say("confirmed answered Va bene latest", second))
	b.hear("n2", puntuale.InboundMessage{Text: "2"})
	b.want("the older question", say(b.latest(), b.view("p1").Status), "- - - 0 confirmed")
	late := b.tap(first, 1)
	b.clock.Advance(-time.Hour)
	b.hear("n3", late)
	b.clock.Advance(time.Hour)
	b.want("an older answer", say(b.latest(), b.view("p1").Status, b.view("p1").Answer.Label), say("unclear Non posso payload", first, "confirmed Va bene"))

	// two answers to one question, told together: the second is looked at after the first
	third := b.ask("p2")
	ref := b.item(b.clientAccount, third)
	session, err := puntuale.ParseID[puntuale.SessionID](b.Session)
	if err != nil {
		b.t.Fatal(err)
	}
	var both []puntuale.InboundMessage
	for i, text := range []string{"1", "2"} {
		both = append(both, puntuale.InboundMessage{Client: ref.Client, Session: session, Phone: ada, At: b.clock.Now(), ID: "both" + text, Kind: puntuale.ReplyText, Text: text})
		both[i].At = both[i].At.Add(time.Duration(i) * time.Second)
	}
	if err := b.intake.Take(b.t.Context(), session, puntuale.InboundBatch{Messages: both}); err != nil {
		b.t.Fatal(err)
	}
	b.want("two at once", b.view("p2").Status, "confirmed")
}

// TestPreviewOfButtons: a preview shows the buttons, and on a network without buttons the editor shows the numbered lines
// that stand for them. {{conferma}} needs a public address.
func TestPreviewOfButtons(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true, public: "https://app.example"})
	b := newAsking(t, s)
	var preview struct {
		Preview []struct {
			Text    string `json:"contenuto"`
			Buttons []string
		}
	}
	s.must(&preview, "PUT", "/api/bookings/p1?dry_run=true", b.Key, `{"sequence":"`+b.sequence+`","phone":"3331234567","nome":"Ada","appuntamento":"20/01/2027 15:30"}`)
	b.want("the preview", say(preview.Preview[0].Text, preview.Preview[0].Buttons), "Ada, confermi? [Confermo Non posso Chiamatemi]")
	caller, err := s.control.Authenticate(t.Context(), b.Key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := caller.Client()
	if err != nil {
		t.Fatal(err)
	}
	steps := []puntuale.Step{{Text: "Vieni? {{conferma}}", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}, Buttons: []puntuale.StepButton{{Label: "Confermo", Does: puntuale.ButtonConfirms}}}}
	look := func(session string) string {
		t.Helper()
		r, err := c.Rehearse(t.Context(), control.RehearsalCall{Sequence: control.NewSequence{Name: "Visita", Booking: "giorno", Session: session, Steps: steps}})
		if err != nil || len(r.Faults) > 0 || len(r.Plan.Messages) != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		content := r.Plan.Messages[0].Content
		return say(content.Text, len(content.Buttons()))
	}
	s.must(nil, "PATCH", "/api/client/"+b.ID, s.partner, `{"quotas":{"sessions":20}}`)
	var linked struct{ ID string }
	s.must(&linked, "POST", "/api/sessions", b.Key, `{"name":"Gateway","connection_type":"Send_app","device":{},"sandbox":false}`)
	b.want("buttons", look(b.Session), "Vieni? https://app.example/conferma?t=… 1")
	b.want("numbered lines", look(linked.ID), "Vieni? https://app.example/conferma?t=…\n\nRispondi con il numero:\n1. Confermo 0")
}
