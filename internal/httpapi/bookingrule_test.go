package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"puntuale/internal/automation"
)

func TestBookingRules(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *booked){
		"Hooks": ruleHooks, "Doors": ruleDoors, "Triggers": ruleTriggers, "NoTrigger": ruleNoTrigger, "Chain": ruleChain, "Person": rulePerson,
		"Faults": ruleFaults, "KeepsTheSequence": ruleKeepsSequence, "Stop": ruleStop, "Expired": ruleExpired, "Trial": ruleTrial, "Erased": ruleErased, "NoPhone": ruleNoPhone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			databases(t, options{}, func(t *testing.T, s *service) { test(t, newBooked(t, s)) })
		})
	}
}

// ruled is a rule of a client, and the runner that executes it.
type ruled struct {
	*booked
	madeAutomation
	run *automation.Runner
}

// rule makes a rule.
func (b *booked) rule(trigger, conditions, actions string) ruled {
	b.t.Helper()
	r := ruled{booked: b, run: b.runner()}
	b.must(&r.madeAutomation, "POST", "/api/automations", b.Key, b.ruleText(trigger, conditions, actions))
	return r
}

// ruleText returns a rule as JSON. SEQUENCE stands for the id of the sequence for bookings.
func (b *booked) ruleText(trigger, conditions, actions string) string {
	text := `{"name":"Regola","trigger":` + trigger + `,"conditions":` + conditions + `,"actions":` + actions + `}`
	return strings.ReplaceAll(text, "SEQUENCE", b.sequence)
}

// call posts to the rule's hook, and lets rules act.
func (r ruled) call(body string) {
	r.t.Helper()
	if got := r.callHook(r.Path, body); !strings.Contains(got, `"accepted":true`) {
		r.t.Fatalf("the hook answered %s", got)
	}
	r.act(r.run)
}

// log returns the rule's log, oldest first: "acted" or the code, and what was left out.
func (r ruled) log() string {
	r.t.Helper()
	var x struct {
		Firings []struct {
			Acted    bool
			Code     *string
			English  *string `json:"why_en"`
			Messages []string
		}
	}
	r.must(&x, "GET", "/api/automations/"+r.madeAutomation.ID+"/firings", r.Key, "")
	all := make([]string, 0, len(x.Firings))
	for _, f := range x.Firings {
		says := fmt.Sprintf("acted %d", len(f.Messages))
		if !f.Acted {
			says = strings.TrimPrefix(*f.Code, "automation.")
		}
		all = append([]string{says}, all...)
	}
	return strings.Join(all, ", ")
}

const (
	bookingHook = `{"kind":"hook","map":{"phone":"chi.tel","nome":"chi.nome","appuntamento":"quando","reference":"id","as_of":"versione"}}`
	bookAction  = `[{"kind":"book","sequence":"SEQUENCE"}]`
	cancelHook  = `{"kind":"hook","map":{"phone":"chi.tel","reference":"id","as_of":"versione"}}`
)

func hookCall(id, name, when string, version int) string {
	return fmt.Sprintf(`{"id":%q,"chi":{"tel":"333 123 4567","nome":%q},"quando":%q,"versione":%d}`, id, name, when, version)
}

