package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
)

// estimate contains those members of a check's answer that are about cost and time.
type estimate struct {
	Valid       int
	First, Last time.Time
	Refused     []struct {
		Reason string
		Count  int
	}
	Limit *struct {
		Code      string
		PerMinute int `json:"per_minute"`
		PerDay    int `json:"per_day"`
		Days      int
	}
	Warnings []struct {
		Code string
		Step int
	}
	Cost *struct {
		Currency, Amount, Date string
		Rows                   []struct {
			Country, Category, Amount string
			Messages                  int
		}
		Unknown int
	}
}

// officialSession creates an online Official session with a business limit of 250 new people a day.
func (s *service) officialSession(key string) string {
	s.t.Helper()
	var made struct{ ID string }
	s.must(&made, "POST", "/api/sessions", key, `{"name":"Ufficiale","connection_type":"Official","sandbox":false,"official":`+officialKeys+`}`)
	if a := s.must(nil, "POST", "/api/sessions/"+made.ID+"/test", key, ""); !strings.Contains(a.body, `"ok":true`) {
		s.t.Fatal(a.body)
	}
	return made.ID
}

// estimated creates a campaign with this many recipients on the session, and checks the campaign.
func (s *service) estimated(key, session, what string, recipients int) (id string, e estimate) {
	s.t.Helper()
	all := make([]map[string]string, recipients)
	for i := range all {
		all[i] = map[string]string{"phone": estimatedPhone(i)}
	}
	list, err := json.Marshal(all)
	if err != nil {
		s.t.Fatal(err)
	}
	var made struct{ ID string }
	s.must(&made, "POST", "/api/campaigns", key, `{"name":"Auguri","id_sessione":"`+session+`",`+what+`,"recipients":`+string(list)+`}`)
	s.must(&e, "POST", "/api/campaigns/"+made.ID+"/check", key, "")
	return made.ID, e
}

func estimatedPhone(i int) string { return fmt.Sprintf("+39333%07d", i) }

func idsOf(t *testing.T, a clientAccount, session string) (puntuale.ClientID, puntuale.SessionID) {
	t.Helper()
	client, err := puntuale.ParseID[puntuale.ClientID](a.ID)
	if err != nil {
		t.Fatal(err)
	}
	id, err := puntuale.ParseID[puntuale.SessionID](session)
	if err != nil {
		t.Fatal(err)
	}
	return client, id
}

func (s *service) limited(e estimate, code string, perMinute, perDay, days int, lasts time.Duration) {
	s.t.Helper()
	if e.Limit == nil || e.Limit.Code != code || e.Limit.PerMinute != perMinute || e.Limit.PerDay != perDay || e.Limit.Days != days {
		s.t.Errorf("the limit is %+v, want %s, %d a minute, %d a day, %d days", e.Limit, code, perMinute, perDay, days)
	}
	if got := e.Last.Sub(e.First); got != lasts {
		s.t.Errorf("it lasts %v, want %v", got, lasts)
	}
}

const freeText, byTemplate = `"content":{"text":"Ciao"}`, `"template":"Promo"`

// TestEstimateOfOfficial: free text goes only to people inside their 24-hour window. Templates go to all people. On one
// day, the business limit bounds the number of new people.
func TestEstimateOfOfficial(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("estimate@x", "full")
		session := s.officialSession(a.Key)
		s.must(nil, "POST", "/api/templates", a.Key, `{"name":"Promo","text":"Ciao","official":{"name":"promo","language":"it"}}`)
		client, sessionID := idsOf(t, a, session)
		heard := puntuale.InboundMessage{Client: client, Session: sessionID, At: s.clock.Now()}
		for i := range 2 {
			heard.Phone = estimatedPhone(i)
			if _, err := s.owner.store.KeepInbound(t.Context(), s.clock.Now(), []puntuale.TakenMessage{{InboundMessage: heard, Names: []string{heard.Phone}}}); err != nil {
				t.Fatal(err)
			}
		}
		id, e := s.estimated(a.Key, session, freeText, 5)
		if e.Valid != 2 || len(e.Refused) != 1 || e.Refused[0].Reason != "no_window" || e.Refused[0].Count != 3 {
			t.Errorf("free text: %+v", e)
		}
		if got := s.must(nil, "GET", "/api/campaigns/"+id+"/refused?reason=no_window", a.Key, "").body; !strings.Contains(got, "3,"+estimatedPhone(2)+",no_window,") || strings.Contains(got, estimatedPhone(1)) {
			t.Errorf("the refused are %s", got)
		}
		if _, e = s.estimated(a.Key, session, byTemplate, 252); e.Valid != 252 || e.Limit != nil || !e.Last.Equal(e.First) { // two of the 252 people wrote before, so 250 people are new and fit into one day
			t.Errorf("by a template: %+v", e)
		}
		_, e = s.estimated(a.Key, session, byTemplate, 600)
		s.limited(e, "portfolio", 0, 250, 3, 48*time.Hour)
		_, e = s.estimated(a.Key, session, byTemplate+`,"start_at":"2026-11-21T10:00","pace":{"per_minute":1}`, 253)
		s.limited(e, "portfolio", 0, 250, 2, 24*time.Hour)
		_, e = s.estimated(a.Key, session, byTemplate+`,"window":{"from":"10:00","to":"11:00"},"pace":{"per_minute":1}`, 253)
		if e.Limit != nil || e.Last.Sub(e.First) < 4*24*time.Hour { // the window and the pace need more days than the business limit
			t.Errorf("by its own pace: %+v", e)
		}
	})
}

