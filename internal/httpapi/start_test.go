package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A call with an idempotency key has its effect once, even if it is repeated, or if several callers send it at the same
// time.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		key := s.newClient("a@x", "test")
		id := s.newSequence(key, stepLater+","+stepDate)
		body := `{"phone":"3331234567","testo":"t","quando":"20/11/2026 10:00"}`
		var all sync.WaitGroup
		answers := make([]*httptest.ResponseRecorder, 8)
		for i := range answers {
			answers[i] = httptest.NewRecorder()
			all.Go(func() {
				r := httptest.NewRequest(http.MethodPost, "/api/start/"+id+strings.Repeat("/", i%2), strings.NewReader(body))
				r.Header.Set("Authorization", "Bearer "+key)
				r.Header.Set("Idempotency-Key", "once")
				s.handler.ServeHTTP(answers[i], r)
			})
		}
		all.Wait()
		fresh := 0
		for _, w := range answers {
			if w.Code != 200 || w.Body.String() != answers[0].Body.String() {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if w.Header().Get("Idempotent-Replayed") == "" {
				fresh++
			}
		}
		if fresh != 1 || !strings.Contains(answers[0].Body.String(), `"daily_api_used":1,`) || !strings.Contains(answers[0].Body.String(), `"skipped"`) {
			t.Errorf("%d calls were not repeats; %s", fresh, answers[0].Body)
		}
		// A refusal is not stored. An idempotency key is valid for one path.
		if a := s.call("POST", "/api/start/"+id, key, `{"phone":"x"}`, "Idempotency-Key", "other"); a.status != 422 {
			t.Errorf("%d %s", a.status, a.body)
		}
		if a := s.must(nil, "POST", "/api/start/"+id, key, body, "Idempotency-Key", "other"); a.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%v %s", a.header, a.body)
		}
		second := s.newSequence(key, stepNow)
		if a := s.must(nil, "POST", "/api/start/"+second, key, body, "Idempotency-Key", "once"); a.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%v %s", a.header, a.body)
		}
		// The answer is still stored after the sequence was deleted.
		s.must(nil, "DELETE", "/api/sequences/"+id+"?pending=cancel", key, "")
		a := s.must(nil, "POST", "/api/start/"+id, key, body, "Idempotency-Key", "once")
		if a.body+"\n" != answers[0].Body.String() || a.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%v %s", a.header, a.body)
		}
		if a := s.call("POST", "/api/start/"+id, key, body); a.status != 404 {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
}

func TestCapIsExact(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		key := s.newClient("a@x", "test")
		id := s.newSequence(key, stepNow)
		for range 80 {
			s.must(nil, "POST", "/api/start/"+id, key, `{"phone":"3331234567"}`)
		}
		var all sync.WaitGroup
		answers := make([]*httptest.ResponseRecorder, 40)
		for i := range answers {
			answers[i] = httptest.NewRecorder()
			all.Go(func() {
				r := httptest.NewRequest(http.MethodPost, "/api/start/"+id+"?api_key="+key, strings.NewReader(`{"phone":"3331234567"}`))
				s.handler.ServeHTTP(answers[i], r)
			})
		}
		all.Wait()
		var used []int
		for _, w := range answers {
			var a started
			if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
				t.Fatal(err)
			}
			switch {
			case w.Code == 200:
				used = append(used, int(a.Used))
			case w.Code != 429 || a.Cap != 100 || a.Used != 100 || a.Remaining != 0:
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
		slices.Sort(used)
		want := make([]int, 20)
		for i := range want {
			want[i] = 81 + i
		}
		if !slices.Equal(used, want) {
			t.Errorf("positions %v", used)
		}
	})
}

// A dry run stores nothing and counts nothing. A start after the dry run does what the dry run showed.
func TestDryRun(t *testing.T) {
	t.Parallel()
	databases(t, options{}, dryRunTest)
}

