package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"

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
	for _, want := range []string{"Rendiconto · novembre 2026", "Rete", "IT · Marketing", "0,13 EUR", "Gratuiti", "FR · Testo libero", "Stima", "Comunicato da Meta", "Aperto", "Crediti usati", "arrotondati"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q: %s", want, text)
		}
	}
	if strings.Contains(text, "Da pagare") || strings.Contains(text, "0,1316") {
		t.Errorf("the page has prices that the partner did not set, or too exact ones: %s", text)
	}
	if _, err := w.sql.Exec(`update client set credits = null where name = 'Officina Verdi'`); err != nil {
		t.Fatal(err)
	}
	page := owner.get("/partner/statements")
	if got := words(inMain(page.body)); !strings.Contains(got, "Studio Bianchi") || !strings.Contains(got, "Officina Verdi") || strings.Contains(got, "Estraneo") {
		t.Errorf("the partner's page: %s", got)
	} else if strings.Contains(got, "Da fatturare") || !strings.Contains(got, "Non hai ancora prezzi tuoi") || !strings.Contains(page.body, `href="#prices"`) || !strings.Contains(got, "Marketing (EUR)") || strings.Count(got, "Illimitati") != 1 || !strings.Contains(got, "mai quelli chiusi") {
		t.Errorf("without own prices: %s", got)
	}
	if got := w.visitor(w.partners[puntuale.Staff]).get("/partner/statements").body; strings.Contains(got, `href="#prices"`) || !strings.Contains(got, "Li imposta un titolare") {
		t.Error("staff has a link to a form that it may not fill in")
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
	page = owner.get("/partner/statements")
	if form := formTo(page.body, "/partner/statements/prices"); form.Get("marketing") != "0,10" {
		t.Errorf("the form has the price as %q, not as the page writes it", form.Get("marketing"))
	}
	if got := words(inMain(page.body)); !strings.Contains(got, "Da fatturare") || !strings.Contains(got, "0,30 EUR") || strings.Contains(got, "Non hai ancora prezzi tuoi") {
		t.Errorf("with own prices: %s", got)
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
		if !strings.Contains(text, "Da pagare") || !strings.Contains(text, "0,30 EUR") || strings.Contains(text, "0,20 EUR") != reader.meta || strings.Contains(text, "0,13 EUR") != reader.meta || strings.Contains(text, "Gratuiti") != reader.meta || !strings.Contains(text, "FR · Testo libero") {
			t.Errorf("with the partner's price, Meta's %v: %s", reader.meta, text)
		}
		if !strings.Contains(file, "marketing") || !strings.Contains(file, "Da pagare") || strings.Contains(file, "0.1316") != reader.meta || strings.Count(strings.TrimSpace(file), "\n") != reader.lines || strings.Count(file, ";open\r\n") != reader.lines {
			t.Errorf("the file, Meta's prices %v: %s", reader.meta, file)
		}
	}
	if got := owner.get("/partner/statements/export?month=2026-11").body; !strings.Contains(got, "Studio Bianchi") {
		t.Errorf("the partner's file: %s", got)
	}
	set("")
	form := formTo(page.body, "/partner/statements/prices")
	for _, category := range puntuale.OwnCategories {
		form.Set(category, "0,10")
	}
	owner.post("/partner/statements/prices", form)
	// Where no price of Meta is shown, neither are a sum of them, and what list they are from.
	text, file := words(inMain(v.get(w.pages+"/statements").body)), v.get(w.pages+"/statements/export").body
	if !strings.Contains(text, "0,50 EUR") || strings.Contains(text, "Meta 0,00") || strings.Contains(text, "listino") || strings.Contains(text, "La rete non addebita") || strings.Contains(file, "Meta") || strings.Contains(file, "none") || !strings.Contains(file, "marketing;IT;Official;SEQUENCE;3;0.30;EUR") {
		t.Errorf("with all own prices, the client reads %s and %s", text, file)
	}
	w.clock.Set(time.Date(2026, 12, 4, 12, 0, 0, 0, time.UTC))
	v, owner = w.visitor(w.clients[puntuale.Reader]), w.visitor(w.partners[puntuale.Owner]) // the visits before have ended
	for _, page := range []string{words(inMain(v.get(w.pages + "/statements?month=2026-11").body)), words(inMain(owner.get("/partner/statements?month=2026-11").body))} {
		if !strings.Contains(page, "In chiusura") || strings.Contains(page, "Aperto") {
			t.Errorf("the month that is being closed: %s", page)
		}
	}
	saved := func(of *visitor, page, language, name, state string, rows int) {
		t.Helper()
		got := of.do(http.MethodGet, page+"/export?month=2026-11", nil, http.Header{"Accept-Language": {language}})
		all := strings.Split(strings.TrimSpace(got.body), "\r\n")
		said := slices.IndexFunc(all[1:], func(row string) bool { return !strings.HasSuffix(row, state) })
		if h := got.header.Get("Content-Disposition"); !strings.Contains(h, `"`+name+`.csv"`) || len(all) != 1+rows || said >= 0 {
			t.Errorf("%s in %q: %q with %d rows, %q", page, language, h, len(all)-1, all)
		}
	}
	saved(v, w.pages+"/statements", "it", "rendiconto-2026-11-in-chiusura", ";closing", 3)
	saved(owner, "/partner/statements", "it", "rendiconto-2026-11-in-chiusura", ";closing", 4)
	w.must(w.statements.Close(context.Background()))
	v, owner = w.visitor(w.clients[puntuale.Reader]), w.visitor(w.partners[puntuale.Owner]) // the visits before have ended
	saved(v, w.pages+"/statements", "it", "rendiconto-2026-11", ";closed", 3)
	saved(owner, "/partner/statements", "it", "rendiconto-2026-11", ";closed", 4)
	if text := words(inMain(v.get(w.pages + "/statements?month=2026-11").body)); !strings.Contains(text, "Chiuso") {
		t.Errorf("the closed month: %s", text)
	}
	if text := words(inMain(v.get(w.pages + "/statements").body)); !strings.Contains(text, "dicembre 2026") || !strings.Contains(text, "Nessun messaggio") {
		t.Errorf("the month after: %s", text)
	}
}

