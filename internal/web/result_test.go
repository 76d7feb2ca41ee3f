package web_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/store/storetest"
)

// resultTraffic gives a client messages of three weeks: of a sequence of two steps, with reads, answers, failures and a
// person on the blacklist. Every second run goes through a session whose messages devices send. It returns the sequence.
func (w *world) resultTraffic(client puntuale.ClientID) puntuale.SequenceID {
	w.t.Helper()
	ctx := context.Background()
	t := w.store.Tenant(client)
	node, err := w.store.Join(ctx, time.Hour)
	w.must(err)
	sequence, err := t.CreateSequence(ctx, puntuale.Sequence{Name: "Richiamo annuale", Created: w.clock.Now(), Updated: w.clock.Now(), Steps: []puntuale.Step{
		{ID: "1", Text: "Ciao {{nome}}, è ora del controllo annuale. Vuoi un appuntamento?"}, {ID: "2", Text: "Ti aspettiamo, {{nome}}!"}}}, nil)
	w.must(err)
	whatsapp, err := t.CreateSession(ctx, puntuale.Session{Name: "Ambulatorio", Type: puntuale.Official, Created: w.clock.Now()}, nil)
	w.must(err)
	phone, err := t.CreateSession(ctx, puntuale.Session{Name: "Telefono della reception", Type: puntuale.SendApp, Way: puntuale.WayDevice, Created: w.clock.Now()}, nil)
	w.must(err)
	w.must(t.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: "+393339000005", Added: w.clock.Now()}, storetest.Day, nil))
	for i := range 40 {
		due := w.clock.Now().Add(-time.Duration(i*12) * time.Hour).Truncate(time.Hour)
		run := puntuale.Run{Client: client, Sequence: sequence, Session: whatsapp, Phone: fmt.Sprintf("+3933390000%02d", i), Origin: puntuale.OriginSequence, Zone: "Europe/Rome",
			Received: due.Add(-time.Hour), Request: []byte(`{"nome":"Persona"}`), SequenceName: "Richiamo annuale"}
		if i%4 == 3 {
			run.Session = phone
		}
		start := puntuale.StartRun{Run: run, Day: storetest.Day, Now: due.Add(-time.Hour)}
		for step, text := range []string{"uno", "due"} {
			at := due.Add(time.Duration(step) * 24 * time.Hour)
			start.Messages = append(start.Messages, puntuale.PlannedMessage{Step: step, StepID: fmt.Sprint(step + 1), Content: puntuale.Content{Text: text}, Due: at, Desired: at, ValidUntil: at.Add(300 * time.Hour)})
		}
		started, err := t.Start(ctx, start)
		w.must(err)
		for step, id := range started.IDs {
			if at := start.Messages[step].Due; at.Before(w.clock.Now()) {
				w.resultMessage(puntuale.MessageRef{Client: client, ID: id}, node, run, at, i+step)
			}
		}
	}
	w.countResults()
	return sequence
}

// resultMessage ends a message: n decides how.
func (w *world) resultMessage(ref puntuale.MessageRef, node puntuale.NodeID, run puntuale.Run, at time.Time, n int) {
	w.t.Helper()
	ctx := context.Background()
	token := storetest.Token(node)
	granted, err := w.store.Claim(ctx, puntuale.Claim{Node: node, Token: token, Now: at, Messages: []puntuale.ClaimItem{{MessageRef: ref, Phone: run.Phone}}})
	w.must(err)
	if granted[0] != puntuale.ClaimGranted {
		return
	}
	outcome := puntuale.Outcome{Verdict: puntuale.Sent}
	if n%9 == 8 {
		outcome = puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Because(puntuale.ReasonNotAccepted)}
	}
	_, err = w.store.Record(ctx, at, []puntuale.Result{{MessageRef: ref, Token: token, Outcome: outcome}})
	w.must(err)
	if outcome.Verdict != puntuale.Sent || n%4 == 3 {
		return
	}
	kinds := []puntuale.ReceiptKind{puntuale.ReceiptDelivered}
	if n%3 != 0 {
		kinds = append(kinds, puntuale.ReceiptRead)
	}
	for _, kind := range kinds {
		_, err = w.store.KeepReceipts(ctx, at, []puntuale.DeliveryReceipt{{MessageRef: ref, Session: run.Session, Token: token, Kind: kind, At: at.Add(time.Duration(n%5) * time.Hour)}})
		w.must(err)
	}
	if n%5 == 1 {
		_, err = w.store.KeepInbound(ctx, w.clock.Now(), []puntuale.TakenMessage{{Names: []string{run.Phone}, Mark: fmt.Sprint("m", ref.ID), Keep: puntuale.KeepAllReplies, InboundMessage: puntuale.InboundMessage{
			Client: ref.Client, Session: run.Session, Phone: run.Phone, At: at.Add(2 * time.Hour), ID: fmt.Sprint("n", ref.ID), Kind: puntuale.ReplyButton, Text: []string{"Sì, volentieri", "No, grazie"}[n%2]}}})
		w.must(err)
	}
}

