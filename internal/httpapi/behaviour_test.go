package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestBehaviour covers each decision that the contract leaves open, on both databases. Some decisions have their own
// tests.
//
//   - The order of refusals: TestOrderOfRefusals, TestUnmatched.
//   - Lenient calls: TestStartIsLenient, TestDetailsAreLenient, TestFlaws. The strict call: TestCancelIsStrict.
//   - The daily cap: TestCapIsExact, TestStopsWorkOverTheCap.
//   - Accounts that may not send: TestAccountsThatMayNotSend.
//   - Dry runs: TestDryRun. Zones: TestStartTimezone. Lists: TestPages.
//   - if_running and deleted sequences: TestIfRunningAndStop.
//   - Keys and tenants: TestKeysAndTenants. Logins: TestCreateClient.
//   - Recipients: TestParseRecipient in package control.
//
// Package plan tests steps, timing, windows, dates and placeholders. Packages dispatch and storetest test the outcomes
// of messages.
func TestBehaviour(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		test func(*testing.T, *service)
	}{
		{"KeysInHeaderOrQuery", behaviourKeyPlaces},
		{"SeveralKeysOfAClient", behaviourKeys},
		{"IdempotencyOnEveryCreation", behaviourOnce},
		{"KeptAnswersHoldNoReadableKey", behaviourSealed},
		{"CapCountsAndRefuses", behaviourCap},
		{"CreditsAndProfiles", behaviourCredits},
		{"Refills", behaviourRefills},
		{"SuspendedAndExpired", behaviourStanding},
		{"ClientDeleted", behaviourClientDeleted},
		{"ClientLists", behaviourClients},
		{"ZoneRegionAndHolidays", behaviourZone},
		{"Templates", behaviourTemplates},
		{"DayAlone", behaviourDayAlone},
		{"DeletingASequenceClearsItsPair", behaviourPairs},
		{"SessionsDeleted", behaviourSessions},
		{"ResendMoments", behaviourResendMoments},
		{"ResendStates", behaviourResendStates},
		{"OutcomePeriods", behaviourPeriods},
		{"Skipped", behaviourSkipped},
		{"BeforeAndJitter", behaviourBefore},
		{"DryRun", behaviourDryRun},
		{"FrozenAtStart", behaviourFrozen},
		{"DetailsOnTheWay", behaviourDetails},
		{"CapDays", behaviourCapDays},
		{"Recipients", behaviourRecipients},
		{"Blacklist", behaviourBlacklist},
		{"FormerNumber", behaviourFormerNumber},
		{"SandboxLedger", behaviourSandboxLedger},
		{"SandboxSessions", behaviourSandboxSessions},
		{"ListSizes", behaviourListSizes},
		{"OutcomesKeptApart", behaviourOutcomesApart},
		{"OutcomesAreComplete", behaviourOutcomesComplete},
		{"StoppedInFlight", behaviourStoppedInFlight},
		{"SingleSend", behaviourSingle},
		{"SingleSendFaults", behaviourSingleFaults},
		{"MessageLists", behaviourLists},
		{"CancelByIDs", behaviourCancelIDs},
		{"Reference", behaviourReference},
		{"ContentsBlanked", behaviourContentsBlanked},
		{"PersonErased", behaviourPersonErased},
		{"ErasedWhileSent", behaviourErasedWhileSent},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			databases(t, options{sandbox: true}, c.test)
		})
	}
}

// refusedAt makes a call that must be refused with this status, and with faults at these locations.
func (s *service) refusedAt(status int, method, target, key, body string, at ...string) response {
	s.t.Helper()
	a := s.call(method, target, key, body)
	if a.status != status || !slices.Equal(a.locations(), append([]string{}, at...)) {
		s.t.Errorf("%s %s %.200s: %d %s, want %d at %v", method, target, body, a.status, a.body, status, at)
	}
	return a
}

