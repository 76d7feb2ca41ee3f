package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"puntuale"
)

const resendAll = "/api/messages/reschedule/all"

func behaviourResendMoments(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, stepLater)
	fresh := func(sequence string) string {
		var run started
		s.must(&run, "POST", "/api/start/"+sequence, a.Key, `{"phone":"3331234567","testo":"t"}`)
		return run.ID[0]
	}
	again := func(message, members string) detail {
		t.Helper()
		var run started
		s.must(&run, "POST", resendAll, a.Key, `{"id":["`+message+`"]`+members+`}`)
		return s.details(a.Key, run.ID[0])[0]
	}
	for _, c := range []struct{ members, desired, planned string }{
		{``, "", "2026-11-20T09:30:00.123456Z"},
		{`,"date":null`, "", "2026-11-20T09:30:00.123456Z"},
		{`,"date":"2026-11-20"`, "2026-11-20T10:30:00.123456Z", "2026-11-20T10:30:00.123456Z"},
		{`,"date":"2026-11-21"`, "2026-11-21T10:30:00.123456Z", "2026-11-21T10:30:00.123456Z"},
		{`,"date":" 2026-11-21\n","time":" 08:15"`, "2026-11-21T07:15:00.000000Z", "2026-11-21T07:15:00.000000Z"},
		{`,"date":"2026-11-20","time":"10:26"`, "2026-11-20T09:30:00.123456Z", "2026-11-20T09:30:00.123456Z"}, // four minutes in the past, so the message is due now
	} {
		d := again(fresh(id), c.members)
		if c.desired == "" && d.Desired != nil || c.desired != "" && *d.Desired != c.desired || d.Planned != c.planned {
			t.Errorf("%s: %+v", c.members, d)
		}
	}
	// The date is today and the time of day has passed, so the message is due now.
	early := fresh(id)
	s.clock.Advance(2 * time.Hour)
	if d := again(early, `,"date":"2026-11-20"`); d.Planned != "2026-11-20T11:30:00.123456Z" {
		t.Errorf("%+v", d)
	}
	// The window also applies to a resent message.
	windowed := fresh(s.newSequence(a.Key, `{"text":"x","timing":{"anchor":"start","offset":{"amount":0},"window":{"weekdays":[1],"from":"09:00","to":"10:00"}}}`))
	if d := again(windowed, `,"date":"2026-11-24","time":"12:00"`); *d.Desired != "2026-11-24T11:00:00.000000Z" || d.Planned != "2026-11-30T08:00:00.000000Z" {
		t.Errorf("%+v", d)
	}
	message := fresh(id)
	for members, at := range map[string]string{
		`,"date":"2026-11-19"`: "body.date", `,"date":"20/11/2026"`: "body.date", `,"date":"2032-01-01"`: "body.date",
		`,"date":"2026-11-21","time":"8:15"`: "body.time", `,"time":"08:15"`: "body.time", `,"date":"2026-11-20","time":"08:15"`: "body.time",
	} {
		s.refusedAt(422, "POST", resendAll, a.Key, `{"id":["`+message+`"]`+members+`}`, at)
	}
	if d := s.details(a.Key, message)[0]; d.Stato != "PENDING" {
		t.Errorf("a refused re-send changed %+v", d)
	}
	s.refusedAt(422, "POST", resendAll, a.Key, `{"date":"2026-11-21"}`, "body.id")
	s.refusedAt(422, "POST", resendAll, a.Key, `{"id":[]}`, "body.id")
	s.refusedAt(422, "POST", resendAll, a.Key, `{"id":[`+strings.TrimPrefix(strings.Repeat(",1", 1001), ",")+`]}`, "body.id")
	s.refusedAt(400, "POST", resendAll, a.Key, `{"id":"1"}`, "body.id")
}

