package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/campaign"
	"puntuale/internal/clock"
)

// feed runs a campaign's feeder on the owner's node, until wanted returns true.
func (s *service) feed(a clientAccount, id string, wanted func(puntuale.Campaign) bool) (c puntuale.Campaign) {
	s.t.Helper()
	client, campaignID := idsOf(s.t, a, id)
	stored := s.owner.store.Tenant(client)
	fake := clock.NewFake(s.clock.Now()) // a separate clock, so that only the feeder waits for it
	f := campaign.New(campaign.Config{
		Store: s.owner.store, Queue: s.owner.store, Bound: s.owner.store.ChunkBound, Tenant: func(id puntuale.ClientID) campaign.Tenant { return s.owner.store.Tenant(id) },
		Node: func() puntuale.NodeID { return s.owner.node }, Wakeup: func(puntuale.SessionID, time.Time) {}, Clock: fake, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, stop := context.WithCancel(s.t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.Run(ctx) }()
	defer func() { stop(); <-ended }()
	for rounds := 0; rounds == 0 || !wanted(c); rounds++ {
		within, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
		err := fake.Waiting(within, 1) // when the feeder waits, it has finished a round
		cancel()
		var failed error
		if c, failed = stored.Campaign(s.t.Context(), puntuale.CampaignID(campaignID)); err != nil || failed != nil || rounds > 20 {
			s.t.Fatalf("after %d rounds: %v, %+v, %v %v", rounds, c.State, c.Feed, err, failed)
		}
		fake.Advance(time.Second)
	}
	return c
}

func nobodyWaits(c puntuale.Campaign) bool { return c.Feed.Waiting == 0 }

// feedAll starts a campaign, feeds all its recipients, and returns each recipient's first message, in the order of the
// list.
func (s *service) feedAll(a clientAccount, id string) (all []puntuale.MessageID) {
	s.t.Helper()
	client, _ := idsOf(s.t, a, id)
	c := s.feed(a, id, nobodyWaits)
	rows, err := s.owner.store.Tenant(client).Recipients(s.t.Context(), c.List, puntuale.RecipientFilter{State: new(puntuale.RecipientFed)}, 0, 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range rows {
		all = append(all, puntuale.MessageID(r.Run))
	}
	return all
}

// sending creates an account with a default session that the owner's node owns.
func (s *service) sending(email string) clientAccount {
	s.t.Helper()
	a := s.newAccount(email, "full")
	_, session := idsOf(s.t, a, a.Session)
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	if err := s.owner.own(session); err != nil {
		s.t.Fatal(err)
	}
	return a
}

// campaignOf is a campaign as the API shows it.
type campaignOf struct {
	ID, State string
	Reason    *string
	Counts    map[string]int
	Remaining *int `json:"daily_api_remaining"`
}

func (s *service) campaign(key, id string) (c campaignOf) {
	s.t.Helper()
	s.must(&c, "GET", "/api/campaigns/"+id, key, "")
	if n := c.Counts; n["recipients"] != n["refused"]+n["held_out"]+n["waiting"]+n["fed"] {
		s.t.Errorf("the counts do not add up: %v", n)
	}
	return c
}

// upload uploads a file as a campaign's list.
func (s *service) upload(key, id, query, kind, file string) response {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), "PUT", "/api/campaigns/"+id+"/recipients"+query, strings.NewReader(file))
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", kind)
	return s.send(r)
}

// TestCampaignReasons: each refused recipient has one reason. If several reasons apply, the first one in the documented
// order is used. This holds for lists in CSV and in JSON. A refused recipient gets no message.
func TestCampaignReasons(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.sending("reasons@x")
		sequence := s.newSequence(a.Key, `{"text":"Ciao {{nome}}, il {{quando}}","timing":{"anchor":"quando","offset":{"amount":1,"unit":"hours","direction":"before"}}}`)
		s.must(nil, "POST", "/api/start/"+sequence, a.Key, `{"phone":"+393330000009","nome":"R","quando":"25/11/2026 15:30"}`)
		s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"+393330000006","reason":"no"}`)
		const day = "25/11/2026 15:30"
		rows := [][3]string{
			{"333 0000001", "Anna", day},
			{"abc", "Nessuno", day},
			{"+39 333 0000001", "", day}, // this row also has no name, but only the first reason is used
			{"+393330000004", "", day},
			{"+393330000005", "Data", "forse domani"},
			{"+393330000006", "Bloccata", day},
			{"+393330000007", "Ieri", "01/01/2026 10:00"},
			{"+393330000009", "Corre", day},
			{"3,33E+09", "Foglio", day},
			{"0039 3330000010", "Ultima", day},
		}
		want := map[string]int{"invalid_phone": 2, "duplicate": 1, "missing_field": 1, "bad_field": 1, "blacklisted": 1, "past": 1, "running": 1}
		csv, list := "telefono;nome;quando\n", []map[string]string{}
		for _, r := range rows {
			csv += `"` + strings.Join(r[:], `";"`) + "\"\n"
			list = append(list, map[string]string{"phone": r[0], "nome": r[1], "quando": r[2]})
		}
		inline, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		for name, fill := range map[string]func(id string){
			"csv": func(id string) {
				if got := s.upload(a.Key, id, "?dates=quando:dmy", "text/csv", csv); got.status != 200 {
					t.Fatal(got.body)
				}
			},
			"json": func(id string) {
				s.must(nil, "POST", "/api/campaigns/"+id+"/recipients", a.Key, `{"recipients":`+string(inline)+`}`)
			},
		} {
			var made campaignOf
			s.must(&made, "POST", "/api/campaigns", a.Key, `{"name":"`+name+`","sequence":"`+sequence+`","if_running":"skip","canary":0}`)
			fill(made.ID)
			var e estimate
			s.must(&e, "POST", "/api/campaigns/"+made.ID+"/check", a.Key, "")
			got := map[string]int{}
			for _, group := range e.Refused {
				got[group.Reason] = group.Count
			}
			if e.Valid != 2 || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %d are valid, refused are %v, want 2 and %v", name, e.Valid, got, want)
			}
			refused := s.must(nil, "GET", "/api/campaigns/"+made.ID+"/refused", a.Key, "").body
			for _, line := range []string{"invalid_phone,abc", "invalid_phone,\"3,33E+09\"", ",+393330000004,missing_field,nome", ",+393330000006,blacklisted,"} {
				if !strings.Contains(refused, line) {
					t.Errorf("%s: %q is missing from:\n%s", name, line, refused)
				}
			}
		}
		var last campaignOf
		s.must(&last, "POST", "/api/campaigns?start=true", a.Key, `{"name":"vera","sequence":"`+sequence+`","if_running":"skip","canary":0,"recipients":`+string(inline)+`}`, "Idempotency-Key", "k")
		if n := len(s.feedAll(a, last.ID)); n != 2 {
			t.Errorf("%d were fed", n)
		}
		if c := s.campaign(a.Key, last.ID); c.Counts["fed"] != 2 || c.Counts["refused"] != 8 {
			t.Errorf("counts: %v", c.Counts)
		}
	})
}

