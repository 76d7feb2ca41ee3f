package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale/internal/control/account"
)

// plannedClient is a client of the list, with its plan.
type plannedClient struct {
	ID       string `json:"id_client"`
	Credits  string
	Cap      *int64   `json:"daily_api_cap"`
	RefillTo *int64   `json:"refill_to"`
	Expires  string   `json:"expiration_date"`
	Features []string `json:"active_features"`
	Quotas   map[string]int64
	Plan     *struct {
		ID, Name, Since string
		Differs         []string
	}
}

func (c plannedClient) String() string {
	number := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	text := fmt.Sprintf("%s credits, cap %s, to %q, refilled to %s, %v, %d sessions", c.Credits, number(c.Cap), c.Expires, number(c.RefillTo), c.Features, c.Quotas["sessions"])
	if c.Plan != nil {
		text += fmt.Sprintf("; %s since %s, differs %v", c.Plan.Name, c.Plan.Since, c.Plan.Differs)
	}
	return text
}

func (s *service) planned(id string) plannedClient {
	s.t.Helper()
	var all struct{ Clients []plannedClient }
	s.must(&all, "GET", "/api/clients?limit=1000", s.partner, "")
	i := slices.IndexFunc(all.Clients, func(c plannedClient) bool { return c.ID == id })
	if i < 0 {
		s.t.Fatalf("no client %s", id)
	}
	return all.Clients[i]
}

func (s *service) wantPlanned(id, want string) {
	s.t.Helper()
	if got := s.planned(id).String(); got != want {
		s.t.Errorf("the client has\n%s, want\n%s", got, want)
	}
}

// wantBudget checks the amount of a client's budget; "": none.
func (s *service) wantBudget(id, want string) {
	s.t.Helper()
	var got struct{ Amount *string }
	s.must(&got, "GET", "/api/client/"+id+"/budget", s.partner, "")
	if got.Amount == nil && want != "" || got.Amount != nil && *got.Amount != want {
		s.t.Errorf("the budget is %v, want %q", got.Amount, want)
	}
}

func (s *service) newPlan(key, body string) string {
	s.t.Helper()
	var made struct{ ID string }
	s.must(&made, "POST", "/api/plans", key, body)
	return made.ID
}