func dryRunTest(t *testing.T, s *service) {
	key := s.newClient("a@x", "test")
	id := s.newSequence(key, stepNow+","+stepLater+","+stepDate)
	body := `{"phone":"3331234567","testo":"t","quando":"2026-12-01T15:00"}`
	s.wakeups.drain()
	var preview struct {
		Messages []struct {
			Step    int
			Desired *string `json:"invio_desiderato"`
			Planned string  `json:"invio_previsto"`
			Text    string  `json:"contenuto"`
		}
		Skipped []any
	}
	for _, query := range []string{"?dry_run=true", "?dry_run=1", "?dry_run", "/?dry_run=true&dry_run=false"} {
		s.must(&preview, "POST", "/api/start/"+id+query, key, body, "Idempotency-Key", "dry")
	}
	if len(preview.Messages) != 3 || preview.Skipped == nil {
		t.Fatalf("%+v", preview)
	}
	for _, query := range []string{"?dry_run=yes", "?dry_run=2", "?dry_run=%20", "?dry_run=", "?dry_run=true&dry_run=x"} {
		if a := s.call("POST", "/api/start/"+id+query, key, body); a.status != 422 || !slices.Equal(a.locations(), []string{"query.dry_run"}) {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
	for _, name := range []string{"dryRun", "dry-run", "DRY_RUN", "Dry_Run", "dryrun"} { // each of these slips would send if the parameter were ignored
		a := s.call("POST", "/api/start/"+id+"?"+name+"=true", key, body)
		if a.status != 422 || !slices.Equal(a.locations(), []string{"query." + name}) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if got := s.wakeups.drain(); len(got) != 0 {
		t.Errorf("hints: %v", got)
	}
	var run started
	a := s.must(&run, "POST", "/api/start/"+id+"?dry_run=false", key, body, "Idempotency-Key", "dry")
	if run.Used != 1 || a.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("something was counted or kept: %s", a.body)
	}
	var details struct {
		Messages []struct {
			Desired *string `json:"invio_desiderato"`
			Planned string  `json:"invio_previsto"`
			Text    string  `json:"contenuto"`
		}
	}
	s.must(&details, "GET", "/api/messages/details?message_ids="+strings.Join(run.ID, ","), key, "")
	for i, m := range details.Messages {
		p := preview.Messages[i]
		if p.Step != i || p.Planned != m.Planned || p.Text != m.Text || fmt.Sprint(p.Desired == nil) != fmt.Sprint(m.Desired == nil) {
			t.Errorf("previewed %+v, is %+v", p, m)
		}
	}
}

// The dispatcher gets a wakeup for each start, with the earliest due time. It also gets a wakeup when a session is
// created.
func TestWakeups(t *testing.T) {
	t.Parallel()
	databases(t, options{}, wakeupsTest)
}

func wakeupsTest(t *testing.T, s *service) {
	key := s.newClient("a@x", "full")
	if got := s.wakeups.drain(); !slices.Equal(got, []wakeup{{1, time.Time{}}}) {
		t.Errorf("a client: %v", got)
	}
	s.must(nil, "POST", "/api/sessions", key, `{"name":"x","connection_type":"Socket"}`)
	if got := s.wakeups.drain(); !slices.Equal(got, []wakeup{{2, time.Time{}}}) {
		t.Errorf("a session: %v", got)
	}
	var sequence struct{ ID string }
	s.must(&sequence, "POST", "/api/sequences", key, `{"name":"x","id_sessione":2,"steps":[`+stepDate+`,`+stepLater+`]}`)
	start := "/api/start/" + sequence.ID
	body := `{"phone":"3331234567","testo":"t","quando":"01/12/2026 10:00"}`
	s.must(nil, "POST", start, key, body, "Idempotency-Key", "k")
	if got := s.wakeups.drain(); !slices.Equal(got, []wakeup{{2, morning.Add(time.Hour)}}) {
		t.Errorf("a start: %v", got)
	}
	s.must(nil, "POST", start, key, body, "Idempotency-Key", "k")
	s.call("POST", start, key, `{}`)
	s.must(nil, "POST", start+"?dry_run", key, body)
	if got := s.wakeups.drain(); len(got) != 0 {
		t.Errorf("a repeat, a refusal, a dry run: %v", got)
	}
}

func TestStartTimezone(t *testing.T) {
	t.Parallel()
	databases(t, options{}, startTimezoneTest)
}

func startTimezoneTest(t *testing.T, s *service) {
	key := s.newClient("a@x", "full")
	id := s.newSequence(key, `{"text":"{{quando}}","timing":{"anchor":"quando","offset":{"amount":0}}}`)
	body := `{"phone":"3331234567","quando":"01/12/2026 10:00"%s}`
	for _, c := range []struct{ query, member, want string }{
		{"", "", "2026-12-01T09:00:00.000000Z"},
		{"?timezone=America/New_York", "", "2026-12-01T15:00:00.000000Z"},
		{"", `,"timezone":"America/New_York"`, "2026-12-01T15:00:00.000000Z"},
		{"?timezone=Asia/Tokyo", `,"timezone":"Asia/Tokyo"`, "2026-12-01T01:00:00.000000Z"},
		{"?timezone=Asia/Tokyo", `,"timezone":"America/New_York"`, ""},
		{"?timezone=Local", "", ""},
		{"?timezone=../etc/passwd", "", ""},
		{"?timezone=Europe", "", ""},
		{"", `,"timezone":"+01:00"`, ""},
	} {
		a := s.call("POST", "/api/start/"+id+c.query, key, fmt.Sprintf(body, c.member))
		if c.want == "" {
			if a.status != 422 || len(a.locations()) != 1 || !strings.HasSuffix(a.locations()[0], ".timezone") {
				t.Errorf("%s %s: %d %s", c.query, c.member, a.status, a.body)
			}
			continue
		}
		var run started
		decode(t, a, &run)
		if d := s.must(nil, "GET", "/api/messages/details?message_ids="+run.ID[0], key, ""); !strings.Contains(d.body, `"invio_previsto":"`+c.want+`"`) ||
			!strings.Contains(d.body, `"contenuto":"01/12/2026 10:00"`) {
			t.Errorf("%s %s: %s", c.query, c.member, d.body)
		}
	}
}

// if_running in a call overrides the sequence's if_running. A deleted sequence can still be stopped.
func TestIfRunningAndStop(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		key := s.newClient("a@x", "full")
		var sequence struct{ ID string }
		s.must(&sequence, "POST", "/api/sequences", key, `{"name":"x","if_running":"skip","steps":[`+stepLater+`]}`)
		start, body := "/api/start/"+sequence.ID, `{"phone":"3331234567","testo":"t"}`
		var first, again, more, anew started
		s.must(&first, "POST", start, key, body)
		s.must(&again, "POST", start, key, body)
		s.must(&more, "POST", start+"?if_running=allow", key, body)
		s.must(&anew, "POST", start+"?if_running=restart", key, body)
		if !slices.Equal(first.ID, again.ID) || more.ID[0] == first.ID[0] || again.Used != 2 {
			t.Errorf("%v %v %v", first, again, more)
		}
		if a := s.call("POST", start+"?if_running=reject", key, body); a.status != 409 {
			t.Errorf("%d %s", a.status, a.body)
		}
		state := func(id string) string {
			var d struct {
				Messages []struct{ Stato string }
			}
			s.must(&d, "GET", "/api/messages/details?message_ids="+id, key, "")
			return d.Messages[0].Stato
		}
		if state(first.ID[0]) != "CANCELLED" || state(more.ID[0]) != "CANCELLED" || state(anew.ID[0]) != "PENDING" {
			t.Error("restart left something running, or nothing")
		}
		s.must(nil, "DELETE", "/api/sequences/"+sequence.ID+"?pending=keep", key, "")
		if a := s.call("POST", start, key, body); a.status != 404 {
			t.Errorf("%d %s", a.status, a.body)
		}
		stop := "/api/stop/" + sequence.ID
		if a := s.must(nil, "POST", stop, key, `{"phone":3331234567}`); !strings.HasPrefix(a.body, `{"message":"1 messaggio annullato","id":["`+anew.ID[0]+`"]`) {
			t.Error(a.body)
		}
		s.must(nil, "POST", stop, key, `{"phone":3331234567}`)
		for _, unknown := range []string{"999999", "0", "x", "01"} {
			if a := s.call("POST", "/api/stop/"+unknown, key, `{"phone":3331234567}`); a.status != 404 {
				t.Errorf("stop %s: %d %s", unknown, a.status, a.body)
			}
		}
	})
}