// countResults does what the counter does in the background.
func (w *world) countResults() {
	for more := true; more; {
		var err error
		more, err = w.store.CountResults(context.Background(), 1000)
		w.must(err)
	}
}

// TestResults reads the report of a client, of a sequence and of one number, opens the people who did not read, and makes
// a campaign for them.
func TestResults(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		sequence := w.resultTraffic(w.client)
		visit, err := w.Client().CreateSequence(context.Background(), bookedVisit(), control.Once[control.Sequence]{})
		w.must(err)
		_, err = w.Client().PutBooking(context.Background(), bookingCall(visit.ID.String(), "v1", "+393339000001", "Anna", "21/11/2026 15:30"))
		w.must(err)
		w.countResults()
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/results")
		b.reads("Richiamo annuale")
		b.until(`document.querySelectorAll("svg[role=img] rect").length > 10`)
		b.check("results")
		b.open(w.pages + "/results?start=2026-11-30&end=2026-11-01")
		b.until(`document.querySelector(".fault")`)
		b.check("refused")

		b.open(w.pages + "/results?by=step&sequence=" + sequence.String())
		b.reads("1. Ciao {{nome}}, è ora del controllo")
		b.check("steps")
		b.open(w.pages + "/results?by=session&sequence=" + sequence.String())
		b.reads("Telefono della reception")
		b.check("sessions")
		b.open(w.pages + "/results/people?is=sent&not=read&sequence=" + sequence.String())
		b.reads("+39 333 900 0036")
		b.check("people")
		b.tap("main details summary")
		b.fill("name", "Chi non ha letto", "step.text", "Ciao {{nome|}}, ti aspettiamo ancora!")
		b.check("campaign")
		b.leaves(func() { b.tap("main form .btn-primary") })
		b.until(`location.pathname.endsWith("/people") && location.pathname.includes("/campaigns/")`)
		b.until(`/\b19\b/.test(document.querySelector("main").innerText)`)
	})
}

// TestResultsOfFew: one day and one reading make no charts, and messages that were not delivered are marked.
func TestResultsOfFew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, v := w.traffic(), w.visitor(w.clients[puntuale.Reader])
	f.ended("+393331239901", "Ciao", w.clock.Now(), puntuale.Outcome{Verdict: puntuale.Sent})
	read := f.ended("+393331239902", "Ciao", w.clock.Now(), puntuale.Outcome{Verdict: puntuale.Sent})
	_, err := w.sql.Exec("update session set type = $1", puntuale.Official)
	w.must(err)
	_, err = w.store.KeepReceipts(t.Context(), w.clock.Now(), []puntuale.DeliveryReceipt{{MessageRef: puntuale.MessageRef{Client: w.client, ID: read}, Session: f.session, Token: storetest.Token(f.node), Kind: puntuale.ReceiptRead, At: w.clock.Now()}})
	w.must(err)
	w.countResults()
	report := inMain(v.get(w.pages + "/results").body)
	if text := words(report); strings.Contains(report, `role="img"`) || strings.Contains(text, "Letti soprattutto") || strings.Contains(text, "prima:") {
		t.Errorf("the report: %s", text)
	}
	if text := words(inMain(v.get(w.pages + "/results/people?is=sent").body)); !strings.Contains(text, "Inviati 22 ott 2026 – 20 nov 2026") || strings.Count(text, "non consegnato") != 1 {
		t.Errorf("the people: %s", text)
	}
}