func behaviourKeyPlaces(t *testing.T, s *service) {
	a, b := s.newAccount("a@x", "full"), s.newAccount("b@x", "full")
	s.must(nil, "GET", "/api/sessions?api_key="+a.Key, a.Key, "")
	s.refusedAt(401, "GET", "/api/sessions?api_key="+b.Key, a.Key, "")
	s.refusedAt(401, "GET", "/api/session/"+a.Session+"/defaultSequence", "", "")
	s.refusedAt(401, "GET", "/api/sessions", a.Key[:60]+"!", "")
}

func behaviourKeys(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	keys := "/api/client/" + a.ID + "/keys"
	type key struct {
		ID, Name, Prefix string
		Plain            string  `json:"api_key"`
		Expires          *string `json:"expires_at"`
		Used             *string `json:"last_used_at"`
	}
	used := func(k key, want string) {
		t.Helper()
		if k.Used == nil && want != "" || k.Used != nil && *k.Used != want {
			t.Errorf("key %s was last used at %v, want %s", k.ID, k.Used, want)
		}
	}
	var second, third key
	var list struct{ Keys []key }
	s.must(&second, "POST", keys, s.partner, `{"name":"gestionale"}`)
	s.must(nil, "GET", "/api/sessions", second.Plain, "")
	s.must(&list, "GET", keys, s.partner, "")
	if len(list.Keys) != 2 || list.Keys[1].Name != "gestionale" || !strings.HasPrefix(second.Plain, list.Keys[1].Prefix) || list.Keys[1].Plain != "" {
		t.Errorf("%+v", list)
	}
	used(second, "")
	used(list.Keys[1], "2026-11-20T09:30:00.123456Z")
	s.must(&third, "POST", keys+"/"+second.ID+"/rotate", s.partner, `{"grace":60}`)
	s.must(nil, "GET", "/api/sessions", second.Plain, "")
	s.must(&list, "GET", keys, s.partner, "")
	if len(list.Keys) != 3 || *list.Keys[1].Expires != "2026-11-20T09:31:00.123456Z" || list.Keys[2].Name != "gestionale" {
		t.Errorf("%+v", list)
	}
	s.clock.Advance(time.Minute)
	s.refusedAt(401, "GET", "/api/sessions", second.Plain, "")
	s.must(nil, "GET", "/api/sessions", third.Plain, "")
	for minutes, want := range []string{"2026-11-20T09:31:00.123456Z", "2026-11-20T09:31:00.123456Z", "2026-11-20T09:37:00.123456Z"} { // it is stored every five minutes
		s.clock.Advance(time.Duration(2*minutes) * time.Minute)
		s.must(nil, "GET", "/api/sessions", third.Plain, "")
		s.must(&list, "GET", keys, s.partner, "")
		used(list.Keys[len(list.Keys)-1], want)
	}
	s.refusedAt(404, "POST", keys+"/"+second.ID+"/rotate", s.partner, "")
	s.refusedAt(422, "POST", keys+"/"+third.ID+"/rotate", s.partner, `{"grace":-1}`, "body.grace")
	s.refusedAt(400, "POST", keys+"/"+third.ID+"/rotate", s.partner, `{"grace":"1h"}`, "body.grace")
	s.must(nil, "DELETE", keys+"/"+third.ID, s.partner, "")
	s.refusedAt(401, "GET", "/api/sessions", third.Plain, "")
	s.must(nil, "GET", "/api/sessions", a.Key, "")
	s.refusedAt(404, "DELETE", keys+"/"+third.ID, s.partner, "")
	s.refusedAt(422, "POST", keys, s.partner, `{"name":" "}`, "body.name")
}

