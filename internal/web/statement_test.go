package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale"
)

// billed creates messages of an Official session, some of which the network billed.
func (w *world) billed() puntuale.SessionID {
	w.t.Helper()
	ctx := context.Background()
	f := w.traffic()
	tenant := w.store.Tenant(w.client)
	session, err := tenant.CreateOfficial(ctx, puntuale.Session{Name: "Ufficiale", Type: puntuale.Official, Created: w.clock.Now()}, func(puntuale.SessionID) []byte { return []byte("x") }, nil)
	w.must(err)
	f.session = session
	now := w.clock.Now()
	phones := []string{"+393331234501", "+393331234502", "+393331234503", "+33612345678", "+4915112345678"}
	for i, phone := range phones {
		id := f.ended(phone, "Ciao", now.Add(-time.Duration(i)*time.Minute), puntuale.Outcome{Verdict: puntuale.Sent})
		if i < 3 {
			_, err := w.store.KeepReceipts(ctx, now, []puntuale.DeliveryReceipt{{MessageRef: puntuale.MessageRef{Client: w.client, ID: id}, Session: session, Kind: puntuale.ReceiptDelivered, At: now,
				Charge: puntuale.Charge{MessageKind: puntuale.MessageKind{Country: "IT", Category: "marketing"}, Billable: i > 0}}})
			w.must(err)
		}
	}
	return session
}

// TestStatements: a client sees its month, and a partner the months of all its clients. Only an owner sets the prices. The
// file has the same lines.
func TestStatements(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.billed()
	v, owner := w.visitor(w.clients[puntuale.Reader]), w.visitor(w.partners[puntuale.Owner])
	text := words(inMain(v.get(w.pages + "/statements").body))
	for _, want := range []string{"Rendiconto · novembre 2026", "Rete", "IT · Marketing", "0,1316 EUR", "Gratuiti", "FR · Testo libero", "Stima", "Comunicato da Meta", "Aperto"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q: %s", want, text)
		}
	}
	if strings.Contains(text, "Nostro prezzo") {
		t.Error("the page has prices that the partner did not set")
	}
	page := owner.get("/partner/statements")
	if got := words(inMain(page.body)); !strings.Contains(got, "Studio Bianchi") || !strings.Contains(got, "Officina Verdi") || strings.Contains(got, "Estraneo") {
		t.Errorf("the partner's page: %s", got)
	}
	set := func(marketing string) answer {
		form := formTo(page.body, "/partner/statements/prices")
		form.Set("marketing", marketing)
		return owner.post("/partner/statements/prices", form)
	}
	if got := set("mille"); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "f-marketing-fault") {
		t.Errorf("a wrong price: %d", got.status)
	}
	if got := set("0,10"); got.status != http.StatusSeeOther {
		t.Errorf("a price: %d %s", got.status, words(got.body))
	}
	if form := formTo(owner.get("/partner/statements").body, "/partner/statements/prices"); form.Get("marketing") != "0,10" {
		t.Errorf("the form has the price as %q, not as the page writes it", form.Get("marketing"))
	}
	if got := w.visitor(w.partners[puntuale.Staff]).post("/partner/statements/prices", url.Values{"currency": {"EUR"}, "marketing": {"5"}}); got.status != http.StatusForbidden {
		t.Errorf("a price by staff: %d", got.status)
	}
	owner.post("/partner/clients/"+w.client.String()+"/enter", nil)
	// The partner's user sees both prices, the client's own only the partner's. The two other lines have only Meta's.
	for _, reader := range []struct {
		v     *visitor
		meta  bool
		lines int
	}{{v, false, 3}, {owner, true, 4}} {
		text, file := words(inMain(reader.v.get(w.pages+"/statements").body)), reader.v.get(w.pages+"/statements/export?month=2026-11").body
		if !strings.Contains(text, "0,30") || !strings.Contains(text, map[bool]string{false: "0,30 EUR", true: "0,2000 EUR"}[reader.meta]) || strings.Contains(text, "0,1316") != reader.meta || strings.Contains(text, "Gratuiti") != reader.meta || !strings.Contains(text, "FR · Testo libero") {
			t.Errorf("with the partner's price, Meta's %v: %s", reader.meta, text)
		}
		if !strings.Contains(file, "marketing") || strings.Contains(file, "0.1316") != reader.meta || strings.Count(strings.TrimSpace(file), "\n") != reader.lines {
			t.Errorf("the file, Meta's prices %v: %s", reader.meta, file)
		}
	}
	if got := owner.get("/partner/statements/export?month=2026-11").body; !strings.Contains(got, "Studio Bianchi") {
		t.Errorf("the partner's file: %s", got)
	}
	w.clock.Set(time.Date(2026, 12, 4, 12, 0, 0, 0, time.UTC))
	w.must(w.statements.Close(context.Background()))
	v = w.visitor(w.clients[puntuale.Reader]) // the visit before has ended
	if text := words(inMain(v.get(w.pages + "/statements?month=2026-11").body)); !strings.Contains(text, "Chiuso") {
		t.Errorf("the closed month: %s", text)
	}
	if text := words(inMain(v.get(w.pages + "/statements").body)); !strings.Contains(text, "dicembre 2026") || !strings.Contains(text, "Nessun messaggio") {
		t.Errorf("the month after: %s", text)
	}
}