// TestCampaignInOneCall: a small list can be sent with one call. A repeat with the same idempotency key sends nothing
// more. The call counts once towards the daily cap. The messages' details name the campaign.
func TestCampaignInOneCall(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.sending("once@x")
		const body = `{"name":"Auguri","content":{"text":"Auguri, {{nome}}!"},"recipients":[{"phone":"333 1234567","nome":"Anna"},{"phone":"333 1234568","nome":"Bea"}]}`
		var first, again campaignOf
		s.must(&first, "POST", "/api/campaigns?start=true", a.Key, body, "Idempotency-Key", "auguri")
		s.must(&again, "POST", "/api/campaigns?start=true", a.Key, body, "Idempotency-Key", "auguri")
		if first.ID != again.ID || first.State != "running" {
			t.Errorf("first %+v, again %+v", first, again)
		}
		if got := s.call("POST", "/api/campaigns?start=true", a.Key, strings.Replace(body, "Bea", "Ada", 1), "Idempotency-Key", "auguri"); got.status == 200 {
			t.Errorf("another body under the same key: %s", got.body)
		}
		ids := s.feedAll(a, first.ID)
		if len(ids) != 2 {
			t.Fatalf("%d were fed", len(ids))
		}
		d := s.details(a.Key, fmt.Sprint(ids[0]))[0]
		if d.Tipologia != "MASSIVE" || d.NomeInvio != "Auguri" || d.Contenuto != "Auguri, Anna!" || d.Telefono != "+393331234567" ||
			!strings.Contains(d.Richiesta, `"campaign":"`+first.ID+`"`) || !strings.Contains(d.Richiesta, `"nome":"Anna"`) {
			t.Errorf("details: %+v", d)
		}
		var usage struct {
			Used int `json:"daily_api_used"`
		}
		var run started
		sequence := s.newSequence(a.Key, `{"text":"ciao","timing":{"anchor":"start","offset":{"amount":0}}}`)
		s.must(&usage, "POST", "/api/start/"+sequence, a.Key, `{"phone":"3339999999"}`)
		if usage.Used != 2 {
			t.Errorf("%d calls are counted after a campaign and a start %+v", usage.Used, run)
		}
	})
}