func behaviourOnce(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, stepLater)
	var run started
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t"}`)
	var keys struct{ Keys []struct{ ID string } }
	s.must(&keys, "GET", "/api/client/"+a.ID+"/keys", s.partner, "")
	for i, c := range []struct{ path, key, body, other string }{
		{"/api/start/" + id, a.Key, `{"phone":"3331234567","testo":"<&>"}`, `{"phone":"3331234567","testo":"b"}`},
		{"/api/messages", a.Key, `{"phone":"3331234567","text":"a"}`, `{"phone":"3331234567","text":"b"}`},
		{"/api/messages/reschedule/all", a.Key, `{"id":["` + run.ID[0] + `"]}`, `{"id":[` + run.ID[0] + `]}`},
		{"/api/sequences", a.Key, `{"name":"<&>","steps":[` + stepNow + `]}`, `{"name":"y","steps":[` + stepNow + `]}`},
		{"/api/sessions", a.Key, `{"name":"x","connection_type":"Socket"}`, `{"name":"y","connection_type":"Socket"}`},
		{"/api/templates", a.Key, `{"name":"x","text":"è"}`, `{"name":"y","text":"e"}`},
		{"/api/blacklist", a.Key, `{"phone":"3331234567"}`, `{"phone":"3337654321"}`},
		{"/api/client/create", s.partner, `{"name":"x","email":"k@x","password":"p","phone":"1"}`, `{"name":"x","email":"l@x","password":"p","phone":"1"}`},
		{"/api/client/" + a.ID + "/keys", s.partner, `{"name":"x"}`, `{"name":"y"}`},
		{"/api/client/" + a.ID + "/keys/" + keys.Keys[0].ID + "/rotate", s.partner, `{}`, `{"grace":1}`},
	} {
		header := []string{"Idempotency-Key", fmt.Sprintf("k%d", i)}
		first := s.must(nil, "POST", c.path, c.key, c.body, header...)
		again := s.must(nil, "POST", c.path, c.key, c.body, header...)
		if first.body != again.body || first.header.Get("Idempotent-Replayed") != "" || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: first %v\n%s\nthen %v\n%s", c.path, first.header, first.body, again.header, again.body)
		}
		if a := s.call("POST", c.path, c.key, c.other, header...); a.status != 409 {
			t.Errorf("%s with another body: %d %s", c.path, a.status, a.body)
		}
		if a := s.call("POST", c.path, c.key, c.body, "Idempotency-Key", strings.Repeat("k", 256)); a.status != 422 ||
			!slices.Equal(a.locations(), []string{"header.Idempotency-Key"}) {
			t.Errorf("%s with a long key: %d %s", c.path, a.status, a.body)
		}
		// Without an idempotency key, each call has its own effect.
		if strings.HasSuffix(c.path, "sequences") {
			if anew := s.must(nil, "POST", c.path, c.key, c.body); anew.body == first.body {
				t.Errorf("%s: %s", c.path, anew.body)
			}
		}
	}
}

func behaviourSealed(t *testing.T, s *service) {
	body := `{"name":"x","email":"k@x","password":"p","phone":"1"}`
	var created clientAccount
	first := s.must(&created, "POST", "/api/client/create", s.partner, body, "Idempotency-Key", "k")
	rows, err := s.db.SQL.QueryContext(t.Context(), `select result from idempotency`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var kept []byte
		if err := rows.Scan(&kept); err != nil || strings.Contains(string(kept), created.Key) || strings.Contains(string(kept), "k@x") {
			t.Errorf("kept readable: %s, %v", kept, err)
		}
	}
	if n != 1 || rows.Err() != nil {
		t.Errorf("%d answers are kept, %v", n, rows.Err())
	}
	old := s.partner
	if s.partner, err = s.accounts.RotateKey(t.Context(), old, time.Hour); err != nil {
		t.Fatal(err)
	}
	if a := s.call("POST", "/api/client/create", s.partner, body, "Idempotency-Key", "k"); a.status != 409 {
		t.Errorf("with the partner's other key: %d %s", a.status, a.body)
	}
	if a := s.must(nil, "POST", "/api/client/create", old, body, "Idempotency-Key", "k"); a.body != first.body {
		t.Errorf("with the same key: %s", a.body)
	}
	// If several callers make the same call at the same time, it has one effect, and all callers get the same answer.
	answers := make(chan string, 4)
	for range cap(answers) {
		go func() {
			r := httptest.NewRequest(http.MethodPost, "/api/client/create", strings.NewReader(strings.Replace(body, "k@x", "t@x", 1)))
			r.Header.Set("Authorization", "Bearer "+s.partner)
			r.Header.Set("Idempotency-Key", "twins")
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			answers <- fmt.Sprint(w.Code, w.Body)
		}()
	}
	same := <-answers
	for range cap(answers) - 1 {
		if other := <-answers; other != same || !strings.HasPrefix(other, "200") {
			t.Errorf("%s\nand\n%s", same, other)
		}
	}
}