// TestCost: the price of a message of an Official session depends on the recipient's country and the template's
// category. Messages without a price are counted.
func TestCost(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("cost@x", "full")
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"consent":"free"}`)
		promo := graphtest.NewTemplate("promo", "Ciao")
		promo.Category = "MARKETING"
		s.owner.peer.SetTemplates("55101", promo)
		session := s.officialSession(a.Key)
		for name, official := range map[string]string{"Promo": "promo", "Altra": "nonesi"} {
			s.must(nil, "POST", "/api/templates", a.Key, `{"name":"`+name+`","text":"Ciao","official":{"name":"`+official+`","language":"it"}}`)
		}
		_, e := s.estimated(a.Key, session, byTemplate, 3)
		if c := e.Cost; c == nil || c.Currency != "EUR" || c.Amount != "0.1974" || c.Date != "2026-07-01" || c.Unknown != 0 || len(c.Rows) != 1 ||
			c.Rows[0].Country != "IT" || c.Rows[0].Category != "marketing" || c.Rows[0].Messages != 3 || c.Rows[0].Amount != "0.1974" {
			t.Errorf("by a template: %+v", c)
		}
		if _, e := s.estimated(a.Key, session, `"template":"Altra"`, 2); e.Cost == nil || e.Cost.Amount != "0.00" || e.Cost.Unknown != 2 {
			t.Errorf("by a template that nobody knows: %+v", e.Cost)
		}
		client, id := idsOf(t, a, session)
		if _, err := s.owner.store.KeepInbound(t.Context(), s.clock.Now(), []puntuale.TakenMessage{{InboundMessage: puntuale.InboundMessage{Client: client, Session: id, Phone: estimatedPhone(0), At: s.clock.Now()}, Names: []string{estimatedPhone(0)}}}); err != nil {
			t.Fatal(err)
		}
		if _, e := s.estimated(a.Key, session, freeText, 2); e.Cost == nil || e.Cost.Amount != "0.0248" || e.Cost.Rows[0].Category != "service" {
			t.Errorf("free text in the window: %+v", e.Cost)
		}
		if _, e := s.estimated(a.Key, a.Session, freeText, 2); e.Cost != nil {
			t.Errorf("of the simulated network: %+v", e.Cost)
		}
	})
}

// TestBill: a campaign shows the estimate of its check and the cost that Meta billed.
func TestBill(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("bill@x", "full")
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"consent":"free"}`)
		promo := graphtest.NewTemplate("promo", "Ciao")
		promo.Category = "MARKETING"
		s.owner.peer.SetTemplates("55101", promo)
		session := s.officialSession(a.Key)
		s.must(nil, "POST", "/api/templates", a.Key, `{"name":"Promo","text":"Ciao","official":{"name":"promo","language":"it"}}`)
		id, _ := s.estimated(a.Key, session, byTemplate, 4)
		s.must(nil, "POST", "/api/campaigns/"+id+"/start", a.Key, `{"digest":"`+s.checkCampaign(a.Key, id)+`"}`)
		client, sessionID := idsOf(t, a, session)
		kind := puntuale.MessageKind{Country: "IT", Category: "marketing"}
		var receipts []puntuale.DeliveryReceipt
		fed := s.feedAll(a, id)
		if len(fed) != 4 {
			t.Fatalf("%d were fed", len(fed))
		}
		if d, err := s.owner.store.Tenant(client).Details(t.Context(), fed); err != nil || d[0].Content.Official == nil || d[0].Content.Official.Name != "promo" {
			t.Errorf("they are not sent by the template: %+v, %v", d[0].Content, err)
		}
		for i, m := range fed[:3] { // Meta reported nothing about the fourth message
			receipts = append(receipts, puntuale.DeliveryReceipt{
				MessageRef: puntuale.MessageRef{Client: client, ID: m}, Session: sessionID, Kind: puntuale.ReceiptDelivered, At: s.clock.Now(),
				Charge: puntuale.Charge{MessageKind: kind, Billable: i > 0},
			})
		}
		if _, err := s.owner.store.KeepReceipts(t.Context(), s.clock.Now(), receipts); err != nil {
			t.Fatal(err)
		}
		row := func(n int, amount string) string {
			return fmt.Sprintf(`{"currency":"EUR","amount":"%s","date":"2026-07-01","rows":[{"country":"IT","category":"marketing","messages":%d,"amount":"%s"}],"unknown":0}`, amount, n, amount)
		}
		want := `"cost":{"estimated":` + row(4, "0.2632") + `,"reported":` + row(2, "0.1316") + `,"free":1}`
		if got := s.must(nil, "GET", "/api/campaigns/"+id, a.Key, "").body; !strings.Contains(got, want) {
			t.Errorf("the campaign is %s, want %s", got, want)
		}
		other, _ := s.estimated(a.Key, a.Session, freeText, 1)
		if got := s.must(nil, "GET", "/api/campaigns/"+other, a.Key, "").body; !strings.Contains(got, `"cost":null`) {
			t.Errorf("of the simulated network: %s", got)
		}
		// Where the partner asks its own price, the client's key gets this one, for what the network bills nothing too. Categories
		// without one have the network's price, if both are in one currency.
		for own, want := range map[*puntuale.Prices]string{
			{Currency: "EUR", Each: map[string]string{"marketing": "0.10"}}: `"cost":{"estimated":` + row(4, "0.40") + `,"reported":` + row(3, "0.30") + `,"free":0}`,
			{Currency: "EUR", Each: map[string]string{"utility": "0.10"}}:   want,
			{Currency: "USD", Each: map[string]string{"marketing": "0.20"}}: strings.ReplaceAll(`"cost":{"estimated":`+row(4, "0.80")+`,"reported":`+row(3, "0.60")+`,"free":0}`, "EUR", "USD"),
		} {
			if err := s.statements.SetOwnPrices(t.Context(), s.partnerAccount(), *own); err != nil {
				t.Fatal(err)
			}
			if got := s.must(nil, "GET", "/api/campaigns/"+id, a.Key, "").body; !strings.Contains(got, want) {
				t.Errorf("with own prices %+v, the campaign is %s, want %s", *own, got, want)
			}
			_, e := s.estimated(a.Key, session, byTemplate, 3)
			if wants := map[string]string{"0.10": "0.30", "0.20": "0.60", "": "0.1974"}[own.Each["marketing"]]; e.Cost.Amount != wants || e.Cost.Rows[0].Amount != wants {
				t.Errorf("with own prices %+v, the check says %+v", *own, e.Cost)
			}
		}
	})
}