// TestStatementsInBrowser looks at the pages, also as they are printed.
func TestStatementsInBrowser(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		w.billed()
		w.must(w.statements.SetOwnPrices(context.Background(), w.newPartnerHandle(), puntuale.Prices{Currency: "EUR", Each: map[string]string{"marketing": "0.10", "service": "0.04"}}))
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/statements")
		b.check("statement")
		if first := b.printed("1"); first < 20 {
			t.Errorf("the printed page has only %d pieces of text", first)
		}
		evaluate[bool](b, `(document.querySelector(".stat:nth-child(2) dd").firstChild.textContent = "1.234.567,1234 ", true)`) // a large agency
		b.until(`[...document.querySelectorAll(".stat")].every((tile) => tile.scrollWidth <= tile.clientWidth)`)
		b.picture("statement-large")
		b.open(w.pages + "/statements?month=2026-10")
		b.check("statement-empty")
		b.signIn(w.partners[puntuale.Owner])
		b.open("/partner/statements")
		b.check("statements")
	})
}

// keepBudgets does what a server does all the time.
func (w *world) keepBudgets() {
	w.t.Helper()
	w.must(w.store.KeepBudgets(context.Background(), w.clock.Now(), func(puntuale.SessionID, time.Time) {}))
}

// TestBudget: staff of the partner sets a budget on the client's page, and the client sees how much of it is used.
func TestBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.billed()
	client, partner := w.visitor(w.clients[puntuale.Reader]), w.visitor(w.partners[puntuale.Staff])
	address := "/partner/clients/" + w.client.String()
	if text := words(inMain(partner.get(address).body)); !strings.Contains(text, "Nessun limite di spesa") {
		t.Errorf("before: %s", text)
	}
	if text := words(inMain(client.get(w.pages + "/usage").body)); strings.Contains(text, "Budget") {
		t.Errorf("the client sees a budget before there is one: %s", text)
	}
	set := func(amount string) answer { return partner.post(address+"/budget", url.Values{"amount": {amount}}) }
	if got := set("poco"); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "f-amount-fault") {
		t.Errorf("a wrong amount: %d", got.status)
	}
	if got := w.visitor(w.partners[puntuale.Reader]).post(address+"/budget", url.Values{"amount": {"5"}}); got.status != http.StatusForbidden {
		t.Errorf("a budget by a reader: %d", got.status)
	}
	for amount, wants := range map[string][]string{"0,25": {"Budget del mese", "0,20 EUR di 0,25 EUR", "Sta per finire"}, "0,10": {"di 0,10 EUR", "Il marketing aspetta fino al 1 dic 2026"}, "": nil} {
		if got := set(amount); got.status != http.StatusSeeOther {
			t.Errorf("a budget of %q: %d %s", amount, got.status, words(got.body))
		}
		w.keepBudgets()
		for _, page := range []string{words(inMain(client.get(w.pages + "/usage").body)), words(inMain(client.get(w.pages + "/statements").body)), words(inMain(partner.get(address).body))} {
			for _, want := range wants {
				if !strings.Contains(page, want) {
					t.Errorf("a budget of %q: a page lacks %q: %s", amount, want, page)
				}
			}
		}
	}
	// A client whose partner asks its own prices learns only the part that is used; the partner sees the amounts on the same page.
	w.must(w.statements.SetOwnPrices(context.Background(), w.newPartnerHandle(), puntuale.Prices{Currency: "EUR", Each: map[string]string{"marketing": "0.30"}}))
	set("0,25")
	w.keepBudgets()
	inside := w.visitor(w.partners[puntuale.Owner])
	inside.post(address+"/enter", nil)
	for _, page := range []string{"/usage", "/statements"} {
		if text := words(inMain(client.get(w.pages + page).body)); !strings.Contains(text, "80% usato") || strings.Contains(text, "0,25") || strings.Contains(text, "0,19") || strings.Contains(text, "prezzi di Meta") {
			t.Errorf("with own prices, the client reads %s", text)
		}
		if text := words(inMain(inside.get(w.pages + page).body)); !strings.Contains(text, "0,20 EUR di 0,25 EUR") {
			t.Errorf("with own prices, the partner reads %s", text)
		}
	}
	if text := words(inMain(w.visitor(w.clients[puntuale.Owner]).get(w.pages + "/statements?month=2026-10").body)); strings.Contains(text, "Budget") {
		t.Errorf("the month before: %s", text)
	}
}