func behaviourCap(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, stepLater)
	var run started
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t"}`)
	s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"daily_api_cap":2}`)
	s.must(&run, "POST", "/api/messages", a.Key, `{"phone":"3331234567","text":"x"}`)
	if run.Cap != 2 || run.Used != 2 || run.Remaining != 0 {
		t.Errorf("%+v", run)
	}
	for path, body := range map[string]string{
		"/api/start/" + id: `{"phone":"3331234567","testo":"t"}`, "/api/messages": `{"phone":"3331234567","text":"x"}`,
		"/api/messages/reschedule/all": `{"id":["` + run.ID[0] + `"]}`,
	} {
		got := s.call("POST", path, a.Key, body)
		if got.status != 429 || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, `"daily_api_cap":2,"daily_api_used":2,"daily_api_remaining":0`) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	// These calls are counted, but the daily cap never refuses them.
	s.must(nil, "POST", "/api/messages/cancel", a.Key, `{"id":["`+run.ID[0]+`"]}`)
	s.must(nil, "POST", "/api/messages/cancel/pending", a.Key, `{}`)
	s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"3331234567"}`)
	s.must(nil, "DELETE", "/api/blacklist/remove", a.Key, `{"phone":"3331234567"}`)
	// These calls are not counted.
	s.newSequence(a.Key, stepNow)
	s.must(nil, "GET", "/api/messages", a.Key, "")
	s.must(nil, "POST", "/api/start/"+id+"?dry_run=true", a.Key, `{"phone":"3331234567","testo":"t"}`)
	got := s.must(nil, "POST", "/api/stop/"+id, a.Key, `{"phone":"3331234567"}`)
	if !strings.HasSuffix(got.body, `"daily_api_cap":2,"daily_api_used":7,"daily_api_remaining":0}`) {
		t.Error(got.body)
	}
	s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"daily_api_cap":null}`)
	s.must(&run, "POST", "/api/messages", a.Key, `{"phone":"3331234567","text":"x"}`)
	if run.Cap != 1_000_000 || run.Used != 8 {
		t.Errorf("%+v", run)
	}
}

func behaviourCredits(t *testing.T, s *service) {
	a := s.newAccount("a@x", "test")
	one := "/api/client/" + a.ID
	credits := func(body, want string) {
		t.Helper()
		if got := s.must(nil, "PATCH", one, s.partner, body); !strings.Contains(got.body, `"credits":"`+want+`"`) {
			t.Errorf("%s: %s", body, got.body)
		}
	}
	credits(`{"credits":5}`, "5")
	credits(`{"credits_add":-2}`, "3")
	credits(`{"credits_add":7,"credits":null}`, "10")
	s.refusedAt(422, "PATCH", one, s.partner, `{"credits_add":-11}`, "body.credits_add")
	s.refusedAt(422, "PATCH", one, s.partner, `{"credits_add":1,"credits":1}`, "body.credits_add")
	s.refusedAt(422, "PATCH", one, s.partner, `{"credits":"tanti"}`, "body.credits")
	s.refusedAt(422, "PATCH", one, s.partner, `{"credits":-1}`, "body.credits")
	s.refusedAt(400, "PATCH", one, s.partner, `{"credits":1.5,"suspended":"no","active_features":"x"}`, "body.active_features", "body.suspended", "body.credits")
	id := s.newSequence(a.Key, stepNow)
	var run started
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567"}`)
	credits(`{}`, "10")
	item, _ := s.begin(a, run.ID[0], "+393331234567")
	credits(`{}`, "9") // one credit is reserved for the attempt
	s.record(refused, item)
	credits(`{}`, "10") // the refusal proves that nothing was sent, so the credit is returned
	credits(`{"credits":"Illimitati"}`, "Illimitati")
	s.refusedAt(422, "PATCH", one, s.partner, `{"credits_add":1}`, "body.credits_add")
	want := `{"account_name":"Nuovo","login":"a@x","phone":"39","connection_type":"Socket","profile":"Account gratuito","credits":"0",` +
		`"refill_period":"Mensile","expiration_date":"2027-01-31","active_features":["crm","api"]}`
	body := `{"name":"Nuovo","phone":39,"profile":"Account gratuito","credits":0,"refill_period":"Mensile","expiration_date":"2027-01-31","active_features":["crm","api"]}`
	if got := s.must(nil, "PATCH", one, s.partner, body); got.body != want {
		t.Error(got.body)
	}
	if got := s.must(nil, "GET", one+"/snapshot", s.partner, ""); got.body != want {
		t.Error(got.body)
	}
	if got := s.must(nil, "PATCH", one, s.partner, `{"expiration_date":null,"active_features":[]}`); !strings.Contains(got.body, `"expiration_date":null,"active_features":[]`) {
		t.Error(got.body)
	}
	s.refusedAt(422, "PATCH", one, s.partner, `{"profile":"Gold","refill_period":"Settimanale","expiration_date":"31/01/2027","name":"","timezone":"Roma","region":"ITA","holidays":["x"],"daily_api_cap":-1,"active_features":[""]}`,
		"body.name", "body.profile", "body.refill_period", "body.active_features[0]", "body.daily_api_cap", "body.region", "body.holidays[0]", "body.timezone", "body.expiration_date")
	// The sum of the ledger's entries equals the remaining credits plus the reserved credits.
	s.must(nil, "PATCH", one, s.partner, `{"credits":4}`)
	var sum int64
	if err := s.db.SQL.QueryRowContext(t.Context(), `select sum(amount) from credit_entry where client_id = `+a.ID).Scan(&sum); err != nil || sum != 4 {
		t.Errorf("the ledger's sum is %d, %v", sum, err)
	}
}

