package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
)

// visit is a sequence for bookings: a welcome, a reminder the day before, words about each change, and a question after
// the visit.
const visit = `{"name":"Visita","booking":{"date":"appuntamento"},"steps":[
{"text":"Benvenuta {{nome}}","timing":{"anchor":"start","offset":{"amount":0}}},
{"text":"{{nome}}, ti aspettiamo {{appuntamento}}","timing":{"anchor":"appuntamento","offset":{"amount":1,"unit":"days","direction":"before"}}},
{"text":"Spostato a {{appuntamento}}","timing":{"anchor":"booking.moved","offset":{"amount":0}}},
{"text":"Confermato","timing":{"anchor":"booking.confirmed","offset":{"amount":0}}},
{"text":"Annullato","timing":{"anchor":"booking.cancelled","offset":{"amount":0}}},
{"text":"Come è andata?","only_if":["arrived"],"timing":{"anchor":"appuntamento","offset":{"amount":2,"unit":"hours","direction":"after"}}}]}`

// bookingOf is the answer to a change of a booking.
type bookingOf struct {
	Reference string
	Revision  int
	Status    string
	Answer    *givenOf
	Kept      []string
	Changed   bool
	Phone     string
	ID        []string
	Planned   []string
	Moved     []struct {
		From, To string
		Planned  string `json:"invio_previsto"`
	}
	Cancelled []string
	InFlight  []string `json:"in_flight"`
	Skipped   []struct{ Step int }
	Used      int `json:"daily_api_used"`
	Messages  []struct {
		ID, Step, Occurrence, Stato string
	}
	History []struct {
		By   string
		What []string
	}
}

// booked is a client with the sequence visit.
type booked struct {
	*service
	clientAccount
	sequence string
	heard    string // the network's id of the reply that was heard last
}

func newBooked(t *testing.T, s *service) *booked {
	t.Helper()
	b := &booked{service: s, clientAccount: s.newAccount("visite@x", "full")}
	var made struct{ ID string }
	s.must(&made, "POST", "/api/sequences", b.Key, visit)
	b.sequence = made.ID
	return b
}

// put changes a booking.
func (b *booked) put(reference, body string, header ...string) (x bookingOf) {
	b.t.Helper()
	b.must(&x, "PUT", "/api/bookings/"+reference, b.Key, body, header...)
	return x
}

// book makes a booking of Ada on 20 January 2027, 15:30.
func (b *booked) book(reference string) bookingOf {
	b.t.Helper()
	return b.put(reference, `{"sequence":"`+b.sequence+`","phone":"3331234567","nome":"Ada","appuntamento":"20/01/2027 15:30"}`)
}

func (b *booked) view(reference string) (x bookingOf) {
	b.t.Helper()
	b.must(&x, "GET", "/api/bookings/"+reference, b.Key, "")
	return x
}

// states returns the messages of a booking as "step state", without those of earlier occurrences that were taken back.
func (b *booked) states(reference string) (all []string) {
	b.t.Helper()
	for _, m := range b.view(reference).Messages {
		all = append(all, m.Step+" "+m.Stato)
	}
	return all
}

func (b *booked) want(what string, got, want any) {
	b.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		b.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// say joins values with spaces.
func say(values ...any) string { return strings.TrimSpace(fmt.Sprintln(values...)) }

// sendNow lets a message leave.
func (b *booked) sendNow(id string) {
	b.t.Helper()
	b.end(b.clientAccount, id, b.details(b.Key, id)[0].Telefono, sent)
}

func TestBookings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *booked){
		"Moves": bookingMoves, "Statuses": bookingStatuses, "NothingTwice": bookingNothingTwice, "Overdue": bookingOverdue, "InFlight": bookingInFlight,
		"ByHand": bookingByHand, "OtherPerson": bookingOtherPerson, "Doors": bookingDoors, "AsOf": bookingAsOf, "Refusals": bookingRefusals,
		"DryRun": bookingDryRun, "Lists": bookingLists, "Erased": bookingErased, "Blanked": bookingBlanked, "DeletedSequence": bookingDeletedSequence, "StepIDs": bookingStepIDs, "Cap": bookingCap,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			databases(t, options{}, func(t *testing.T, s *service) { test(t, newBooked(t, s)) })
		})
	}
}