// TestBudgetInBrowser looks at the meters near the limit, and when it is reached.
func TestBudgetInBrowser(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		w.billed()
		b.signIn(w.partners[puntuale.Owner])
		for name, amount := range map[string]string{"near": "0,25", "full": "0,10"} {
			_, err := w.statements.SetBudget(context.Background(), w.newPartnerHandle(), w.client.String(), amount)
			w.must(err)
			w.keepBudgets()
			b.open("/partner/clients/" + w.client.String())
			b.check("budget-" + name)
		}
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/usage")
		b.check("budget-usage")
		b.open(w.pages + "/statements")
		b.check("budget-statement")
		w.must(w.statements.SetOwnPrices(context.Background(), w.newPartnerHandle(), puntuale.Prices{Currency: "EUR", Each: map[string]string{"marketing": "0.30"}}))
		b.open(w.pages + "/usage")
		b.check("budget-part")
	})
}

// TestMetersInBrowser looks at what Meta's limits leave to a number: service messages that are free, and new people.
func TestMetersInBrowser(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		session := w.billed()
		now := w.clock.Now()
		w.must(w.store.NoteOfficial(t.Context(), session, "101", "55101"))
		for kind, value := range map[puntuale.HealthKind]string{puntuale.HealthChecked: "1", puntuale.HealthQuality: "GREEN", puntuale.HealthLimit: "6"} {
			w.must(w.store.KeepHealth(t.Context(), []puntuale.HealthReport{{Client: w.client, Session: session, Kind: kind, Value: value, At: now}}, now))
		}
		found, _, err := w.store.Tenant(w.client).Messages(t.Context(), puntuale.MessageFilter{}, puntuale.Page{Limit: 10})
		w.must(err)
		for _, m := range found {
			_, err := w.store.KeepReceipts(t.Context(), now, []puntuale.DeliveryReceipt{{MessageRef: puntuale.MessageRef{Client: w.client, ID: m.ID}, Session: session, Kind: puntuale.ReceiptDelivered, At: now,
				Charge: puntuale.Charge{MessageKind: puntuale.MessageKind{Country: "IT", Category: "service"}}}})
			w.must(err)
		}
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/sessions/" + session.String())
		b.until(`/5 (di|of) 6,/.test(document.querySelector(".health").innerText) && /2 (di|of) 1[.,]000/.test(document.querySelector(".health").innerText) && document.querySelector(".health .meter-near")`)
		b.check("meters")
	})
}