func behaviourRefills(t *testing.T, s *service) {
	baby, monthly := s.newAccount("a@x", "baby"), s.newAccount("b@x", "test")
	s.must(nil, "PATCH", "/api/client/"+baby.ID, s.partner, `{"credits_add":-1990}`)
	s.must(nil, "PATCH", "/api/client/"+monthly.ID, s.partner, `{"credits_add":-93,"refill_period":"Mensile"}`)
	credits := func(a clientAccount) string {
		var v struct{ Credits string }
		s.must(&v, "GET", "/api/client/"+a.ID+"/snapshot", s.partner, "")
		return v.Credits
	}
	refill := func(at time.Time, want int, babys, monthlys string) {
		t.Helper()
		s.clock.Set(at)
		n, err := s.accounts.Refill(t.Context())
		if again, errAgain := s.accounts.Refill(t.Context()); n != want || err != nil || again != 0 || errAgain != nil {
			t.Errorf("%s: %d, %v, then %d, %v", at, n, err, again, errAgain)
		}
		if credits(baby) != babys || credits(monthly) != monthlys {
			t.Errorf("%s: %s, %s", at, credits(baby), credits(monthly))
		}
	}
	refill(time.Date(2026, 12, 19, 22, 59, 59, 0, time.UTC), 0, "10", "7")
	refill(time.Date(2026, 12, 19, 23, 0, 0, 0, time.UTC), 1, "10", "100")
	s.must(nil, "PATCH", "/api/client/"+monthly.ID, s.partner, `{"credits":150,"refill_to":120}`)
	refill(time.Date(2027, 1, 25, 0, 0, 0, 0, time.UTC), 1, "10", "150") // the refill is late, and removes no credits
	refill(time.Date(2027, 11, 19, 23, 0, 0, 0, time.UTC), 2, "2000", "150")
	s.must(nil, "PATCH", "/api/client/"+monthly.ID, s.partner, `{"credits":7}`) // from now on, each refill sets this number
	s.must(nil, "PATCH", "/api/client/"+monthly.ID, s.partner, `{"credits_add":-5}`)
	refill(time.Date(2027, 12, 19, 23, 0, 0, 0, time.UTC), 1, "2000", "7")
}