func behaviourResendStates(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, stepNow+","+stepNow+","+stepNow+","+stepNow+","+stepLater)
	var run, again started
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t"}`)
	s.end(a, run.ID[0], "+393331234567", sent)
	s.end(a, run.ID[1], "+393331234567", refused)
	s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"3331234567"}`)
	s.begin(a, run.ID[2], "+393331234567")
	s.must(nil, "DELETE", "/api/blacklist/remove", a.Key, `{"phone":"3331234567"}`)
	// Either all messages are resent or none. The refusal names each unknown id.
	got := s.refusedAt(404, "POST", resendAll, a.Key, `{"id":["`+run.ID[0]+`","1","`+run.ID[1]+`","x"]}`, "body.id[1]", "body.id[3]")
	if strings.Contains(got.body, run.ID[0]) {
		t.Error(got.body)
	}
	order := []string{run.ID[4], run.ID[2], run.ID[1], run.ID[0], run.ID[2]} // a repeated id creates only one message
	s.must(&again, "POST", resendAll, a.Key, `{"id":["`+strings.Join(order, `","`)+`"]}`)
	if len(again.ID) != 4 {
		t.Fatal(again)
	}
	states := ""
	for _, d := range s.details(a.Key, append(run.ID, again.ID...)...) {
		states += d.Stato + " "
	}
	if states != "COMPLETED RESCHEDULED RESCHEDULED PENDING RESCHEDULED PENDING PENDING PENDING PENDING " {
		t.Error(states)
	}
	// A second resend of a message is refused, and the refusal names the message that the first resend created. A
	// completed message may be resent any number of times.
	got = s.refusedAt(409, "POST", resendAll, a.Key, `{"id":["`+run.ID[0]+`","`+run.ID[0]+`","`+run.ID[1]+`"]}`, "body.id[2]")
	if !strings.Contains(got.body, again.ID[2]) {
		t.Error(got.body)
	}
	s.must(nil, "POST", resendAll, a.Key, `{"id":["`+run.ID[0]+`"]}`)
	// A stop also cancels messages that a resend created.
	if got := s.must(nil, "POST", "/api/stop/"+id, a.Key, `{"phone":"3331234567"}`); !strings.HasPrefix(got.body, `{"message":"6 messaggi annullati"`) {
		t.Error(got.body)
	}
	// A message in flight can be neither cancelled nor resent.
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t"}`)
	s.begin(a, run.ID[0], "+393331234567")
	s.refusedAt(409, "POST", resendAll, a.Key, `{"id":["`+run.ID[0]+`"]}`, "body.id[0]")
	if got := s.must(nil, "POST", "/api/messages/cancel", a.Key, `{"id":["`+run.ID[0]+`"]}`); got.body != `{"message":"Nessun messaggio annullato","messages":[]}` {
		t.Error(got.body)
	}
}

func behaviourPeriods(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, stepNow)
	outcome := func(at time.Time) {
		s.clock.Set(at)
		var run started
		s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567"}`)
		s.end(a, run.ID[0], "+393331234567", sent)
	}
	outcome(time.Date(2027, 10, 31, 0, 30, 59, 999999000, time.UTC)) // clocks in Rome show 02:30 for the first time
	outcome(time.Date(2027, 10, 31, 1, 30, 0, 0, time.UTC))          // clocks in Rome show 02:30 for the second time
	s.clock.Advance(2 * time.Minute)
	const path = "/api/messages/statusByPeriod?"
	for query, want := range map[string]int{
		"start=31/10/2027%2002:30&end=31/10/2027%2002:30":                                   2, // from the first 02:30 to the second 02:30
		"from=31/10/2027+02:30&to=31/10/2027+03:00":                                         2,
		"start_date=31/10/2027 02:31&end_date=31/10/2027 23:59":                             1,
		"inizio=31%2F10%2F2027%2000%3A00&fine=31/10/2027%2003%3A00":                         2,
		"start=31/10/2027%2001:00&end=31/10/2027%2001:59":                                   0,
		"start=31/10/2027%2002:00&end=31/10/2027%2002:29":                                   1, // ends at the second 02:29, before the second 02:30
		"start=%2031/10/2027%2002:30%20&from=31/10/2027%2002:30&end=31/10/2027%2002:30&x=1": 2,
		"start=28/03/2027%2002:40&end=28/03/2027%2003:10":                                   0, // the period begins in the hour that the clock change skips; this is not a fault
	} {
		if got := messages(t, s.must(nil, "GET", path+strings.ReplaceAll(query, " ", "+"), a.Key, "")); len(got) != want {
			t.Errorf("%s: %d, want %d", query, len(got), want)
		}
	}
	for query, at := range map[string]string{
		"": "query.start query.end", "start=20/11/2026%2010:00": "query.end", "start=&fine=20/11/2026%2010:00": "query.start",
		"start=20/11/2026%2010:00&end=20/11/2026%2009:59":                                    "query.start",
		"from=2026-11-20&to=20/11/2026":                                                      "query.from query.to",
		"start=20/11/26%2010:00&end=20/11/2026%2010:00:00":                                   "query.start query.end",
		"start=31/02/2026%2010:00&end=20/11/2026%2024:00":                                    "query.start query.end",
		"start=20/11/2026%2010:00&inizio=20/11/2026%2011:00&end=20/11/2026%2012:00":          "query.inizio",
		"start=20/11/2026%2010:00&end=20/11/2026%2012:00&cursor=" + strings.Repeat("x", 201): "query.cursor",
		"start=20/11/2026%2010:00&end=20/11/2026%2012:00&cursor=x":                           "query.cursor",
	} {
		s.refusedAt(422, "GET", path+query, a.Key, "", strings.Fields(at)...)
	}
}

