package httpapi_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/control/account"
	"puntuale/internal/control/statement"
	"puntuale/internal/price"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/storetest"
)

// billed is a service with a client that sends two approved templates: promo (marketing) and avviso (utility).
type billed struct {
	*service
	a         clientAccount
	session   string
	sessionID puntuale.SessionID
}

func newBilled(t *testing.T, s *service) *billed {
	t.Helper()
	b := &billed{service: s, a: s.newAccount("a@x", "full")}
	s.must(nil, "PATCH", "/api/settings", b.a.Key, `{"consent":"free"}`)
	promo, notice := graphtest.NewTemplate("promo", "Ciao"), graphtest.NewTemplate("avviso", "Pronto")
	promo.Category, notice.Category = "MARKETING", "UTILITY"
	s.owner.peer.SetTemplates("55101", promo, notice)
	b.session = s.officialSession(b.a.Key)
	_, b.sessionID = idsOf(t, b.a, b.session)
	s.must(nil, "POST", "/api/templates", b.a.Key, `{"name":"Promo","text":"Ciao","official":{"name":"promo","language":"it"}}`)
	s.must(nil, "POST", "/api/templates", b.a.Key, `{"name":"Avviso","text":"Pronto","official":{"name":"avviso","language":"it"}}`)
	return b
}

func (b *billed) start(phone, template string) puntuale.MessageRef {
	b.t.Helper()
	var made started
	b.must(&made, "POST", "/api/messages", b.a.Key, `{"phone":"`+phone+`","template":"`+template+`","id_sessione":"`+b.session+`"}`)
	return b.item(b.a, made.ID[0])
}

func (b *billed) send(phone, template string) puntuale.MessageRef {
	b.t.Helper()
	m := b.start(phone, template)
	b.end(b.a, m.ID.String(), phone, sent)
	return m
}