// TestCampaignOfNoSequence: a sequence that is no id, or not the client's, is a fault of the request.
func TestCampaignOfNoSequence(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.sending("nessuna@x")
		for _, sequence := range []string{`"x"`, "0", "-1", "1.5", `"424242"`} {
			if got := s.call("POST", "/api/campaigns", a.Key, `{"name":"c","sequence":`+sequence+`}`); got.status != 422 || !strings.Contains(got.body, `"body.sequence"`) {
				t.Errorf("sequence %s: %d %s", sequence, got.status, got.body)
			}
		}
	})
}

// TestCampaignStartsWhatWasShown: a start with the digest of an outdated check is refused, and starts nothing. The
// refusal contains the new check. A repeated start changes nothing.
func TestCampaignStartsWhatWasShown(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.sending("digest@x")
		id := s.newCampaign(a.Key, "digest@x")
		start := "/api/campaigns/" + id + "/start"
		if got := s.call("POST", start, a.Key, `{"digest":"0123"}`); got.status != 409 || !strings.Contains(got.body, "check") {
			t.Errorf("before a check: %d %s", got.status, got.body)
		}
		old := s.checkCampaign(a.Key, id)
		s.must(nil, "PUT", "/api/campaigns/"+id, a.Key, `{"name":"Altra","content":{"text":"Un altro testo"}}`)
		if got := s.call("POST", start, a.Key, `{"digest":"`+old+`"}`); got.status != 409 {
			t.Errorf("after an edit: %d %s", got.status, got.body)
		}
		digest := s.checkCampaign(a.Key, id)
		if digest == old {
			t.Error("another text has the same digest")
		}
		got := s.refusedAt(409, "POST", start, a.Key, `{"digest":"`+old+`"}`, "body.digest")
		if !strings.Contains(got.body, digest) {
			t.Errorf("the new check is not in the answer: %s", got.body)
		}
		if c := s.campaign(a.Key, id); c.State != "ready" {
			t.Errorf("it is %s", c.State)
		}
		s.must(nil, "POST", start, a.Key, `{"digest":"`+digest+`"}`)
		s.must(nil, "POST", start, a.Key, `{"digest":"`+digest+`"}`)
		if n := len(s.feedAll(a, id)); n != 1 {
			t.Errorf("%d were fed", n)
		}
	})
}