// A program that only calls hooks gets bookings: it makes, moves and cancels one, and the messages follow.
func ruleHooks(_ *testing.T, b *booked) {
	book := b.rule(bookingHook, `{}`, bookAction)
	cancel := b.rule(cancelHook, `{}`, `[{"kind":"cancel_booking"}]`)
	book.call(hookCall("cal-1", "Ada", "2027-01-20T14:30:00Z", 1))
	made := b.view("cal-1")
	b.want("made", say(made.Status, made.Phone, made.History[0].By, made.History[0].What), "open +393331234567 rule [created]")
	b.want("planned", b.states("cal-1"), "[0 PENDING 1 PENDING]")
	b.want("origin", b.details(b.Key, made.Messages[0].ID)[0].Tipologia, "AUTOMATION")
	b.sendNow(made.Messages[0].ID)

	book.call(hookCall("cal-1", "Ada", "2027-01-21T14:30:00Z", 2))
	b.want("moved", b.states("cal-1"), "[0 COMPLETED 1 CANCELLED 1 PENDING 2 PENDING]")
	book.call(hookCall("cal-1", "Ada", "2027-01-20T14:30:00Z", 1) + " ") // late
	b.want("a late call", b.states("cal-1"), "[0 COMPLETED 1 CANCELLED 1 PENDING 2 PENDING]")
	book.call(hookCall("cal-1", "Ada", "2027-01-21T14:30:00Z", 3)) // newer, and nothing else
	book.call(hookCall("cal-1", "Ada", "2027-01-22T14:30:00Z", 2)) // its as_of was stored
	book.call(hookCall("cal-1", "Ada", "domani", 4))               // nobody can plan this
	b.want("the log", book.log(), "acted 1, acted 1, stale, unchanged, stale, refused")

	cancel.call(hookCall("cal-1", "Ada", "", 5))
	b.want("cancelled", say(b.view("cal-1").Status, b.states("cal-1")), "cancelled [0 COMPLETED 1 CANCELLED 1 CANCELLED 2 CANCELLED 4 PENDING]")
	cancel.call(hookCall("cal-1", "Ada", "", 5) + " ")
	cancel.call(hookCall("cal-2", "Ada", "", 5))
	b.want("the log", cancel.log(), "acted 1, unchanged, no_booking")
	b.want("rules count no call", b.put("x", `{"sequence":"`+b.sequence+`","phone":"3331234567","nome":"Ada","appuntamento":"20/01/2027 15:30"}`).Used, 1)
}

// No door resurrects what another one cancelled. A rule may reopen what a rule cancelled.
func ruleDoors(_ *testing.T, b *booked) {
	book := b.rule(bookingHook, `{}`, `[{"kind":"book","sequence":"SEQUENCE","status":"open"}]`)
	cancel := b.rule(cancelHook, `{}`, `[{"kind":"cancel_booking","silent":true}]`)
	book.call(hookCall("d1", "Ada", "2027-01-20T14:30:00Z", 1))
	cancel.call(hookCall("d1", "Ada", "", 2))
	b.want("silently", say(b.view("d1").Status, b.states("d1")), "cancelled [0 CANCELLED 1 CANCELLED]")
	book.call(hookCall("d1", "Ada", "2027-01-20T14:30:00Z", 3))
	b.want("reopened", b.view("d1").Status, "open")
	b.must(nil, "DELETE", "/api/bookings/d1", b.Key, "")
	book.call(hookCall("d1", "Ada", "2027-01-20T14:30:00Z", 4))
	book.call(hookCall("d1", "Ada Bi", "2027-01-20T14:30:00Z", 5))
	b.want("the API's stays", b.view("d1").Status, "cancelled")
	b.want("the log", book.log(), "acted 1, acted 1, kept, acted 0")
	b.put("d2", `{"sequence":"`+b.sequence+`","phone":"3331234567","nome":"Ada","appuntamento":"20/01/2027 15:30","status":"confirmed"}`)
	book.call(hookCall("d2", "Ada", "2027-01-20T14:30:00Z", 1)) // the same moment, written otherwise
	b.want("confirmed stays", b.view("d2").Status, "confirmed")
}

// A rule waits for what becomes of bookings. It knows their values, and its conditions read their statuses when it acts.
func ruleTriggers(_ *testing.T, b *booked) {
	var other struct{ ID string }
	b.must(&other, "POST", "/api/sequences", b.Key, strings.Replace(visit, "Visita", "Controllo", 1))
	rules := map[string]ruled{}
	for _, is := range []string{"created", "moved", "confirmed", "cancelled", "arrived", "no_show"} {
		rules[is] = b.rule(`{"kind":"booking","sequence":"SEQUENCE","is":"`+is+`"}`, `{}`, `[{"kind":"tag","add":["`+is+`"]}]`)
	}
	all := b.rule(`{"kind":"booking","is":"moved"}`, `{"fields":[{"name":"nome","op":"equal","value":"Ada"}]}`, `[{"kind":"send","text":"{{nome}}: {{appuntamento}}, {{reference}}"}]`)
	still := b.rule(`{"kind":"booking","is":"moved"}`, `{"booking_status":["open"]}`, `[{"kind":"tag","add":["aperto"]}]`)
	run := all.run
	b.book("t1")
	b.put("t1", `{"appuntamento":"21/01/2027 15:30"}`)
	b.act(run)
	b.put("t1", `{"appuntamento":"22/01/2027 15:30"}`)
	b.put("t1", `{"status":"confirmed"}`) // before the rule acts
	b.act(run)
	b.put("t1", `{"status":"arrived"}`)
	b.put("t1", `{"status":"no_show"}`)
	b.must(nil, "DELETE", "/api/bookings/t1", b.Key, "")
	b.put("t2", `{"sequence":"`+other.ID+`","phone":"3331234568","nome":"Bea","appuntamento":"20/01/2027 15:30"}`)
	b.put("t2", `{"appuntamento":"21/01/2027 15:30"}`)
	b.act(run)
	for is, want := range map[string]string{"created": "acted 0", "moved": "acted 0, acted 0", "confirmed": "acted 0", "cancelled": "acted 0", "arrived": "acted 0", "no_show": "acted 0"} {
		b.want(is, rules[is].log(), want)
	}
	b.want("all sequences", all.log(), "acted 1, acted 1, field")
	b.want("open", still.log(), "acted 0, status, acted 0")
	var log struct{ Firings []struct{ Messages []string } }
	b.must(&log, "GET", "/api/automations/"+all.madeAutomation.ID+"/firings", b.Key, "")
	b.want("the text", b.details(b.Key, log.Firings[1].Messages[0])[0].Contenuto, "Ada: 22/01/2027 15:30, t1")
}