func behaviourOutcomesApart(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, stepNow+","+stepNow)
	var run started
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567"}`)
	s.end(a, run.ID[0], "+393331234567", refused)
	s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"3331234567"}`)
	s.begin(a, run.ID[1], "+393331234567")
	period := "/api/messages/statusByPeriod?start=20/11/2026%2000:00&end=20/11/2026%2023:59"
	before := s.must(nil, "GET", period, a.Key, "")
	s.must(nil, "POST", resendAll, a.Key, `{"id":["`+run.ID[0]+`","`+run.ID[1]+`"]}`)
	if d := s.details(a.Key, run.ID...); d[0].Stato != "RESCHEDULED" || d[1].Stato != "RESCHEDULED" {
		t.Errorf("%+v", d)
	}
	if after := s.must(nil, "GET", period, a.Key, ""); after.body != before.body || !strings.Contains(after.body, `"FAILED","reason":"Numero in blacklist"`) {
		t.Errorf("%s\nwas\n%s", after.body, before.body)
	}
}

func behaviourSingle(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	s.must(nil, "POST", "/api/templates", a.Key, `{"name":"Visita","text":"Ciao {{nome}}, {{date}}: {{text|}}"}`)
	var session struct{ ID string }
	s.must(&session, "POST", "/api/sessions", a.Key, `{"name":"Altra","connection_type":"Official"}`)
	s.wakeups.drain()
	send := func(members string) detail {
		t.Helper()
		body := `{"phone":3331234567` + members + `}`
		var run started
		got := s.must(&run, "POST", "/api/messages", a.Key, body)
		if len(run.ID) != 1 || !strings.Contains(got.body, `"daily_api_used"`) {
			t.Fatal(got.body)
		}
		d := s.details(a.Key, run.ID[0])[0]
		if d.Tipologia != "SINGLE" || d.Sequenza != nil || d.Richiesta != body || d.Telefono != "+393331234567" {
			t.Errorf("%+v", d)
		}
		return d
	}
	if d := send(`,"text":"{{nome}} }} <b>","name":"Avviso"`); d.Contenuto != "{{nome}} }} <b>" || d.NomeInvio != "Avviso" || d.Desired != nil ||
		d.Planned != "2026-11-20T09:30:00.123456Z" {
		t.Errorf("%+v", d)
	}
	if got := s.wakeups.drain(); len(got) != 1 || fmt.Sprint(got[0].session) != a.Session {
		t.Errorf("hints %v", got)
	}
	if d := send(`,"media":"https://x.it/a.pdf","media_name":"b.pdf","text":"Ecco","date":" 21/11/2026 10:00 "`); *d.MediaURL != "https://x.it/a.pdf" ||
		*d.MediaName != "b.pdf" || *d.Desired != "2026-11-21T09:00:00.000000Z" || d.Planned != *d.Desired {
		t.Errorf("%+v", d)
	}
	for members, want := range map[string]time.Duration{`"x"`: 24 * time.Hour, `"x","valid_for":{"amount":90,"unit":"minutes"}`: 90 * time.Minute, `"x","valid_for":null`: 24 * time.Hour} {
		send(`,"text":` + members)
		var valid int64
		if err := s.db.SQL.QueryRow("select valid_until - due_at from message order by id desc limit 1").Scan(&valid); err != nil || time.Duration(valid)*time.Microsecond != want {
			t.Errorf("%s is valid for %v, %v", members, time.Duration(valid)*time.Microsecond, err)
		}
	}
	s.wakeups.drain()
	if d := send(`,"latitude":45.5,"longitude":9,"text":"Qui","date":"2026-11-21T10:00","timezone":"America/New_York"`); *d.Latitudine != 45.5 ||
		d.Planned != "2026-11-21T15:00:00.000000Z" || d.Contenuto != "Qui" {
		t.Errorf("%+v", d)
	}
	if d := send(`,"template":"Visita","nome":"Anna","date":"01/12/2026 11:00","text":"a presto","id_sessione":` + session.ID); *d.Template != "Visita" ||
		d.Contenuto != "Ciao Anna, 01/12/2026 11:00: a presto" || d.Planned != "2026-12-01T10:00:00.000000Z" {
		t.Errorf("%+v", d)
	}
	if got := s.wakeups.drain(); len(got) != 2 || fmt.Sprint(got[1].session) != session.ID {
		t.Errorf("hints %v", got)
	}
	if d := send(`,"text":"x","date":null,"template":"","media":" "`); d.MediaURL != nil || d.Template != nil {
		t.Errorf("%+v", d)
	}
}

func behaviourSingleFaults(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	s.must(nil, "POST", "/api/templates", a.Key, `{"name":"Visita","text":"Ciao {{nome}}"}`)
	for _, c := range []struct {
		body   string
		status int
		at     string
	}{
		{`{}`, 422, "body.phone body"},
		{`{"phone":"x","text":"x"}`, 422, "body.phone"},
		{`{"phone":-3331234567,"text":"x"}`, 422, "body.phone"},
		{`{"phone":"3331234567"}`, 422, "body"},
		{`{"phone":"3331234567","text":[]}`, 400, "body.text"},
		{`{"phone":"3331234567","text":"` + strings.Repeat("x", 4097) + `"}`, 422, "body.text"},
		{`{"phone":"3331234567","text":"` + strings.Repeat("x", 1025) + `","media":"https://x.it/a.pdf"}`, 422, "body.text"},
		{`{"phone":"3331234567","media":"ftp://x.it/a.pdf"}`, 422, "body.media"},
		{`{"phone":"3331234567","media":"https://x.it/` + strings.Repeat("a", 2048) + `.pdf"}`, 422, "body.media"},
		{`{"phone":"3331234567","text":"x","latitude":1}`, 422, "body.longitude"},
		{`{"phone":"3331234567","latitude":91,"longitude":1,"media":"https://x.it/a.pdf"}`, 422, "body.latitude body.media"},
		{`{"phone":"3331234567","text":"x","date":"domani"}`, 422, "body.date"},
		{`{"phone":"3331234567","text":"x","date":"20/11/2026 10:00"}`, 422, "body.date"},
		{`{"phone":"3331234567","text":"x","date":"20/11/2032 10:00"}`, 422, "body.date"},
		{`{"phone":"3331234567","text":"x","timezone":"Roma","name":"` + strings.Repeat("x", 201) + `"}`, 422, "body.name body.timezone"},
		{`{"phone":"3331234567","text":"x","valid_for":"6h"}`, 400, "body.valid_for"},
		{`{"phone":"3331234567","text":"x","valid_for":{"amount":0,"unit":"hours"}}`, 422, "body.valid_for.amount"},
		{`{"phone":"3331234567","text":"x","valid_for":{"amount":1,"unit":"x"}}`, 422, "body.valid_for.unit"},
		{`{"phone":"3331234567","text":"x","id_sessione":"999999"}`, 422, "body.id_sessione"},
		{`{"phone":"3331234567","template":"Altro"}`, 422, "body.template"},
		{`{"phone":"3331234567","template":"Visita"}`, 422, "body.nome"},
		{`{"phone":"3331234567","template":"Visita","nome":"A","text":"x","media":"y"}`, 422, "body.text body.media"},
		{`{"phone":"3331234567","template":"Visita","nome":"A","latitude":1,"longitude":1}`, 422, "body.template"},
	} {
		s.refusedAt(c.status, "POST", "/api/messages", a.Key, c.body, strings.Fields(c.at)...)
	}
	if got := messages(t, s.must(nil, "GET", "/api/messages", a.Key, "")); len(got) != 0 {
		t.Errorf("%d messages", len(got))
	}
}

func behaviourLists(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id, other := s.newSequence(a.Key, stepNow+","+stepLater), s.newSequence(a.Key, stepLater)
	var run, second, single started
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t"}`)
	s.must(&second, "POST", "/api/start/"+other, a.Key, `{"phone":"3337654321","testo":"t","nome":"Lucia"}`)
	s.must(&single, "POST", "/api/messages", a.Key, `{"phone":"3331234567","text":"x","date":"2026-11-25"}`)
	s.end(a, run.ID[0], "+393331234567", sent)
	all := []string{single.ID[0], second.ID[0], run.ID[1], run.ID[0]} // the list shows the newest message first
	for query, want := range map[string][]string{
		"": all, "state=PENDING": all[:3], "state=COMPLETED": all[3:], "state=FAILED": {}, "sequence=" + id: all[2:], "sequence=999999": {},
		"phone=%2B393337654321": {all[1]}, "phone=3331234567": {all[0], all[2], all[3]}, "origin=SINGLE": all[:1], "origin=SEQUENCE": all[1:],
		"start=20/11/2026+10:31": all[:3], "end=20/11/2026+10:30": all[3:], "from=2026-11-20&to=2026-11-20": all[1:], "inizio=25/11/2026&fine=2026-11-25": all[:1],
		"phone=3331234567&state=PENDING&sequence=" + id: {all[2]}, "limit=2": all[:2],
		"text=LUCÍA": {all[1]}, "text=t+lucia": {all[1]}, "text=x": {all[0]}, "text=%25": {}, "text=lucia&state=COMPLETED": {}, "text=3337654321": {},
	} {
		var page struct {
			Messages []struct{ ID int64 }
			Next     *string `json:"next_cursor"`
		}
		s.must(&page, "GET", "/api/messages?"+query, a.Key, "")
		got := []string{}
		for _, m := range page.Messages {
			got = append(got, fmt.Sprint(m.ID))
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
		if query != "limit=2" {
			continue
		}
		next := messages(t, s.must(nil, "GET", "/api/messages?limit=2&cursor="+*page.Next, a.Key, ""))
		if len(next) != 2 || !strings.HasPrefix(string(next[1]), `{"id":`+all[3]+`,"tipologia":"SEQUENCE"`) {
			t.Errorf("the next page: %s", next)
		}
	}
	s.refusedAt(422, "GET", "/api/messages?stato=x&state=x&origin=y&sequence=z&phone=w&start=v&end=u&limit=0", a.Key, "",
		"query.stato", "query.state", "query.origin", "query.sequence", "query.phone", "query.start", "query.end", "query.limit")
	s.refusedAt(422, "GET", "/api/messages?start=2026-11-21&end=2026-11-20", a.Key, "", "query.start")
}