// TestCampaignPauseAndCancel: while a campaign is paused, none of its messages may leave. After the pause, its messages
// are later by the length of the pause. Cancelled messages never leave. A change of state is refused if the present
// state does not allow it.
func TestCampaignPauseAndCancel(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.sending("pause@x")
		id := s.newCampaign(a.Key, "pause@x")
		path := "/api/campaigns/" + id
		for _, verb := range []string{"/pause", "/resume"} {
			s.refusedAt(409, "POST", path+verb, a.Key, "")
		}
		s.must(nil, "POST", path+"/start", a.Key, `{"digest":"`+s.checkCampaign(a.Key, id)+`"}`)
		message := fmt.Sprint(s.feedAll(a, id)[0])
		planned := func() time.Time {
			t.Helper()
			at, err := time.Parse(time.RFC3339Nano, s.details(a.Key, message)[0].Planned)
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
		before := planned()
		s.must(nil, "POST", path+"/pause", a.Key, "")
		if _, granted := s.begin(a, message, "+393339876543"); granted == puntuale.ClaimGranted {
			t.Error("a message left while its campaign was paused")
		}
		s.clock.Advance(time.Hour)
		s.must(nil, "POST", path+"/resume", a.Key, "")
		s.feed(a, id, func(c puntuale.Campaign) bool { return c.State == puntuale.CampaignRunning })
		if moved := planned().Sub(before); moved != time.Hour {
			t.Errorf("after a pause of an hour it is planned %v later", moved)
		}
		s.must(nil, "POST", path+"/cancel", a.Key, "")
		s.feed(a, id, func(c puntuale.Campaign) bool { return c.State == puntuale.CampaignCancelled })
		if _, granted := s.begin(a, message, "+393339876543"); granted == puntuale.ClaimGranted {
			t.Error("a message left although its campaign was cancelled")
		}
		if c := s.campaign(a.Key, id); c.State != "cancelled" || c.Counts["cancelled"] != 1 {
			t.Errorf("after the cancellation: %+v", c)
		}
		for _, verb := range []string{"/pause", "/resume"} {
			s.refusedAt(409, "POST", path+verb, a.Key, "")
		}
	})
}

// TestCampaignCanary: the canary's messages leave first. The other recipients wait until the canary's messages have
// ended. If more than a third of the canary's messages failed, the campaign pauses and gives the reason. If a person
// then resumes the campaign, the campaign does not pause again, because the person has seen the failures.
func TestCampaignCanary(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		for _, c := range []struct {
			failed int
			pauses bool
		}{{1, false}, {2, true}} {
			a := s.sending(fmt.Sprintf("canary%d@x", c.failed))
			var made campaignOf
			list := make([]string, 9)
			for i := range list {
				list[i] = fmt.Sprintf(`{"phone":"%s"}`, estimatedPhone(i))
			}
			s.must(&made, "POST", "/api/campaigns?start=true", a.Key, `{"name":"Prova","content":{"text":"Ciao"},"canary":4,"recipients":[`+strings.Join(list, ",")+`]}`, "Idempotency-Key", "k")
			stored := s.feed(a, made.ID, func(c puntuale.Campaign) bool { return c.Feed.Fed >= 4 })
			if stored.Feed.Fed != 4 {
				t.Fatalf("%d were fed, want the first 4", stored.Feed.Fed)
			}
			client, _ := idsOf(t, a, made.ID)
			rows, err := s.owner.store.Tenant(client).Recipients(t.Context(), stored.List, puntuale.RecipientFilter{State: new(puntuale.RecipientFed)}, 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range rows {
				o := sent
				if i < c.failed {
					o = refused
				}
				s.end(a, fmt.Sprint(r.Run), r.Phone, o)
			}
			if !c.pauses {
				if stored := s.feed(a, made.ID, nobodyWaits); stored.State != puntuale.CampaignRunning || stored.Feed.Fed != 9 {
					t.Errorf("after %d of 4 failed: %v, %+v", c.failed, stored.State, stored.Feed)
				}
				continue
			}
			s.feed(a, made.ID, func(c puntuale.Campaign) bool { return c.State == puntuale.CampaignPaused })
			if shown := s.campaign(a.Key, made.ID); shown.State != "paused" || shown.Reason == nil || *shown.Reason != "canary" || shown.Counts["waiting"] != 5 {
				t.Errorf("after %d of 4 failed: %+v", c.failed, shown)
			}
			s.must(nil, "POST", "/api/campaigns/"+made.ID+"/resume", a.Key, "")
			if stored := s.feed(a, made.ID, nobodyWaits); stored.Feed.Fed != 9 {
				t.Errorf("after a person resumed it: %+v", stored.Feed)
			}
		}
	})
}