// TestResultsCompared: each count stands beside the one of as many days before, and the page says at which hour most people
// read.
func TestResultsCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, v := w.traffic(), w.visitor(w.clients[puntuale.Reader])
	rome, err := time.LoadLocation("Europe/Rome")
	w.must(err)
	first := puntuale.DateOf(w.clock.Now()).AddDays(-10)
	for i, x := range []struct{ day, read int }{{0, 19}, {0, 19}, {1, 19}, {2, 8}, {2, 8}, {2, -1}, {-1, 9}, {-2, 9}, {-2, 9}, {-2, -1}, {-2, -1}, {-3, 9}} {
		at := first.AddDays(x.day).At(0, rome).Add(7 * time.Hour)
		id := f.ended(fmt.Sprintf("+3933312399%02d", i), "Ciao", at, puntuale.Outcome{Verdict: puntuale.Sent})
		if x.read < 0 {
			continue
		}
		_, err := w.store.KeepReceipts(t.Context(), w.clock.Now(), []puntuale.DeliveryReceipt{{MessageRef: puntuale.MessageRef{Client: w.client, ID: id}, Session: f.session,
			Token: storetest.Token(f.node), Kind: puntuale.ReceiptRead, At: at.Add(time.Duration(x.read-7) * time.Hour)}})
		w.must(err)
	}
	_, err = w.sql.Exec("update session set type = $1, sandbox = 0", puntuale.Official)
	w.must(err)
	w.countResults()
	page := func(start, end int) string {
		return words(inMain(v.get(w.pages + "/results?start=" + first.AddDays(start).String() + "&end=" + first.AddDays(end).String()).body))
	}
	if text := page(0, 1); !strings.Contains(text, "Inviati 3 100 % prima: 5") || !strings.Contains(text, "Letti 3 100 % prima: 3") {
		t.Errorf("two days: %s", text)
	}
	if text := page(0, 2); !strings.Contains(text, "Inviati 6 100 % prima: 6") || !strings.Contains(text, "Letti 5 83 % prima: 4") || !strings.Contains(text, "Letti soprattutto alle 19") ||
		!strings.Contains(text, "Ore 8 2") || !strings.Contains(text, "Ore 19 3") {
		t.Errorf("three days: %s", text)
	}
}

// TestPartnerResults reads the results of all clients of a partner. They have no contents.
func TestPartnerResults(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		w.resultTraffic(w.client)
		w.resultTraffic(w.foreignClient)
		b.signIn(w.partners[puntuale.Reader])
		b.open("/partner/results")
		b.until(`document.querySelectorAll("svg[role=img] rect").length > 10`)
		b.check("partner")
		if text := b.text("main"); strings.Contains(text, "volentieri") || strings.Contains(text, "Richiamo") {
			t.Errorf("a partner's results show contents: %s", text)
		}
	})
}

// TestPartnerResultsAreOwn: each partner sees its own clients, and nothing of another partner's.
func TestPartnerResultsAreOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resultTraffic(w.client)
	w.resultTraffic(w.foreignClient)
	for user, want := range map[puntuale.UserID][]string{w.partners[puntuale.Reader]: {"Studio Bianchi", "Estraneo"}, w.foreignPartner: {"Estraneo", "Studio Bianchi"}} {
		body := inMain(w.visitor(user).get("/partner/results").body)
		if strings.Count(body, `class="list-name"`) != 1 || !strings.Contains(words(body), want[0]) || strings.Contains(body, want[1]) {
			t.Errorf("the partner of %s sees %s", want[0], words(body))
		}
	}
}

// TestResultTable checks the numbers of the page without a browser, and that each opens the people behind it.
func TestResultTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sequence := w.resultTraffic(w.client)
	v := w.visitor(w.clients[puntuale.Reader])
	body := v.get(w.pages + "/results?by=session&sequence=" + sequence.String()).body
	for _, want := range []string{"non comunicato", "Telefono della reception", `is=read`, "result-words", "Sì, volentieri"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	people := inMain(v.get(w.pages + "/results/people?is=sent&not=read").body)
	if text := words(people); !strings.Contains(text, "Richiamo annuale · messaggio 1") || !strings.Contains(text, "Richiamo annuale · messaggio 2") || strings.Contains(text, "messaggio 3") || !strings.Contains(text, fmt.Sprintf("%d messaggi · ", strings.Count(people, "<tr data-row"))) ||
		!strings.Contains(text, "Chi non ha letto 22 ott 2026 – 20 nov 2026") || !strings.Contains(text, "ha disattivato le conferme") || !strings.Contains(people, `href="`+w.pages+`/person?phone=%2B39333900`) {
		t.Errorf("the people behind the number: %s", text)
	}
	stored, err := w.store.Tenant(w.client).Sequence(context.Background(), sequence)
	w.must(err)
	stored.Steps = stored.Steps[1:] // the first step is removed, so the second one takes its place
	w.must(w.store.Tenant(w.client).UpdateSequence(context.Background(), stored))
	if text := words(inMain(v.get(w.pages + "/results/people?is=sent&not=read").body)); !strings.Contains(text, "Richiamo annuale · messaggio 1") || strings.Contains(text, "messaggio 2") {
		t.Errorf("after a step was removed: %s", text)
	}
	_, err = w.store.Tenant(w.client).MergeContacts(context.Background(), puntuale.ContactBatch{All: []puntuale.Contact{{Phone: "+393339000004", Name: "=HYPERLINK(\"https://x\")"}}, Now: w.clock.Now()})
	w.must(err)
	all := v.get(w.pages + "/results/people/export").body
	if !strings.Contains(all, `'+393339000004;"'=HYPERLINK`) || strings.Contains(all, "\n+") {
		t.Errorf("a spreadsheet would run cells of %s", all)
	}
	csv := v.get(w.pages + "/results/people/export?is=sent&not=read&sequence=" + sequence.String())
	if csv.status != http.StatusOK || strings.Count(csv.body, "\n") < 5 || !strings.Contains(csv.body, ";Richiamo annuale;"+sequence.String()+";1;") || strings.Contains(csv.body, "+393339000003") { // this one was sent by a phone, which does not tell
		t.Errorf("%d %s", csv.status, csv.body)
	}
	if made := v.post(w.pages+"/results/campaign?is=sent", url.Values{"name": {"x"}, "step.text": {"y"}}); made.status != http.StatusForbidden {
		t.Errorf("a reader made a campaign: %d", made.status)
	}
	w.resultTraffic(w.foreignClient)
	if other := w.visitor(w.foreignOwner).get(w.pages + "/results"); other.status != http.StatusNotFound {
		t.Errorf("another partner's user got %d", other.status)
	}
}

