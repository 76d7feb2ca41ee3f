package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"puntuale"
)

// deliver lets a message arrive at a phone of the simulated network.
func (b *booked) deliver(id string) {
	b.t.Helper()
	ref := b.item(b.clientAccount, id)
	found, err := b.owner.store.Tenant(ref.Client).Details(b.t.Context(), []puntuale.MessageID{ref.ID})
	if err != nil || len(found) != 1 {
		b.t.Fatal(found, err)
	}
	m := found[0]
	if err := b.network.ledger.Receive(b.t.Context(), puntuale.SandboxMessage{Client: ref.Client, Message: ref.ID, ConnectorID: puntuale.ConnectorID(ref.ID, 0), Phone: m.Phone, Content: m.Content, Received: b.clock.Now()}); err != nil {
		b.t.Fatal(err)
	}
	b.sendNow(id)
}

// one sends a single message to Ada and lets it arrive. It returns the message's id.
func (b *booked) one(members string) string {
	b.t.Helper()
	var made struct{ ID []string }
	b.must(&made, "POST", "/api/messages", b.Key, `{"phone":"3331234567",`+members+`}`)
	b.deliver(made.ID[0])
	return made.ID[0]
}

const slotList = `"interactive":{"list":{"button":"Scegli","sections":[{"title":"Lunedì","rows":[{"title":"10:00","text":"con Ada","payload":"lun.10"},{"title":"11:00"}]},{"title":"Martedì","rows":[{"title":"9:00","payload":"STOP"}]}]}}`

func TestInteractive(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *booked){
		"Faults": interactiveFaults, "Fields": interactiveFields, "Pressed": interactivePressed, "Late": interactiveLate, "Instead": interactiveInstead,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			databases(t, options{sandbox: true, public: "https://app.example"}, func(t *testing.T, s *service) { test(t, newAsking(t, s)) })
		})
	}
}

// Every limit of Meta's is a fault, in a step and in a single message, and nothing is stored.
func interactiveFaults(_ *testing.T, b *booked) {
	long := func(n int) string { return strings.Repeat("è", n) }
	row := `{"title":"x"}`
	for members, at := range map[string]string{
		`"interactive":{}`: "interactive",
		`"interactive":{"ask":"location","link":{"label":"a","url":"https://e.com"}}`: "interactive",
		`"interactive":{"ask":"age"}`:                                                                                       "interactive.ask",
		`"buttons":[{"label":"a"}],"interactive":{"ask":"phone"}`:                                                           "interactive",
		`"interactive":{"list":{"button":"a","sections":[]}}`:                                                               "interactive.list.sections",
		`"interactive":{"list":{"button":"a","sections":[{"rows":[]}]}}`:                                                    "interactive.list.sections[0].rows",
		`"interactive":{"list":{"button":"a","sections":[{"rows":[` + strings.Repeat(row+",", 10) + row + `]}]}}`:           "interactive.list.sections",
		`"interactive":{"list":{"button":"` + long(21) + `","sections":[{"rows":[` + row + `]}]}}`:                          "interactive.list.button",
		`"interactive":{"list":{"button":"a","sections":[{"rows":[` + row + `]},{"title":"b","rows":[` + row + `]}]}}`:      "interactive.list.sections[0].title",
		`"interactive":{"list":{"button":"a","sections":[{"title":"` + long(25) + `","rows":[` + row + `]}]}}`:              "interactive.list.sections[0].title",
		`"interactive":{"list":{"button":"a","sections":[{"rows":[{"title":"` + long(25) + `"}]}]}}`:                        "interactive.list.sections[0].rows[0].title",
		`"interactive":{"list":{"button":"a","sections":[{"rows":[{"title":"a\nb"}]}]}}`:                                    "interactive.list.sections[0].rows[0].title",
		`"interactive":{"list":{"button":"a","sections":[{"rows":[` + row + `,{"title":"b","text":"` + long(73) + `"}]}]}}`: "interactive.list.sections[0].rows[1].text",
		`"interactive":{"list":{"button":"a","sections":[{"rows":[{"title":"b","payload":"` + long(129) + `"}]}]}}`:         "interactive.list.sections[0].rows[0].payload",
		`"interactive":{"link":{"label":"` + long(21) + `","url":"https://e.com"}}`:                                         "interactive.link.label",
		`"interactive":{"link":{"label":"a","url":"http://e.com"}}`:                                                         "interactive.link.url",
		`"interactive":{"link":{"label":"a","url":"https://e.com/a b"}}`:                                                    "interactive.link.url",
		`"interactive":{"link":{"label":"a","url":"https://e.com/` + long(1990) + `"}}`:                                     "interactive.link.url",
		`"buttons":[{"label":"a","payload":"` + long(129) + `"}]`:                                                           "buttons[0].payload",
		`"media":"https://e.com/a.jpg",` + slotList:                                                                         "interactive",
		`"media":"https://e.com/a.jpg","interactive":{"ask":"phone"}`:                                                       "interactive",
		`"latitude":45.1,"longitude":9.1,"interactive":{"link":{"label":"a","url":"https://e.com"}}`:                        "interactive",
	} {
		b.refusedAt(422, "POST", "/api/messages", b.Key, `{"phone":"3331234567","text":"x",`+members+`}`, "body."+at)
		b.refusedAt(422, "POST", "/api/sequences", b.Key, `{"name":"s","steps":[{"text":"x",`+members+`,"timing":{"anchor":"start","offset":{"amount":0}}}]}`, "body.steps[0]."+at)
	}
	for members, at := range map[string]string{
		`"text":"` + long(1025) + `","interactive":{"ask":"location"}`:                           "body.text",
		`"text":"` + long(4097-45) + `",` + slotList:                                             "body.text",
		`"text":"` + long(1025) + `","interactive":{"link":{"label":"a","url":"https://e.com"}}`: "body.text",
		`"text":"","interactive":{"ask":"location"}`:                                             "body",
	} {
		b.refusedAt(422, "POST", "/api/messages", b.Key, `{"phone":"3331234567",`+members+`}`, at)
	}
	b.want("messages", b.count("select count(*) from message"), 0)
	// The same list under a file of a template.
	b.must(nil, "POST", "/api/templates", b.Key, `{"name":"foto","text":"Ecco","media":"https://e.com/a.jpg"}`)
	b.refusedAt(422, "POST", "/api/sequences", b.Key, `{"name":"s","steps":[{"template":"foto",`+slotList+`,"timing":{"anchor":"start","offset":{"amount":0}}}]}`, "body.steps[0].interactive")
	b.refusedAt(422, "POST", "/api/messages", b.Key, `{"phone":"3331234567","template":"foto",`+slotList+`}`, "body.interactive")
}