// A stop plans nothing and triggers no rule, and neither does a dry run or a change of nothing.
func ruleNoTrigger(_ *testing.T, b *booked) {
	r := b.rule(`{"kind":"booking","is":"cancelled"}`, `{}`, `[{"kind":"tag","add":["x"]}]`)
	b.book("n1")
	b.must(nil, "POST", "/api/stop/"+b.sequence, b.Key, `{"phone":"3331234567"}`)
	b.want("stopped", b.view("n1").Status, "cancelled")
	b.book("n2")
	b.put("n2?dry_run=true", `{"status":"cancelled"}`)
	b.act(r.run)
	b.want("the log", r.log(), "")
	b.must(nil, "DELETE", "/api/bookings/n2", b.Key, "")
	b.must(nil, "DELETE", "/api/bookings/n2", b.Key, "")
	b.act(r.run)
	b.want("the log", r.log(), "acted 0")
}

// Rules that change the booking that triggered them come to an end.
func ruleChain(_ *testing.T, b *booked) {
	next := map[string]string{"created": "confirmed", "confirmed": "arrived", "arrived": "no_show", "no_show": "confirmed"}
	rules := map[string]ruled{}
	for is, then := range next {
		rules[is] = b.rule(`{"kind":"booking","is":"`+is+`"}`, `{}`, `[{"kind":"book","sequence":"SEQUENCE","status":"`+then+`"}]`)
	}
	b.book("c1")
	b.act(rules["created"].run)
	b.want("at the end", b.view("c1").Status, "no_show")
	b.want("the chain", say(rules["created"].log()+";", rules["confirmed"].log()+";", rules["arrived"].log()+";", rules["no_show"].log()), "acted 1; acted 1; acted 0; depth")
	b.put("c1", `{"status":"confirmed"}`) // a call begins another chain
	b.act(rules["created"].run)
	b.want("another chain", rules["no_show"].log(), "depth, acted 1")
}

