package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"puntuale"
)

type madeAutomation struct {
	ID, Name, Path string
	Active         bool
}

const (
	infoRule = `{"name":"Info","trigger":{"kind":"reply","words":["info","listino"]},"conditions":{"cooldown_hours":24,"tags":["cliente"],"fields":[{"name":"punti","op":"more","value":3}]},"actions":[{"kind":"send","text":"Ecco"},{"kind":"tag","add":["interessato"]}]}`
	hookRule = `{"name":"Modulo","active":false,"trigger":{"kind":"hook","map":{"phone":"cliente.telefono","nome":"/cliente/nome"}},"actions":[{"kind":"send","text":"Ciao {{nome|}}"}]}`
)

// TestAutomations creates, lists, reads, changes and deletes rules. An answer contains the values that the call sent.
// Another client cannot see the rule.
func TestAutomations(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a, b := s.newAccount("a@x", "full"), s.newAccount("b@x", "full")
		var info, hook madeAutomation
		body := s.must(&info, "POST", "/api/automations", a.Key, infoRule).body
		want := `"trigger":{"kind":"reply","words":["info","listino"]},"conditions":{"tags":["cliente"],"fields":[{"name":"punti","op":"more","value":"3"}],"cooldown_hours":24},` +
			`"actions":[{"kind":"send","text":"Ecco"},{"kind":"tag","add":["interessato"]}],"path":null,"fired":0,"last_fired_at":null,`
		if !info.Active || !strings.Contains(body, want) {
			t.Errorf("made: %s", body)
		}
		s.must(&hook, "POST", "/api/automations", a.Key, hookRule)
		if hook.Active || !strings.HasPrefix(hook.Path, "/hooks/hk_") {
			t.Errorf("a hook: %+v", hook)
		}
		list := s.must(nil, "GET", "/api/automations", a.Key, "").body
		if strings.Count(list, `"created_at"`) != 2 || strings.Contains(list, "hk_") {
			t.Errorf("listed: %s", list)
		}
		if list := s.must(nil, "GET", "/api/automations", b.Key, "").body; list != `{"automations":[]}` {
			t.Errorf("another client's: %s", list)
		}
		s.refusedAt(http.StatusUnprocessableEntity, "GET", "/api/automations?name=x", a.Key, "", "query.name")

		got := s.must(nil, "GET", "/api/automations/"+hook.ID, a.Key, "")
		if !strings.Contains(got.body, `"path":"`+hook.Path+`"`) {
			t.Errorf("read: %s", got.body)
		}
		tag := got.header.Get("ETag")
		changed := s.must(nil, "PUT", "/api/automations/"+hook.ID, a.Key, strings.Replace(hookRule, "Modulo", "Modulo nuovo", 1), "If-Match", tag)
		if changed.header.Get("ETag") == tag || !strings.Contains(changed.body, `"name":"Modulo nuovo"`) || !strings.Contains(changed.body, hook.Path) {
			t.Errorf("replaced: %s", changed.body)
		}
		for method, body := range map[string]string{"PUT": hookRule, "PATCH": `{"active":true}`} {
			if got := s.call(method, "/api/automations/"+hook.ID, a.Key, body, "If-Match", tag); got.status != http.StatusPreconditionFailed {
				t.Errorf("%s of a former version: %d %s", method, got.status, got.body)
			}
		}
		active := s.must(nil, "PATCH", "/api/automations/"+hook.ID, a.Key, `{"active":true}`, "If-Match", changed.header.Get("ETag"))
		if !strings.Contains(active.body, `"active":true`) {
			t.Errorf("switched on: %s", active.body)
		}
		s.refusedAt(http.StatusUnprocessableEntity, "PATCH", "/api/automations/"+hook.ID, a.Key, `{"name":"x"}`, "body.active", "body.name")
		var rotated madeAutomation
		s.must(&rotated, "POST", "/api/automations/"+hook.ID+"/rotate", a.Key, "")
		if rotated.Path == hook.Path || !strings.HasPrefix(rotated.Path, "/hooks/hk_") {
			t.Errorf("rotated: %s", rotated.Path)
		}
		if got := s.call("POST", "/api/automations/"+info.ID+"/rotate", a.Key, ""); got.status != http.StatusNotFound {
			t.Errorf("a rule without a hook: %d %s", got.status, got.body)
		}
		if list := s.must(nil, "GET", "/api/automations/"+info.ID+"/firings", a.Key, "").body; list != `{"firings":[],"next_cursor":null}` {
			t.Errorf("a new log: %s", list)
		}
		s.refusedAt(http.StatusUnprocessableEntity, "GET", "/api/automations/"+info.ID+"/firings?acted=true", a.Key, "", "query.acted")
		s.must(nil, "DELETE", "/api/automations/"+info.ID, a.Key, "")
		if got := s.call("GET", "/api/automations/"+info.ID, a.Key, ""); got.status != http.StatusNotFound {
			t.Errorf("deleted: %d", got.status)
		}
		if strings.Contains(s.log.String(), "hk_") {
			t.Error("the log has a hook's address")
		}
	})
}

