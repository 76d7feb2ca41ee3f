package httpapi_test

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/automation"
	"puntuale/internal/hook"
	"puntuale/internal/httpkit/admission"
)

// runner runs the rules of the service's clients, as a node does.
func (s *service) runner() *automation.Runner {
	return automation.New(automation.Config{
		Node:  func() puntuale.NodeID { return 0 },
		Store: s.store, Planner: s.control.PlannerOf, Bound: s.store.ChunkBound, DatesBound: s.store.DatesBound, Wakeup: func(puntuale.SessionID, time.Time) {},
		Clock: s.clock, Logger: slog.New(slog.DiscardHandler),
	})
}

// act runs rules until no rule has work.
func (s *service) act(r *automation.Runner) {
	s.t.Helper()
	for range 20 {
		n, err := r.Round(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		if n == 0 {
			if _, err := r.Dates(s.t.Context()); err != nil {
				s.t.Fatal(err)
			}
			return
		}
	}
	s.t.Fatal("the runner does not come to an end")
}

// callHook posts a body to a hook's path.
func (s *service) callHook(path, body string, header ...string) string {
	s.t.Helper()
	h := hook.New(hook.Config{Automations: s.rules, Logger: slog.New(slog.DiscardHandler), Now: s.clock.Now, Admit: admission.Limits{
		Gate: admission.NewGate(admission.GateConfig{Seats: 1, LongestWait: time.Second, Now: s.clock.Now}), Budget: admission.NewMemoryBudget(1<<20, func(string) {}),
		UnknownCallers: admission.NewRateLimiter[admission.CallerKey](1, 3, s.clock.Now),
	}})
	r := httptest.NewRequestWithContext(s.t.Context(), "POST", path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.String()
}

// found returns the places in the database that contain one of the texts.
func (s *service) found(texts ...string) (places []string) {
	s.t.Helper()
	tables := "select name from sqlite_master where type = 'table'"
	if s.store.Dialect.Postgres {
		tables = "select table_name from information_schema.tables where table_schema = 'public'"
	}
	for _, table := range s.rows(tables) {
		for _, row := range s.rows("select * from " + strings.TrimSpace(table)) {
			for _, text := range texts {
				if strings.Contains(row, text) {
					places = append(places, table+": "+row)
				}
			}
		}
	}
	return places
}

// rows returns all rows of a query, each as one text.
func (s *service) rows(query string) (all []string) {
	s.t.Helper()
	rows, err := s.db.SQL.Query(query)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		s.t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			s.t.Fatal(err)
		}
		var b strings.Builder
		for _, v := range values {
			if text, ok := v.([]byte); ok {
				v = string(text)
			}
			fmt.Fprintf(&b, "%v ", v)
		}
		all = append(all, b.String())
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// TestAutomationsForget: the download of all data about a person contains what rules store about the person. Blanking
// removes the texts, and an erasure removes everything. After an erasure, triggers that waited for the person do
// nothing.
func TestAutomationsForget(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "full")
		runner := s.runner()
		const anna, birth = "3331234567", "1990-11-21"
		rule := func(name, trigger, actions string) (m madeAutomation) {
			t.Helper()
			s.must(&m, "POST", "/api/automations", a.Key, `{"name":"`+name+`","trigger":`+trigger+`,"actions":[`+actions+`]}`)
			return m
		}
		const send = `{"kind":"send","text":"Ciao {{nome|}}"}`
		greeting := s.newSequence(a.Key, `{"text":"Auguri {{nome}}","timing":{"anchor":"nascita","offset":{"amount":0,"unit":"days","direction":"after"},"at":"20:00"}}`)
		walk := s.newSequence(a.Key, stepNow)
		info := rule("Info", `{"kind":"reply","words":["info"]}`, send)
		dates := `{"kind":"date","field":"nascita","repeat":"yearly"}`
		start := `{"kind":"start","sequence":"` + greeting + `"}`
		rule("Auguri", dates, start)
		off := rule("Auguri spenti", dates, start)
		rule("Silenzio", `{"kind":"no_reply","sequence":"`+walk+`","hours":24}`, send)
		form := rule("Modulo", `{"kind":"hook","map":{"phone":"tel","nome":"nome"}}`, send)
		odd := rule("Modulo strano", `{"kind":"hook","map":{"phone":"tel"}}`, send)

		s.must(nil, "POST", "/api/contacts", a.Key, `{"phone":"`+anna+`","name":"Anna","fields":{"nascita":"`+birth+`"}}`)
		s.act(runner)
		s.must(nil, "PATCH", "/api/automations/"+off.ID, a.Key, `{"active":false}`)
		s.clock.Advance(time.Minute)
		s.must(nil, "POST", "/api/sandbox/replies", a.Key, `{"phone":"`+anna+`","text":"info"}`)
		s.callHook(form.Path, `{"tel":"`+anna+`","nome":"Anna","nota":"diario"}`, "Idempotency-Key", "ordine-"+anna)
		s.callHook(odd.Path, `{"tel":"casa `+anna+`","nota":"diario"}`)
		var run started
		s.must(&run, "POST", "/api/start/"+walk, a.Key, `{"phone":"`+anna+`","nome":"Anna","testo":"segreto"}`)
		s.end(a, run.ID[0], "+39"+anna, sent)
		s.act(runner)
		if n := len(s.rows("select phone from automation_timer")); n != 1 {
			t.Errorf("%d timers", n)
		}
		document := func() string {
			t.Helper()
			return s.must(nil, "POST", "/api/contacts/everything", a.Key, `{"phone":"`+anna+`"}`).body
		}
		told := document()
		for _, part := range []string{`"automations":[{"automation":`, `"acted":true`, `"hooks":[{"automation":` + form.ID, `diario`} {
			if !strings.Contains(told, part) {
				t.Errorf("the document lacks %s: %s", part, told)
			}
		}
		if n := strings.Count(told, `"acted":true`); n != 4 {
			t.Errorf("%d firings, want those of Info, Modulo and two of birthdays: %s", n, told)
		}
		if other := s.must(nil, "POST", "/api/contacts/everything", a.Key, `{"phone":"3339999999"}`).body; strings.Contains(other, "diario") || strings.Contains(other, `"acted"`) {
			t.Errorf("of somebody else: %s", other)
		}

		if len(s.found("diario")) == 0 {
			t.Fatal("the search finds nothing that is there")
		}

		// Blanking removes the texts in the log and the payloads. The log still shows that the rule acted.
		now := s.clock.Now()
		if err := s.store.Maintain(t.Context(), now, now.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if places := s.found("diario"); len(places) > 0 {
			t.Errorf("after the blanking: %q", places)
		}
		if rows := s.rows("select occurrence, detail from automation_firing"); strings.TrimSpace(strings.Join(rows, "")) != "" {
			t.Errorf("after the blanking: %q", rows)
		}
		if log := s.must(nil, "GET", "/api/automations/"+form.ID+"/firings", a.Key, "").body; !strings.Contains(log, `"occurrence":null,"acted":true`) {
			t.Errorf("the log: %s", log)
		}

		// These triggers wait while the person is erased.
		s.clock.Advance(time.Minute)
		s.must(nil, "POST", "/api/sandbox/replies", a.Key, `{"phone":"`+anna+`","text":"info"}`)
		s.callHook(form.Path, `{"tel":"`+anna+`","nome":"Anna","nota":"diario"}`, "Idempotency-Key", "ordine-"+anna+"-2")
		s.callHook(odd.Path, `{"tel":"casa `+anna+`","nota":"diario 2"}`)
		messages := len(s.rows("select id from message"))
		for _, text := range []string{anna, "Anna", "diario", birth, "segreto"} {
			if len(s.found(text)) == 0 {
				t.Errorf("before the erasure, the search does not find %q", text)
			}
		}
		s.must(nil, "POST", eraseCall, a.Key, `{"phone":"`+anna+`"}`)
		for range 2 {
			if places := s.found(anna, "Anna", "diario", birth, "segreto"); len(places) > 0 {
				t.Errorf("the database still has:\n%s", strings.Join(places, "\n"))
			}
			s.clock.Advance(25 * time.Hour) // after this time, the birthday and the missing reply would trigger the rules
			s.act(runner)
		}
		if n := len(s.rows("select id from message")); n != messages {
			t.Errorf("%d messages more after the erasure", n-messages)
		}
		if told := document(); strings.Contains(told, `"acted"`) || !strings.Contains(told, `"automations":[],"hooks":[]`) {
			t.Errorf("the document after the erasure: %s", told)
		}
		for _, id := range []string{info.ID, form.ID, odd.ID} {
			for _, path := range []string{"/firings", ""} {
				if got := s.must(nil, "GET", "/api/automations/"+id+path, a.Key, "").body; strings.Contains(got, anna) {
					t.Errorf("rule %s%s: %s", id, path, got)
				}
			}
		}
	})
}