func behaviourStanding(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"suspended":true}`)
	s.refusedAt(403, "GET", "/api/sessions", a.Key, "")
	s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"suspended":false,"expiration_date":"2026-11-19"}`)
	for path, body := range map[string]string{
		"/api/messages": `{}`, "/api/messages/reschedule/all": `{}`, "/api/templates": `{}`, "/api/sequences": `{}`, "/api/sessions": `{}`,
	} {
		s.refusedAt(403, "POST", path, a.Key, body)
	}
	for _, path := range []string{"/api/messages", "/api/templates", "/api/sessions"} {
		s.must(nil, "GET", path, a.Key, "")
	}
	s.must(nil, "POST", "/api/messages/cancel/pending", a.Key, "")
	s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"expiration_date":"2026-11-20"}`) // today is the account's last day
	s.must(nil, "POST", "/api/messages", a.Key, `{"phone":"3331234567","text":"x"}`)
}

func behaviourClientDeleted(t *testing.T, s *service) {
	a := s.newAccount("a@x", "test")
	id := s.newSequence(a.Key, stepLater)
	s.must(nil, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t"}`)
	s.must(nil, "DELETE", "/api/client/"+a.ID, s.partner, "")
	s.refusedAt(401, "GET", "/api/sessions", a.Key, "")
	s.refusedAt(404, "GET", "/api/client/"+a.ID+"/snapshot", s.partner, "")
	s.refusedAt(404, "DELETE", "/api/client/"+a.ID, s.partner, "")
	s.refusedAt(404, "PATCH", "/api/client/"+a.ID, s.partner, `{"suspended":false}`)
	s.refusedAt(404, "POST", "/api/client/"+a.ID+"/keys", s.partner, `{"name":"x"}`)
	s.newAccount("a@x", "full") // the deleted client's login may be used again
	var pending, entries int
	err := s.db.SQL.QueryRowContext(t.Context(), `select (select count(*) from message where state = 0), (select count(*) from credit_entry where client_id = `+a.ID+`)`).Scan(&pending, &entries)
	if err != nil || pending != 0 || entries == 0 {
		t.Errorf("%d pending, %d entries in the ledger, %v", pending, entries, err)
	}
}

func behaviourClients(t *testing.T, s *service) {
	var ids []string
	for i := range 3 {
		ids = append(ids, s.newAccount(fmt.Sprintf("%d@x", i), "test").ID)
	}
	var page struct {
		Clients []json.RawMessage
		Next    *string `json:"next_cursor"`
	}
	s.must(&page, "GET", "/api/clients?limit=2", s.partner, "")
	wantShape(t, page.Clients[0], `id_client:string account_name:string login:string phone:string connection_type:string profile:string credits:string
 refill_period:string expiration_date:string active_features:array account_type:string daily_api_cap:number refill_to:null timezone:string region:string
 holidays:array suspended:boolean created_at:string quotas:object plan:null`)
	if len(page.Clients) != 2 || page.Next == nil || !strings.Contains(string(page.Clients[0]), `"id_client":"`+ids[0]+`"`) {
		t.Errorf("%s", page.Clients)
	}
	cursor := *page.Next
	s.must(&page, "GET", "/api/clients?limit=2&cursor="+cursor, s.partner, "")
	if len(page.Clients) != 1 || page.Next != nil {
		t.Errorf("%s", page.Clients)
	}
	s.refusedAt(422, "GET", "/api/clients?name=x", s.partner, "", "query.name")
}