// Texts, addresses and payloads may hold fields. A rendered one that Meta would refuse is a fault, at its field where
// there is one. In a single message they are sent as they are written.
func interactiveFields(_ *testing.T, b *booked) {
	var made struct {
		ID     string
		Fields []struct{ Name string }
	}
	const now = `"timing":{"anchor":"start","offset":{"amount":0}}}`
	b.must(&made, "POST", "/api/sequences", b.Key, `{"name":"s","steps":[
{"text":"Ciao {{nome}}","interactive":{"link":{"label":"Ordine {{numero}}","url":"https://e.com/o/{{numero}}?x={{nota|}}"}},`+now+`,
{"text":"Apri","interactive":{"link":{"label":"Apri","url":"{{indirizzo}}"}},`+now+`,
{"text":"Quando?","interactive":{"list":{"button":"Scegli","sections":[{"rows":[{"title":"{{ora1}}","payload":"slot.{{ora1}}"},{"title":"Altro"}]}]}},`+now+`,
{"text":"Va bene?","buttons":[{"label":"Sì","payload":"ok-{{numero}}"}],`+now+`]}`)
	b.want("fields", made.Fields, "[{nome} {numero} {nota} {indirizzo} {ora1}]")
	var preview struct {
		Messages []struct {
			Buttons     []string
			Interactive *puntuale.Interactive
		}
		Warnings []struct{ Step int }
	}
	start := func(numero, indirizzo, ora string) string {
		return `{"phone":"3331234567","nome":"Ada","numero":"` + numero + `","nota":"è|a b","indirizzo":"` + indirizzo + `","ora1":"` + ora + `"}`
	}
	target := "/api/start/" + made.ID
	b.must(&preview, "POST", target+"?dry_run=true", b.Key, start("17/a", "https://e.com/x?y=1", "10:00"))
	m := preview.Messages
	b.want("a link", *m[0].Interactive.Link, "{Ordine 17/a https://e.com/o/17%2Fa?x=%C3%A8%7Ca%20b}")
	b.want("a whole address", *m[1].Interactive.Link, "{Apri https://e.com/x?y=1}")
	b.want("a list", m[2].Interactive.List.Sections, "[{ [{10:00  slot.10:00} {Altro  }]}]")
	b.want("warnings", preview.Warnings, "[]")
	b.refusedAt(422, "POST", target, b.Key, start("17", "http://e.com", "10:00"), "body.indirizzo")
	b.refusedAt(422, "POST", target, b.Key, start("17", "https://e.com", strings.Repeat("1", 25)), "body.ora1")
	b.refusedAt(422, "POST", target, b.Key, start("12345678901234", "https://e.com", "10:00"), "steps[0].interactive.link.label")
	var ids struct{ ID []string }
	b.must(&ids, "POST", target, b.Key, start("17", "https://e.com", "10:00"))
	b.deliver(ids.ID[3])
	b.must(nil, "POST", "/api/sandbox/replies", b.Key, `{"phone":"3331234567","button":"sì"}`)
	b.want("a payload with a field", b.reply(), say("button", "Sì", "ok-17 Sì", ids.ID[3]))

	b.one(`"text":"{{x}}","interactive":{"list":{"button":"{{y}}","sections":[{"rows":[{"title":"{{z}}","payload":"{{w}}"}]}]}}`)
	b.must(nil, "POST", "/api/sandbox/replies", b.Key, `{"phone":"3331234567","button":"{{w}}"}`)
	b.want("as it is written", strings.Fields(b.reply())[1:4], "[{{z}} {{w}} {{z}}]")
	b.refusedAt(422, "POST", "/api/sequences", b.Key, `{"name":"s","steps":[{"text":"x","interactive":{"link":{"label":"{{","url":"ftp://{{x}}"}},`+now+`]}`,
		"body.steps[0].interactive.link.label", "body.steps[0].interactive.link.url")
}

