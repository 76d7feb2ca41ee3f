package httpapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/control/account"
	"puntuale/internal/price"
)

// statementOf is the answer of GET /api/statements, as far as tests compare it.
type statementOf struct {
	Lines []struct {
		Client, Category, Country, Network, Origin, Source, Price, Corrects string
		OwnPrice                                                            string `json:"own_price"`
		Messages                                                            int
		Free                                                                bool
	}
	Clients []struct {
		Client, Name     string
		Calls, Credits   int64
		Frozen           *string `json:"frozen_at"`
		Complete         bool
		Timezone, Unused string
	}
	Totals struct {
		Messages        int
		Price, Currency string
		OwnPrice        string `json:"own_price"`
	}
	Frozen bool
}

// texts returns the lines, each as one text.
func (s statementOf) texts() (all []string) {
	for _, l := range s.Lines {
		all = append(all, strings.Trim(fmt.Sprintf("%d %s %s %s %s %s %v %s", l.Messages, l.Category, l.Country, l.Network, l.Source, l.Price, l.Free, l.Corrects), " "))
	}
	return all
}

func (s *service) statementOf(key, month string) (x statementOf) {
	s.t.Helper()
	s.must(&x, "GET", "/api/statements/"+month, key, "")
	return x
}

func (s *service) wantStatement(key, month string, frozen bool, want ...string) statementOf {
	s.t.Helper()
	got := s.statementOf(key, month)
	if texts := got.texts(); !slices.Equal(texts, want) || got.Frozen != frozen {
		s.t.Errorf("%s, frozen %v: %q, want %q", month, got.Frozen, texts, want)
	}
	return got
}