// A moved appointment is told once, as it ended, or not at all.
func bookingMoves(_ *testing.T, b *booked) {
	first := b.book("p1")
	b.want("planned", len(first.Planned), 2)
	b.sendNow(first.ID[0])
	moved := b.put("p1", `{"appuntamento":"21/01/2027 15:30"}`)
	b.want("moved", say(len(moved.Moved), moved.Moved[0].From, moved.Moved[0].Planned), say(1, first.ID[1], "2027-01-20T14:30:00.000000Z"))
	b.want("what was", b.details(b.Key, first.ID[1])[0].Risposta, "Appuntamento spostato")
	b.want("what is", b.states("p1"), "[0 COMPLETED 1 CANCELLED 1 PENDING 2 PENDING]")

	// back within the minute: the notice is taken back, and the first occurrence gets another message
	back := b.put("p1", `{"appuntamento":"20/01/2027 15:30"}`)
	b.want("planned again", len(back.Planned), 1)
	b.want("nothing to tell", b.states("p1"), "[0 COMPLETED 1 CANCELLED 2 CANCELLED 1 PENDING]")

	// two moves within the minute: one notice, about the last date
	b.put("p1", `{"appuntamento":"22/01/2027 15:30"}`)
	last := b.put("p1", `{"appuntamento":"23/01/2027 15:30"}`)
	notices := slices.DeleteFunc(slices.Clone(last.ID), func(id string) bool { return !strings.HasPrefix(b.details(b.Key, id)[0].Contenuto, "Spostato") })
	b.want("notices", len(notices), 1)
	b.want("the notice", b.details(b.Key, notices[0])[0].Contenuto, "Spostato a 23/01/2027 15:30")

	// after the notice has left, the first date is news
	b.clock.Advance(2 * time.Minute)
	b.sendNow(notices[0])
	again := b.put("p1", `{"appuntamento":"20/01/2027 15:30"}`)
	b.want("a new notice", len(again.Planned), 2)
	for i, id := range again.Planned {
		if len(again.Moved) > 0 && again.Moved[0].To == id {
			continue
		}
		b.want("the new notice", b.details(b.Key, again.Planned[i])[0].Contenuto, "Spostato a 20/01/2027 15:30")
	}
}

// Nobody has confirmed Tuesday by confirming Friday, and no door resurrects what another cancelled.
func bookingStatuses(_ *testing.T, b *booked) {
	b.book("p1")
	b.want("confirmed", b.put("p1", `{"status":"confirmed"}`).Status, "confirmed")
	b.want("open is no way back from it", say(b.put("p1", `{"status":"open"}`).Kept, b.view("p1").Status), "[status] confirmed")
	b.want("moved", b.put("p1", `{"appuntamento":"21/01/2027 15:30"}`).Status, "open")
	b.want("moved and confirmed", b.put("p1", `{"appuntamento":"22/01/2027 15:30","status":"confirmed"}`).Status, "confirmed")
	b.want("arrived", b.put("p1", `{"status":"arrived"}`).Status, "arrived")
	b.want("arrived, of a past date", b.put("p1", `{"appuntamento":"19/11/2026 15:30"}`).Status, "arrived")
	b.want("arrived, of a date to come", b.put("p1", `{"appuntamento":"23/01/2027 15:30"}`).Status, "open")
	var cancelled bookingOf
	b.must(&cancelled, "DELETE", "/api/bookings/p1?silent=true", b.Key, "")
	b.want("silent", say(cancelled.Status, len(cancelled.ID)), "cancelled 0")
	b.want("reopened by the same door", b.put("p1", `{"status":"open"}`).Status, "open")
	b.must(nil, "POST", "/api/stop/"+b.sequence, b.Key, `{"phone":"3331234567"}`)
	b.want("stopped", b.view("p1").Status, "cancelled")
	kept := b.put("p1", `{"status":"open","nome":"Ada R."}`)
	b.want("kept", say(kept.Kept, kept.Status, kept.Changed, len(kept.ID)), "[status] cancelled true 0")
	tag := b.must(nil, "GET", "/api/bookings/p1", b.Key, "").header.Get("ETag")
	b.want("who has seen it may", b.put("p1", `{"status":"open"}`, "If-Match", tag).Status, "open")
	if got := b.call("PUT", "/api/bookings/p1", b.Key, `{"status":"cancelled"}`, "If-Match", tag); got.status != 412 {
		b.t.Errorf("an old tag: %d %s", got.status, got.body)
	}
	history := b.view("p1").History
	b.want("history", say(history[0], history[1], history[len(history)-1]), "{api [created]} {api [confirmed]} {api [reopened]}")
}

