package httpapi_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/control/account"
)

// resultRow is a row of a report, as callers see it.
type resultRow struct {
	Key, Name                                    string
	Planned, Sent, Failed                        int
	Delivered, Read, Answered, OptedOut, Clicked *int
	Buttons, Reasons                             map[string]int
	Bookings                                     *struct{ Open int }
}

// resultPerson is a person behind a count, as callers see it.
type resultPerson struct {
	Message                           string `json:"message_id"`
	Phone                             string
	Failed                            bool
	Read                              *bool
	Of                                string
	Sequence, Step, Campaign, Variant *string
}

type resultAnswer struct {
	Results  []resultRow
	Total    resultRow
	Told     struct{ Delivered, Read, Answered, Clicked bool }
	AsOf     string `json:"as_of"`
	Counting bool
}

func (s *service) results(key, query string) (r resultAnswer) {
	s.t.Helper()
	for more := true; more; {
		var err error
		if more, err = s.store.CountResults(context.Background(), 100); err != nil {
			s.t.Fatal(err)
		}
	}
	s.must(&r, "GET", "/api/results?"+query, key, "")
	return r
}

// TestResults counts messages of two clients of one partner, and of a client of another. Each key sees its own counts,
// also each partner's. What the network does not tell is null.
func TestResults(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, countedResults)
}