// TestPlans: clients are created from a plan and moved to it. What is given beside the plan wins. A changed plan changes
// its clients only when it is applied, and a deleted one leaves them as they are.
func TestPlans(t *testing.T) {
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		base := s.newPlan(s.partner, `{"name":"Base","credits":500,"refill_period":"Mensile","daily_api_cap":200,"days":30,"budget":"49.90","active_features":["agenda"],"quotas":{"sessions":2,"keys":null}}`)
		if got := s.must(nil, "GET", "/api/plans/"+base, s.partner, "").body; !strings.Contains(got, `"budget":"49.90","currency":"EUR"`) {
			t.Errorf("the budget has no currency: %s", got)
		}
		if got := s.must(nil, "GET", "/api/plans/"+s.newPlan(s.partner, `{"name":"Senza","budget":null}`), s.partner, "").body; strings.Contains(got, "currency") {
			t.Errorf("a plan without a budget is %s", got)
		}
		create := func(email, more string) string {
			t.Helper()
			var made struct {
				ID string `json:"id_client"`
			}
			s.must(&made, "POST", "/api/client/create", s.partner, `{"name":"C","email":"`+email+`","password":"una frase lunga 42","phone":"1"`+more+`}`)
			return made.ID
		}
		own := create("own@x", "")
		made := create("made@x", `,"account_type":"test","plan":`+base)
		s.wantPlanned(made, `500 credits, cap 200, to "2026-12-20", refilled to 500, [agenda], 2 sessions; Base since 2026-11-20, differs []`)
		s.wantBudget(made, "49.90")
		s.must(nil, "PUT", "/api/client/"+made+"/budget", s.partner, `{"amount":"10"}`)
		special := create("special@x", `,"plan":"`+base+`","daily_api_cap":900,"expiration_date":null,"quotas":{"sessions":7}`)
		s.wantPlanned(special, `500 credits, cap 900, to "", refilled to 500, [agenda], 7 sessions; Base since 2026-11-20, differs [daily_api_cap expiration_date quotas.sessions]`)

		s.clock.Advance(10 * 24 * time.Hour)
		patch := func(id, body string) {
			t.Helper()
			s.must(nil, "PATCH", "/api/client/"+id, s.partner, body)
		}
		patch(own, `{"plan":"`+base+`","credits":50,"refill_to":500}`)
		s.wantPlanned(own, `50 credits, cap 200, to "2026-12-30", refilled to 500, [agenda], 2 sessions; Base since 2026-11-30, differs []`)
		patch(own, `{"credits_add":25}`)
		patch(made, `{"daily_api_cap":null}`)
		s.wantPlanned(made, `500 credits, cap -, to "2026-12-20", refilled to 500, [agenda], 2 sessions; Base since 2026-11-20, differs [daily_api_cap budget]`)

		tag := s.must(nil, "GET", "/api/plans/"+base, s.partner, "").header.Get("ETag")
		s.wantBudget(own, "49.90")
		change := `{"name":"Base 2027","refill_to":500,"budget":"60.00","daily_api_cap":300,"days":60}`
		s.must(nil, "PUT", "/api/plans/"+base, s.partner, change, "If-Match", tag)
		if r := s.call("PUT", "/api/plans/"+base, s.partner, change, "If-Match", tag); r.status != http.StatusPreconditionFailed {
			t.Errorf("a change of what changed: %d %s", r.status, r.body)
		}
		s.wantPlanned(own, `75 credits, cap 200, to "2026-12-30", refilled to 500, [agenda], 2 sessions; Base 2027 since 2026-11-30, differs [daily_api_cap budget expiration_date]`)
		for _, want := range []int{3, 0} {
			var applied struct {
				Changed int
				More    bool
			}
			if s.must(&applied, "POST", "/api/plans/"+base+"/apply", s.partner, ""); applied.Changed != want || applied.More {
				t.Errorf("applied to %+v, want %d", applied, want)
			}
		}
		s.wantPlanned(own, `75 credits, cap 300, to "2027-01-29", refilled to 500, [agenda], 2 sessions; Base 2027 since 2026-11-30, differs []`)
		s.wantPlanned(made, `500 credits, cap 300, to "2027-01-19", refilled to 500, [agenda], 2 sessions; Base 2027 since 2026-11-20, differs []`)
		s.wantPlanned(special, `500 credits, cap 300, to "", refilled to 500, [agenda], 7 sessions; Base 2027 since 2026-11-20, differs [expiration_date]`)

		s.wantBudget(own, "60.00")
		s.wantBudget(made, "60.00")
		patch(own, `{"plan":null}`)
		s.wantPlanned(own, `75 credits, cap 300, to "2027-01-29", refilled to 500, [agenda], 2 sessions`)
		free := s.newPlan(s.partner, `{"name":"Libero","credits":"Illimitati","daily_api_cap":null,"days":null,"budget":null,"active_features":[]}`)
		if got := s.must(nil, "GET", "/api/plans/"+free, s.partner, "").body; got != `{"id":"`+free+`","name":"Libero","days":null,"budget":null,"credits":"Illimitati","daily_api_cap":null,"active_features":[]}` {
			t.Errorf("the plan is %s", got)
		}
		patch(made, `{"plan":"`+free+`"}`)
		s.wantPlanned(made, `Illimitati credits, cap -, to "", refilled to 0, [], 2 sessions; Libero since 2026-11-30, differs []`)

		s.wantBudget(made, "")
		s.must(nil, "DELETE", "/api/plans/"+base, s.partner, "")
		s.wantPlanned(special, `500 credits, cap 300, to "", refilled to 500, [agenda], 7 sessions`)
		s.refusedAt(http.StatusUnprocessableEntity, "PATCH", "/api/client/"+own, s.partner, `{"plan":"`+base+`","daily_api_cap":-1}`, "body.plan", "body.daily_api_cap")
		s.refusedAt(http.StatusUnprocessableEntity, "POST", "/api/client/create", s.partner, `{"name":"","email":"n@x","password":"una frase lunga 42","phone":"1","plan":"x","credits":-5}`, "body.name", "body.plan", "body.credits")
		s.refusedAt(http.StatusUnprocessableEntity, "POST", "/api/plans", s.partner, `{"name":" ","credits":-1,"days":0,"budget":"0","daily_api_cap":-1,"profile":"x","refill_period":"x","quotas":{"sessions":-1},"altro":1}`,
			"body.altro", "body.name", "body.profile", "body.refill_period", "body.daily_api_cap", "body.credits", "body.quotas.sessions", "body.days", "body.budget")
		if r := s.call("POST", "/api/plans", s.partner, `{"name":"Libero"}`); r.status != http.StatusConflict || !strings.Contains(r.body, "another plan has this name") {
			t.Errorf("a second plan of the name: %d %s", r.status, r.body)
		}

		_, rival, err := s.accounts.CreatePartner(t.Context(), account.NewPartner{Name: "Rivale", Email: "r@x", Password: "una frase lunga 42"})
		if err != nil {
			t.Fatal(err)
		}
		theirs := s.newPlan(rival, `{"name":"Libero","credits":1}`)
		if got := s.must(nil, "GET", "/api/plans", rival, "").body; strings.Contains(got, "Illimitati") {
			t.Errorf("another partner sees %s", got)
		}
		s.refusedAt(http.StatusUnprocessableEntity, "PATCH", "/api/client/"+own, s.partner, `{"plan":"`+theirs+`"}`, "body.plan")
		for _, call := range []string{"GET ", "PUT ", "DELETE ", "POST /apply"} {
			method, end, _ := strings.Cut(call, " ")
			body := map[string]string{"PUT": `{"name":"x"}`}[method]
			if r := s.call(method, "/api/plans/"+free+end, rival, body); r.status != http.StatusNotFound {
				t.Errorf("%s by another partner: %d %s", call, r.status, r.body)
			}
		}
	})
}