// reply returns the latest reply as "kind text payload button in_reply_to".
func (b *booked) reply() string {
	b.t.Helper()
	var all struct{ Replies []replyRow }
	b.must(&all, "GET", "/api/replies", b.Key, "")
	y := all.Replies[0]
	word := func(p *string) string {
		if p == nil {
			return "-"
		}
		return *p
	}
	to := int64(0)
	if y.InReply != nil {
		to = *y.InReply
	}
	return say(y.Kind, y.Text, word(y.Payload), word(y.Button), to)
}

// A phone of the simulated network chooses a row, opens nothing at a link, and shares what a message asks for. The reply
// and its event tell the payload, the row and the message. A row with the word STOP is an opt-out.
func interactivePressed(_ *testing.T, b *booked) {
	b.must(nil, "GET", "/api/events", b.Key, "") // from now on there are events
	list := b.one(`"text":"Quando?",` + slotList)
	var shown struct {
		Messages []struct {
			Interactive *puntuale.Interactive
		}
	}
	b.must(&shown, "GET", "/api/sandbox/messages", b.Key, "")
	b.want("the list", shown.Messages[0].Interactive.List.Sections[0].Rows[0], "{10:00 con Ada lun.10}")
	const path = "/api/sandbox/replies"
	b.must(nil, "POST", path, b.Key, `{"phone":"3331234567","button":"10:00"}`)
	b.want("a row", b.reply(), say("button 10:00 lun.10 10:00", list))
	var feed struct {
		Events []struct {
			Data struct {
				Payload, Button string
				To              int64 `json:"in_reply_to"`
			}
		}
	}
	b.number()
	b.must(&feed, "GET", "/api/events?types=reply.received", b.Key, "")
	b.want("the event", feed.Events, say("[{{lun.10 10:00", list+"}}]"))
	b.refusedAt(422, "POST", path, b.Key, `{"phone":"3331234567","shares":"location"}`, "body.shares")
	where := b.one(`"text":"Dove sei?","interactive":{"ask":"location"}`)
	b.must(nil, "POST", path, b.Key, `{"phone":"3331234567","shares":"location","latitude":45.07,"longitude":7.6869}`)
	b.want("a position", b.reply(), say("location 45.07,7.6869 - -", where))
	b.must(nil, "POST", path, b.Key, `{"phone":"3331234567","shares":"location"}`)
	b.want("an example", strings.HasPrefix(b.reply(), "location 45.4642,9.18999"), true)
	number := b.one(`"text":"Il tuo numero?","interactive":{"ask":"phone"}`)
	b.must(nil, "POST", path, b.Key, `{"phone":"3331234567","shares":"phone"}`)
	b.want("a number", b.reply(), say("contact", ada, "- -", number))
	b.refusedAt(422, "POST", path, b.Key, `{"phone":"3331234567","shares":"age"}`, "body.shares")
	b.refusedAt(422, "POST", path, b.Key, `{"phone":"3331234567","shares":"phone","text":"x","button":"y"}`, "body.text")
	b.refusedAt(422, "POST", path, b.Key, `{"phone":"3331234567","shares":"phone","button":"y"}`, "body.button")
	b.must(nil, "POST", path, b.Key, `{"phone":"3331234567","button":"9:00"}`)
	b.want("an opt-out", b.reply(), say("button 9:00 STOP 9:00", list))
	b.want("consent", b.count("select count(*) from blacklist"), 1)
}