// What has left is not repeated, and an equal message stays.
func bookingNothingTwice(_ *testing.T, b *booked) {
	first := b.book("p1")
	b.sendNow(first.ID[0])
	same := b.book("p1")
	b.want("the same again", say(same.Changed, same.ID, same.Used), say(false, first.ID[1:], first.Used))
	named := b.put("p1", `{"nome":"Ada Rossi"}`)
	b.want("a corrected name", say(named.Moved[0].From, len(named.Planned), named.ID), say(first.ID[1], 1, named.Planned))
	b.want("what was", b.details(b.Key, first.ID[1])[0].Stato, "RESCHEDULED")
	b.want("the text", b.details(b.Key, named.ID[0])[0].Contenuto, "Ada Rossi, ti aspettiamo 20/01/2027 15:30")
	unused := b.put("p1", `{"note":"non serve a nessun passo"}`)
	b.want("an unused field", say(unused.Changed, unused.ID), say(true, named.ID))
	if got := b.refusedAt(409, "POST", "/api/messages/reschedule/all", b.Key, `{"id":["`+first.ID[1]+`"]}`, "body.id[0]").body; !strings.Contains(got, named.ID[0]) {
		b.t.Errorf("the successor is not named: %s", got)
	}
	b.must(nil, "POST", "/api/messages/cancel", b.Key, `{"id":["`+named.ID[0]+`"]}`)
	b.want("a person cancelled it", len(b.put("p1", `{"nome":"Ada"}`).ID), 0)
}

// An overdue message is not lost because a name was corrected.
func bookingOverdue(_ *testing.T, b *booked) {
	first := b.book("p1")
	b.sendNow(first.ID[0])
	before := b.details(b.Key, first.ID[1])[0]
	b.clock.Set(time.Date(2027, 1, 19, 16, 0, 0, 0, time.UTC))
	named := b.put("p1", `{"nome":"Ada Rossi"}`)
	b.want("planned", say(len(named.Planned), len(named.Skipped)), "1 0")
	b.want("its moment", b.details(b.Key, named.ID[0])[0].Planned, before.Planned)
}

func bookingInFlight(_ *testing.T, b *booked) {
	first := b.book("p1")
	welcome := first.ID[0]
	item, _ := b.begin(b.clientAccount, welcome, "+393331234567")
	still := b.put("p1", `{"nome":"Ada Rossi"}`)
	b.want("still wanted", say(still.InFlight, len(still.Moved)), say([]string{welcome}, 1))
	gone := bookingOf{}
	b.must(&gone, "DELETE", "/api/bookings/p1", b.Key, "")
	b.want("not wanted any more", gone.InFlight, []string{welcome})
	b.record(puntuale.Outcome{Verdict: puntuale.Retry, Reason: puntuale.Because(puntuale.ReasonUnreachable), Next: b.clock.Now().Add(time.Minute)}, item)
	b.want("it is not tried again", b.details(b.Key, welcome)[0].Stato, "CANCELLED")
	b.want("reopened", len(b.put("p1", `{"status":"open"}`).Planned), 2)
}

// What a person moved by hand is never replaced, and only a cancellation, another date or another person ends it.
func bookingByHand(_ *testing.T, b *booked) {
	first := b.book("p1")
	b.sendNow(first.ID[0])
	var resent struct{ ID []string }
	b.must(&resent, "POST", "/api/messages/reschedule/all", b.Key, `{"id":["`+first.ID[1]+`"],"date":"2027-01-18","time":"10:00"}`)
	hand := resent.ID[0]
	named := b.put("p1", `{"nome":"Ada Rossi"}`)
	b.want("stays", say(named.ID, len(named.Planned)), say([]string{hand}, 0))
	moved := b.put("p1", `{"appuntamento":"25/01/2027 15:30"}`)
	b.want("another date", moved.Moved[0].From, hand)
	b.want("what was", b.details(b.Key, hand)[0].Stato, "CANCELLED")
}