// TestPlanOfManyClients: a plan with more clients than one call changes is applied by several calls, and each client
// changes once.
func TestPlanOfManyClients(t *testing.T) {
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		s.newAccount("a@x", "full")
		plan := s.newPlan(s.partner, `{"name":"Base","daily_api_cap":1}`)
		for i := range 203 {
			s.sql(fmt.Sprintf(`insert into client (id, partner_id, name, email, phone, type, profile, refill, refill_to, refill_at, cap, expires_on, expires_at, zone, region, closed, suspended, features, created_at, credits_topped, plan_id, plan_since)
 select %d, partner_id, name, email, phone, type, profile, refill, refill_to, refill_at, cap, expires_on, expires_at, zone, region, closed, suspended, features, created_at, credits_topped, %s, 20261120 from client where id = 1`, 5000+i, plan))
		}
		for _, want := range []string{`{"changed":200,"more":true}`, `{"changed":3,"more":false}`, `{"changed":0,"more":false}`} {
			if got := s.must(nil, "POST", "/api/plans/"+plan+"/apply", s.partner, "").body; got != want {
				t.Errorf("applied: %s, want %s", got, want)
			}
		}
	})
}

// TestApplyingTakesNoCredits: a client keeps what it has when a grant changes. It gets at least the new grant.
func TestApplyingTakesNoCredits(t *testing.T) {
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		s.newAccount("a@x", "full")
		plan := s.newPlan(s.partner, `{"name":"Base","refill_period":"Mensile","credits":500}`)
		clients := map[string]string{}
		for _, name := range []string{"paid", "used", "endless"} {
			var made struct {
				ID string `json:"id_client"`
			}
			s.must(&made, "POST", "/api/client/create", s.partner, `{"name":"C","email":"`+name+`@x","password":"una frase lunga 42","phone":"1","plan":`+plan+`}`)
			clients[name] = made.ID
		}
		s.must(nil, "PATCH", "/api/client/"+clients["paid"], s.partner, `{"credits_add":5000}`)
		s.must(nil, "PATCH", "/api/client/"+clients["used"], s.partner, `{"credits_add":-400}`)
		s.must(nil, "PATCH", "/api/client/"+clients["endless"], s.partner, `{"credits":"Illimitati"}`)
		const client = `%s credits, cap -, to "", refilled to %s, [], 10 sessions; Base since 2026-11-20, differs %s`
		apply := func(change string, counts ...int) {
			t.Helper()
			s.must(nil, "PUT", "/api/plans/"+plan, s.partner, change)
			for _, n := range counts {
				if got, want := s.must(nil, "POST", "/api/plans/"+plan+"/apply", s.partner, "").body, fmt.Sprintf(`{"changed":%d,"more":false}`, n); got != want {
					t.Errorf("applied: %s, want %s", got, want)
				}
			}
		}
		apply(`{"name":"Base","refill_period":"Mensile","credits":600}`, 2, 0)
		s.wantPlanned(clients["paid"], fmt.Sprintf(client, "5500", "600", "[]"))
		s.wantPlanned(clients["used"], fmt.Sprintf(client, "600", "600", "[]"))
		s.wantPlanned(clients["endless"], fmt.Sprintf(client, "Illimitati", "0", "[credits]"))
		apply(`{"name":"Base","refill_period":"Mensile","credits":400}`, 2, 0)
		s.wantPlanned(clients["paid"], fmt.Sprintf(client, "5500", "400", "[]"))
		s.wantPlanned(clients["used"], fmt.Sprintf(client, "600", "400", "[]"))
		apply(`{"name":"Base","refill_period":"Mensile","credits":"Illimitati"}`, 2, 0)
		s.wantPlanned(clients["paid"], fmt.Sprintf(client, "Illimitati", "0", "[]"))
		apply(`{"name":"Base","refill_period":"Mensile","credits":300}`, 0)
		s.must(nil, "PATCH", "/api/client/"+clients["paid"], s.partner, `{"plan":"`+plan+`"}`) // moving replaces
		s.wantPlanned(clients["paid"], fmt.Sprintf(client, "300", "300", "[]"))
	})
}