// Lists come in pages. No row is skipped or repeated.
func TestPages(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		key := s.newClient("a@x", "full")
		for i := range 5 {
			s.newSequence(key, stepNow)
			s.must(nil, "POST", "/api/sessions", key, `{"name":"x","connection_type":"Send_app"}`)
			s.must(nil, "POST", "/api/blacklist", key, fmt.Sprintf(`{"phone":"+39333123456%d"}`, i))
			s.must(nil, "POST", "/api/blacklist", key, fmt.Sprintf(`{"phone":"+39333123456%d"}`, i))
		}
		for noun, want := range map[string]int{"sequences": 5, "sessions": 6, "blacklist": 5} {
			seen, pages := 0, 0
			for cursor := ""; ; pages++ {
				var page map[string]any
				s.must(&page, "GET", "/api/"+noun+"?limit=2&cursor="+cursor, key, "")
				seen += len(page[noun].([]any))
				next, more := page["next_cursor"].(string)
				if !more {
					break
				}
				cursor = next
			}
			if seen != want || pages != (want-1)/2 {
				t.Errorf("%s: %d rows, %d pages more", noun, seen, pages)
			}
		}
	})
}

// A client gets a session of the server's default kind, unless the call gives another kind. Two clients of one partner
// cannot have the same login.
func TestCreateClient(t *testing.T) {
	t.Parallel()
	for _, sandbox := range []bool{false, true} {
		s := newService(t, options{sandbox: sandbox})
		for i, c := range []struct {
			member string
			want   bool
		}{{"", sandbox}, {`,"sandbox":null`, sandbox}, {`,"sandbox":true`, true}, {`,"sandbox":false`, false}} {
			var created struct {
				Key     string `json:"api_key"`
				Session string `json:"id_sessione"`
				Type    string `json:"account_type"`
			}
			s.must(&created, "POST", "/api/client/create/", s.partner,
				fmt.Sprintf(`{"name":"è","email":"a%d@x","password":"p","phone":390212345678,"account_type":null%s}`, i, c.member))
			var session struct {
				Sandbox, Default bool
				State            string
			}
			s.must(&session, "GET", "/api/sessions/"+created.Session, created.Key, "")
			state := map[bool]string{true: "online", false: "unlinked"}[c.want]
			if session.Sandbox != c.want || !session.Default || session.State != state || created.Type != "full" {
				t.Errorf("%s: %+v %+v", c.member, session, created)
			}
		}
	}
	s := newService(t, options{})
	for _, email := range []string{"", "x", "@", "a@", "@b", " a@ ", "@@"} {
		a := s.call("POST", "/api/client/create", s.partner, `{"name":"x","email":"`+email+`","password":"p","phone":"1"}`)
		if a.status != 422 || !slices.Equal(a.locations(), []string{"body.email"}) {
			t.Errorf("%q: %d %s", email, a.status, a.body)
		}
	}
	for _, email := range []string{"a@b", "non serve@qui", "@a@b", strings.Repeat("x", 318) + "@x"} {
		s.must(nil, "POST", "/api/client/create", s.partner, `{"name":"x","email":"`+email+`","password":" ","phone":"1"}`)
	}
	var clients, keys int
	_ = s.db.SQL.QueryRow(`select count(*) from client`).Scan(&clients)
	if a := s.call("POST", "/api/client/create", s.partner, `{"name":"x","email":"a@b","password":"p","phone":"1"}`); a.status != 409 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if err := s.db.SQL.QueryRow(`select (select count(*) from client), (select count(*) from api_key)`).Scan(&clients, &keys); err != nil || clients != 4 || keys != 5 {
		t.Errorf("%d clients, %d keys, %v", clients, keys, err)
	}
	var hash, kept string
	if err := s.db.SQL.QueryRow(`select password from login where client_id = 1`).Scan(&hash); err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$") {
		t.Errorf("password kept as %q, %v", hash, err)
	}
	_ = s.db.SQL.QueryRow(`select hex(hash) || prefix || name from api_key where client_id = 0`).Scan(&kept)
	if strings.Contains(strings.ToLower(kept), s.partner[12:]) || !strings.Contains(kept, s.partner[:11]) {
		t.Errorf("key kept as %q", kept)
	}
	if strings.Contains(s.log.String(), "ck_") || strings.Contains(s.log.String(), "pk_") {
		t.Error("a key is in the log")
	}
}