// tell stores what the network says about a message; an empty country and category say nothing about the bill.
func (b *billed) tell(m puntuale.MessageRef, kind puntuale.ReceiptKind, country, category string) {
	b.t.Helper()
	charge := puntuale.Charge{MessageKind: puntuale.MessageKind{Country: country, Category: category}, Billable: category != ""}
	if _, err := b.store.KeepReceipts(b.t.Context(), b.clock.Now(), []puntuale.DeliveryReceipt{{MessageRef: m, Session: b.sessionID, Kind: kind, At: b.clock.Now(), Charge: charge}}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *billed) setOwn(marketing, utility string) {
	b.t.Helper()
	if err := b.statements.SetOwnPrices(b.t.Context(), b.partnerAccount(), puntuale.Prices{Currency: "EUR", Each: map[string]string{"marketing": marketing, "utility": utility}}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *billed) close(year int, month time.Month, day int) {
	b.t.Helper()
	b.clock.Set(time.Date(year, month, day, 12, 0, 0, 0, time.UTC))
	if err := b.statements.Close(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// wantLines compares the lines of a month, each with the partner's price at its end, with what is wanted.
func (b *billed) wantLines(month string, frozen bool, want ...string) {
	b.t.Helper()
	got := b.statementOf(b.partner, month)
	texts := got.texts()
	for i, l := range got.Lines {
		texts[i] += " " + l.OwnPrice
	}
	if !slices.Equal(texts, want) || got.Frozen != frozen {
		b.t.Errorf("%s, frozen %v: %q, want %q", month, got.Frozen, texts, want)
	}
}

// TestCorrectionsTakeBackWhatWasBilled: whatever changed since the close (own prices, list, persons, contents, categories), a
// correction takes back what the closed month counted, at its prices.
func TestCorrectionsTakeBackWhatWasBilled(t *testing.T) {
	databases(t, options{}, func(t *testing.T, s *service) {
		b := newBilled(t, s)
		b.setOwn("0.10", "0.05")
		erased, moved := b.send("+393330000001", "Promo"), b.send("+393330000002", "Promo")
		failed, kept := b.send("+33612345678", "Avviso"), b.send("+393330000003", "Avviso")
		french := priceOf(t, "FR")
		b.close(2026, 12, 4)
		b.wantLines("2026-11", true, "2 marketing IT Official estimated 0.1316 false 0.20", "1 utility FR Official estimated "+french+" false 0.05", "1 utility IT Official estimated "+priceOf(t, "IT")+" false 0.05")

		b.setOwn("9", "7")
		for _, phone := range []string{"+393330000001", "+33612345678"} {
			s.must(nil, "POST", "/api/contacts/erase", b.a.Key, `{"phone":"`+phone+`"}`)
		}
		now := s.clock.Now()
		if err := s.store.Maintain(t.Context(), now, now); err != nil { // contents are removed
			t.Fatal(err)
		}
		s.sql(`update network_template set category = 'UTILITY' where name = 'promo'`)
		list, err := price.Read(strings.NewReader("currency,EUR\ndate,2027-01-01\nsource,prova\ncountry,marketing,utility,authentication,service\nIT,5,4,3,2\nFR,5,4,3,2\n"))
		if err != nil {
			t.Fatal(err)
		}
		s.statements = statement.New(statement.Config{Tenants: s.tenants, Maintenance: s.store, Budgets: s.store, Clock: s.clock, Prices: list})
		b.tell(erased, puntuale.ReceiptDelivered, "IT", "marketing")
		b.tell(moved, puntuale.ReceiptDelivered, "", "service") // a kind of which November had none, at the price of the list of today
		b.tell(failed, puntuale.ReceiptFailed, "", "")
		b.tell(kept, puntuale.ReceiptDelivered, "IT", "utility")
		b.close(2027, 1, 4)
		b.wantLines("2026-12", true,
			"-2 marketing IT Official estimated -0.1316 false 2026-11 -0.20", "1 marketing IT Official reported 0.0658 false 2026-11 0.10",
			"1 service IT Official reported 2.00 false 2026-11 ",
			"-1 utility FR Official estimated -"+french+" false 2026-11 -0.05",
			"-1 utility IT Official estimated -"+priceOf(t, "IT")+" false 2026-11 -0.05", "1 utility IT Official reported "+priceOf(t, "IT")+" false 2026-11 0.05")
		b.close(2027, 2, 4)
		b.wantLines("2027-01", true)
	})
}

// TestOnlyCountedMessagesAreTakenBack: a message that fails in the minute in which its month is closed was not counted, and one
// that began in a month and was sent in the next one belongs to the next one. Neither is taken back from the wrong month.
func TestOnlyCountedMessagesAreTakenBack(t *testing.T) {
	databases(t, options{}, func(t *testing.T, s *service) {
		b := newBilled(t, s)
		minute, soon, late := b.send("+393330000001", "Promo"), b.send("+393330000002", "Promo"), b.send("+393330000003", "Promo")
		s.clock.Set(time.Date(2026, 11, 30, 22, 59, 59, 0, time.UTC)) // before midnight in Rome
		straddling, straddlingLater := b.start("+393330000004", "Promo"), b.start("+393330000005", "Promo")
		var items []puntuale.ClaimItem
		for phone, m := range map[string]puntuale.MessageRef{"+393330000004": straddling, "+393330000005": straddlingLater} {
			item, granted := s.begin(b.a, m.ID.String(), phone)
			if granted != puntuale.ClaimGranted {
				t.Fatal(granted)
			}
			items = append(items, item)
		}
		s.clock.Set(time.Date(2026, 11, 30, 23, 0, 2, 0, time.UTC))
		s.record(sent, items...)
		s.clock.Set(time.Date(2026, 12, 4, 11, 58, 0, 0, time.UTC))
		b.tell(soon, puntuale.ReceiptFailed, "", "")
		s.clock.Set(time.Date(2026, 12, 4, 11, 59, 30, 0, time.UTC))
		b.tell(minute, puntuale.ReceiptFailed, "", "")
		b.close(2026, 12, 4)
		b.wantLines("2026-11", true, "1 marketing IT Official estimated 0.0658 false ")
		s.clock.Set(time.Date(2026, 12, 10, 12, 0, 0, 0, time.UTC))
		b.tell(straddling, puntuale.ReceiptFailed, "", "")
		b.close(2027, 1, 4)
		b.wantLines("2026-12", true, "1 marketing IT Official estimated 0.0658 false ")
		b.tell(straddlingLater, puntuale.ReceiptFailed, "", "")
		b.tell(late, puntuale.ReceiptFailed, "", "") // the month after its own is closed, too
		b.close(2027, 2, 4)
		b.wantLines("2027-01", true, "-1 marketing IT Official estimated -0.0658 false 2026-12 ")
	})
}

// TestStatementsWithoutGaps: a month begins where the one before ended, also when the client moved to another zone.
func TestStatementsWithoutGaps(t *testing.T) {
	databases(t, options{}, func(t *testing.T, s *service) {
		b := newBilled(t, s)
		s.clock.Set(time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC))
		b.send("+393330000001", "Promo") // November in Rome, and in New York
		s.clock.Set(time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC))
		b.send("+393330000002", "Promo") // December in Rome, November in New York
		b.close(2026, 12, 4)
		b.wantLines("2026-11", true, "1 marketing IT Official estimated 0.0658 false ")
		s.must(nil, "PATCH", "/api/client/"+b.a.ID, s.partner, `{"timezone":"America/New_York"}`)
		b.wantLines("2026-12", false, "1 marketing IT Official estimated 0.0658 false ")
		s.clock.Set(time.Date(2027, 1, 1, 2, 0, 0, 0, time.UTC))
		b.send("+393330000003", "Promo") // December in New York, January in Tokyo
		b.close(2027, 1, 5)
		b.wantLines("2026-12", true, "2 marketing IT Official estimated 0.1316 false ")
		s.must(nil, "PATCH", "/api/client/"+b.a.ID, s.partner, `{"timezone":"Asia/Tokyo"}`)
		b.wantLines("2027-01", false)
		b.close(2027, 2, 4)
		b.wantLines("2027-01", true)
	})
}

// TestPartnerSeesEveryStatement: the partner's call answers as soon as a month has begun for one of its clients, and has the
// statements of clients that were deleted, too.
func TestPartnerSeesEveryStatement(t *testing.T) {
	databases(t, options{}, func(t *testing.T, s *service) {
		b := newBilled(t, s)
		other := s.newAccount("b@x", "full")
		s.must(nil, "PATCH", "/api/client/"+other.ID, s.partner, `{"timezone":"America/New_York"}`)
		b.send("+393330000001", "Promo")
		clients := func(month string, want ...string) {
			t.Helper()
			got := []string{}
			for _, c := range s.statementOf(s.partner, month).Clients {
				got = append(got, c.Client)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s is of %v, want %v", month, got, want)
			}
		}
		s.clock.Set(time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC)) // December in Rome, November in New York
		b.send("+393330000002", "Promo")
		b.wantLines("2026-12", false, "1 marketing IT Official estimated 0.0658 false ")
		clients("2026-12", b.a.ID, other.ID)
		if r := s.call("GET", "/api/statements/2026-12", other.Key, ""); r.status != 422 {
			t.Errorf("a month that has not begun for the client: %d %s", r.status, r.body)
		}
		b.close(2026, 12, 4)
		s.must(nil, "DELETE", "/api/client/"+b.a.ID, s.partner, "")
		b.wantLines("2026-11", true, "1 marketing IT Official estimated 0.0658 false ")
		b.wantLines("2026-12", false, "1 marketing IT Official estimated 0.0658 false ")
		b.close(2027, 1, 5)
		b.wantLines("2026-12", true, "1 marketing IT Official estimated 0.0658 false ")
		clients("2026-12", b.a.ID, other.ID)
		clients("2026-10")
		clients("2027-01", other.ID)
		_, rival, err := s.accounts.CreatePartner(t.Context(), account.NewPartner{Name: "Rivale", Email: "r@x", Password: "una frase lunga 42"})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.statementOf(rival, "2026-12"); len(got.Clients) != 0 {
			t.Errorf("another partner gets %+v", got)
		}
	})
}

// TestSpoiltRunIsCounted: the contents of one run cannot be read. Its messages count as those without a template, and everything
// else is counted, in statements and in budgets.
func TestSpoiltRunIsCounted(t *testing.T) {
	databases(t, options{}, func(t *testing.T, s *service) {
		b := newBilled(t, s)
		s.store.PriceMessages(s.statements.Priced, s.statements.Currency())
		s.must(nil, "PUT", "/api/client/"+b.a.ID+"/budget", s.partner, `{"amount":"10"}`)
		b.send("+393330000001", "Avviso")
		b.send("+393330000002", "Promo")
		s.sql(`update run set content = '[{' where phone = '+393330000001'`)
		if _, err := s.store.CountResults(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
		var got budgetOf
		if s.must(&got, "GET", "/api/budget", b.a.Key, ""); got.Spent == "0.00" {
			t.Errorf("the budget stands still: %+v", got)
		}
		lines := s.statementOf(s.partner, "2026-11").texts()
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "1 marketing IT Official estimated") || !strings.HasPrefix(lines[1], "1 service IT Official estimated") {
			t.Errorf("the statement: %q", lines)
		}
	})
}

// TestTemplateOfTheMessage: a template of another business, or in another language, has the same name and another category.
func TestTemplateOfTheMessage(t *testing.T) {
	databases(t, options{}, func(t *testing.T, s *service) {
		b := newBilled(t, s)
		s.must(nil, "POST", "/api/templates", b.a.Key, `{"name":"English","text":"Hello","official":{"name":"promo","language":"en"}}`)
		const columns = `client_id, account, name, language, network_id, status, category, quality, reason, named, parts, changed_at, advice, wanted, locked_at`
		for _, other := range []string{
			strings.NewReplacer(" account", " 'altra'", "category", "'AUTHENTICATION'").Replace(columns),
			strings.NewReplacer("language", "'en'", "category", "'UTILITY'").Replace(columns),
		} {
			s.sql(`insert into network_template (` + columns + `) select ` + other + ` from network_template where name = 'promo' and language = 'it' and account <> 'altra'`)
		}
		b.send("+393330000001", "Promo")
		b.send("+393330000002", "English")
		b.wantLines("2026-11", false, "1 marketing IT Official estimated 0.0658 false ", "1 utility IT Official estimated "+priceOf(t, "IT")+" false ")
	})
}

// TestErasureLeavesTheStatement: in a month that is not closed, neither an erasure nor the removal of contents changes what messages
// count as: country, category, and both prices. The budget says the same, also if it is counted again. What the network tells later
// counts as for any other message.
func TestErasureLeavesTheStatement(t *testing.T) {
	databases(t, options{}, func(t *testing.T, s *service) {
		b := newBilled(t, s)
		s.store.PriceMessages(s.statements.Priced, s.statements.Currency())
		b.setOwn("0.10", "0.05")
		s.must(nil, "PUT", "/api/client/"+b.a.ID+"/budget", s.partner, `{"amount":"10"}`)
		told, french := b.send("+393330000001", "Promo"), b.send("+33612345678", "Avviso")
		b.send("+393330000002", "Promo")
		b.send("+393330000003", "Avviso")
		uncertain := b.start("+393330000004", "Promo")
		item, granted := s.begin(b.a, uncertain.ID.String(), "+393330000004")
		if granted != puntuale.ClaimGranted {
			t.Fatal(granted)
		}
		s.record(puntuale.Outcome{Verdict: puntuale.Uncertain, Next: s.clock.Now().Add(time.Hour)}, item)
		budget := func(spent string) {
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
			var got budgetOf
			if s.must(&got, "GET", "/api/client/"+b.a.ID+"/budget", s.partner, ""); got.Spent != spent || got.Unpriced != 0 || !got.Counted {
				t.Errorf("the budget is %+v, want %s", got, spent)
			}
		}
		fr, it := priceOf(t, "FR"), priceOf(t, "IT")
		want := []string{"2 marketing IT Official estimated 0.1316 false 0.20", "1 utility FR Official estimated " + fr + " false 0.05", "1 utility IT Official estimated " + it + " false 0.05"}
		spent := price.Sum("0.1316", fr, it)
		b.wantLines("2026-11", false, want...)
		budget(spent)
		for _, phone := range []string{"+393330000001", "+33612345678", "+393330000004"} {
			for range 2 {
				s.must(nil, "POST", "/api/contacts/erase", b.a.Key, `{"phone":"`+phone+`"}`)
			}
			b.wantLines("2026-11", false, want...)
		}
		blank := func() {
			t.Helper()
			s.clock.Advance(24 * time.Hour)
			if err := s.store.Maintain(t.Context(), s.clock.Now(), s.clock.Now()); err != nil {
				t.Fatal(err)
			}
		}
		blank()
		b.wantLines("2026-11", false, want...)
		budget(spent)
		s.must(nil, "POST", "/api/contacts/erase", b.a.Key, `{"phone":"+393330000002"}`) // its content was removed before
		b.wantLines("2026-11", false, want...)
		b.tell(french, puntuale.ReceiptDelivered, "", "") // arrived, and nothing of what is billed
		b.wantLines("2026-11", false, want...)
		s.must(nil, "PUT", "/api/client/"+b.a.ID+"/budget", s.partner, `{"amount":null}`)
		s.must(nil, "PUT", "/api/client/"+b.a.ID+"/budget", s.partner, `{"amount":"10"}`)
		budget(spent)

		b.tell(uncertain, puntuale.ReceiptDelivered, "", "") // it left after all
		want[0] = "3 marketing IT Official estimated 0.1974 false 0.30"
		b.wantLines("2026-11", false, want...)
		b.tell(told, puntuale.ReceiptDelivered, "", "utility") // without a country
		b.wantLines("2026-11", false, "2 marketing IT Official estimated 0.1316 false 0.20", want[1], want[2], "1 utility IT Official reported "+it+" false 0.05")
		budget(price.Sum("0.1316", fr, it, it))
		b.tell(b.send("+393330000005", "Promo"), puntuale.ReceiptDelivered, "", "utility") // and before the erasure
		twice := price.Sum(it, it)
		for range 2 {
			b.wantLines("2026-11", false, "2 marketing IT Official estimated 0.1316 false 0.20", want[1], want[2], "2 utility IT Official reported "+twice+" false 0.10")
			budget(price.Sum("0.1316", fr, it, twice))
			s.must(nil, "POST", "/api/contacts/erase", b.a.Key, `{"phone":"+393330000005"}`)
		}
		b.close(2026, 12, 4)
		closed := s.statementOf(s.partner, "2026-11").texts()
		s.must(nil, "POST", "/api/contacts/erase", b.a.Key, `{"phone":"+393330000003"}`)
		if got := s.statementOf(s.partner, "2026-11").texts(); !slices.Equal(got, closed) || len(got) != 4 {
			t.Errorf("the closed month is %q, was %q", got, closed)
		}
	})
}

// TestEveryClientIsCounted: a client with more messages than are counted at once is incomplete, and takes nothing from those after
// it in the partner's answer.
func TestEveryClientIsCounted(t *testing.T) {
	databases(t, options{}, func(t *testing.T, s *service) {
		b := newBilled(t, s)
		other := s.newAccount("z@x", "full")
		s.must(nil, "PATCH", "/api/settings", other.Key, `{"consent":"free"}`)
		session := s.officialSession(other.Key)
		var made started
		s.must(&made, "POST", "/api/messages", other.Key, `{"phone":"+393330000001","text":"Ciao","id_sessione":"`+session+`"}`)
		s.end(other, made.ID[0], "+393330000001", sent)
		m := b.send("+393330000001", "Promo")
		names := ""
		for _, x := range archive.MovedTables {
			if x.Name == "message" {
				names = strings.ReplaceAll(x.Columns, " ", ", ")
			}
		}
		s.sql(`insert into message (` + names + `) with recursive g(n) as (select 1 union all select n + 1 from g where n < 60000) select ` +
			strings.Replace(strings.Replace(names, " id,", " id + n,", 1), " done_at,", " done_at + n,", 1) + ` from message cross join g where id = ` + m.ID.String())
		got := map[string]string{}
		all := s.statementOf(s.partner, "2026-11")
		for _, c := range all.Clients {
			got[c.Client] = fmt.Sprint(c.Complete)
		}
		for _, l := range all.Lines {
			got[l.Client] += fmt.Sprint(" ", l.Messages)
		}
		if got[b.a.ID] != "false 50000" || got[other.ID] != "true 1" {
			t.Errorf("got %v", got)
		}
		s.sql(`delete from message where id > ` + m.ID.String() + ` + 49999 and client_id = ` + b.a.ID)
		if got := s.statementOf(b.a.Key, "2026-11"); !got.Clients[0].Complete || got.Totals.Messages != 50_000 {
			t.Errorf("exactly as many as are counted: %+v", got.Clients)
		}
	})
}

// busyTenants are a store whose partner has many deleted clients, each with as many messages of one month.
type busyTenants struct {
	puntuale.TenantStore
	clients, messages int
	read              int // messages
}

type busyPartner struct {
	puntuale.PartnerTenant
	t *busyTenants
}

type busyTenant struct {
	puntuale.Tenant
	t    *busyTenants
	busy bool
}

func (t *busyTenants) Partner(id puntuale.PartnerID) puntuale.PartnerTenant {
	return busyPartner{t.TenantStore.Partner(id), t}
}

func (t *busyTenants) Uncounted(id puntuale.ClientID) puntuale.Tenant {
	return busyTenant{t: t, busy: int(id) < t.clients}
}

func (p busyPartner) DeletedClients(context.Context, puntuale.Month, puntuale.ClientID, int) ([]puntuale.Client, error) {
	all := make([]puntuale.Client, p.t.clients)
	for i := range all {
		all[i] = puntuale.Client{ID: puntuale.ClientID(i + 1), Name: fmt.Sprintf("%04d", i), Zone: "Europe/Rome", Created: morning}
	}
	return all, nil
}

func (busyTenant) Statement(context.Context, puntuale.Month) (s puntuale.Statement, found bool, err error) {
	return s, false, nil
}

func (busyTenant) Calls(context.Context, puntuale.Date, puntuale.Date) (int64, error) { return 0, nil }

func (c busyTenant) BilledMessages(_ context.Context, p puntuale.BilledPeriod) ([]puntuale.BilledMessage, error) {
	n := min(p.Limit, c.t.messages-int(p.After.ID))
	if !c.busy {
		n = 0
	}
	all := make([]puntuale.BilledMessage, n)
	for i := range all {
		all[i].ID = p.After.ID + puntuale.MessageID(i+1)
	}
	c.t.read += n
	return all, nil
}

// TestPartnersAnswerIsBounded: the answer about many busy clients does not count all that it may count of each. A client of which
// nothing is counted is incomplete, unless it has no messages.
func TestPartnersAnswerIsBounded(t *testing.T) {
	t.Parallel()
	s := newService(t, options{driver: storetest.SQLite})
	tenants := &busyTenants{TenantStore: s.tenants, clients: 900, messages: 2500}
	of, err := statement.New(statement.Config{Tenants: tenants, Maintenance: s.store, Budgets: s.store, Clock: s.clock}).OfPartner(t.Context(), s.partnerAccount(), "2026-11")
	if err != nil || len(of) != tenants.clients {
		t.Fatalf("%d clients, %v", len(of), err)
	}
	if tenants.read < 200_000 || tenants.read > 202_000+tenants.clients {
		t.Errorf("%d messages were read", tenants.read)
	}
	for i, one := range of {
		if n := statement.TotalOf(one.Statement).Messages; one.Complete != (n == tenants.messages || i == tenants.clients-1) || i < 75 && n < 2000 {
			t.Errorf("client %d has %d messages, complete %v", i, n, one.Complete)
		}
	}
}