// TestCampaignRetry: a retry resends each failed message once. It resends uncertain messages only if the caller
// requests this.
func TestCampaignRetry(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.sending("retry@x")
		var made campaignOf
		s.must(&made, "POST", "/api/campaigns?start=true", a.Key, `{"name":"Prova","content":{"text":"Ciao"},"canary":0,"recipients":[{"phone":"3330000001"},{"phone":"3330000002"},{"phone":"3330000003"}]}`, "Idempotency-Key", "k")
		ids := s.feedAll(a, made.ID)
		uncertain := refused
		uncertain.Reason = puntuale.Because(puntuale.ReasonUncertain)
		for i, o := range []puntuale.Outcome{sent, refused, uncertain} {
			s.end(a, fmt.Sprint(ids[i]), fmt.Sprintf("+39333000000%d", i+1), o)
		}
		states := func() (all []string) {
			for _, id := range ids {
				all = append(all, s.details(a.Key, fmt.Sprint(id))[0].Stato)
			}
			return all
		}
		if got := states(); !slices.Equal(got, []string{"COMPLETED", "FAILED", "FAILED"}) {
			t.Fatalf("states %v", got)
		}
		s.must(nil, "POST", "/api/campaigns/"+made.ID+"/retry", a.Key, "")
		c := s.campaign(a.Key, made.ID)
		if c.Counts["failed"]+c.Counts["pending"]+c.Counts["completed"] < 3 {
			t.Errorf("counts after a retry: %v", c.Counts)
		}
		if c.Counts["pending"] != 1 {
			t.Errorf("%d messages are pending after a retry, want the failed one: %v", c.Counts["pending"], c.Counts)
		}
		s.must(nil, "POST", "/api/campaigns/"+made.ID+"/retry", a.Key, `{"uncertain":true}`)
		if c := s.campaign(a.Key, made.ID); c.Counts["pending"] != 2 {
			t.Errorf("%d messages are pending after a retry of uncertain ones: %v", c.Counts["pending"], c.Counts)
		}
	})
}

// TestCampaignColumns: the service guesses columns from the header, or the caller gives the columns' names or numbers.
// A mapping to a column that the file does not have is refused, and changes nothing.
func TestCampaignColumns(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true})
	a := s.newAccount("columns@x", "full")
	var made campaignOf
	s.must(&made, "POST", "/api/campaigns", a.Key, `{"name":"Colonne","content":{"text":"Ciao {{nome}}"}}`)
	const file = "Cliente,Cell: privato,Note\nAnna,333 1234567,x\nBea,333 1234568,y\n"
	for query, want := range map[string]string{
		"?columns=phone:2,nome:Cliente": `"field":"nome"`,
		"?columns=phone:2,nome:1":       `"field":"nome"`,
	} {
		got := s.upload(a.Key, made.ID, query, "text/csv", file)
		if got.status != 200 || !strings.Contains(got.body, want) || !strings.Contains(got.body, `"recipients":2`) {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	if got := s.upload(a.Key, made.ID, "?columns=phone:Telefono,nome:9", "text/csv", file); got.status != 422 {
		t.Errorf("columns that are not there: %d %s", got.status, got.body)
	}
	var e estimate
	s.must(&e, "POST", "/api/campaigns/"+made.ID+"/check", a.Key, "")
	if e.Valid != 2 {
		t.Errorf("%d are valid", e.Valid)
	}
}