// TestAutomationOnce: a repeat with the same Idempotency-Key gets the same hook path, and creates no second rule.
func TestAutomationOnce(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "full")
		first := s.must(nil, "POST", "/api/automations", a.Key, hookRule, "Idempotency-Key", "1")
		again := s.must(nil, "POST", "/api/automations", a.Key, hookRule, "Idempotency-Key", "1")
		if again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s, then %s", first.body, again.body)
		}
		if got := s.call("POST", "/api/automations", a.Key, infoRule, "Idempotency-Key", "1"); got.status != http.StatusConflict {
			t.Errorf("another body: %d %s", got.status, got.body)
		}
		if list := s.must(nil, "GET", "/api/automations", a.Key, "").body; strings.Count(list, `"created_at"`) != 1 {
			t.Errorf("listed: %s", list)
		}
	})
}

// TestAutomationFaults: the refusal names all faults, each at its location.
func TestAutomationFaults(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true})
	a := s.newAccount("a@x", "full")
	const path = "/api/automations"
	rule := func(trigger, conditions, actions string) string {
		return `{"name":"R","trigger":` + trigger + `,"conditions":` + conditions + `,"actions":` + actions + `}`
	}
	const reply, send = `{"kind":"reply"}`, `[{"kind":"send","text":"x"}]`
	for body, at := range map[string][]string{
		`{}`:                             {"body.trigger", "body.actions", "body.name"},
		rule(`{}`, `{}`, `[]`):           {"body.trigger.kind", "body.actions"},
		rule(`{"kind":"x"}`, `{}`, send): {"body.trigger.kind"},
		rule(`{"kind":"reply","hours":3,"Kind":"x"}`, `{}`, send):                                                                                                            {"body.trigger.Kind", "body.trigger.hours"},
		rule(`{"kind":"reply","words":["info","!"]}`, `{}`, send):                                                                                                            {"body.trigger.words[1]"},
		rule(`{"kind":"no_reply"}`, `{}`, send):                                                                                                                              {"body.trigger.sequence", "body.trigger.hours"},
		rule(`{"kind":"reply_to","sequence":"99"}`, `{}`, send):                                                                                                              {"body.trigger.sequence"},
		rule(`{"kind":"outcome","sequence":1,"is":"LOST"}`, `{}`, send):                                                                                                      {"body.trigger.is"},
		rule(`{"kind":"date","field":"2x","repeat":"daily"}`, `{}`, send):                                                                                                    {"body.trigger.field", "body.trigger.repeat", "body.actions[0].kind"},
		rule(`{"kind":"hook","map":{"nome":"a..b"}}`, `{}`, send):                                                                                                            {"body.trigger.map.phone", "body.trigger.map.nome"},
		rule(reply, `{"cooldown_hours":-1,"fields":[{"name":"","op":"like"}],"x":1}`, send):                                                                                  {"body.conditions.x", "body.conditions.fields[0].name", "body.conditions.fields[0].op", "body.conditions.cooldown_hours"},
		rule(reply, `{"id_sessione":"99","window":{"from":"25:00","to":"18:00"},"not_in":"all"}`, send):                                                                      {"body.conditions.window.from", "body.conditions.not_in"},
		rule(reply, `{}`, `[{"kind":"start"},{"kind":"start","sequence":"all"},{"kind":"x"}]`):                                                                               {"body.actions[0].sequence", "body.actions[1].sequence", "body.actions[2].kind"},
		rule(reply, `{}`, `[{"kind":"send"},{"kind":"send","text":"x","sequence":"1"},{"kind":"tag"}]`):                                                                      {"body.actions[0]", "body.actions[1].sequence", "body.actions[2]"},
		rule(reply, `{}`, `[`+strings.TrimSuffix(strings.Repeat(`{"kind":"send","text":"`+strings.Repeat("x", 4000)+`{{a|`+strings.Repeat("y", 4000)+`}}"},`, 10), ",")+`]`): {"body"},
	} {
		s.refusedAt(http.StatusUnprocessableEntity, "POST", path, a.Key, body, at...)
	}
	for body, at := range map[string]string{
		rule(`[]`, `{}`, send): "body.trigger", rule(reply, `3`, send): "body.conditions", rule(reply, `{}`, `{}`): "body.actions",
		rule(`{"kind":"hook","map":{"phone":3}}`, `{}`, send): "body.trigger.map.phone", rule(`{"kind":"reply","first":"yes"}`, `{}`, send): "body.trigger.first",
	} {
		s.refusedAt(http.StatusBadRequest, "POST", path, a.Key, body, at)
	}
	if list := s.must(nil, "GET", path, a.Key, "").body; list != `{"automations":[]}` {
		t.Errorf("something was stored: %s", list)
	}
	for range puntuale.MaxAutomations {
		s.must(nil, "POST", path, a.Key, rule(reply, `{}`, send))
	}
	if got := s.call("POST", path, a.Key, rule(reply, `{}`, send)); got.status == http.StatusOK {
		t.Errorf("beyond the quota: %s", got.body)
	}
}