// TestResultLinks: what belongs to none, the days of the chart and the bookings lead to what is behind their numbers.
func TestResultLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.resultTraffic(w.client)
	visit := w.sequence(bookedVisit())
	w.book(visit, "v1", "+393339000001", "Anna Villa", "21/11/2026 15:30", "confirmed")
	w.book(visit, "v2", "+393339000002", "Bruno Conti", "25/11/2026 15:30", "")
	w.book(w.sequence(bookedVisit()), "v3", "+393339000003", "Carla Longo", "25/11/2026 16:30", "confirmed")
	w.countResults()
	v := w.visitor(w.clients[puntuale.Reader])
	link := func(body string, parts ...string) string {
		t.Helper()
		for _, x := range strings.Split(body, `href="`) {
			url, _, _ := strings.Cut(x, `"`)
			if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(url, part) }) {
				return html.UnescapeString(url)
			}
		}
		t.Fatalf("no link has %q", parts)
		return ""
	}
	period := "&start=2026-10-01&end=2026-11-30"
	body := inMain(v.get(w.pages + "/results?by=rule" + period).body)
	if people := words(inMain(v.get(link(body, "/people", "rule=0")).body)); !strings.Contains(people, "Senza automazione · ") {
		t.Errorf("without an automation: %s", people)
	}
	templates := inMain(v.get(w.pages + "/results?by=template" + period).body)
	without := v.get(link(templates, "/people", "none=template", "is=sent")).body
	if all := words(inMain(v.get(w.pages + "/results/people?is=sent" + period).body)); !strings.Contains(words(inMain(without)), "Senza template · ") || strings.Count(without, "<tr data-row") == 0 || strings.Count(all, "messaggio 1") != strings.Count(words(without), "messaggio 1") {
		t.Errorf("without a template: %s", words(inMain(without)))
	}
	if days := words(inMain(v.get(link(templates, "/results?", "by=day", "none=template")).body)); !strings.Contains(days, "Senza template") {
		t.Errorf("without a template, by day: %s", days)
	}
	if _, table, _ := strings.Cut(body, "result-days"); strings.Count(inMain(v.get(link(table, "is=sent")).body), "<tr data-row") == 0 || strings.Contains(link(table, "is=sent"), "start=2026-10-01") {
		t.Errorf("a day of the chart leads to %s", link(table, "is=sent"))
	}
	body = inMain(v.get(w.pages + "/results?" + period).body)
	bookings := inMain(v.get(link(body, "status=confirmed")).body)
	if list := words(bookings); !strings.Contains(list, "Anna Villa") || !strings.Contains(list, "Carla Longo") || strings.Contains(list, "Bruno") {
		t.Errorf("confirmed: %s", list)
	}
	if strings.Contains(bookings, "/bookings/live") || !strings.Contains(v.get(w.pages+"/bookings?day=2026-11-25").body, "/bookings/live") {
		t.Error("a long period reloads itself, or a day does not")
	}
	body = inMain(v.get(w.pages + "/results?by=step&sequence=" + visit + period).body)
	if list := words(inMain(v.get(link(body, "status=confirmed")).body)); !strings.Contains(list, "Anna Villa") || strings.Contains(list, "Carla") {
		t.Errorf("confirmed of one sequence: %s", list)
	}
	if list := words(inMain(v.get(w.pages + "/bookings?day=2026-11-26&sequence=" + visit).body)); !strings.Contains(list, "Nessun appuntamento trovato") {
		t.Errorf("a day without bookings of one sequence: %s", list)
	}
}