// A rule books under a reference of its own, for the person of its trigger. What is missing comes from the contact. A
// booking of another sequence is not taken over.
func rulePerson(_ *testing.T, b *booked) {
	b.must(nil, "POST", "/api/contacts", b.Key, `{"phone":"3331234567","name":"Ada Contatto","fields":{"appuntamento":"2027-02-01 10:00:00"}}`)
	var other struct{ ID string }
	b.must(&other, "POST", "/api/sequences", b.Key, strings.Replace(visit, "Visita", "Controllo", 1))
	r := b.rule(`{"kind":"booking","sequence":"SEQUENCE","is":"arrived"}`, `{}`, `[{"kind":"book","sequence":"`+other.ID+`","reference":"{{reference}}-controllo"}]`)
	same := b.rule(`{"kind":"booking","sequence":"SEQUENCE","is":"arrived"}`, `{}`, `[{"kind":"book","sequence":"`+other.ID+`"}]`)
	b.book("p1")
	b.put("p1", `{"status":"arrived"}`)
	b.act(r.run)
	next := b.view("p1-controllo")
	b.want("the next one", say(next.Status, next.Phone, r.log()), "open +393331234567 acted 1")
	b.want("the first message", b.details(b.Key, next.Messages[0].ID)[0].Contenuto, "Benvenuta Ada")
	b.want("not taken over", same.log(), "refused")

	hook := b.rule(`{"kind":"hook","map":{"phone":"tel","reference":"id"}}`, `{}`, bookAction)
	hook.call(`{"tel":"3331234567","id":"p2"}`)
	b.want("from the contact", b.details(b.Key, b.view("p2").Messages[0].ID)[0].Contenuto, "Benvenuta Ada Contatto")
	b.put("p2", `{"nome":"Bea"}`)
	hook.call(`{"tel":"3331234567","id":"p2","n":2}`)
	b.want("what the booking has stays", hook.log(), "acted 1, unchanged")
	hook.call(`{"tel":"3331234569","id":"p2"}`) // another person, who is no contact
	b.want("another person", say(b.view("p2").Phone, hook.log()), "+393331234569 acted 1, unchanged, acted 1")
	nameless := b.rule(`{"kind":"hook","map":{"phone":"tel","nome":"nome"}}`, `{}`, bookAction)
	nameless.call(`{"tel":"3331234567","nome":"Ada"}`)
	nameless.call(`{"tel":"3331234567","nome":"Ada","n":2}`)
	b.want("without a reference, each call is a new booking", nameless.log(), "acted 1, acted 1")
}

// A program that tells no number finds the person by the booking.
func ruleNoPhone(_ *testing.T, b *booked) {
	cancel := b.rule(`{"kind":"hook","map":{"reference":"id"}}`, `{}`, `[{"kind":"cancel_booking"}]`)
	moves := b.rule(`{"kind":"hook","map":{"phone":"tel","reference":"id","appuntamento":"quando"}}`, `{}`, bookAction)
	b.book("n1")
	moves.call(`{"id":"n1","quando":"2027-01-21T14:30:00Z"}`)
	b.want("moved", say(b.view("n1").Phone, b.states("n1"), moves.log()), "+393331234567 [0 PENDING 1 CANCELLED 1 PENDING 2 PENDING] acted 1")
	for body, want := range map[string]string{`{"id":"n2"}`: "booking not found", `{"x":1}`: "no phone", `{"id":"n1","tel":"12"}`: "phone"} {
		r := moves
		if !strings.Contains(body, "tel") {
			r = cancel
		}
		if got := b.callHook(r.Path, body); !strings.Contains(got, `"accepted":false`) {
			b.t.Errorf("%s (%s): %s", body, want, got)
		}
	}
	cancel.call(`{"id":"n1"}`)
	b.want("cancelled", say(b.view("n1").Status, cancel.log()), "cancelled no_phone, no_phone, acted 1")
	b.want("a trial", strings.Contains(b.must(nil, "POST", "/api/automations/"+cancel.madeAutomation.ID+"/try", b.Key, `{"payload":{"id":"n1"}}`).body, "+393331234567"), true)
}

