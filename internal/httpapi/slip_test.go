package httpapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSlips: a call with a small mistake must not look successful. If a call probably contains a mistake, the server
// refuses the call and does nothing.
func TestSlips(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		for name, test := range map[string]func(*testing.T, *service){
			"dry run": slipDryRun, "filters": slipFilters, "members": slipMembers, "official": slipOfficial, "ids": slipIDs,
			"wording": slipWording, "periods": slipPeriods,
		} {
			t.Run(name, func(t *testing.T) {
				s := *s
				s.t = t
				test(t, &s)
			})
		}
	})
}

// A caller that requests a dry run does not want to send, even if the parameter is misspelled.
func slipDryRun(t *testing.T, s *service) {
	key := s.newClient("dry@x", "test")
	single := `{"phone":"3331234567","text":"x"}`
	sent := s.must(nil, "POST", "/api/messages", key, single, "Idempotency-Key", "k")
	id := sent.body[len(`{"id":["`):strings.Index(sent.body, `"]`)]
	again := `{"id":["` + id + `"]}`
	for _, name := range []string{"dry_run=true", "dry_run", "dry_run=1", "dry_run=yes", "dryRun=true", "dry-run=false", "DRY_RUN="} {
		parameter, _, _ := strings.Cut(name, "=")
		s.refusedAt(422, "POST", "/api/messages?"+name, key, single, "query."+parameter)
		s.refusedAt(422, "POST", "/api/messages/reschedule/all?"+name, key, again, "query."+parameter)
		if a := s.call("POST", "/api/messages?"+name, key, single, "Idempotency-Key", "k"); a.status != 422 {
			t.Errorf("a repeat with %s: %d", name, a.status)
		}
	}
	if a := s.must(nil, "GET", "/api/messages", key, ""); strings.Count(a.body, `"tipologia"`) != 1 {
		t.Error(a.body)
	}
	a := s.must(nil, "POST", "/api/messages?dry_run=false", key, single)
	if !strings.Contains(a.body, `"daily_api_used":2`) {
		t.Error(a.body)
	}
}

func slipFilters(t *testing.T, s *service) {
	key := s.newClient("filters@x", "test")
	for _, c := range []struct{ query, at string }{
		{"state=PENDING&state=FAILED", "query.state"},
		{"phone=3331234567&phone=3331234568", "query.phone"},
		{"sequence=1&sequence=2", "query.sequence"},
		{"origin=SINGLE&origin=SEQUENCE", "query.origin"},
		{"limit=1&limit=2", "query.limit"},
		{"cursor=&cursor=x", "query.cursor"},
		{"start=20/11/2026&start=21/11/2026", "query.start"},
		{"limit=%2B5", "query.limit"},
		{"limit=+5", "query.limit"},
		{"limit=0", "query.limit"},
	} {
		s.refusedAt(422, "GET", "/api/messages?"+c.query, key, "", c.at)
	}
	s.refusedAt(422, "GET", "/api/sequences?limit=1&limit=2", key, "", "query.limit")
	s.refusedAt(422, "GET", "/api/messages/statusByPeriod?start=20/11/2026+10:00&end=20/11/2026+11:00&cursor=a&cursor=b", key, "", "query.cursor")
	s.refusedAt(422, "POST", "/api/start/"+s.newSequence(key, stepNow)+"?if_running=skip&if_running=allow", key, `{"phone":"3331234567"}`, "query.if_running")
	s.must(nil, "GET", "/api/messages?state=PENDING&state=PENDING&limit=5&limit=5", key, "")
}

func slipMembers(t *testing.T, s *service) {
	a := s.newAccount("members@x", "test")
	one := "/api/client/" + a.ID
	s.refusedAt(422, "PATCH", one, s.partner, `{"suspend":true,"credits":5,"Name":"x"}`, "body.Name", "body.suspend")
	s.refusedAt(422, "PATCH", one, s.partner, `{"tags":null}`, "body.tags")
	if got := s.must(nil, "GET", one+"/snapshot", s.partner, ""); !strings.Contains(got.body, `"credits":"100"`) {
		t.Error(got.body)
	}
	// The bodies of all other calls, and all answers, may contain undocumented members. The document must not forbid
	// these members.
	document := s.must(nil, "GET", "/openapi.json", "", "").body
	if n := strings.Count(document, `"additionalProperties":false`); n != 20 {
		t.Errorf("%d objects are closed", n)
	}
	for _, name := range []string{"ChangeBody", "CancelBody", "EraseBody", "UnknownBody", "ContactBody", "ContactChangeBody", "SettingsBody", "WebhookBody", "WebhookPatchBody", "PlanBody", "ReplayBody", "AutomationBody", "AutomationSwitchBody", "TryBody", "ChatwootBody", "ReplanBody", "CalendarBody", "CalendarPatchBody", "GoneBody", "BudgetBody"} {
		if !strings.Contains(document, `"`+name+`":{"additionalProperties":false`) {
			t.Errorf("%s is open", name)
		}
	}
}

