package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// trial is the part of a trial's answer that tests check.
type trial struct {
	Would bool
	Why   []struct {
		Condition string
		Held      bool
	}
	Plans []struct {
		Action   int
		Sequence *string
		Messages []struct {
			Planned time.Time `json:"invio_previsto"`
			Text    string    `json:"contenuto"`
		}
		Skipped  []struct{ Step int }
		Code     *string
		Errors   []struct{ Location string }
		Warnings []struct{ Code string }
	}
}

// says returns a trial in one line: the conditions that do not hold, and what each start or send would do.
func (x trial) says() string {
	var b strings.Builder
	fmt.Fprint(&b, x.Would)
	for _, w := range x.Why {
		if !w.Held {
			fmt.Fprint(&b, " !", w.Condition)
		}
	}
	for _, p := range x.Plans {
		fmt.Fprintf(&b, " | %d:", p.Action)
		if p.Code != nil {
			fmt.Fprint(&b, " ", *p.Code)
		}
		for _, e := range p.Errors {
			fmt.Fprint(&b, " at ", e.Location)
		}
		for _, m := range p.Messages {
			fmt.Fprintf(&b, " %s %q", m.Planned.UTC().Format("02T15:04"), m.Text)
		}
		for _, s := range p.Skipped {
			fmt.Fprint(&b, " skips ", s.Step)
		}
		for _, w := range p.Warnings {
			fmt.Fprint(&b, " warns ", w.Code)
		}
	}
	return b.String()
}

// TestTrialPlans: for each start and send, a trial returns the messages that the real action would plan. It stores
// nothing.
func TestTrialPlans(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "full")
		rule := func(trigger, actions string) string {
			t.Helper()
			var m madeAutomation
			s.must(&m, "POST", "/api/automations", a.Key, `{"name":"Regola","trigger":`+trigger+`,"actions":[`+actions+`]}`)
			return m.ID
		}
		try := func(id, body, want string) {
			t.Helper()
			var got trial
			answer := s.must(nil, "POST", "/api/automations/"+id+"/try", a.Key, body).body
			if err := json.Unmarshal([]byte(answer), &got); err != nil || got.says() != want {
				t.Errorf("%v\n got %s\nwant %s\n%s", err, got.says(), want, answer)
			}
		}
		const reply, anna, bruno = `{"kind":"reply"}`, `{"phone":"3331234567"}`, `{"phone":"3339876543"}`
		s.must(nil, "POST", "/api/contacts", a.Key, `{"phone":"3331234567","name":"Anna","fields":{"nascita":"1990-12-24","visita":"2026-11-20"}}`)
		start := func(id string) string { return `{"kind":"start","sequence":"` + id + `"}` }

		two := s.newSequence(a.Key, `{"text":"Ciao {{nome}}","timing":{"anchor":"start","offset":{"amount":0}}},{"text":"Domani","timing":{"anchor":"start","offset":{"amount":1,"unit":"days","direction":"after"}}}`)
		both := rule(reply, `{"kind":"send","text":"Ricevuto"},`+start(two)+`,{"kind":"stop","sequence":"all"}`)
		try(both, anna, `true | 1: 20T09:30 "Ricevuto" | 2: 20T09:30 "Ciao Anna" 21T09:30 "Domani"`)
		try(both, bruno, `false !automation.refused | 1: 20T09:30 "Ricevuto" | 2: automation.refused at nome`)

		// Dates: a birthday is planned for its next occurrence. Steps in the past follow if_past.
		dated := func(field, past string) string {
			return s.newSequence(a.Key, `{"text":"Prima","timing":{"anchor":"`+field+`","offset":{"amount":3,"unit":"days","direction":"before"},"at":"09:00","if_past":"`+past+`"}},
 {"text":"Auguri","timing":{"anchor":"`+field+`","offset":{"amount":0,"unit":"days","direction":"after"},"at":"09:00","if_past":"`+past+`"}}`)
		}
		birthday := rule(`{"kind":"date","field":"nascita","repeat":"yearly"}`, start(dated("nascita", "skip")))
		try(birthday, anna, `true | 0: 21T08:00 "Prima" 24T08:00 "Auguri"`)
		try(birthday, bruno, `false !automation.no_date !automation.refused | 0: automation.refused at nascita`)
		visit := `{"kind":"date","field":"visita","repeat":"once"}`
		try(rule(visit, start(dated("visita", "skip"))), anna, `false !automation.past | 0: automation.past skips 0 skips 1`)
		try(rule(visit, start(dated("visita", "send_now"))), anna, `true | 0: 20T09:30 "Auguri" skips 0`)
		try(rule(visit, start(dated("visita", "reject"))), anna, `false !automation.refused | 0: automation.refused at steps[0].timing at steps[1].timing`)

		// Problems of the messages are only warnings, because the rule acts in any case.
		promo := rule(reply, `{"kind":"send","text":"Sconto","purpose":"marketing"}`)
		try(promo, bruno, `true | 0: 20T09:30 "Sconto" warns no_consent`)
		s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"3339876543"}`)
		try(promo, bruno, `true | 0: 20T09:30 "Sconto" warns blacklisted warns no_consent`)
		s.must(nil, "POST", "/api/contacts/consent", a.Key, `{"phone":"3339876543","purpose":"marketing","change":"grant","source":"modulo"}`)
		try(promo, bruno, `true | 0: 20T09:30 "Sconto" warns blacklisted`)
		s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"credits":0}`)
		try(promo, anna, `true | 0: 20T09:30 "Sconto" warns no_consent warns no_credit`)

		s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"credits":100}`)

		// Cases: the sequence is already running, the daily limit is reached, and things were deleted.
		const later = `{"text":"Più tardi","timing":{"anchor":"start","offset":{"amount":1,"unit":"hours","direction":"after"}}}`
		skip := s.newSequence(a.Key, later)
		s.must(nil, "PUT", "/api/sequences/"+skip, a.Key, `{"name":"Una alla volta","if_running":"skip","steps":[`+later+`]}`)
		alone := rule(reply, start(skip))
		try(alone, anna, `true | 0: 20T10:30 "Più tardi"`)
		s.must(nil, "POST", "/api/start/"+skip, a.Key, `{"phone":"3331234567"}`)
		try(alone, anna, `false !automation.running | 0: automation.running 20T10:30 "Più tardi"`)
		try(rule(reply, start(skip)+`,{"kind":"stop","sequence":"`+skip+`"}`), anna, `true | 1: 20T10:30 "Più tardi"`)
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"automated_most":1}`)
		try(both, anna, `false !automation.most | 1: 20T09:30 "Ricevuto" | 2: 20T09:30 "Ciao Anna" 21T09:30 "Domani"`)
		try(rule(reply, `{"kind":"start","sequence":"default"}`), anna, `false !automation.no_default | 0: automation.no_default`)
		s.must(nil, "POST", "/api/stop/"+skip, a.Key, anna)
		s.must(nil, "DELETE", "/api/sequences/"+skip, a.Key, "")
		try(alone, anna, `false !automation.gone | 0: automation.gone`)
		s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"expiration_date":"2026-11-01"}`)
		try(promo, anna, `false !automation.account`)
		if n := len(s.rows("select id from message")); n != 1 {
			t.Errorf("%d messages are stored, want the one of the start", n)
		}
		if n := len(s.rows("select id from automation_firing")); n != 0 {
			t.Errorf("%d lines in the logs", n)
		}
	})
}