// TestOptOut: the check of a marketing campaign warns if the text does not explain how to opt out.
func TestOptOut(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true})
	a := s.newAccount("optout@x", "full")
	if _, e := s.estimated(a.Key, a.Session, freeText+`,"purpose":"marketing"`, 1); len(e.Warnings) != 1 || e.Warnings[0].Code != "no_opt_out" || e.Warnings[0].Step != 0 {
		t.Errorf("without a hint: %+v", e.Warnings)
	}
	for _, what := range []string{freeText + `,"purpose":"service"`, freeText, `"content":{"text":"Saldi. Rispondi STOP per non riceverne"},"purpose":"marketing"`} {
		if _, e := s.estimated(a.Key, a.Session, what, 1); e.Warnings == nil || len(e.Warnings) != 0 {
			t.Errorf("%s: %+v", what, e.Warnings)
		}
	}
}

// TestEstimateOfSocket: the session's pace decides how long a campaign takes. Cold contacts have a separate pace.
func TestEstimateOfSocket(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("estimate@x", "full")
		key := a.Key
		session := func(sandbox bool, pace string) string {
			t.Helper()
			var made struct{ ID string }
			s.must(&made, "POST", "/api/sessions", key, fmt.Sprintf(`{"name":"QR","connection_type":"Socket","sandbox":%v,"pace":%s}`, sandbox, pace))
			return made.ID
		}
		real := session(false, `{"per_minute":60,"cold_per_day":50,"cold_per_minute":10}`)
		_, e := s.estimated(key, real, freeText, 120)
		s.limited(e, "cold_per_day", 0, 50, 3, 48*time.Hour)
		_, e = s.estimated(key, real, freeText, 31)
		s.limited(e, "cold_per_minute", 10, 0, 0, 3*time.Minute)
		client, known := idsOf(t, a, real)
		for i := range 120 {
			if err := s.owner.store.NoteKnown(t.Context(), client, known, estimatedPhone(i), s.clock.Now().Add(-48*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		_, e = s.estimated(key, real, freeText, 121)
		s.limited(e, "session_per_minute", 60, 0, 0, 2*time.Minute)
		if _, e = s.estimated(key, real, freeText+`,"pace":{"per_minute":30}`, 121); e.Limit != nil || e.Last.Sub(e.First) != 4*time.Minute {
			t.Errorf("by the campaign's pace: %+v", e)
		}
		_, e = s.estimated(key, session(true, `{"per_day":40,"cold_per_day":1}`), freeText, 100) // the simulated network has no cold contacts, so cold_per_day has no effect
		s.limited(e, "session_per_day", 0, 40, 3, 48*time.Hour)
	})
}