// The refusals of rules about bookings, each at its place.
func ruleFaults(_ *testing.T, b *booked) {
	var plain struct{ ID string }
	b.must(&plain, "POST", "/api/sequences", b.Key, `{"name":"Semplice","steps":[{"text":"x","timing":{"anchor":"start","offset":{"amount":0}}}]}`)
	const send, booking = `[{"kind":"send","text":"x"}]`, `{"kind":"booking","is":"moved"}`
	for _, x := range []struct{ trigger, conditions, actions, at string }{
		{`{"kind":"booking"}`, `{}`, send, "body.trigger.is"},
		{`{"kind":"booking","is":"READ"}`, `{}`, send, "body.trigger.is"},
		{`{"kind":"booking","is":"moved","sequence":"default"}`, `{}`, send, "body.trigger.sequence"},
		{`{"kind":"booking","is":"moved","sequence":"` + plain.ID + `"}`, `{}`, send, "body.trigger.sequence"},
		{`{"kind":"outcome","sequence":"SEQUENCE","is":"moved"}`, `{}`, send, "body.trigger.is"},
		{booking, `{"id_sessione":"1"}`, send, "body.conditions.id_sessione"},
		{booking, `{"booking_status":["chiuso"]}`, send, "body.conditions.booking_status[0]"},
		{`{"kind":"reply"}`, `{"booking_status":["open"]}`, send, "body.conditions.booking_status"},
		{`{"kind":"hook","map":{"phone":"p"}}`, `{"booking_status":["open"]}`, send, "body.conditions.booking_status"},
		{booking, `{}`, `[{"kind":"start","sequence":"SEQUENCE"}]`, "body.actions[0].sequence"},
		{booking, `{}`, `[{"kind":"book","sequence":"` + plain.ID + `"}]`, "body.actions[0].sequence"},
		{booking, `{}`, `[{"kind":"book","sequence":"default"}]`, "body.actions[0].sequence"},
		{booking, `{}`, `[{"kind":"book"}]`, "body.actions[0].sequence"},
		{booking, `{}`, `[{"kind":"book","sequence":"SEQUENCE","status":"chiuso"}]`, "body.actions[0].status"},
		{booking, `{}`, `[{"kind":"book","sequence":"SEQUENCE","silent":true}]`, "body.actions[0].silent"},
		{booking, `{}`, `[{"kind":"book","sequence":"SEQUENCE","reference":"{{x"}]`, "body.actions[0].reference"},
		{booking, `{}`, `[{"kind":"book","sequence":"SEQUENCE"},{"kind":"cancel_booking"}]`, "body.actions[1].reference"},
		{booking, `{}`, `[{"kind":"cancel_booking","status":"open"}]`, "body.actions[0].status"},
		{booking, `{}`, `[{"kind":"cancel_booking","sequence":"SEQUENCE"}]`, "body.actions[0].sequence"},
		{`{"kind":"reply"}`, `{}`, `[{"kind":"cancel_booking"}]`, "body.actions[0].reference"},
		{`{"kind":"date","field":"nascita","repeat":"yearly"}`, `{}`, `[{"kind":"cancel_booking","reference":"x"}]`, "body.actions[0].kind"},
		{booking, `{}`, `[{"kind":"send","text":"x","reference":"y"}]`, "body.actions[0].reference"},
	} {
		b.refusedAt(http.StatusUnprocessableEntity, "POST", "/api/automations", b.Key, b.ruleText(x.trigger, x.conditions, x.actions), x.at)
	}
	if got := b.call("POST", "/api/automations", b.Key, b.ruleText(booking, `{}`, `[{"kind":"start","sequence":"SEQUENCE"}]`)); !strings.Contains(got.body, "use the action book") {
		b.t.Errorf("a start of a sequence for bookings: %s", got.body)
	}
}

// A sequence that rules about bookings name stays one for bookings.
func ruleKeepsSequence(_ *testing.T, b *booked) {
	const plain = `{"name":"Visita","steps":[{"text":"x","timing":{"anchor":"start","offset":{"amount":0}}}]}`
	for _, trigger := range []string{`{"kind":"booking","sequence":"SEQUENCE","is":"moved"}`, bookingHook} {
		actions := `[{"kind":"tag","add":["x"]}]`
		if trigger == bookingHook {
			actions = bookAction
		}
		r := b.rule(trigger, `{}`, actions)
		if got := b.call("PUT", "/api/sequences/"+b.sequence, b.Key, plain); got.status != http.StatusConflict {
			b.t.Errorf("%s: %d %s", trigger, got.status, got.body)
		}
		b.must(nil, "DELETE", "/api/automations/"+r.madeAutomation.ID, b.Key, "")
	}
	b.must(nil, "PUT", "/api/sequences/"+b.sequence, b.Key, plain)

	b.must(nil, "PUT", "/api/sequences/"+b.sequence, b.Key, visit)
	r := b.rule(bookingHook, `{}`, bookAction)
	b.must(nil, "DELETE", "/api/sequences/"+b.sequence, b.Key, "")
	r.call(hookCall("k1", "Ada", "2027-01-20T14:30:00Z", 1))
	b.want("a deleted sequence", r.log(), "gone")
}