func slipOfficial(_ *testing.T, s *service) {
	key := s.newClient("official@x", "test")
	for _, sandbox := range []string{"true", "false"} {
		s.refusedAt(422, "POST", "/api/sessions", key,
			`{"name":"x","connection_type":"Official","sandbox":`+sandbox+`,"official":{"phone_number_id":"1"}}`,
			"body.official.access_token", "body.official.app_secret", "body.official.verify_token")
	}
	s.refusedAt(422, "POST", "/api/sessions", key, `{"name":"x","connection_type":"Socket","official":`+officialKeys+`}`, "body.official")
	s.refusedAt(422, "POST", "/api/sessions", key, `{"name":"x","connection_type":"Official","official":{"phone_number_id":"+39 333","access_token":"a b","app_secret":"è","verify_token":"  "}}`,
		"body.official.phone_number_id", "body.official.access_token", "body.official.app_secret", "body.official.verify_token")
	s.refusedAt(400, "POST", "/api/sessions", key, `{"name":"x","connection_type":"Official","official":[]}`, "body.official")
	s.refusedAt(400, "POST", "/api/sessions", key, `{"name":"x","connection_type":"Official","official":{"app_secret":1}}`, "body.official.app_secret")
	s.must(nil, "POST", "/api/sessions", key, `{"name":"x","connection_type":"Official","official":null}`)
}

// A text that is not an id is ignored, like an unknown id.
func slipIDs(t *testing.T, s *service) {
	key := s.newClient("ids@x", "test")
	sent := s.must(nil, "POST", "/api/messages", key, `{"phone":"3331234567","text":"x"}`)
	id := sent.body[len(`{"id":["`):strings.Index(sent.body, `"]`)]
	if a := s.must(nil, "GET", "/api/messages/details?message_ids=x,"+id+",-1,007,99999999999999999999", key, ""); strings.Count(a.body, `"tipologia"`) != 1 {
		t.Error(a.body)
	}
	if a := s.must(nil, "GET", "/api/messages/details?message_ids=x", key, ""); a.body != `{"messages":[]}` {
		t.Error(a.body)
	}
	s.refusedAt(422, "GET", "/api/messages/details?message_ids=", key, "", "query.message_ids")
}

func slipWording(t *testing.T, s *service) {
	a := s.newAccount("wording@x", "test")
	var made struct{ ID string }
	s.must(&made, "POST", "/api/sessions", a.Key, `{"name":"x","connection_type":"Socket"}`)
	session := made.ID
	s.must(&made, "POST", "/api/sequences", a.Key, `{"name":"x","id_sessione":"`+session+`","steps":[`+stepLater+`]}`)
	for _, count := range []string{"1 pending message", "2 pending messages"} {
		s.must(nil, "POST", "/api/start/"+made.ID, a.Key, `{"phone":"3331234567","testo":"t"}`)
		for what, path := range map[string]string{"session": "/api/sessions/" + session, "sequence": "/api/sequences/" + made.ID} {
			if got := s.call("DELETE", path, a.Key, ""); got.status != 409 || !strings.Contains(got.body, `"the `+what+` has `+count+`"`) {
				t.Errorf("%d %s", got.status, got.body)
			}
		}
	}
	if got := s.call("POST", "/api/templates", a.Key, `{"name":"x"}`); got.status != 422 || !strings.Contains(got.body, "give text, media or a location") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A period's bounds have several names in a query. If a bound is faulty, the fault's location is the name that the
// caller used.
func slipPeriods(t *testing.T, s *service) {
	a := s.newAccount("periods@x", "full")
	for _, path := range []string{"/api/messages/statusByPeriod", "/api/messages"} {
		got := s.call("GET", path+"?start=&inizio=21/11/2026+10:00&end=&fine=20/11/2026+10:00", a.Key, "")
		if want := []string{"query.inizio"}; got.status != 422 || !slices.Equal(got.locations(), want) || !strings.Contains(got.body, `"value":"21/11/2026 10:00"`) {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

// If calls with one key exceed its rate, further calls with this key are refused for a time. Calls with other keys are
// not refused. Refused calls are not counted.
func TestRate(t *testing.T) {
	t.Parallel()
	s := newService(t, options{rate: 1.5})
	if a := s.call("POST", "/api/client/create", s.partner, `{}`); a.status != 422 {
		t.Fatal(a.body)
	}
	s.clock.Advance(time.Minute)
	one, two := s.newClient("a@x", "test"), s.newClient("b@x", "test")
	stop := func(key string, want int) response {
		t.Helper()
		a := s.call("POST", "/api/blacklist", key, `{"phone":"3331234567"}`)
		if a.status != want {
			t.Errorf("%d %s, want %d", a.status, a.body, want)
		}
		return a
	}
	for range 3 {
		stop(one, http.StatusOK)
	}
	refused := stop(one, http.StatusTooManyRequests)
	if refused.header.Get("Retry-After") != "1" || !strings.Contains(refused.body, `"code":"rate_limited"`) || refused.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%v %s", refused.header, refused.body)
	}
	stop(two, http.StatusOK)
	if a := s.call("GET", "/openapi.json", "", ""); a.status != http.StatusOK {
		t.Errorf("the document: %d", a.status)
	}
	if a := s.call("GET", "/api/sessions", one+"x", ""); a.status != http.StatusUnauthorized {
		t.Errorf("no key: %d", a.status)
	}
	s.clock.Advance(700 * time.Millisecond)
	stop(one, http.StatusOK)
	stop(one, http.StatusTooManyRequests)
	var used int
	if err := s.db.SQL.QueryRowContext(t.Context(), `select max(used) from api_usage`).Scan(&used); err != nil || used != 4 {
		t.Errorf("%d calls counted, %v", used, err)
	}
}