func behaviourZone(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"timezone":"America/New_York","region":"us","holidays":["2026-11-23"],"expiration_date":"2026-11-30"}`)
	id := s.newSequence(a.Key, `{"text":"x","timing":{"anchor":"start","offset":{"amount":3,"unit":"days"},"at":"10:00","window":{"weekdays":[1,2,3,4,5],"holidays":"avoid"}}}`)
	var run started
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"2125552368"}`)
	d := s.details(a.Key, run.ID...)[0]
	if d.Telefono != "+12125552368" || *d.Desired != "2026-11-23T15:00:00.000000Z" || d.Planned != "2026-11-24T15:00:00.000000Z" {
		t.Errorf("%+v", d)
	}
	s.clock.Set(time.Date(2026, 12, 1, 4, 59, 0, 0, time.UTC))
	s.must(nil, "POST", "/api/start/"+id, a.Key, `{"phone":"2125552368"}`)
	s.clock.Advance(time.Minute)
	s.refusedAt(403, "POST", "/api/start/"+id, a.Key, `{"phone":"2125552368"}`)
}

func behaviourTemplates(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	var made struct {
		ID     string
		Fields []struct{ Name, Kind string }
	}
	s.must(&made, "POST", "/api/templates", a.Key, `{"name":"Visita","text":"Ciao {{nome}}, {{quando:giorno}}","media":"{{foto|}}"}`)
	if len(made.Fields) != 3 || made.Fields[1].Kind != "date" {
		t.Errorf("%+v", made)
	}
	template := "/api/templates/" + made.ID
	s.refusedAt(409, "POST", "/api/templates", a.Key, `{"name":"Visita","text":"x"}`)
	s.refusedAt(422, "POST", "/api/templates", a.Key, `{"name":" ","text":"{{1}}","latitude":91}`, "body.name", "body.text", "body.latitude", "body.longitude")
	s.refusedAt(422, "POST", "/api/templates", a.Key, `{"name":"Vuoto"}`, "body")
	step := `{"template":"Visita","timing":{"anchor":"start","offset":{"amount":0}}}`
	s.refusedAt(422, "POST", "/api/sequences", a.Key, `{"name":"x","steps":[`+stepNow+`,`+strings.Replace(step, "Visita", "Altro", 1)+`]}`, "body.steps[1].template")
	var sequence struct {
		ID     string
		Fields []struct{ Name string }
	}
	s.must(&sequence, "POST", "/api/sequences", a.Key, `{"name":"x","steps":[`+step+`]}`)
	if len(sequence.Fields) != 3 {
		t.Errorf("%+v", sequence)
	}
	var run started
	s.refusedAt(422, "POST", "/api/start/"+sequence.ID, a.Key, `{"phone":"3331234567","quando":"2026-12-01"}`, "body.nome")
	s.must(&run, "POST", "/api/start/"+sequence.ID, a.Key, `{"phone":"3331234567","nome":"Anna","quando":"2026-12-01"}`)
	s.refusedAt(409, "DELETE", template, a.Key, "")
	s.refusedAt(409, "PUT", template, a.Key, `{"name":"Altro","text":"x"}`)
	s.must(nil, "PUT", template, a.Key, `{"name":"Visita","text":"Nuovo"}`)
	var second started
	s.must(&second, "POST", "/api/start/"+sequence.ID, a.Key, `{"phone":"3331234567"}`)
	d := s.details(a.Key, run.ID[0], second.ID[0])
	if d[0].Contenuto != "Ciao Anna, martedì 1 dicembre" || *d[0].Template != "Visita" || d[1].Contenuto != "Nuovo" {
		t.Errorf("%+v", d)
	}
	s.must(nil, "DELETE", "/api/sequences/"+sequence.ID+"?pending=cancel", a.Key, "")
	s.must(nil, "DELETE", template, a.Key, "")
	s.refusedAt(404, "GET", template, a.Key, "")
}