// A rule's stop is a stop: it also cancels the bookings of the sequence, and triggers no rule.
func ruleStop(_ *testing.T, b *booked) {
	after := b.rule(`{"kind":"booking","is":"cancelled"}`, `{}`, `[{"kind":"tag","add":["x"]}]`)
	r := b.rule(`{"kind":"hook","map":{"phone":"tel"}}`, `{}`, `[{"kind":"stop","sequence":"SEQUENCE"}]`)
	b.book("s1")
	b.put("s2", `{"sequence":"`+b.sequence+`","phone":"3331234568","nome":"Bea","appuntamento":"20/01/2027 15:30"}`)
	r.call(`{"tel":"3331234567"}`)
	b.want("stopped", say(b.view("s1").Status, b.states("s1"), b.view("s2").Status, b.states("s2")), "cancelled [0 CANCELLED 1 CANCELLED] open [0 PENDING 1 PENDING]")
	b.want("by", b.view("s1").History[1].By, "stop")
	b.want("no rule", after.log(), "")
	b.rule(`{"kind":"hook","map":{"phone":"tel"}}`, `{}`, `[{"kind":"stop","sequence":"all"}]`).call(`{"tel":"3331234568"}`)
	b.want("all", say(b.view("s2").Status, b.states("s2")), "cancelled [0 CANCELLED 1 CANCELLED]")
}

// An expired account may still cancel.
func ruleExpired(_ *testing.T, b *booked) {
	book, cancel := b.rule(bookingHook, `{}`, bookAction), b.rule(cancelHook, `{}`, `[{"kind":"cancel_booking"}]`)
	book.call(hookCall("e1", "Ada", "2027-01-20T14:30:00Z", 1))
	b.sql("update client set expires_at = 1, revision = revision + 1")
	book.call(hookCall("e1", "Ada", "2027-01-21T14:30:00Z", 2))
	cancel.call(hookCall("e1", "Ada", "", 3))
	b.want("the logs", say(book.log(), cancel.log(), b.view("e1").Status), "acted 1, account acted 1 cancelled")
}

// A trial shows what a rule would plan for a booking.
func ruleTrial(_ *testing.T, b *booked) {
	hook := b.rule(bookingHook, `{}`, bookAction)
	try := func(r ruled, body string) string {
		b.t.Helper()
		var x trial
		b.must(&x, "POST", "/api/automations/"+r.madeAutomation.ID+"/try", b.Key, body)
		return x.says()
	}
	b.want("a new one", strings.Contains(try(hook, `{"payload":`+hookCall("x1", "Ada", "2027-01-20T14:30:00Z", 2)+`}`), `"Ada, ti aspettiamo 20/01/2027 15:30"`), true)
	hook.call(hookCall("x1", "Ada", "2027-01-20T14:30:00Z", 2))
	b.want("unchanged", try(hook, `{"payload":`+hookCall("x1", "Ada", "2027-01-20T14:30:00Z", 2)+`}`), "false !automation.unchanged | 0: automation.unchanged")
	b.want("stale", try(hook, `{"payload":`+hookCall("x1", "Ada", "2027-01-20T14:30:00Z", 1)+`}`), "false !automation.stale | 0: automation.stale")
	r := b.rule(`{"kind":"booking","is":"confirmed"}`, `{"booking_status":["confirmed"]}`, `[{"kind":"cancel_booking"}]`)
	b.want("another status", strings.HasPrefix(try(r, `{"reference":"x1"}`), "false !automation.status | 0:"), true)
	b.put("x1", `{"status":"confirmed"}`)
	b.want("would cancel", strings.Contains(try(r, `{"reference":"x1"}`), `"Annullato"`), true)
	b.refusedAt(http.StatusUnprocessableEntity, "POST", "/api/automations/"+r.madeAutomation.ID+"/try", b.Key, `{"reference":"x9"}`, "body.reference")
	b.refusedAt(http.StatusUnprocessableEntity, "POST", "/api/automations/"+r.madeAutomation.ID+"/try", b.Key, `{"phone":"3331234567"}`, "body.reference")
	b.want("nothing is stored", b.view("x1").Status, "confirmed")
}

// An erasure triggers no rule, and no rule acts for the erased person.
func ruleErased(_ *testing.T, b *booked) {
	r := b.rule(`{"kind":"booking","is":"created"}`, `{}`, `[{"kind":"book","sequence":"SEQUENCE","status":"confirmed"}]`)
	cancelled := b.rule(`{"kind":"booking","is":"cancelled"}`, `{}`, `[{"kind":"tag","add":["x"]}]`)
	b.book("e1")
	b.must(nil, "POST", "/api/contacts/erase", b.Key, `{"phone":"3331234567"}`)
	b.clock.Advance(time.Second)
	b.act(r.run)
	b.want("the logs", r.log()+cancelled.log(), "")
	if places := b.found("3331234567", "Ada"); len(places) > 0 {
		b.t.Errorf("left: %q", places)
	}
}
