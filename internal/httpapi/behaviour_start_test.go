package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"puntuale"
)

func behaviourSkipped(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	past := `{"text":"x","timing":{"anchor":"quando","offset":{"amount":1,"unit":"hours","direction":"before"}}}`
	id := s.newSequence(a.Key, stepLater+","+past)
	for when, want := range map[string]string{
		"20/11/2026 11:26":    `,"daily_api_used"`, // a time four minutes ago is treated as now
		"20/11/2026 11:25":    `"skipped":[{"step":1,"moment":"2026-11-20T09:25:00.000000Z","reason":`,
		"2026-11-20T10:00:00": `"skipped":[{"step":1,"moment":"2026-11-20T08:00:00.000000Z","reason":`,
	} {
		got := s.must(nil, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t","quando":"`+when+`"}`)
		if !strings.Contains(got.body, want) || strings.Contains(want, "skipped") != strings.Contains(got.body, "skipped") {
			t.Errorf("%s: %s", when, got.body)
		}
	}
	all := s.newSequence(a.Key, past)
	got := s.must(nil, "POST", "/api/start/"+all, a.Key, `{"phone":"3331234567","quando":"2026-11-20"}`)
	if !strings.HasPrefix(got.body, `{"id":[],"daily_api_cap":1000000,"daily_api_used":4,`) || !strings.Contains(got.body, `"skipped":[{"step":0`) {
		t.Errorf("all left out: %s", got.body)
	}
	now := s.newSequence(a.Key, strings.Replace(past, `"timing":{`, `"timing":{"if_past":"send_now",`, 1))
	var run started
	s.must(&run, "POST", "/api/start/"+now, a.Key, `{"phone":"3331234567","quando":"20/11/2026 11:00"}`)
	if d := s.details(a.Key, run.ID[0])[0]; *d.Desired != "2026-11-20T09:00:00.000000Z" || d.Planned != "2026-11-20T09:30:00.123456Z" {
		t.Errorf("send_now: %+v", d)
	}
	reject := s.newSequence(a.Key, stepLater+","+strings.Replace(past, `"timing":{`, `"timing":{"if_past":"reject",`, 1))
	s.refusedAt(422, "POST", "/api/start/"+reject, a.Key, `{"phone":"3331234567","testo":"t","quando":"2026-11-20"}`, "steps[1].timing")
}

// The due time of a step before a date is before the date. If possible, it is at the step's own time of day. Jitter
// does not change the order of messages.
func behaviourBefore(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	planned := func(steps, when string) string {
		t.Helper()
		return s.must(nil, "POST", "/api/start/"+s.newSequence(a.Key, steps)+"?dry_run=true", a.Key, `{"phone":"(+39) 333 1234567","quando":"`+when+`"}`).body
	}
	const office = `,"window":{"weekdays":[1,2,3,4,5],"from":"09:00","to":"19:00"}}}`
	morning := `{"text":"x","timing":{"anchor":"quando","offset":{"amount":0,"unit":"days","direction":"before"},"at":"09:30"` + office
	if got := planned(morning, "2026-11-29T15:00"); !strings.Contains(got, `"invio_previsto":"2026-11-27T08:30:00.000000Z"`) {
		t.Errorf("the morning of a Sunday: %s", got)
	}
	evening := `{"text":"x","timing":{"anchor":"quando","offset":{"amount":1,"unit":"days","direction":"before"},"at":"18:00"` + office
	if got := planned(evening, "2026-11-29T10:00"); !strings.Contains(got, `"invio_previsto":"2026-11-27T17:00:00.000000Z"`) {
		t.Errorf("the evening before a Sunday: %s", got)
	}
	jitter := `{"text":"x","timing":{"anchor":"start","offset":{"amount":0},"jitter":3600}},{"text":"y","timing":{"anchor":"start","offset":{"amount":10,"unit":"minutes"}}}`
	if got := planned(jitter, ""); strings.Count(got, `"invio_previsto_max":"2026-11-20T09:40:00.123456Z"`) != 1 {
		t.Errorf("an hour of jitter ten minutes before another step: %s", got)
	}
	sequence := `{"name":"x","steps":[` + stepNow + `,{"text":"%s","timing":{"anchor":"start","offset":{"amount":%d,"unit":"days","direction":"%s"}}}]}`
	s.refusedAt(422, "POST", "/api/sequences", a.Key, fmt.Sprintf(sequence, "x", 0, "before"), "body.steps[1].timing.offset.direction")
	s.refusedAt(422, "POST", "/api/sequences", a.Key, fmt.Sprintf(sequence, "{{n|{x}}}", 1, "after"), "body.steps[1].text")
	s.refusedAt(422, "POST", "/api/start/"+s.newSequence(a.Key, jitter), a.Key, `{"phone":"(+39) +333 1234567"}`, "body.phone")
}

// A dry run shows the earliest and the latest due time that jitter allows. It refuses the same calls as a start.
func behaviourDryRun(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, `{"text":"{{nome}}","media":"{{foto|}}","timing":{"anchor":"start","offset":{"amount":1,"unit":"hours"},"jitter":600}},`+stepDate)
	start := "/api/start/" + id
	got := s.must(nil, "POST", start+"?dry_run=true", a.Key, `{"phone":"3331234567","nome":"{{nome}}","foto":"https://x.it/a.png","quando":"2026-12-01T10:00"}`)
	want := `{"messages":[{"step":0,"invio_desiderato":"2026-11-20T10:30:00.123456Z","invio_previsto":"2026-11-20T10:30:00.123456Z",` +
		`"contenuto":"{{nome}}","media_url":"https://x.it/a.png","nome_media":"a.png","latitudine":null,"longitudine":null,"invio_previsto_max":"2026-11-20T10:40:00.123456Z"},` +
		`{"step":1,"invio_desiderato":"2026-11-30T17:00:00.000000Z","invio_previsto":"2026-11-30T17:00:00.000000Z","contenuto":"Il martedì 1 dicembre alle 10:00",` +
		`"media_url":null,"nome_media":null,"latitudine":null,"longitudine":null}],"skipped":[]}`
	if got.body != want {
		t.Errorf("%s\nwant\n%s", got.body, want)
	}
	for _, body := range []string{
		`{"phone":"3331234567"}`, `{"phone":"x","nome":"A","quando":"2026-12-01T10:00"}`, `{"phone":"3331234567","nome":[],"quando":"ieri"}`,
		`{"phone":"3331234567","nome":"A","foto":"https://x.it/a.exe","quando":"2036-12-01T10:00"}`,
	} {
		really, dry := s.call("POST", start, a.Key, body), s.call("POST", start+"?dry_run=true", a.Key, body)
		if really.status != 422 || dry.status != 422 || really.body != dry.body {
			t.Errorf("%s:\n%d %s\n%d %s", body, really.status, really.body, dry.status, dry.body)
		}
	}
	if got := messages(t, s.must(nil, "GET", "/api/messages", a.Key, "")); len(got) != 0 {
		t.Errorf("%d messages are stored", len(got))
	}
}