// A tap three weeks later, told twice, and one without the quoted message, are one answer each, of the right message. So
// is a row whose message was told by the quote alone.
func interactiveLate(_ *testing.T, b *booked) {
	first, second := b.one(`"text":"Quando?",`+slotList), b.one(`"text":"E poi?",`+slotList)
	question := b.ask("p1")
	b.clock.Advance(21 * 24 * time.Hour)
	row := func(message string, n int, title, payload string) puntuale.InboundMessage {
		ref := b.item(b.clientAccount, message)
		return puntuale.InboundMessage{Kind: puntuale.ReplyButton, Text: title, Payload: b.vault.TapPayload(ref.Client, puntuale.Tap{Message: ref.ID, Button: n, Payload: payload})}
	}
	replies := func() int { return b.count("select count(*) from reply") }
	for range 2 {
		tap := row(first, 0, "10:00", "lun.10")
		tap.Quoted = "wamid.unknown"
		b.hear("n1", tap)
		b.want("three weeks old", say(b.reply(), replies()), say("button 10:00 lun.10 10:00", first, 1))
	}
	b.hear("n2", row(second, 1, "11:00", ""))
	b.want("without context", strings.HasSuffix(say(b.reply(), replies()), say("11:00", second, 2)), true)
	for range 2 {
		b.hear("n3", b.tap(question, 0))
	}
	b.want("a button of a booking", say(b.latest(), b.view("p1").Status, b.view("p1").Revision, replies()), say("answered Confermo payload", question, "confirmed 2 3"))
	b.clock.Advance(time.Minute)
	b.hear("n4", puntuale.InboundMessage{Kind: puntuale.ReplyButton, Text: "10:00", Payload: "lun.10", InReplyTo: b.item(b.clientAccount, second).ID})
	b.want("by the quote", b.reply(), say("button 10:00 lun.10 10:00", second))
	foreign := row(first, 0, "10:00", "lun.10")
	foreign.Phone = other
	b.hear("n5", foreign)
	b.want("of another person", b.latest(), "- 10:00 - 0")
}

// Where a network does not show an interactive part, the warnings of a sequence, a dry run and a single message say what
// people get instead.
func interactiveInstead(_ *testing.T, b *booked) {
	b.must(nil, "PATCH", "/api/client/"+b.ID, b.partner, `{"quotas":{"sessions":20}}`)
	var linked struct{ ID string }
	b.must(&linked, "POST", "/api/sessions", b.Key, `{"name":"Gateway","connection_type":"Send_app","device":{},"sandbox":false}`)
	official := b.officialSession(b.Key)
	const now = `"timing":{"anchor":"start","offset":{"amount":0}}}`
	steps := `[{"text":"a",` + slotList + `,` + now + `,{"text":"a","interactive":{"link":{"label":"b","url":"https://e.com"}},` + now + `,{"text":"c","interactive":{"ask":"phone"},` + now + `]`
	type warned struct {
		ID       string
		Warnings []struct {
			Step    int
			Message string `json:"message_en"`
		}
	}
	says := func(w warned) (all []string) {
		for _, x := range w.Warnings {
			all = append(all, strings.Join(strings.Fields(x.Message)[:4], " "))
		}
		return all
	}
	make := func(session, steps string) (w warned) {
		b.must(&w, "POST", "/api/sequences", b.Key, `{"name":"s","id_sessione":"`+session+`","steps":`+steps+`}`)
		return w
	}
	gateway := make(linked.ID, steps)
	b.want("a gateway", strings.Join(says(gateway), "; "), "The connection shows no; The connection shows no; The connection shows no")
	b.want("a sandbox", says(make(b.Session, steps)), "[]")
	b.want("Official without the window", strings.Join(says(make(official, steps)), "; "), "Without an approved template; Without an approved template; Without an approved template")
	b.must(nil, "POST", "/api/templates", b.Key, `{"name":"vero","text":"Ecco","official":{"name":"vero","language":"it"}}`)
	b.want("an approved template", says(make(official, `[{"template":"vero",`+slotList+`,`+now+`]`)), "[The approved template leaves, The template does not]")
	var preview struct {
		Warnings []struct {
			Step   int
			Reason string
		}
	}
	b.must(&preview, "POST", "/api/start/"+gateway.ID+"?dry_run=true", b.Key, `{"phone":"3331234567"}`)
	b.want("a dry run", len(preview.Warnings), 3)
	b.must(&preview, "POST", "/api/messages", b.Key, `{"phone":"3331234567","id_sessione":"`+linked.ID+`","text":"x","interactive":{"ask":"phone"}}`)
	b.want("a single message", preview.Warnings[0].Reason, "La connessione non mostra richieste: la persona riceve solo il testo")
}