func behaviourCancelIDs(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, stepNow+","+stepLater)
	var run started
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t"}`)
	s.end(a, run.ID[0], "+393331234567", sent)
	s.refusedAt(404, "POST", "/api/messages/cancel", a.Key, `{"id":[1,"`+run.ID[1]+`","0"]}`, "body.id[0]", "body.id[2]")
	s.refusedAt(422, "POST", "/api/messages/cancel", a.Key, `{}`, "body.id")
	got := s.must(nil, "POST", "/api/messages/cancel", a.Key, `{"id":["`+run.ID[0]+`",`+run.ID[1]+`,"`+run.ID[1]+`"]}`)
	if got.body != `{"message":"1 messaggio annullato","messages":[{"id":`+run.ID[1]+`,"desired_date":"2026-11-20T10:30:00.123456Z"}]}` {
		t.Error(got.body)
	}
	if d := s.details(a.Key, run.ID...); d[0].Stato != "COMPLETED" || d[1].Stato != "CANCELLED" {
		t.Errorf("%+v", d)
	}
}

// A caller that reads outcomes period by period misses none, even if an outcome is committed late. If the period is
// over, the answer waits until no more outcomes can be recorded in the period. It waits in the same way if the outcomes
// do not fit into one page. If the period is still running and all outcomes fit into one page, the answer comes
// immediately. It contains the newest outcomes.
func behaviourOutcomesComplete(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, strings.TrimPrefix(strings.Repeat(","+stepNow, 50), ","))
	start := func() []puntuale.ClaimItem {
		var run started
		s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567"}`)
		items, _ := s.beginAll(a, "+393331234567", run.ID...)
		return items
	}
	items := start()
	ask := func(query string) chan []json.RawMessage {
		rows := make(chan []json.RawMessage, 1)
		go func() {
			r := httptest.NewRequest(http.MethodGet, "/api/messages/statusByPeriod?start=20/11/2026%2010:30&"+query, nil)
			r.Header.Set("Authorization", "Bearer "+a.Key)
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			var v struct{ Messages []json.RawMessage }
			_ = json.Unmarshal(w.Body.Bytes(), &v)
			rows <- v.Messages
		}()
		return rows
	}
	// waits requests outcomes while the test's clock does not move, so that the answer must wait. While it waits, the
	// function late records an outcome.
	waits := func(query string, late func()) (got []json.RawMessage) {
		t.Helper()
		waiting := s.clock.Waiters()
		rows := ask(query)
		patient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = s.clock.Waiting(patient, waiting+1) // other goroutines may also wait for the clock, so this only makes it likely that the call waits
		late()
		select {
		case got = <-rows:
			t.Errorf("%s: answered at once, with %d", query, len(got))
			return got
		default:
		}
		for {
			select {
			case got = <-rows:
				return got
			case <-time.After(5 * time.Millisecond):
				s.clock.Advance(100 * time.Millisecond)
			}
		}
	}
	s.recordAs(sent, morning, items[:1]...)
	if got := <-ask("end=20/11/2026%2010:30"); len(got) != 1 { // the period is still running
		t.Errorf("%d outcomes", len(got))
	}
	s.clock.Set(time.Date(2026, 11, 20, 9, 31, 0, 500_000_000, time.UTC))
	got := waits("end=20/11/2026%2010:30", func() { // late records an outcome with a time in the period, but commits it after the period's end
		s.recordAs(sent, morning.Add(59*time.Second), items[1])
	})
	if len(got) != 2 {
		t.Errorf("%d outcomes", len(got))
	}
	if got := <-ask("end=20/11/2026%2010:30"); len(got) != 2 { // the period is complete now
		t.Errorf("%d outcomes", len(got))
	}
	// The outcomes do not fit into one page, so the answer waits, although the period is still running.
	now := s.clock.Now()
	for range 21 {
		s.recordAs(sent, now, start()...)
	}
	got = waits("end=20/11/2026%2023:59", func() { s.recordAs(sent, now.Add(-time.Second), items[2]) })
	if len(got) != 1000 || !strings.Contains(fmt.Sprintf("%s", got[:3]), items[2].ID.String()) {
		t.Errorf("%d outcomes, %s", len(got), got[:min(3, len(got))])
	}
}