// partnerAccount returns the partner that has the service's partner key.
func (s *service) partnerAccount() *account.Partner {
	s.t.Helper()
	caller, err := s.control.Authenticate(s.t.Context(), s.partner)
	if err != nil {
		s.t.Fatal(err)
	}
	p, err := s.accounts.Partner(caller)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// TestStatement: a month has what the network told, what it did not tell as an estimate, and the partner's prices. It is
// closed three days after its end and never changes. What comes later is a correction in the next month.
func TestStatement(t *testing.T) {
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a, b := s.newAccount("a@x", "full"), s.newAccount("b@x", "full")
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"consent":"free"}`)
		s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"credits":100}`)
		promo, notice := graphtest.NewTemplate("promo", "Ciao"), graphtest.NewTemplate("avviso", "Pronto")
		promo.Category, notice.Category = "MARKETING", "UTILITY"
		s.owner.peer.SetTemplates("55101", promo, notice)
		session := s.officialSession(a.Key)
		s.must(nil, "POST", "/api/templates", a.Key, `{"name":"Promo","text":"Ciao","official":{"name":"promo","language":"it"}}`)
		s.must(nil, "POST", "/api/templates", a.Key, `{"name":"Avviso","text":"Pronto","official":{"name":"avviso","language":"it"}}`)
		send := func(phone, what string) puntuale.MessageRef {
			t.Helper()
			var made started
			s.must(&made, "POST", "/api/messages", a.Key, `{"phone":"`+phone+`",`+what+`}`)
			s.end(a, made.ID[0], phone, sent)
			return s.item(a, made.ID[0])
		}
		onOfficial := `"id_sessione":"` + session + `"`
		first, second, third := send("+393330000001", `"template":"Promo",`+onOfficial), send("+393330000002", `"template":"Promo",`+onOfficial), send("+393330000003", `"template":"Promo",`+onOfficial)
		french := send("+33612345678", `"template":"Avviso",`+onOfficial)
		send("+393330000009", `"text":"simulato"`)
		_, sessionID := idsOf(t, a, session)
		tell := func(m puntuale.MessageRef, k puntuale.ReceiptKind, charge puntuale.Charge) {
			t.Helper()
			if _, err := s.owner.store.KeepReceipts(t.Context(), s.clock.Now(), []puntuale.DeliveryReceipt{{MessageRef: m, Session: sessionID, Kind: k, At: s.clock.Now(), Charge: charge}}); err != nil {
				t.Fatal(err)
			}
		}
		bills := func(country, category string, billable bool) puntuale.Charge {
			return puntuale.Charge{MessageKind: puntuale.MessageKind{Country: country, Category: category}, Billable: billable}
		}
		tell(first, puntuale.ReceiptDelivered, bills("IT", "marketing", true))
		tell(second, puntuale.ReceiptDelivered, bills("IT", "service", false))
		tell(first, puntuale.ReceiptRead, bills("IT", "utility", true)) // the first one counts
		november := []string{"1 marketing IT Official estimated 0.0658 false", "1 marketing IT Official reported 0.0658 false", "1 service IT Official reported 0.00 true", "1 utility FR Official estimated 0.0300 false"}
		november[3] = strings.Replace(november[3], "0.0300", priceOf(t, "FR"), 1)
		open := s.wantStatement(a.Key, "2026-11", false, november...)
		if c := open.Clients[0]; c.Credits != 5 || c.Calls == 0 || c.Frozen != nil || !c.Complete || open.Totals.Messages != 4 {
			t.Errorf("the open month has %+v, %+v", c, open.Totals)
		}
		s.wantStatement(b.Key, "2026-11", false)
		if all := s.statementOf(s.partner, "2026-11"); len(all.Clients) != 2 || len(all.Lines) != 4 {
			t.Errorf("the partner sees %+v", all)
		}
		_, rival, err := s.accounts.CreatePartner(t.Context(), account.NewPartner{Name: "Rivale", Email: "r@x", Password: "una frase lunga 42"})
		if err != nil {
			t.Fatal(err)
		}
		s.wantStatement(rival, "2026-11", false)
		own := func(each map[string]string) error {
			return s.statements.SetOwnPrices(t.Context(), s.partnerAccount(), puntuale.Prices{Currency: "eur", Each: each})
		}
		for _, bad := range []map[string]string{{"marketing": "-1"}, {"marketing": "mille"}, {"marketing": "1000"}, {"altro": "1"}} {
			if err := own(bad); puntuale.CodeOf(err) != puntuale.CodeInvalid {
				t.Errorf("own prices %v: %v", bad, err)
			}
		}
		if err := own(map[string]string{"marketing": "0,10", "service": "0.02"}); err != nil {
			t.Fatal(err)
		}
		if got := s.wantStatement(s.partner, "2026-11", false, november...).Totals; got.OwnPrice != "0.22" || got.Currency != "EUR" || got.Price == "0.00" {
			t.Errorf("with own prices: %+v", got)
		}
		// The client's own key gets no price of the network where the partner has one, and not whether the network told, or that it
		// bills nothing. Lines that differ only in this are one.
		ofClient := []string{"2 marketing IT Official none  false", "1 service IT Official none  false", november[3]}
		if got := s.wantStatement(a.Key, "2026-11", false, ofClient...); got.Totals.OwnPrice != "0.22" || got.Totals.Price != priceOf(t, "FR") || got.Totals.Messages != 4 || got.Lines[0].OwnPrice != "0.20" {
			t.Errorf("with own prices, the client gets %+v", got)
		}
		closing := func(at time.Time) {
			t.Helper()
			s.clock.Set(at)
			for range 2 {
				if err := s.statements.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		closing(time.Date(2026, 12, 3, 22, 59, 0, 0, time.UTC)) // a minute before the end of the grace in Rome
		s.wantStatement(a.Key, "2026-11", false, ofClient...)
		closing(time.Date(2026, 12, 3, 23, 1, 0, 0, time.UTC))
		s.wantStatement(a.Key, "2026-11", true, ofClient...)

		s.clock.Set(time.Date(2026, 12, 10, 12, 0, 0, 0, time.UTC))
		tell(third, puntuale.ReceiptDelivered, bills("IT", "utility", true))
		tell(french, puntuale.ReceiptFailed, puntuale.Charge{})
		if err := own(map[string]string{"marketing": "9"}); err != nil {
			t.Fatal(err)
		}
		if got := s.wantStatement(a.Key, "2026-11", true, ofClient...).Totals; got.OwnPrice != "0.22" {
			t.Errorf("a closed month has the own prices %s", got.OwnPrice)
		}
		s.wantStatement(s.partner, "2026-11", true, november...)
		s.wantStatement(a.Key, "2026-12", false)
		closing(time.Date(2027, 1, 4, 12, 0, 0, 0, time.UTC))
		s.wantStatement(a.Key, "2026-12", true,
			"-1 marketing IT Official none  false 2026-11", "-1 utility FR Official estimated -"+priceOf(t, "FR")+" false 2026-11", "1 utility IT Official reported "+priceOf(t, "IT")+" false 2026-11")
		closing(time.Date(2027, 2, 4, 12, 0, 0, 0, time.UTC))
		s.wantStatement(a.Key, "2027-01", true)
		s.must(nil, "POST", "/api/contacts/erase", a.Key, `{"phone":"+393330000001"}`)
		s.wantStatement(s.partner, "2026-11", true, november...)
		// Nothing is said of a month before the client was created.
		if r := s.call("GET", "/api/statements/2026-10", a.Key, ""); r.status != 422 || !strings.Contains(r.body, "must not have ended before the client was created") {
			t.Errorf("a month before the client: %d %s", r.status, r.body)
		}
		if got := s.statementOf(s.partner, "2026-10"); len(got.Clients) != 0 {
			t.Errorf("a month before all clients: %+v", got)
		}
		for _, month := range []string{"2027-03", "2026-13", "1999-12", "2026", "novembre"} {
			if r := s.call("GET", "/api/statements/"+month, a.Key, ""); r.status != 422 {
				t.Errorf("%s: %d %s", month, r.status, r.body)
			}
		}
	})
}