// The appointment is another person's: the former one gets nothing any more, and the right one what is still to come.
func bookingOtherPerson(_ *testing.T, b *booked) {
	first := b.book("p1")
	b.sendNow(first.ID[0])
	b.clock.Advance(time.Hour)
	bea := b.put("p1", `{"phone":"3339876543","nome":"Bea"}`)
	b.want("what was", b.details(b.Key, first.ID[1])[0].Stato, "CANCELLED")
	b.want("to whom", say(len(bea.Planned), b.details(b.Key, bea.Planned[0])[0].Telefono, len(bea.Skipped)), "1 +393339876543 1")
	b.want("the person of another form of the number", len(b.put("p1", `{"phone":"+39 333 987 6543"}`).Planned), 0)
}

// The contract's start and stop are doors to the same booking.
func bookingDoors(_ *testing.T, b *booked) {
	start := func(body string) (run started) {
		b.t.Helper()
		b.must(&run, "POST", "/api/start/"+b.sequence, b.Key, body)
		return run
	}
	ada := `{"phone":"3331234567","nome":"Ada","appuntamento":"20/01/2027 15:30"`
	run := start(ada + `,"reference":"p1"}`)
	b.want("started", len(run.ID), 2)
	b.want("the same start counts, and plans nothing", start(ada+`,"reference":"p1"}`).ID, run.ID)
	moved := start(`{"phone":"3331234567","nome":"Ada","appuntamento":"21/01/2027 15:30","reference":"p1"}`)
	b.want("moved", b.details(b.Key, run.ID[1])[0].Stato, "CANCELLED")
	b.want("pending", len(moved.ID), 3)
	two := start(ada + `}`)
	b.want("without a reference", say(b.view("run:"+two.ID[0]).Revision), "1")
	var stopped started
	b.must(&stopped, "POST", "/api/stop/"+b.sequence, b.Key, `{"phone":"3331234567","reference":"p1"}`)
	b.want("stopped", stopped.ID, slices.Sorted(slices.Values(moved.ID)))
	b.want("the other booking", b.view("run:"+two.ID[0]).Status, "open")
	b.want("reopened", say(len(start(ada+`,"reference":"p1"}`).ID), b.view("p1").Status), "2 open")
	var other struct{ ID string }
	b.must(&other, "POST", "/api/sequences", b.Key, visit)
	if got := b.call("POST", "/api/start/"+other.ID, b.Key, ada+`,"reference":"p1"}`); got.status != 409 {
		b.t.Errorf("another sequence's booking: %d %s", got.status, got.body)
	}
	b.must(nil, "POST", "/api/contacts/erase", b.Key, `{"phone":"3331234567"}`)
	once := func() response {
		return b.must(nil, "POST", "/api/start/"+b.sequence, b.Key, `{"phone":"3335550000","nome":"Cleo","appuntamento":"20/01/2027 15:30"}`, "Idempotency-Key", "k1")
	}
	if first, again := once(), once(); first.body != again.body || again.header.Get("Idempotent-Replayed") != "true" {
		b.t.Errorf("a repeat: %s, then %s", first.body, again.body)
	}
	ended := func() (run started) {
		b.must(&run, "POST", "/api/start/"+b.sequence, b.Key, `{"phone":"3335550001","nome":"Dea","appuntamento":"20/01/2027 15:30","reference":"p9","status":"cancelled"}`)
		return run
	}
	ended()
	b.want("a start that cancels does so once", say(ended().ID, b.view("p9").Revision), say(ended().ID, b.view("p9").Revision))
	b.want("and changes nothing more", b.view("p9").Status, "cancelled")
	b.refusedAt(422, "POST", "/api/start/"+b.sequence+"?if_running=skip", b.Key, ada+`}`, "query.if_running")
}

func bookingAsOf(_ *testing.T, b *booked) {
	b.book("p1")
	b.want("stored", b.put("p1", `{"as_of":7}`).Changed, false)
	if got := b.call("PUT", "/api/bookings/p1", b.Key, `{"as_of":6,"appuntamento":"21/01/2027 15:30"}`); got.status != 409 || !strings.Contains(got.body, `"code":"stale"`) {
		b.t.Errorf("older: %d %s", got.status, got.body)
	}
	b.want("equal", b.put("p1", `{"as_of":"7","appuntamento":"21/01/2027 15:30"}`).Changed, true)
	b.refusedAt(422, "PUT", "/api/bookings/p1", b.Key, `{"as_of":"2027-01-01T10:00"}`, "body.as_of")
	b.refusedAt(422, "PUT", "/api/bookings/p1", b.Key, `{"as_of":"2027-01-01"}`, "body.as_of")
	b.book("p2")
	b.put("p2", `{"as_of":"2026-11-20T10:00:00+01:00"}`)
	if got := b.call("PUT", "/api/bookings/p2", b.Key, `{"as_of":"2026-11-20T08:59:59Z"}`); got.status != 409 {
		b.t.Errorf("older: %d %s", got.status, got.body)
	}
}