// A start freezes the session, the content, the window and the names. Two starts make two runs.
func behaviourFrozen(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	var second struct{ ID string }
	s.must(&second, "POST", "/api/sessions", a.Key, `{"name":"Seconda","connection_type":"Official"}`)
	s.must(nil, "POST", "/api/templates", a.Key, `{"name":"Saluto","text":"Ciao"}`)
	step := `{"template":"Saluto","timing":{"anchor":"start","offset":{"amount":1,"unit":"hours"}}}`
	id := s.newSequence(a.Key, step)
	var run, again started
	s.wakeups.drain()
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567"}`)
	s.must(nil, "PUT", "/api/sequences/"+id, a.Key, `{"name":"Altra","id_sessione":"`+second.ID+`","steps":[`+strings.Replace(stepNow, "Ciao", "Salve", 1)+`]}`)
	s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"name":"Nuovo nome"}`)
	s.must(&again, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567"}`)
	if wakeups := s.wakeups.drain(); len(wakeups) != 2 || wakeups[0].session.String() != a.Session || wakeups[1].session.String() != second.ID {
		t.Errorf("hints %v", wakeups)
	}
	d := s.details(a.Key, run.ID[0], again.ID[0])
	if d[0].Cliente != "Studio Bianchi" || *d[0].Sequenza != "Promemoria" || *d[0].Template != "Saluto" || d[0].Contenuto != "Ciao" {
		t.Errorf("the first run: %+v", d[0])
	}
	if d[1].Cliente != "Nuovo nome" || *d[1].Sequenza != "Altra" || d[1].Template != nil || d[1].Contenuto != "Salve amico" {
		t.Errorf("the second run: %+v", d[1])
	}
	s.must(nil, "DELETE", "/api/sequences/"+id+"?pending=keep", a.Key, "")
	if kept := s.details(a.Key, run.ID[0])[0]; *kept.Sequenza != "Promemoria" || kept.Stato != "PENDING" {
		t.Errorf("of a deleted sequence: %+v", kept)
	}
	s.refusedAt(404, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567"}`)
	if got := s.must(nil, "POST", "/api/stop/"+id, a.Key, `{"phone":"3331234567"}`); !strings.HasPrefix(got.body, `{"message":"2 messaggi annullati"`) {
		t.Error(got.body)
	}
}