// TestCallsOfTheMonth: calls count from the first to the last day of the month, as the client's calendar shows them. So the open
// month has those of today also on its last day.
func TestCallsOfTheMonth(t *testing.T) {
	databases(t, options{}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "full")
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"consent":"free"}`)
		session := s.officialSession(a.Key)
		for i, at := range []time.Time{
			time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
			time.Date(2026, 11, 30, 23, 30, 0, 0, time.UTC), // half past midnight in Rome
			time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC),
			time.Date(2026, 12, 31, 22, 30, 0, 0, time.UTC), // half past eleven in Rome
		} {
			s.clock.Set(at)
			s.must(nil, "POST", "/api/messages", a.Key, fmt.Sprintf(`{"phone":"+39333000000%d","text":"Ciao","id_sessione":"%s"}`, i, session))
		}
		for month, want := range map[string]int64{"2026-11": 1, "2026-12": 3} {
			for _, key := range []string{a.Key, s.partner} {
				if got := s.statementOf(key, month).Clients[0]; got.Calls != want || got.Credits != 0 {
					t.Errorf("%s has %+v, want %d calls", month, got, want)
				}
			}
		}
	})
}

// TestStatementOfLateArrival: the network says after the close of the month that a message failed, and then that it arrived. It
// counts once: in the month in which that became known.
func TestStatementOfLateArrival(t *testing.T) {
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "full")
		notice := graphtest.NewTemplate("avviso", "Pronto")
		notice.Category = "UTILITY"
		s.owner.peer.SetTemplates("55101", notice)
		session := s.officialSession(a.Key)
		_, sessionID := idsOf(t, a, session)
		s.must(nil, "POST", "/api/templates", a.Key, `{"name":"Avviso","text":"Pronto","official":{"name":"avviso","language":"it"}}`)
		var made started
		s.must(&made, "POST", "/api/messages", a.Key, `{"phone":"+393330000001","template":"Avviso","id_sessione":"`+session+`"}`)
		s.end(a, made.ID[0], "+393330000001", sent)
		m := s.item(a, made.ID[0])
		counted := "1 utility IT Official estimated " + priceOf(t, "IT") + " false"
		s.clock.Set(time.Date(2026, 12, 4, 12, 0, 0, 0, time.UTC))
		if err := s.statements.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wantStatement(a.Key, "2026-11", true, counted)
		for i, kind := range []puntuale.ReceiptKind{puntuale.ReceiptFailed, puntuale.ReceiptDelivered} {
			s.clock.Set(time.Date(2026, 12, 10+i, 12, 0, 0, 0, time.UTC))
			if _, err := s.owner.store.KeepReceipts(t.Context(), s.clock.Now(), []puntuale.DeliveryReceipt{{MessageRef: m, Session: sessionID, Kind: kind, At: s.clock.Now()}}); err != nil {
				t.Fatal(err)
			}
		}
		s.clock.Set(time.Date(2027, 1, 4, 12, 0, 0, 0, time.UTC))
		if err := s.statements.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wantStatement(a.Key, "2026-12", true, counted, "-"+strings.Replace(counted, "estimated ", "estimated -", 1)+" 2026-11")
	})
}

var embeddedPrices = price.Embedded()

// priceOf returns Meta's price of a utility message to a country, in the embedded table.
func priceOf(t *testing.T, country string) string {
	t.Helper()
	text, known := embeddedPrices.Of(puntuale.MessageKind{Country: country, Category: "utility"}, 1)
	if !known {
		t.Fatalf("no price to %s", country)
	}
	return text
}

// budgetOf is the answer of GET /api/budget, as far as tests compare it.
type budgetOf struct {
	Amount, Month     *string
	Currency, Spent   string
	Percent, Unpriced int
	Counted           bool
	UsedUp            bool    `json:"used_up"`
	Ends              *string `json:"ends_at"`
}

// TestBudget: a budget counts what left in the month before and after it was set, at the prices that Meta told, or else at
// the list's. The partner sets it, and the client sees it.
func TestBudget(t *testing.T) {
	databases(t, options{}, func(t *testing.T, s *service) {
		a, b := s.newAccount("a@x", "full"), s.newAccount("b@x", "full")
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"consent":"free"}`)
		promo := graphtest.NewTemplate("promo", "Ciao")
		promo.Category = "MARKETING"
		s.owner.peer.SetTemplates("55101", promo)
		session := s.officialSession(a.Key)
		s.must(nil, "POST", "/api/templates", a.Key, `{"name":"Promo","text":"Ciao","official":{"name":"promo","language":"it"}}`)
		s.store.PriceMessages(s.statements.Priced, s.statements.Currency())
		send := func(phone string) puntuale.MessageRef {
			t.Helper()
			var made started
			s.must(&made, "POST", "/api/messages", a.Key, `{"phone":"`+phone+`","template":"Promo","id_sessione":"`+session+`"}`)
			s.end(a, made.ID[0], phone, sent)
			return s.item(a, made.ID[0])
		}
		count := func() {
			t.Helper()
			for more := true; more; {
				var err error
				if more, err = s.store.CountResults(t.Context(), 1000); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.store.KeepBudgets(t.Context(), s.clock.Now(), func(puntuale.SessionID, time.Time) {}); err != nil {
				t.Fatal(err)
			}
		}
		want := func(spent string, percent int, usedUp bool) (got budgetOf) {
			t.Helper()
			count()
			var own budgetOf
			s.must(&got, "GET", "/api/client/"+a.ID+"/budget", s.partner, "")
			s.must(&own, "GET", "/api/budget", a.Key, "")
			if got.Spent != spent || got.Percent != percent || got.UsedUp != usedUp || own.Spent != spent || own.UsedUp != usedUp {
				t.Errorf("%+v and %+v, want %s, %d%%, used up %v", got, own, spent, percent, usedUp)
			}
			return got
		}
		set := func(amount string) {
			t.Helper()
			s.must(nil, "PUT", "/api/client/"+a.ID+"/budget", s.partner, `{"amount":`+amount+`}`)
		}
		first := send("+393330000001")
		if got := want("0.00", 0, false); got.Amount != nil || got.Month != nil || got.Currency != "EUR" {
			t.Errorf("without a budget: %+v", got)
		}
		set(`"0.15"`)
		if got := want("0.0658", 43, false); got.Amount == nil || *got.Amount != "0.15" || *got.Month != "2026-11" || *got.Ends != "2026-11-30T23:00:00.000000Z" || !got.Counted {
			t.Errorf("with a budget: %+v", got)
		}
		second := send("+393330000002")
		want("0.1316", 87, false)
		_, sessionID := idsOf(t, a, session)
		tell := func(m puntuale.MessageRef, country, category string, billable bool) {
			t.Helper()
			charge := puntuale.Charge{MessageKind: puntuale.MessageKind{Country: country, Category: category}, Billable: billable}
			if _, err := s.store.KeepReceipts(t.Context(), s.clock.Now(), []puntuale.DeliveryReceipt{{MessageRef: m, Session: sessionID, Kind: puntuale.ReceiptDelivered, At: s.clock.Now(), Charge: charge}}); err != nil {
				t.Fatal(err)
			}
		}
		tell(first, "IT", "service", false) // Meta told that it is free
		want("0.0658", 43, false)
		var health struct {
			Health struct {
				Free  int64 `json:"free_service_messages"`
				Limit int64 `json:"free_service_limit"`
			}
		}
		if s.must(&health, "GET", "/api/sessions/"+session, a.Key, ""); health.Health.Free != 1 || health.Health.Limit != 1000 {
			t.Errorf("free service messages: %+v", health)
		}
		tell(second, "ZZ", "marketing", true)
		if got := want("0.00", 0, false); got.Unpriced != 1 {
			t.Errorf("a country without a price: %+v", got)
		}
		third := send("+393330000003")
		send("+393330000004")
		send("+393330000005")
		want("0.1974", 131, true)
		var made started
		s.must(&made, "POST", "/api/messages", a.Key, `{"phone":"+393330000006","template":"Promo","id_sessione":"`+session+`"}`)
		answers, err := s.store.Claim(t.Context(), puntuale.Claim{Node: s.owner.node, Token: 1, Now: s.clock.Now(), Messages: []puntuale.ClaimItem{{MessageRef: s.item(a, made.ID[0]), Phone: "+393330000006", Purpose: puntuale.PurposeMarketing}}})
		if err != nil || answers[0] != puntuale.ClaimBudget {
			t.Errorf("a claim of marketing: %v, %v", answers, err)
		}
		s.store.PriceMessages(s.statements.Priced, "USD") // another list
		count()
		if p, err := s.store.SendPermissions(t.Context(), []puntuale.ClientID{third.Client}); err != nil || p[third.Client].MarketingWaits(s.clock.Now()) {
			t.Errorf("with a list in another currency: %+v, %v", p, err)
		}
		s.store.PriceMessages(s.statements.Priced, "EUR")
		want("0.1974", 131, true)
		s.must(nil, "POST", "/api/contacts/erase", a.Key, `{"phone":"+393330000003"}`)
		want("0.1974", 131, true)
		for _, bad := range []string{`{"amount":"0"}`, `{"amount":""}`, `{"amount":"-1"}`, `{"amount":"molto"}`, `{"amount":"1.234"}`, `{"amount":"99999999"}`, `{"amount":50}`, `{}`, `{"amount":"5","currency":"EUR"}`} {
			if r := s.call("PUT", "/api/client/"+a.ID+"/budget", s.partner, bad); r.status != 422 && r.status != 400 {
				t.Errorf("%s: %d %s", bad, r.status, r.body)
			}
		}
		if r := s.call("PUT", "/api/client/999/budget", s.partner, `{"amount":"5"}`); r.status != 404 {
			t.Errorf("an unknown client: %d", r.status)
		}
		if r := s.call("PUT", "/api/client/"+a.ID+"/budget", a.Key, `{"amount":"5"}`); r.status != 401 && r.status != 403 {
			t.Errorf("the client's own key: %d", r.status)
		}
		// A client whose partner asks its own prices learns only the part that is used.
		own := func(each map[string]string) {
			if err := s.statements.SetOwnPrices(t.Context(), s.partnerAccount(), puntuale.Prices{Currency: "EUR", Each: each}); err != nil {
				t.Fatal(err)
			}
		}
		own(map[string]string{"service": "0.04"})
		if got := s.must(nil, "GET", "/api/budget", a.Key, "").body; !strings.Contains(got, `"amount":null,"currency":"EUR","spent":null,"percent":131,`) || !strings.Contains(got, `"used_up":true`) || strings.Contains(got, "0.1") {
			t.Errorf("with own prices, the client gets %s", got)
		}
		if got := s.must(nil, "GET", "/api/client/"+a.ID+"/budget", s.partner, "").body; !strings.Contains(got, `"amount":"0.15","currency":"EUR","spent":"0.1974","percent":131,`) {
			t.Errorf("with own prices, the partner gets %s", got)
		}
		s.must(nil, "GET", "/api/events?types=account.budget_low,account.budget_out", a.Key, "")
		set(`"0.16"`) // it is told again
		count()
		for n := 1; n > 0; {
			var err error
			if n, err = s.store.NumberEvents(t.Context(), s.clock.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.must(nil, "GET", "/api/events?types=account.budget_low,account.budget_out&after=0", a.Key, "").body; !strings.Contains(got, `"month":"2026-11","percent":123}`) || strings.Contains(got, "spent") {
			t.Errorf("with own prices, the client's event is %s", got)
		}
		own(nil)
		set(`"0.15"`)
		want("0.1974", 131, true)
		var other budgetOf
		if s.must(&other, "GET", "/api/budget", b.Key, ""); other.Amount != nil {
			t.Errorf("another client has %+v", other)
		}
		set("null")
		if got := want("0.00", 0, false); got.Amount != nil {
			t.Errorf("after its removal: %+v", got)
		}
		set(`"100"`)
		if got := want("0.1974", 0, false); got.Unpriced != 1 { // counted again, with the erased person's
			t.Errorf("counted again: %+v", got)
		}
		s.clock.Set(time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC))
		if got := want("0.00", 0, false); *got.Month != "2026-12" {
			t.Errorf("the next month: %+v", got)
		}
		s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"timezone":"America/New_York"}`)
		if got := want("0.00", 0, false); *got.Ends != "2027-01-01T05:00:00.000000Z" {
			t.Errorf("another zone: %+v", got)
		}
	})
}

// TestBudgetMonthStays: a server whose clock is a little behind does not begin the month before again. A month that a wrong clock
// began long before its time is begun again.
func TestBudgetMonthStays(t *testing.T) {
	databases(t, options{}, func(t *testing.T, s *service) {
		b := newBilled(t, s)
		s.store.PriceMessages(s.statements.Priced, s.statements.Currency())
		keep := func(at time.Time, amount, month, spent string) {
			t.Helper()
			s.clock.Set(at)
			s.must(nil, "PUT", "/api/client/"+b.a.ID+"/budget", s.partner, `{"amount":"`+amount+`"}`)
			if err := s.store.KeepBudgets(t.Context(), at, func(puntuale.SessionID, time.Time) {}); err != nil {
				t.Fatal(err)
			}
			var got budgetOf
			if s.must(&got, "GET", "/api/budget", b.a.Key, ""); *got.Month != month || got.Spent != spent || !got.Counted {
				t.Errorf("at %v: %+v of %s, want %s of %s", at, got, *got.Month, spent, month)
			}
		}
		b.send("+393330000001", "Promo")
		keep(s.clock.Now(), "10", "2026-11", "0.0658")
		december := time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)
		keep(december.Add(time.Second), "11", "2026-12", "0.00")
		keep(december.Add(-time.Second), "12", "2026-12", "0.00")
		keep(december.AddDate(0, 2, 5), "13", "2027-02", "0.00")
		keep(december.Add(time.Second), "14", "2026-12", "0.00")
	})
}