func bookingRefusals(_ *testing.T, b *booked) {
	body := `{"sequence":"` + b.sequence + `","phone":"3331234567","nome":"Ada","appuntamento":"20/01/2027 15:30"`
	plain := b.newSequence(b.Key, stepDate)
	for _, row := range []struct {
		body string
		at   []string
	}{
		{`{}`, []string{"body.sequence", "body.phone"}},
		{`{"sequence":"` + b.sequence + `","phone":"3331234567"}`, []string{"body.appuntamento"}},
		{body + `,"appuntamento2":1,"status":"boh"}`, []string{"body.status"}},
		{`{"sequence":"` + b.sequence + `","phone":"1","nome":"Ada","appuntamento":"domani"}`, []string{"body.phone", "body.appuntamento"}},
		{`{"sequence":"` + plain + `","phone":"3331234567","quando":"2027-01-20 10:00"}`, []string{"body.sequence"}},
		{`{"sequence":"999","phone":"3331234567"}`, []string{"body.sequence"}},
		{body + `,"id_sessione":"999"}`, []string{"body.id_sessione"}},
		{body + `,"timezone":"Marte"}`, []string{"body.timezone"}},
	} {
		b.refusedAt(422, "PUT", "/api/bookings/x1", b.Key, row.body, row.at...)
	}
	b.refusedAt(422, "PUT", "/api/bookings/run:1", b.Key, body+`}`, "path.reference")
	b.refusedAt(422, "PUT", "/api/bookings/"+strings.Repeat("x", 256), b.Key, body+`}`, "path.reference")
	b.want("nothing is stored", b.must(nil, "GET", "/api/bookings", b.Key, "").body, `{"bookings":[],"next_cursor":null}`)
	for _, row := range []struct{ change, at string }{
		{`"booking":{"date":"phone"}`, "body.booking.date"},
		{`"booking":{"date":"quando"},"if_running":"skip"`, "body.if_running"},
		{`"booking":{"date":"quando"},"stop_on_reply":true`, "body.stop_on_reply"},
		{`"booking":{"date":"status"}`, "body.booking.date"},
		{`"booking":{"date":""}`, "body.booking.date"},
	} {
		b.refusedAt(422, "POST", "/api/sequences", b.Key, `{"name":"x",`+row.change+`,"steps":[{"text":"a","timing":{"anchor":"start","offset":{"amount":0}}}]}`, row.at)
	}
	for _, step := range []string{
		`{"text":"a","only_if":["open"],"timing":{"anchor":"start","offset":{"amount":0}}}`,
		`{"text":"a","timing":{"anchor":"booking.moved","offset":{"amount":0}}}`,
	} {
		if got := b.call("POST", "/api/sequences", b.Key, `{"name":"x","steps":[`+step+`]}`); got.status != 422 {
			b.t.Errorf("%s in an ordinary sequence: %d", step, got.status)
		}
	}
	// what starts sequences otherwise takes none for bookings, and a sequence that is used so cannot become one
	b.refusedAt(422, "PUT", "/api/session/"+b.Session+"/defaultSequence", b.Key, `{"start":"`+b.sequence+`","stop":""}`, "body.start")
	b.refusedAt(422, "POST", "/api/campaigns", b.Key, `{"name":"c","sequence":"`+b.sequence+`","purpose":"service"}`, "body.sequence")
	rule := `{"name":"r","trigger":{"kind":"reply"},"actions":[{"kind":"start","sequence":"%s"}]}`
	b.refusedAt(422, "POST", "/api/automations", b.Key, fmt.Sprintf(rule, b.sequence), "body.actions[0].sequence")
	b.must(nil, "POST", "/api/automations", b.Key, fmt.Sprintf(rule, plain))
	if got := b.call("PUT", "/api/sequences/"+plain, b.Key, visit); got.status != 409 {
		b.t.Errorf("a rule's sequence became one for bookings: %d %s", got.status, got.body)
	}
}