// TestIncompleteStatement: the partner's page says of which client not all messages are counted.
func TestIncompleteStatement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.billed()
	const columns = `session_id, run_id, desired_at, due_at, next_at, valid_until, intent, intent_at, resent_from, step, origin, attempt, repeats, generation, state, outcome, credit, phone, reason, detail, campaign_id, priority, purpose`
	if _, err := w.sql.Exec(`insert into message (client_id, id, done_at, ` + columns + `) with recursive g(n) as (select 1 union all select n + 1 from g where n < 50000)
 select client_id, id + n, done_at + n, ` + columns + ` from message cross join g where id = (select max(id) from message where outcome = 1)`); err != nil {
		t.Fatal(err)
	}
	page := words(inMain(w.visitor(w.partners[puntuale.Owner]).get("/partner/statements").body))
	for language, want := range map[string]string{"it": `"rendiconto-2026-11-incompleto.csv"`, "en": `"statement-2026-11-incomplete.csv"`} {
		got := w.visitor(w.partners[puntuale.Owner]).do(http.MethodGet, "/partner/statements/export?month=2026-11", nil, http.Header{"Accept-Language": {language}})
		if name := got.header.Get("Content-Disposition"); !strings.Contains(name, want) || !strings.Contains(got.body, "incomplete\r\n") {
			t.Errorf("the file is %s, want %s: %s", name, want, got.body)
		}
	}
	if strings.Count(page, "Incompleto") != 1 || !strings.Contains(page, "Studio Bianchi Incompleto") || !strings.Contains(page, "solo una parte") {
		t.Errorf("the partner's page: %s", page)
	}
}