// TestApplyingTakesNoDays: a client that was renewed by hand, or whose days under the plan are over, keeps its last day
// when a plan is applied because of another value. Longer days arrive.
func TestApplyingTakesNoDays(t *testing.T) {
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		s.newAccount("a@x", "full")
		plan := s.newPlan(s.partner, `{"name":"Base","daily_api_cap":1,"days":30}`)
		create := func(email string) string {
			t.Helper()
			var made struct {
				ID string `json:"id_client"`
			}
			s.must(&made, "POST", "/api/client/create", s.partner, `{"name":"C","email":"`+email+`","password":"una frase lunga 42","phone":"1","plan":`+plan+`}`)
			return made.ID
		}
		renewed, endless, plain := create("renewed@x"), create("endless@x"), create("plain@x")
		s.must(nil, "PATCH", "/api/client/"+renewed, s.partner, `{"expiration_date":"2027-11-20"}`)
		s.must(nil, "PATCH", "/api/client/"+endless, s.partner, `{"expiration_date":null}`)
		apply := func(change, want string) {
			t.Helper()
			s.must(nil, "PUT", "/api/plans/"+plan, s.partner, change)
			for _, want := range []string{want, `{"changed":0,"more":false}`} {
				if got := s.must(nil, "POST", "/api/plans/"+plan+"/apply", s.partner, "").body; got != want {
					t.Errorf("applied: %s, want %s", got, want)
				}
			}
		}
		s.clock.Advance(40 * 24 * time.Hour) // the days of the plan are over
		apply(`{"name":"Base","daily_api_cap":2,"days":30}`, `{"changed":3,"more":false}`)
		const client = `Illimitati credits, cap %d, to %q, refilled to -, [], 10 sessions; Base since %s, differs %s`
		s.wantPlanned(renewed, fmt.Sprintf(client, 2, "2027-11-20", "2026-11-20", "[expiration_date]"))
		s.wantPlanned(endless, fmt.Sprintf(client, 2, "", "2026-11-20", "[expiration_date]"))
		s.wantPlanned(plain, fmt.Sprintf(client, 2, "2026-12-20", "2026-11-20", "[]"))
		apply(`{"name":"Base","daily_api_cap":2,"days":35}`, `{"changed":0,"more":false}`) // these ended yesterday, too
		s.wantPlanned(plain, fmt.Sprintf(client, 2, "2026-12-20", "2026-11-20", "[expiration_date]"))
		apply(`{"name":"Base","daily_api_cap":2,"days":60}`, `{"changed":1,"more":false}`)
		s.wantPlanned(renewed, fmt.Sprintf(client, 2, "2027-11-20", "2026-11-20", "[expiration_date]"))
		s.wantPlanned(plain, fmt.Sprintf(client, 2, "2027-01-19", "2026-11-20", "[]"))
		s.must(nil, "PATCH", "/api/client/"+renewed, s.partner, `{"plan":"`+plan+`"}`) // moving begins the days again
		s.wantPlanned(renewed, fmt.Sprintf(client, 2, "2027-02-28", "2026-12-30", "[]"))
	})
}