func bookingDryRun(_ *testing.T, b *booked) {
	first := b.book("p1")
	var dry struct {
		bookingOf
		Preview []struct {
			Contenuto string
		}
	}
	b.must(&dry, "PUT", "/api/bookings/p1?dry_run=true", b.Key, `{"appuntamento":"21/01/2027 15:30"}`)
	b.want("what would be", say(dry.Changed, len(dry.Moved), dry.Moved[0].From, len(dry.Preview), dry.Preview[1].Contenuto), say(true, 1, first.ID[1], 2, "Spostato a 21/01/2027 15:30"))
	after := b.view("p1")
	b.want("nothing changed", say(after.Revision, b.put("p1", `{}`).Used), say(1, first.Used))
	var preview struct{ Messages []struct{ Contenuto string } }
	b.must(&preview, "POST", "/api/start/"+b.sequence+"?dry_run=true", b.Key, `{"phone":"3331234567","nome":"Ada","appuntamento":"21/01/2027 15:30","reference":"p1"}`)
	b.want("a start's preview", len(preview.Messages), 2)
}

func bookingLists(_ *testing.T, b *booked) {
	b.must(nil, "PUT", "/api/bookings?reference=a%2Fb", b.Key, `{"sequence":"`+b.sequence+`","phone":"3331234567","nome":"Ada","appuntamento":"20/01/2027 15:30"}`)
	for i, day := range []string{"19/01/2027 23:59", "20/01/2027 00:00", "20/01/2027 23:59", "21/01/2027 00:00"} {
		b.put(fmt.Sprintf("p%d", i), `{"sequence":"`+b.sequence+`","phone":"333123456`+say(i)+`","nome":"Ugo n`+say(i)+`","appuntamento":"`+day+`"}`)
	}
	b.put("p2", `{"status":"confirmed"}`)
	list := func(query string) (references []string) {
		b.t.Helper()
		for cursor := ""; ; {
			var page struct {
				Bookings []bookingOf
				Next     string `json:"next_cursor"`
			}
			b.must(&page, "GET", "/api/bookings?limit=1"+query+"&cursor="+cursor, b.Key, "")
			for _, x := range page.Bookings {
				references = append(references, x.Reference)
			}
			if cursor = page.Next; cursor == "" {
				return references
			}
		}
	}
	b.want("a day", list("&start=2027-01-20&end=2027-01-20"), "[p1 a/b p2]")
	b.want("confirmed", list("&status=confirmed,arrived"), "[p2]")
	b.want("a person", list("&phone=333%201234563"), "[p3]")
	b.want("words", list("&text=N3%20ugo"), "[p3]")
	b.want("another sequence", list("&sequence=99"), "[]")
	b.want("one with a slash", len(list("&reference=a%2Fb")), 1)
}

func bookingErased(_ *testing.T, b *booked) {
	first := b.book("p1")
	b.must(nil, "POST", "/api/contacts/erase", b.Key, `{"phone":"3331234567"}`)
	if got := b.call("GET", "/api/bookings/p1", b.Key, ""); got.status != 404 {
		b.t.Errorf("after the erasure: %d %s", got.status, got.body)
	}
	b.want("listed", b.must(nil, "GET", "/api/bookings", b.Key, "").body, `{"bookings":[],"next_cursor":null}`)
	b.want("its messages", b.details(b.Key, first.ID[1])[0].Stato, "CANCELLED")
	b.want("what is left of the person", b.found("3331234567", "Ada"), "[]")
	b.want("a new one", len(b.book("p1").ID), 2)

	// a person who is erased, has the appointment again, and is erased again
	b.put("p1", `{"phone":"3339876543"}`)
	for range 2 {
		b.must(nil, "POST", "/api/contacts/erase", b.Key, `{"phone":"3331234567"}`)
		b.put("p1", `{"phone":"3331234567"}`)
		b.put("p1", `{"phone":"3339876543"}`)
	}
	b.must(nil, "POST", "/api/contacts/erase", b.Key, `{"phone":"3331234567"}`)
}