// If a message is in flight when it is stopped, the stop's answer does not list it. The message is not tried again.
func behaviourStoppedInFlight(t *testing.T, s *service) {
	a := s.newAccount("a@x", "test")
	id := s.newSequence(a.Key, stepNow+","+stepLater)
	for _, c := range []struct{ path, body, answer string }{
		{"/api/stop/" + id, `{"phone":"3331234567"}`, "1 messaggio annullato"},
		{"/api/messages/cancel/pending", `{"phones":["3331234567"]}`, "1 messaggio annullato"},
		{"/api/messages/cancel/pending", `{}`, "1 messaggio annullato"},
		{"/api/messages/cancel", `{"id":[%s]}`, "Nessun messaggio annullato"},
	} {
		var run started
		s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t"}`)
		item, _ := s.begin(a, run.ID[0], "+393331234567")
		got := s.must(nil, "POST", c.path, a.Key, strings.ReplaceAll(c.body, "%s", run.ID[0]))
		if !strings.HasPrefix(got.body, `{"message":"`+c.answer+`"`) || strings.Contains(got.body, run.ID[0]) {
			t.Errorf("%s: %s", c.path, got.body)
		}
		if d := s.details(a.Key, run.ID[0])[0]; d.Stato != "PENDING" {
			t.Errorf("%s: in flight it is %+v", c.path, d)
		}
		s.record(puntuale.Outcome{Verdict: puntuale.Retry, Next: s.clock.Now(), Detail: puntuale.Quoted("occupato")}, item)
		d := s.details(a.Key, run.ID[0])[0]
		if d.Stato != "CANCELLED" || d.Risposta != "Annullato" || d.Left != nil || *d.Detail != "occupato" {
			t.Errorf("%s: back for a retry it is %+v", c.path, d)
		}
		// If the network accepts the message, it counts as sent, although it was cancelled during the attempt.
		s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t"}`)
		item, _ = s.begin(a, run.ID[0], "+393331234567")
		s.must(nil, "POST", c.path, a.Key, strings.ReplaceAll(c.body, "%s", run.ID[0]))
		s.record(sent, item)
		if d := s.details(a.Key, run.ID[0])[0]; d.Stato != "COMPLETED" {
			t.Errorf("%s: %+v", c.path, d)
		}
	}
	if got := s.must(nil, "GET", "/api/client/"+a.ID+"/snapshot", s.partner, ""); !strings.Contains(got.body, `"credits":"96"`) {
		t.Error(got.body)
	}
}