// TestMonthsOfStatements: months before there was an account are not offered, and say so. A month that no server closed in time
// says so, too.
func TestMonthsOfStatements(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, partner := w.visitor(w.clients[puntuale.Reader]), w.visitor(w.partners[puntuale.Owner])
	for _, from := range []struct {
		v    *visitor
		page string
		said string
	}{{client, w.pages + "/statements", "Nessun account"}, {partner, "/partner/statements", "Nessun cliente"}} {
		if got := from.v.get(from.page).body; strings.Contains(got, `rel="prev"`) || !strings.Contains(got, "Aperto") {
			t.Errorf("%s offers a month before the account", from.page)
		}
		for _, month := range []string{"2026-10", "2026-09"} {
			got := from.v.get(from.page + "?month=" + month).body
			if text := words(inMain(got)); !strings.Contains(text, from.said) || !strings.Contains(text, "l’account non c’era ancora") || strings.Contains(text, "Aperto") || strings.Contains(got, `rel="prev"`) || !strings.Contains(got, `href="`+from.page+`?month=2026-11" rel="next"`) {
				t.Errorf("%s of %s: %s", from.page, month, text)
			}
			if got := from.v.get(from.page + "/export?month=" + month); got.status != http.StatusOK || strings.Count(strings.TrimSpace(got.body), "\n") != 0 {
				t.Errorf("the file of %s has lines: %s", month, got.body)
			}
		}
	}
	w.clock.Set(time.Date(2027, 1, 20, 12, 0, 0, 0, time.UTC))
	client = w.visitor(w.clients[puntuale.Reader])
	for month, want := range map[string]string{"2027-01": "Aperto", "2026-12": "In chiusura", "2026-11": "Non chiuso"} {
		got := client.get(w.pages + "/statements?month=" + month).body
		if text := words(inMain(got)); !strings.Contains(text, want) || strings.Contains(got, `rel="prev"`) != (month != "2026-11") {
			t.Errorf("%s is not %q: %s", month, want, text)
		}
	}
}

// TestPrintedStatement: a partner's user prints a client's statement as the client sees it, without the partner's bar.
func TestPrintedStatement(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		w.billed()
		_, err := w.statements.SetBudget(context.Background(), w.newPartnerHandle(), w.client.String(), "0,25")
		w.must(err)
		w.keepBudgets()
		printed := func(name string) string {
			t.Helper()
			b.open(w.pages + "/statements")
			command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
			defer command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: ""})
			b.picture(name)
			return evaluate[string](b, `document.body.innerText`)
		}
		for _, prices := range []map[string]string{{}, {"marketing": "0.10"}, {"marketing": "0.10", "service": "0.04"}} {
			w.must(w.statements.SetOwnPrices(context.Background(), w.newPartnerHandle(), puntuale.Prices{Currency: "EUR", Each: prices}))
			b.signIn(w.clients[puntuale.Owner])
			own := printed(fmt.Sprint("client-", len(prices)))
			b.signIn(w.partners[puntuale.Owner])
			b.open("/partner/clients/" + w.client.String())
			b.click("form[action$='/enter'] button")
			b.until(`document.querySelector(".place-entered") !== null && document.readyState === "complete"`)
			if !strings.Contains(own, "Aperto") && !strings.Contains(own, "Open") {
				t.Errorf("the paper does not say that the month is open: %q", own)
			}
			if entered := printed(fmt.Sprint("partner-", len(prices))); entered != own || strings.Contains(entered, "Torna ai clienti") {
				t.Errorf("with %d prices, the partner prints %q, the client %q", len(prices), entered, own)
			}
			if len(prices) > 0 {
				b.until(`document.querySelector("main").innerText.includes("Meta")`)
				b.check(fmt.Sprint("entered-", len(prices)))
			}
			b.open("/partner/statements")
			b.check(fmt.Sprint("statements-", len(prices)))
		}
	})
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