// After the time for which contents are kept, nothing that the caller wrote about the person is left.
func bookingBlanked(_ *testing.T, b *booked) {
	first := b.book("p1")
	b.sendNow(first.ID[0])
	b.must(nil, "DELETE", "/api/bookings/p1?silent=true", b.Key, "")
	b.clock.Set(time.Date(2028, 12, 1, 0, 0, 0, 0, time.UTC))
	b.maintain()
	b.want("kept", len(b.found("Ada")) > 0, true)
	b.clock.Set(time.Date(2029, 2, 1, 0, 0, 0, 0, time.UTC))
	b.maintain()
	b.want("what is left", b.found("Ada"), "[]")
	b.want("the booking", say(b.view("p1").Status, b.view("p1").Revision), "cancelled 2")
}

// A booking of a deleted sequence can only be cancelled.
func bookingDeletedSequence(_ *testing.T, b *booked) {
	first := b.book("p1")
	b.must(nil, "DELETE", "/api/sequences/"+b.sequence+"?pending=keep", b.Key, "")
	if got := b.call("PUT", "/api/bookings/p1", b.Key, `{"appuntamento":"21/01/2027 15:30"}`); got.status != 404 {
		b.t.Errorf("moved: %d %s", got.status, got.body)
	}
	var gone bookingOf
	b.must(&gone, "DELETE", "/api/bookings/p1", b.Key, "")
	b.want("cancelled", gone.Cancelled, first.ID)
	var other struct{ ID string }
	b.must(&other, "POST", "/api/sequences", b.Key, visit)
	b.put("p2", `{"sequence":"`+other.ID+`","phone":"3331234567","nome":"Ada","appuntamento":"20/01/2027 15:30"}`)
	b.refusedAt(422, "PUT", "/api/bookings/p2", b.Key, `{"sequence":"999999","status":"cancelled"}`, "body.sequence")
	if got := b.call("PUT", "/api/sequences/"+other.ID, b.Key, strings.Replace(visit, `"booking":{"date":"appuntamento"},`, "", 1)); got.status == 200 {
		b.t.Errorf("a sequence with bookings became an ordinary one: %s", got.body)
	}
	b.must(nil, "PUT", "/api/sequences/"+other.ID, b.Key, strings.ReplaceAll(visit, "appuntamento", "giorno"))
	b.must(&gone, "DELETE", "/api/bookings/p2", b.Key, "")
	b.want("cancelled under another name of the date", gone.Status, "cancelled")
}

// The ids of steps stay with the steps, so an inserted step does not repeat what was sent.
func bookingStepIDs(_ *testing.T, b *booked) {
	first := b.book("p1")
	b.sendNow(first.ID[0])
	inserted := strings.Replace(visit, `"steps":[`, `"steps":[{"text":"Nuovo","timing":{"anchor":"appuntamento","offset":{"amount":3,"unit":"days","direction":"before"}}},`, 1)
	var steps struct{ Steps []struct{ ID string } }
	b.must(&steps, "PUT", "/api/sequences/"+b.sequence, b.Key, inserted)
	b.want("ids", steps.Steps, "[{6} {0} {1} {2} {3} {4} {5}]")
	named := b.put("p1", `{"nome":"Ada Rossi"}`)
	b.want("planned", len(named.Planned), 2)
	b.want("messages", b.states("p1"), "[0 COMPLETED 6 PENDING 1 PENDING]")
	b.refusedAt(422, "PUT", "/api/sequences/"+b.sequence, b.Key, strings.Replace(visit, `{"text":"Benvenuta`, `{"id":"99","text":"Benvenuta`, 1), "body.steps[0].id")
}

// A put that changes nothing does not count, and a cancellation is never refused.
func bookingCap(_ *testing.T, b *booked) {
	first := b.book("p1")
	b.must(nil, "PATCH", "/api/client/"+b.ID, b.partner, fmt.Sprintf(`{"daily_api_cap":%d}`, first.Used))
	if got := b.call("PUT", "/api/bookings/p1", b.Key, `{"nome":"Bea"}`); got.status != 429 {
		b.t.Errorf("over the cap: %d %s", got.status, got.body)
	}
	b.want("unchanged", b.put("p1", `{"nome":"Ada"}`).Changed, false)
	var gone bookingOf
	b.must(&gone, "DELETE", "/api/bookings/p1", b.Key, "")
	b.want("cancelled", say(gone.Status, gone.Used), fmt.Sprintf("cancelled %d", first.Used+1))
}