// The details show a message in flight, in retry, uncertain, failed and sent.
func behaviourDetails(t *testing.T, s *service) {
	a := s.newAccount("a@x", "test")
	id := s.newSequence(a.Key, stepNow)
	begin := func() (string, puntuale.ClaimItem) {
		var run started
		s.must(&run, "POST", "/api/start/"+id, a.Key, "\ufeff"+` {"phone": 3331234567}`)
		item, granted := s.begin(a, run.ID[0], "+393331234567")
		if granted != puntuale.ClaimGranted {
			t.Fatal(granted)
		}
		return run.ID[0], item
	}
	show := func(id string) detail { return s.details(a.Key, id)[0] }
	credits := func(want string) {
		t.Helper()
		if got := s.must(nil, "GET", "/api/client/"+a.ID+"/snapshot", s.partner, ""); !strings.Contains(got.body, `"credits":"`+want+`"`) {
			t.Errorf("want %s: %s", want, got.body)
		}
	}
	const accepted = "2026-11-20T09:30:00.123456Z"
	// A message in flight is PENDING. A message in retry is also PENDING. A retry changes invio_previsto.
	message, item := begin()
	if d := show(message); d.Stato != "PENDING" || d.Risposta != "In attesa di invio" || d.Left != nil || d.Detail != nil || d.Planned != accepted ||
		d.Richiesta != ` {"phone": 3331234567}` {
		t.Errorf("in flight: %+v", d)
	}
	s.record(puntuale.Outcome{Verdict: puntuale.Retry, Next: s.clock.Now().Add(5 * time.Second), Reason: puntuale.Quoted("Occupato"), Detail: puntuale.Quoted("503"), Failed: true}, item)
	if d := show(message); d.Stato != "PENDING" || d.Risposta != "In attesa di invio" || d.Planned != "2026-11-20T09:30:05.123456Z" || *d.Detail != "503" || d.Ricezione != accepted {
		t.Errorf("in retry: %+v", d)
	}
	credits("100")
	// An uncertain message is PENDING, and its detail says that it is uncertain. It cannot be cancelled. Its credit
	// stays reserved.
	message, item = begin()
	s.record(puntuale.Outcome{Verdict: puntuale.Uncertain, Next: s.clock.Now().Add(24 * time.Hour), Detail: puntuale.Quoted("esito incerto: la rete potrebbe averlo")}, item)
	if d := show(message); d.Stato != "PENDING" || !strings.Contains(*d.Detail, "esito incerto") || d.Planned != accepted || d.Left != nil {
		t.Errorf("uncertain: %+v", d)
	}
	credits("99")
	// The server settles the uncertain message as failed. A later delivery receipt changes the state.
	settle := []puntuale.Settlement{{MessageRef: item.MessageRef, Intent: s.network.tokens[item.ID], State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonUncertain)}}
	if err := s.network.queue.Settle(t.Context(), 0, s.clock.Now(), settle); err != nil {
		t.Fatal(err)
	}
	if d := show(message); d.Stato != "FAILED" || d.Risposta != "Esito incerto" || d.Left != nil {
		t.Errorf("given up: %+v", d)
	}
	s.clock.Advance(time.Hour)
	s.record(sent, item)
	if d := show(message); d.Stato != "COMPLETED" || d.Risposta != "Inviato" || *d.Left != accepted || *d.Detail != "wamid.1" {
		t.Errorf("corrected: %+v", d)
	}
	credits("99")
	s.clock.Advance(2 * time.Minute)
	period := "/api/messages/statusByPeriod?start=20/11/2026%20"
	if got := s.must(nil, "GET", period+"11:30&end=20/11/2026%2011:30", a.Key, ""); got.body != fmt.Sprintf(`{"messages":[{"message_id":%s,"status":"SENT","reason":null}]}`, message) {
		t.Errorf("at the later date: %s", got.body)
	}
	if got := s.must(nil, "GET", period+"10:30&end=20/11/2026%2010:30", a.Key, ""); got.body != `{"messages":[]}` {
		t.Errorf("at the earlier: %s", got.body)
	}
}

func behaviourCapDays(t *testing.T, s *service) {
	for kind, want := range map[string]string{"test": `"daily_api_cap":100,`, "baby": `"daily_api_cap":1000,`, "full": `"daily_api_cap":1000000,`} {
		a := s.newAccount(kind+"@x", kind)
		got := s.must(nil, "POST", "/api/start/"+s.newSequence(a.Key, stepNow), a.Key, `{"phone":"3331234567"}`)
		if !strings.Contains(got.body, want) {
			t.Errorf("%s: %s", kind, got.body)
		}
	}
	// The daily cap counts calls by the client's day. In New York a day ends five hours later than in Greenwich.
	a := s.newAccount("ny@x", "test")
	s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"timezone":"America/New_York","daily_api_cap":1}`)
	start := "/api/start/" + s.newSequence(a.Key, stepNow)
	s.must(nil, "POST", start, a.Key, `{"phone":"+393331234567"}`)
	s.clock.Set(time.Date(2026, 11, 21, 4, 59, 50, 0, time.UTC))
	if got := s.call("POST", start, a.Key, `{"phone":"+393331234567"}`); got.status != 429 || got.header.Get("Retry-After") != "10" {
		t.Errorf("%d %v", got.status, got.header)
	}
	s.clock.Advance(10 * time.Second)
	s.must(nil, "POST", start, a.Key, `{"phone":"+393331234567"}`)
}