func behaviourDayAlone(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, `{"text":"{{quando}} {{quando:data}} {{quando:ora|?}}","timing":{"anchor":"quando","offset":{"amount":0}}}`)
	var run started
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","quando":" 2026-12-01 "}`)
	if d := s.details(a.Key, run.ID[0])[0]; d.Contenuto != "01/12/2026 01/12/2026 ?" || d.Planned != "2026-12-01T08:00:00.000000Z" {
		t.Errorf("%+v", d)
	}
	s.refusedAt(422, "POST", "/api/start/"+s.newSequence(a.Key, stepDate), a.Key, `{"phone":"3331234567","quando":"2026-12-01"}`, "body.quando")
}

func behaviourPairs(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	one, two := s.newSequence(a.Key, stepNow), s.newSequence(a.Key, stepNow)
	path := "/api/session/" + a.Session + "/defaultSequence"
	s.must(nil, "PUT", path, a.Key, `{"start":"`+one+`","stop":"`+two+`"}`)
	s.refusedAt(422, "PUT", path, a.Key, `{"start":"999999","stop":"x"}`, "body.start", "body.stop")
	s.must(nil, "DELETE", "/api/sequences/"+one, a.Key, "")
	if got := s.must(nil, "GET", path, a.Key, ""); got.body != `{"start":"","stop":"`+two+`"}` {
		t.Error(got.body)
	}
	if got := s.must(nil, "PUT", path, a.Key, `{"start":"","stop":null}`); got.body != `{"start":"","stop":""}` {
		t.Error(got.body)
	}
	s.refusedAt(422, "PUT", path, a.Key, `{"start":"`+two+`"}`, "body.stop") // an absent member is refused, because the caller may expect that its value does not change
	s.refusedAt(422, "PUT", path, a.Key, `{"begin":"`+two+`","stop":null}`, "body.start")
	s.refusedAt(422, "PUT", path, a.Key, `{}`, "body.start", "body.stop")
	s.refusedAt(404, "GET", "/api/session/999999/defaultSequence", a.Key, "")
}

func behaviourSessions(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	session := func() (id, sequence string) {
		var made struct{ ID string }
		s.must(&made, "POST", "/api/sessions", a.Key, `{"name":"x","connection_type":"Official"}`)
		id = made.ID
		s.must(&made, "POST", "/api/sequences", a.Key, `{"name":"x","id_sessione":"`+id+`","steps":[`+stepLater+`]}`)
		return id, made.ID
	}
	id, sequence := session()
	var run started
	s.must(&run, "POST", "/api/start/"+sequence, a.Key, `{"phone":"3331234567","testo":"t"}`)
	s.refusedAt(409, "DELETE", "/api/sessions/"+a.Session, a.Key, "")
	s.refusedAt(409, "DELETE", "/api/sessions/"+id, a.Key, "")
	s.refusedAt(422, "DELETE", "/api/sessions/"+id+"?pending=keep", a.Key, "", "query.pending")
	s.refusedAt(422, "DELETE", "/api/sessions/"+id+"?move_to=999999", a.Key, "", "query.move_to")
	s.refusedAt(422, "DELETE", "/api/sessions/"+id+"?move_to="+id, a.Key, "", "query.move_to")
	s.must(nil, "DELETE", "/api/sessions/"+id+"?move_to="+a.Session, a.Key, "")
	s.refusedAt(404, "GET", "/api/sessions/"+id, a.Key, "")
	if d := s.details(a.Key, run.ID[0])[0]; d.Stato != "PENDING" {
		t.Errorf("%+v", d)
	}
	id, sequence = session()
	s.must(&run, "POST", "/api/start/"+sequence, a.Key, `{"phone":"3331234567","testo":"t"}`)
	s.must(nil, "DELETE", "/api/sessions/"+id+"?pending=cancel", a.Key, "")
	if d := s.details(a.Key, run.ID[0])[0]; d.Stato != "CANCELLED" {
		t.Errorf("%+v", d)
	}
}