func countedResults(t *testing.T, s *service) {
	a, b := s.newAccount("results-a@x", "full"), s.newAccount("results-b@x", "full")
	sequence := s.newSequence(a.Key, stepNow+","+stepNow)
	started := s.started(a.Key, sequence)
	s.end(a, started[0], "+393331234567", puntuale.Outcome{Verdict: puntuale.Sent})
	s.end(a, started[1], "+393331234567", puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Because(puntuale.ReasonNotAccepted)})
	r := s.results(a.Key, "by=step&sequence="+sequence+"&start=2026-11-01&end=2026-12-31")
	if len(r.Results) != 2 || r.Total.Planned != 2 || r.Total.Sent != 1 || r.Total.Failed != 1 || r.Total.Reasons["connector.not_accepted"] != 1 {
		t.Errorf("%+v", r)
	}
	if r.Total.Delivered != nil || r.Total.Read != nil || r.Total.Clicked != nil || r.Told.Delivered || r.Told.Clicked || !r.Told.Answered {
		t.Errorf("what the network does not tell is not null: %+v", r)
	}
	if r.Counting || r.AsOf == "" || !strings.HasPrefix(r.Results[0].Name, "1. ") {
		t.Errorf("%+v", r)
	}
	if other := s.results(b.Key, "by=sequence&sequence="+sequence); other.Total.Planned != 0 || len(other.Results) != 0 {
		t.Errorf("another client sees %+v", other)
	}
	if p := s.results(s.partner, "start=2026-11-01&end=2026-12-31"); p.Total.Planned != 2 || len(p.Results) != 1 || p.Results[0].Key != a.ID {
		t.Errorf("the partner sees %+v", p)
	}
	if p := s.results(s.partner, "by=sequence&client="+a.ID+"&start=2026-11-01&end=2026-12-31"); p.Total.Planned != 2 || len(p.Results) != 1 || p.Results[0].Key != sequence {
		t.Errorf("the partner sees of its client %+v", p)
	}
	_, rival, err := s.accounts.CreatePartner(t.Context(), account.NewPartner{Name: "Rivale", Email: "r@x", Password: "una frase lunga 42"})
	if err != nil {
		t.Fatal(err)
	}
	var far clientAccount
	s.must(&far, "POST", "/api/client/create", rival, `{"name":"Lontano","email":"far@x","password":"p","phone":"0212345678","account_type":"full"}`)
	s.started(far.Key, s.newSequence(far.Key, stepNow+","+stepNow+","+stepNow))
	for key, want := range map[string]clientAccount{s.partner: a, rival: far} {
		for _, by := range []string{"client", "day"} {
			planned := map[string]int{a.ID: 2, far.ID: 3}[want.ID]
			if p := s.results(key, "by="+by+"&start=2026-11-01&end=2026-12-31"); p.Total.Planned != planned || len(p.Results) != 1 || by == "client" && p.Results[0].Key != want.ID {
				t.Errorf("by %s, a partner sees %+v, want %d messages of client %s", by, p, planned, want.ID)
			}
		}
	}
	for key, foreign := range map[string]clientAccount{s.partner: far, rival: a} {
		if got := s.call("GET", "/api/results?by=day&start=2026-11-01&end=2026-12-31&client="+foreign.ID, key, ""); got.status != 404 {
			t.Errorf("a partner reads the results of another's client: %d %s", got.status, got.body)
		}
	}
	if other := s.results(far.Key, "start=2026-11-01&end=2026-12-31&sequence="+sequence); other.Total.Planned != 0 || len(other.Results) != 0 {
		t.Errorf("another partner's client sees %+v", other)
	}
	var list struct {
		People   []resultPerson
		Total    *int
		Complete bool    `json:"total_complete"`
		Next     *string `json:"next_cursor"`
	}
	s.must(&list, "GET", "/api/results/people?is=failed&start=2026-11-01&end=2026-12-31&sequence="+sequence, a.Key, "")
	if len(list.People) != 1 || list.People[0].Message != started[1] || list.People[0].Phone != "+393331234567" || !list.People[0].Failed || list.People[0].Read != nil ||
		list.People[0].Of == "" || *list.People[0].Sequence != sequence || *list.People[0].Step != "1" || list.People[0].Campaign != nil || list.People[0].Variant != nil || *list.Total != 1 || !list.Complete {
		t.Errorf("%+v", list)
	}
	s.must(&list, "GET", "/api/results/people?is=sent&not=read&start=2026-11-01&end=2026-12-31", a.Key, "")
	if len(list.People) != 0 { // nobody knows whether they read
		t.Errorf("%+v", list)
	}
	csv := s.call("GET", "/api/results/people/export?start=2026-11-01&end=2026-12-31", a.Key, "")
	if csv.status != 200 || strings.Count(csv.body, "+393331234567") != 2 || !strings.Contains(csv.body, ","+sequence+",1,,,") {
		t.Errorf("%d %s", csv.status, csv.body)
	}
	if foreign := s.call("GET", "/api/results/people/export", b.Key, ""); strings.Contains(foreign.body, "+39") {
		t.Errorf("another client gets %s", foreign.body)
	}
	if _, row, _ := strings.Cut(csv.body, ","+started[0]+","); !strings.Contains(row, ",0,,,1,,,0,0,0,0,0,\n") { // delivered, read and clicked are not told
		t.Errorf("what the network does not tell is not empty: %s", row)
	}
	unwilling := "/api/results/people?is=sent&not=opted_out&start=2026-11-01&end=2026-12-31"
	if s.must(&list, "GET", unwilling, a.Key, ""); len(list.People) != 1 {
		t.Errorf("who did not opt out: %+v", list)
	}
	s.sql("update session set sandbox = 0, type = 'Send_app', way = 'device' where client_id = " + a.ID)
	if s.must(&list, "GET", unwilling, a.Key, ""); len(list.People) != 0 { // a device does not tell who wrote, so nobody knows
		t.Errorf("who did not opt out, of a device: %+v", list)
	}
	s.sql("update session set sandbox = 1, type = 'Socket', way = '' where client_id = " + a.ID)
	s.must(nil, "POST", "/api/messages", a.Key, `{"phone":"3331234568","text":"Ciao"}`)
	none := s.results(a.Key, "by=sequence&start=2026-11-01&end=2026-12-31")
	if len(none.Results) != 2 || none.Results[0].Key != "0" || none.Results[0].Planned != 1 {
		t.Errorf("%+v", none)
	}
	for query, want := range map[string]int{"sequence=0": 1, "campaign=0": 3, "rule=0": 3, "session=0": 0, "sequence=0&campaign=0": 1, "by=day&sequence=0": 1, "by=session&rule=0&sequence=" + sequence: 2} {
		if got := s.results(a.Key, query+"&start=2026-11-01&end=2026-12-31"); got.Total.Planned != want {
			t.Errorf("%s: %d messages, want %d", query, got.Total.Planned, want)
		}
	}
	s.must(&list, "GET", "/api/results/people?start=2026-11-01&end=2026-12-31&sequence=0", a.Key, "")
	if len(list.People) != 1 || list.People[0].Phone != "+393331234568" || list.People[0].Sequence != nil {
		t.Errorf("%+v", list)
	}
	s.must(nil, "POST", "/api/templates", a.Key, `{"name":"0","text":"Ciao {{nome}}"}`)
	s.must(nil, "POST", "/api/messages", a.Key, `{"phone":"3331234569","template":"0","nome":"Anna"}`)
	for query, want := range map[string]int{"by=template": 4, "by=template&template=0": 1, "by=template&none=template": 3, "none=template&sequence=0": 1, "none=template&template=0": 0} {
		if got := s.results(a.Key, query+"&start=2026-11-01&end=2026-12-31"); got.Total.Planned != want {
			t.Errorf("%s: %d messages, want %d", query, got.Total.Planned, want)
		}
	}
	s.must(&list, "GET", "/api/results/people?start=2026-11-01&end=2026-12-31&none=template", a.Key, "")
	if len(list.People) != 3 || slices.ContainsFunc(list.People, func(p resultPerson) bool { return p.Phone == "+393331234569" }) {
		t.Errorf("without a template: %+v", list)
	}
	if p := s.results(s.partner, "by=sequence&sequence=0&client="+a.ID+"&start=2026-11-01&end=2026-12-31"); p.Total.Planned != 2 {
		t.Errorf("the partner sees of its client %+v", p)
	}
	s.refusedAt(422, "GET", "/api/results?by=step&sequence=0", a.Key, "", "query.sequence")
	s.refusedAt(422, "GET", "/api/results?client=0", s.partner, "", "query.client")
	s.refusedAt(422, "GET", "/api/results?by=shoes&start=x&end=2026-13-01&sequence=y&campaign=z&client=1", a.Key, "", "query.client", "query.by", "query.sequence", "query.campaign", "query.end", "query.start")
	s.refusedAt(422, "GET", "/api/results?by=step", a.Key, "", "query.sequence")
	s.refusedAt(422, "GET", "/api/results?start=2024-01-01&end=2026-01-01", a.Key, "", "query.start")
	s.refusedAt(422, "GET", "/api/results?start=2026-02-01&end=2026-01-01", a.Key, "", "query.start")
	s.refusedAt(422, "GET", "/api/results?by=sequence", s.partner, "", "query.client")
	s.refusedAt(422, "GET", "/api/results/people?is=read,seen&not=x&none=shoes", a.Key, "", "query.none", "query.is", "query.not")
	if got := s.call("GET", "/api/results?client=999999", s.partner, ""); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// started starts a sequence for a person, and returns the messages.
func (s *service) started(key, sequence string) []string {
	s.t.Helper()
	var run struct{ ID []string }
	s.must(&run, "POST", "/api/start/"+sequence, key, `{"phone":"3331234567","testo":"t"}`)
	return run.ID
}
