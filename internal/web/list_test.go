package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/store/storetest"
	"puntuale/internal/web/view"
)

// onDatabases runs a test on each database.
func onDatabases(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newWorldOn(t, driver(t), ""))
		})
	}
}

// tabsOf returns the words of the tabs above the list of messages.
func tabsOf(page string) string {
	_, page, _ = strings.Cut(page, `id="message-states"`)
	return words("<" + page[:max(0, strings.Index(page, "</nav>"))])
}

// TestListCounts: each tab of the list of messages says how many messages it has with the other filters, also those of a
// text and of a campaign.
func TestListCounts(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		f := w.traffic()
		failed, _ := f.day()
		v := w.visitor(w.clients[puntuale.Staff])
		other := w.sequence(control.NewSequence{Name: "Altra", Steps: []puntuale.Step{{Text: "x"}}})
		id, err := w.store.Tenant(w.client).CreateCampaign(context.Background(), puntuale.Campaign{Session: f.session, Name: "Saldi", Created: w.clock.Now()}, storetest.Day, nil)
		w.must(err)
		campaign, today := "?campaign="+id.String(), w.clock.Now().Format(time.DateOnly)
		w.comparedTraffic(id)
		all := "Tutti 97 In attesa 10 Inviati 85 Non riusciti 2 Annullati 0 In blacklist 0 Sostituiti 0"
		for query, want := range map[string]string{
			"":                                    all,
			"?state=FAILED":                       all,
			"?sequence=" + f.sequence.String():    "Tutti 17 In attesa 10 Inviati 5 Non riusciti 2 Annullati 0 In blacklist 0 Sostituiti 0",
			"?sequence=" + other:                  "Tutti 0 In attesa 0 Inviati 0 Non riusciti 0 Annullati 0 In blacklist 0 Sostituiti 0",
			"?phone=3331239901&state=PENDING":     "Tutti 1 In attesa 0 Inviati 0 Non riusciti 1 Annullati 0 In blacklist 0 Sostituiti 0",
			"?from=2026-11-21&to=2026-11-21":      "Tutti 1 In attesa 1 Inviati 0 Non riusciti 0 Annullati 0 In blacklist 0 Sostituiti 0",
			"?text=Ciao":                          "Tutti 92 In attesa 5 Inviati 85 Non riusciti 2 Annullati 0 In blacklist 0 Sostituiti 0",
			"?text=Grazie&state=PENDING":          "Tutti 5 In attesa 5 Inviati 0 Non riusciti 0 Annullati 0 In blacklist 0 Sostituiti 0",
			campaign:                              "Tutti 80 In attesa 0 Inviati 80 Non riusciti 0 Annullati 0 In blacklist 0 Sostituiti 0",
			campaign + "&text=ciao&from=" + today: "Tutti 80 In attesa 0 Inviati 80 Non riusciti 0 Annullati 0 In blacklist 0 Sostituiti 0",
			"?phone=abc":                          "Tutti In attesa Inviati Non riusciti Annullati In blacklist Sostituiti",
		} {
			if got := tabsOf(v.get(w.pages + "/messages" + query).body); got != want {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
		if r := v.get(w.pages + "/messages?state=PENDING"); !strings.Contains(words(r.body), "Annulla tutti (10)") {
			t.Error("the action on all does not say how many they are")
		}
		if r := v.post(w.pages+"/messages/"+failed.String()+"/again", url.Values{"when": {"now"}}); r.status != http.StatusSeeOther {
			t.Fatalf("again: %d", r.status)
		}
		if got := tabsOf(v.get(w.pages + "/messages").body); got != "Tutti 97 In attesa 11 Inviati 85 Non riusciti 1 Annullati 0 In blacklist 0 Sostituiti 1" {
			t.Errorf("after one was sent again: %q", got)
		}
	})
}

// TestListCountsEnd: counts are exact up to 10,000, and a plus says that there are more.
func TestListCountsEnd(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		f := w.traffic()
		old := f.ended("+393331239901", "Ciao", w.clock.Now().Add(-time.Hour), puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Because("sandbox.refused")})
		v := w.visitor(w.clients[puntuale.Staff])
		copyMessage := func(from, to int) {
			t.Helper()
			numbers := fmt.Sprintf("(with recursive n(i) as (select %d union all select i + 1 from n where i < %d) select i from n) as n", from, to-1)
			for _, statement := range []string{
				`insert into run (client_id, id, sequence_id, session_id, phone, origin, messages, name, zone, received_at, request, client_name, sequence_name, content)
 select r.client_id, r.id + 100000 + n.i, r.sequence_id, r.session_id, r.phone, r.origin, 1, '', r.zone, r.received_at, r.request, '', '', r.content
 from run r cross join ` + numbers + ` where r.id = %d`,
				`insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone, state, intent, outcome, done_at)
 select m.client_id, m.id + 100000 + n.i, m.session_id, m.run_id + 100000 + n.i, m.desired_at, m.due_at, m.next_at, m.valid_until, m.step, m.origin, m.phone, m.state, m.intent, m.outcome, m.done_at
 from message m cross join ` + numbers + ` where m.id = %d`,
			} {
				if _, err := w.sql.Exec(fmt.Sprintf(statement, int64(old))); err != nil {
					t.Fatal(err)
				}
			}
		}
		copyMessage(1, 10_000)
		if got := tabsOf(v.get(w.pages + "/messages").body); !strings.Contains(got, "Tutti 10.000 ") || !strings.Contains(got, "Non riusciti 10.000 ") {
			t.Errorf("10,000 messages: %q", got)
		}
		copyMessage(10_000, 10_002)
		if got := tabsOf(v.get(w.pages + "/messages").body); !strings.Contains(got, "Tutti 10.000+ ") || !strings.Contains(got, "Non riusciti 10.000+ ") {
			t.Errorf("10,002 messages: %q", got)
		}
		if got := words(v.get(w.pages + "/messages/all?state=FAILED").body); !strings.Contains(got, "10.000") {
			t.Errorf("the question: %q", got)
		}
		// With a filter that no index serves, the rare states still have their counts.
		f.planned("+393331239902", "Buongiorno", w.clock.Now().Add(time.Hour))
		f.planned("+393331239903", "Ciao", w.clock.Now().Add(100*time.Hour))
		for query, want := range map[string]string{
			"?sequence=" + f.sequence.String():           "Tutti In attesa 2 Inviati 0 Non riusciti Annullati 0 In blacklist 0 Sostituiti 0",
			"?origin=SINGLE":                             "Tutti In attesa 0 Inviati 0 Non riusciti Annullati 0 In blacklist 0 Sostituiti 0",
			"?text=ciao":                                 "Tutti In attesa 1 Inviati 0 Non riusciti Annullati 0 In blacklist 0 Sostituiti 0",
			"?to=" + w.clock.Now().Format(time.DateOnly): "Tutti In attesa 1 Inviati 0 Non riusciti Annullati 0 In blacklist 0 Sostituiti 0",
		} {
			if got := tabsOf(v.get(w.pages + "/messages" + query).body); got != want {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
	})
}

// hiddenOf returns the hidden fields of a page's form for an action on all rows.
func hiddenOf(page string) url.Values {
	_, page, _ = strings.Cut(page, `id="bulk"`)
	page, _, _ = strings.Cut(page, "</form>")
	form := url.Values{}
	for _, field := range regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		form.Set(field[1], field[2])
	}
	return form
}

// TestTagAll: all contacts that the filters find get a tag, and later lose it, also without scripts. Other contacts stay as
// they are.
func TestTagAll(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		v, reader := w.visitor(w.clients[puntuale.Owner]), w.visitor(w.clients[puntuale.Reader])
		var all []puntuale.Contact
		for i := range 450 {
			all = append(all, puntuale.Contact{Phone: fmt.Sprintf("+39333%07d", i), Name: "Anna Prova", Tags: []string{"cliente"}})
		}
		all = append(all, puntuale.Contact{Phone: "+393349999999", Name: "Bea Altra", Tags: []string{"cliente"}})
		_, err := w.store.Tenant(w.client).MergeContacts(t.Context(), puntuale.ContactBatch{All: all, Now: w.clock.Now()})
		w.must(err)
		list := v.get(w.pages + "/contacts?q=anna&tag=cliente")
		if got := words(list.body); !strings.Contains(got, "450 contatti") || !strings.Contains(got, "cliente (451)") || !strings.Contains(list.body, `/contacts/all?q=anna&amp;tag=cliente`) {
			t.Errorf("the list: %q", got)
		}
		if r := reader.get(w.pages + "/contacts?q=anna"); strings.Contains(r.body, "/contacts/all") || !strings.Contains(words(r.body), "450 contatti") {
			t.Error("the list of a reader")
		}
		if r := reader.post(w.pages+"/contacts/all", url.Values{"new": {"x"}, "verb": {"add"}}); r.status != http.StatusForbidden {
			t.Errorf("a reader: %d", r.status)
		}
		tagged := func(tag string) int {
			n, _, err := w.Client().CountContacts(t.Context(), control.ContactQuery{Tag: tag}, 10_000)
			w.must(err)
			return n
		}
		body := v.get(w.pages + "/contacts?tag=cliente&sort=newest").body
		if at := strings.Index(body, "Bea Altra"); at < 0 || at > strings.Index(body, "Anna Prova") || !strings.Contains(body, "cursor=") || !strings.Contains(body, "sort=newest&amp;tag=cliente&amp;cursor") && !strings.Contains(body, "tag=cliente&amp;sort=newest&amp;cursor") {
			t.Error("the newest contact is not first, or the next page has another order")
		}
		asked := v.get(w.pages + "/contacts/all?q=anna&tag=cliente")
		if got := words(asked.body); !strings.Contains(got, "450 contatti · «anna» · Etichetta «cliente»") {
			t.Errorf("the question: %q", got)
		}
		for _, wrong := range []string{"", "a,b", strings.Repeat("x", puntuale.MaxTag+1)} {
			form := hiddenOf(asked.body)
			form.Set("verb", "add")
			form.Set("new", wrong)
			if r := v.post(w.pages+"/contacts/all", form); r.status != http.StatusUnprocessableEntity || !strings.Contains(r.body, `id="f-new-fault"`) {
				t.Errorf("tag %q: %d", wrong, r.status)
			}
		}
		run := func(page, verb, tag string) (requests int, at, told string) {
			t.Helper()
			form := hiddenOf(page)
			form.Set("verb", verb)
			form.Set("new", tag)
			for requests = 1; requests < 9; requests++ {
				r := v.post(w.pages+"/contacts/all", form)
				if r.status == http.StatusSeeOther {
					at = r.header.Get("Location")
					return requests, at, words(strings.ReplaceAll(v.get(at).body, "<main", "<div"))
				}
				if form = hiddenOf(r.body); r.status != http.StatusOK {
					t.Fatalf("%d: %s", r.status, mainOf(r.body))
				}
			}
			t.Fatal("the action does not end")
			return 0, "", ""
		}
		for _, verb := range []string{"", "x", "add\x00", "add 9999"} {
			form := hiddenOf(asked.body)
			form.Set("verb", verb)
			form.Set("new", "estate")
			if r := v.post(w.pages+"/contacts/all", form); r.status != http.StatusUnprocessableEntity || !strings.Contains(r.body, `id="f-verb-fault"`) || tagged("estate") != 0 {
				t.Errorf("verb %q: %d, %d tagged", verb, r.status, tagged("estate"))
			}
		}
		form := hiddenOf(asked.body) // a refusal in the middle keeps the place
		form.Set("verb", "add")
		form.Set("new", "inverno")
		form = hiddenOf(v.post(w.pages+"/contacts/all", form).body)
		form.Set("new", "")
		refused := v.post(w.pages+"/contacts/all", form)
		if !strings.Contains(refused.body, `id="f-new-fault"`) || !strings.Contains(words(refused.body), "200") {
			t.Errorf("refused in the middle: %d %s", refused.status, refused.body)
		}
		if requests, _, told := run(refused.body, "add", "inverno"); requests != 2 || !strings.Contains(told, "450 contatti hanno ricevuto l’etichetta «inverno».") || tagged("inverno") != 450 {
			t.Errorf("after the refusal: %d requests, %d tagged: %q", requests, tagged("inverno"), told)
		}
		if requests, _, told := run(refused.body, "add", "autunno"); requests != 3 || !strings.Contains(told, "450 contatti hanno ricevuto l’etichetta «autunno».") || tagged("autunno") != 450 {
			t.Errorf("another tag after the refusal: %d requests, %d tagged: %q", requests, tagged("autunno"), told)
		}
		form = hiddenOf(asked.body)
		for name, value := range map[string]string{"verb": "add", "new": "primavera", "total": "-9223372036854775808", "done": "9223372036854775807", "left": "99999999999999999999"} {
			form.Set(name, value)
		}
		form.Set("begun", hiddenOf(v.post(w.pages+"/contacts/all", form).body).Get("begun"))
		if r := v.post(w.pages+"/contacts/all", form); r.status != http.StatusOK || strings.Contains(r.body, `value="-`) {
			t.Errorf("figures that nothing has: %d %s", r.status, r.body)
		}
		requests, at, told := run(asked.body, "add", "estate")
		if requests != 3 || at != w.pages+"/contacts?tag=estate" || !strings.Contains(told, "450 contatti hanno ricevuto l’etichetta «estate».") || tagged("estate") != 450 || tagged("cliente") != 451 {
			t.Errorf("%d requests, then %s: %q; %d and %d", requests, at, told, tagged("estate"), tagged("cliente"))
		}
		_, at, told = run(v.get(w.pages+"/contacts/all?tag=cliente").body, "remove", "estate")
		if at != w.pages+"/contacts?tag=cliente" || !strings.Contains(told, "450 contatti hanno perso") || !strings.Contains(told, "Un altro è rimasto com’era.") || tagged("estate") != 0 {
			t.Errorf("removed, then %s: %q; %d", at, told, tagged("estate"))
		}
		log := words(inMain(v.get(w.pages + "/audit").body))
		for _, part := range []string{"200 contatti hanno ricevuto l’etichetta «estate».", "50 contatti hanno ricevuto l’etichetta «estate».", "contatti hanno perso l’etichetta «estate»."} {
			if !strings.Contains(log, part) {
				t.Errorf("the audit log lacks %q: %s", part, log)
			}
		}
		if _, _, _ = run(v.get(w.pages+"/contacts/all?tag=cliente").body, "remove", "cliente"); tagged("cliente") != 0 {
			t.Errorf("the tag by which they were found: %d are left", tagged("cliente"))
		}
		r := v.get(w.pages + "/contacts/export?q=bea")
		if !strings.Contains(r.body, "+393349999999") || strings.Contains(r.body, "Anna") {
			t.Errorf("the export of what was found: %s", r.body)
		}
	})
}

var backLink = regexp.MustCompile(`<a class="back" href="([^"]*)"`)

// TestBackToList: the link back on a page leads to the part of the list from which the reader came, at the row of the page.
// It leads to the list without filters if the reader came from elsewhere.
func TestBackToList(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	failed, _ := f.day()
	v := w.visitor(w.clients[puntuale.Staff])
	w.contact("+393331239901", "Anna Rossi")
	anna, _, err := w.Client().Contacts(t.Context(), control.ContactQuery{Name: "anna"}, request.Page{})
	w.must(err)
	message, person := w.pages+"/messages/"+failed.String(), w.pages+"/person?phone=%2B393331239901"
	row, annas := "#row-"+failed.String(), "#row-"+anna[0].ID.String()
	for _, test := range []struct{ page, from, want string }{
		{message, w.base + w.pages + "/messages?cursor=abc&state=FAILED", w.pages + "/messages?cursor=abc&state=FAILED" + row},
		{message, w.base + w.pages + "/messages", w.pages + "/messages" + row},
		{message, w.base + w.pages, w.pages + "/messages"},
		{message, "", w.pages + "/messages"},
		{message, "https://example.org" + w.pages + "/messages?state=FAILED", w.pages + "/messages"},
		{message, w.base + "//example.org/x", w.pages + "/messages"},
		{message, w.base + "/c/999/messages?state=FAILED", w.pages + "/messages"},
		{person, w.base + w.pages + "/contacts?q=ann&tag=x", w.pages + "/contacts?q=ann&tag=x" + annas},
		{person, w.base + w.pages + "/replies?unread=true", w.pages + "/replies?unread=true"},
		{person, w.base + w.pages + "/messages?state=FAILED", w.pages + "/contacts"},
	} {
		r := v.do(http.MethodGet, test.page, nil, http.Header{"Referer": {test.from}})
		link := backLink.FindStringSubmatch(r.body)
		if r.status != http.StatusOK || link == nil || strings.ReplaceAll(link[1], "&amp;", "&") != test.want {
			t.Errorf("%s from %q: %d, back to %q, want %q", test.page, test.from, r.status, link, test.want)
		}
	}
	for _, list := range []string{"/messages?state=FAILED", "/contacts"} {
		if body := v.get(w.pages + list).body; !strings.Contains(body, `id="`+strings.TrimPrefix(row, "#")+`"`) && !strings.Contains(body, `id="`+strings.TrimPrefix(annas, "#")+`"`) {
			t.Errorf("%s has no row to lead to", list)
		}
	}
}

// TestTagChosen: only the contacts whose rows a person chose get a tag. Nobody else's contacts do, and nobody does if none was
// chosen.
func TestTagChosen(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		v := w.visitor(w.clients[puntuale.Staff])
		var ids []string
		for i := range 4 {
			c, err := w.Client().AddContact(context.Background(), control.NewContact{Phone: fmt.Sprintf("+3933312388%02d", i), Name: fmt.Sprintf("Anna %d", i)}, control.Once[puntuale.Contact]{})
			w.must(err)
			ids = append(ids, c.ID.String())
		}
		list := v.get(w.pages + "/contacts?q=anna").body
		if !strings.Contains(list, `form="choose" name="id" value="`+ids[0]+`"`) || !strings.Contains(list, `id="choose"`) {
			t.Fatal("the list has no boxes")
		}
		if reader := w.visitor(w.clients[puntuale.Reader]).get(w.pages + "/contacts").body; strings.Contains(reader, `form="choose"`) {
			t.Error("a reader may choose rows")
		}
		tagged := func() int {
			t.Helper()
			tags, err := w.Client().ContactTags(context.Background())
			w.must(err)
			return tags["estate"]
		}
		post := func(chosen ...string) answer {
			t.Helper()
			asked := v.get(w.pages + "/contacts/all?" + url.Values{"chosen": {"yes"}, "q": {"anna"}, "id": chosen}.Encode())
			if strings.Count(asked.body, `name="id"`) != len(chosen) {
				t.Errorf("the question about %v: %s", chosen, words(inMain(asked.body)))
			}
			return v.post(w.pages+"/contacts/all", url.Values{"chosen": {"yes"}, "q": {"anna"}, "verb": {"add"}, "new": {"estate"}, "id": chosen})
		}
		if post(); tagged() != 0 {
			t.Errorf("nobody was chosen, and %d got the tag", tagged())
		}
		if r := post("abc"); r.status != http.StatusNotFound || tagged() != 0 {
			t.Errorf("a wrong id: %d, %d", r.status, tagged())
		}
		if r := v.post(w.pages+"/contacts/all", url.Values{"chosen": {"yes"}, "verb": {"add"}, "new": {"estate"}, "id": make([]string, 201)}); r.status != http.StatusUnprocessableEntity {
			t.Errorf("201 ids: %d", r.status)
		}
		if r := post(ids[0], ids[2], ids[2], "999999"); r.status != http.StatusSeeOther || tagged() != 2 {
			t.Errorf("two chosen: %d, %d got the tag", r.status, tagged())
		}
	})
}

// TestListsStory: somebody looks through the second page of the failed messages, opens one, acts on it, and comes back to the
// same page. Then all contacts that a search finds get a tag, and a campaign begins with this tag.
func TestListsStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		f := w.traffic()
		f.day()
		for i := range 60 {
			f.ended(fmt.Sprintf("+3933312388%02d", i), "Ciao, a domani.", w.clock.Now().Add(-time.Hour), puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Because("sandbox.refused")})
			w.contact(fmt.Sprintf("+3933312388%02d", i), fmt.Sprintf("Anna Prova %d", i))
		}
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/messages?state=FAILED")
		b.check("counts")
		b.leaves(func() { b.click(`.pager [rel=next]`) })
		list := evaluate[string](b, `location.pathname + location.search`)
		const ninth = `document.querySelectorAll("tr[data-row]")[8]`
		evaluate[string](b, `(`+ninth+`.scrollIntoView({block: "center"}), "")`)
		same := `location.pathname + location.search === ` + fmt.Sprintf("%q", list)
		open := func() {
			b.leaves(func() { b.click(`tr[data-row]:nth-child(9) a`) })
			b.until(`document.querySelector("a.back")`)
		}
		open()
		b.click("a.back")
		b.until(same + ` && scrollY > 0 && ` + ninth + `?.getBoundingClientRect().top > 0 && ` + ninth + `.getBoundingClientRect().bottom < innerHeight`)
		open()
		b.click("[data-open=again]")
		b.until(`document.querySelector("dialog[open]")`)
		b.leaves(func() { b.click("dialog[open] button.btn-primary") })
		b.until(`document.querySelector("a.back") && document.querySelector("[data-toast]")`)
		b.click("a.back")
		b.until(same + ` && document.querySelector("tr[data-row]")`)
		b.check("came-back")

		b.open(w.pages + "/contacts?q=anna")
		b.check("contacts")
		b.leaves(func() { b.click(`a[href*="/contacts/all"]`) })
		b.check("tag-all")
		b.click("#bulk .btn-primary")
		b.until(`document.querySelector("#f-new-fault")`)
		b.check("tag-fault")
		b.fill("new", "estate")
		b.click("#bulk .btn-primary")
		b.until(`location.search === "?tag=estate" && document.querySelector("[data-toast]")`)
		b.check("tagged")
		b.leaves(func() { b.click(`a[href*="/campaigns/new"]`) })
		b.until(`document.querySelector("[name=tag]").value === "estate"`)

		// Two rows of one page and one of the next one, chosen with the keyboard too.
		b.open(w.pages + "/contacts")
		b.until(`document.querySelector("#choose").hidden`)
		b.click(`tr[data-row]:nth-child(2) input[name=id]`)
		b.until(`document.querySelector("#choose output").textContent === "1"`)
		evaluate[string](b, `(document.querySelector("tr[data-row]:nth-child(3) input[name=id]").focus(), "")`)
		b.do(chromedp.KeyEvent(" "))
		b.until(`document.querySelector("#choose output").textContent === "2" && !document.querySelector("#choose").hidden`)
		b.check("chosen")
		b.leaves(func() { b.click(`.pager [rel=next]`) })
		b.until(`document.querySelector("#choose output").textContent === "2"`)
		b.click(`tr[data-row]:nth-child(1) input[name=id]`)
		b.until(`document.querySelector("#choose output").textContent === "3"`)
		b.leaves(func() { b.click("#choose [type=submit]") })
		b.until(`document.querySelectorAll("#bulk input[name=id]").length === 3`)
		b.check("tag-chosen")
		b.fill("new", "scelti")
		b.click("#bulk .btn-primary")
		b.until(`location.search === "?tag=scelti" && document.querySelectorAll("tr[data-row]").length === 3 && document.querySelector("#choose").hidden`)
		if b.look.width < 640 { // a phone shows no head of the table
			for i := range 3 {
				b.click(fmt.Sprintf(`tr[data-row]:nth-child(%d) input[name=id]`, i+1))
			}
		} else {
			b.click("[data-choose-page]")
		}
		b.until(`document.querySelector("#choose output").textContent === "3"`)
		b.click("[data-choose-none]")
		b.until(`document.querySelector("#choose").hidden && !document.querySelector("tr[data-row] input:checked")`)
	})
}

// TestChosenMessages: an action on chosen messages changes these that it can change, whatever the list's filters find, and says
// how many stay as they are.
func TestChosenMessages(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		f := w.traffic()
		now := w.clock.Now()
		var pending, failed []string
		for i := range 3 {
			phone := fmt.Sprintf("+3933312388%02d", i)
			pending = append(pending, f.planned(phone, "Ciao", now.Add(time.Hour)).String())
			failed = append(failed, f.ended(phone, "Ciao", now.Add(-time.Hour), puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Because("sandbox.refused")}).String())
		}
		v := w.visitor(w.clients[puntuale.Staff])
		for query, verbs := range map[string]string{"": "cancel again ", "?state=PENDING": "cancel ", "?state=FAILED": "again ", "?state=RESCHEDULED": ""} {
			body := v.get(w.pages + "/messages" + query).body
			offered := ""
			for _, verb := range regexp.MustCompile(`name="verb" value="(\w+)"`).FindAllStringSubmatch(body, -1) {
				offered += verb[1] + " "
			}
			if offered != verbs || strings.Contains(body, `form="choose" name="id" value="`) != (verbs != "") {
				t.Errorf("%q offers %q, want %q", query, offered, verbs)
			}
		}
		if reader := w.visitor(w.clients[puntuale.Reader]).get(w.pages + "/messages").body; strings.Contains(reader, `form="choose"`) {
			t.Error("a reader may choose rows")
		}
		act := func(verb string, chosen ...string) (asked string) {
			t.Helper()
			page := v.get(w.pages + "/messages/all?" + url.Values{"chosen": {"yes"}, "verb": {verb}, "state": {"FAILED"}, "id": chosen}.Encode()).body
			form := hiddenOf(page)
			form["id"], form["when"] = chosen, []string{"now"}
			if r := v.post(w.pages+"/messages/all", form); r.status != http.StatusSeeOther || !strings.HasSuffix(r.header.Get("Location"), "/messages?state=FAILED") {
				t.Errorf("%s: %d to %q", verb, r.status, r.header.Get("Location"))
			}
			return words(inMain(page))
		}
		states := func() (all string) {
			t.Helper()
			for _, id := range append(append([]string{}, pending...), failed...) {
				m, err := puntuale.ParseID[puntuale.MessageID](id)
				w.must(err)
				all += detail(t, w, m).State.String() + " "
			}
			return all
		}
		if asked := act("cancel", pending[0], pending[2], failed[1], pending[2], "999999", "abc"); !strings.Contains(asked, "Annullare l’invio di 2 messaggi?") || !strings.Contains(asked, "Altri 3 selezionati") {
			t.Errorf("asked %q", asked)
		}
		if got := states(); got != "CANCELLED PENDING CANCELLED FAILED FAILED FAILED " {
			t.Errorf("after the cancelling: %s", got)
		}
		if asked := act("again", failed[0], pending[1], pending[2]); !strings.Contains(asked, "Inviare di nuovo 2 messaggi?") || !strings.Contains(asked, "Un altro selezionato") {
			t.Errorf("asked %q", asked)
		}
		if got := states(); got != "CANCELLED PENDING RESCHEDULED RESCHEDULED FAILED FAILED " {
			t.Errorf("after the sending: %s", got)
		}
		if asked := act("again"); !strings.Contains(asked, "Nessuno dei messaggi selezionati") {
			t.Errorf("nothing was chosen, asked %q", asked)
		}
		many := make([]string, puntuale.MaxRequestIDs+1)
		if r := v.post(w.pages+"/messages/all", url.Values{"chosen": {"yes"}, "verb": {"cancel"}, "id": many}); r.status != http.StatusUnprocessableEntity {
			t.Errorf("%d ids: %d", len(many), r.status)
		}
	})
}

// TestChosenMessagesStory: what a person ticks stays ticked on other pages of the list, while the list reloads itself, after a
// look at a message, and after a refused form. The action changes exactly these messages, on all pages.
func TestChosenMessagesStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		f := w.traffic()
		var ids []puntuale.MessageID
		for i := range 60 {
			phone := fmt.Sprintf("+3933312388%02d", i)
			w.contact(phone, fmt.Sprintf("Anna Prova %d", i))
			ids = append(ids, f.ended(phone, "Ciao, a domani.", w.clock.Now().Add(-time.Hour), puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Because("sandbox.refused")}))
		}
		chosen := func(n int) { b.until(fmt.Sprintf(`document.querySelector("#choose output").textContent === "%d"`, n)) }
		ticked := func(ids string) {
			b.until(`[...document.querySelectorAll("tr[data-row] input:checked")].map((box) => box.value).join() === "` + ids + `"`)
		}
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/messages?state=FAILED")
		b.until(`document.querySelector("#choose").hidden`)
		b.click(`tr[data-row]:nth-child(2) input[name=id]`)
		b.click(`tr[data-row]:nth-child(3) input[name=id]`)
		chosen(2)
		b.check("chosen")
		two := ids[58].String() + "," + ids[57].String()
		f.ended("+393331238899", "Ciao", w.clock.Now().Add(-time.Hour), puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Because("sandbox.refused")})
		b.until(`document.querySelector("tr[data-row] a").textContent.includes("99")`) // the list reloaded itself
		ticked(two)
		chosen(2)
		b.leaves(func() { b.click(`.pager [rel=next]`) })
		chosen(2)
		ticked("")
		b.click(`tr[data-row]:nth-child(11) input[name=id]`)
		chosen(3)
		second := evaluate[string](b, `location.search`)
		b.leaves(func() { b.click(`tr[data-row]:nth-child(1) a`) })
		b.until(`document.querySelector("a.back")`)
		b.leaves(func() { evaluate[string](b, `(history.back(), "")`) })
		b.until(fmt.Sprintf(`location.search === %q`, second))
		ticked(ids[0].String())
		b.leaves(func() { b.click(`.pager [rel=prev]`) })
		ticked(two)
		chosen(3)

		b.leaves(func() { b.click(`#choose [value=again]`) })
		b.until(`document.querySelectorAll("#bulk input[name=id]").length === 3`)
		b.check("ask-chosen")
		b.click(`#bulk input[value=date]`)
		b.click(`#bulk .btn-primary`)
		b.until(`document.querySelector("#f-date-fault")`)
		b.leaves(func() { evaluate[string](b, `(history.back(), "")`) })
		chosen(3)
		b.leaves(func() { b.click(`#choose [value=again]`) })
		b.click(`#bulk .btn-primary`)
		b.until(`location.pathname.endsWith("/messages") && document.querySelector("[data-toast]") && document.querySelector("#choose").hidden`)
		b.check("chosen-done")
		for i, id := range ids {
			if want, got := i == 0 || i == 57 || i == 58, detail(t, w, id).State == puntuale.Rescheduled; got != want {
				t.Errorf("message %d: replaced is %v", i, got)
			}
		}

		// The bound: one more than may be chosen.
		full := make([]string, view.MaxChosen-1)
		for i := range full {
			full[i] = fmt.Sprintf(`"9%d"`, i)
		}
		b.click(`tr[data-row]:nth-child(1) input[name=id]`)
		evaluate[string](b, `((place) => { sessionStorage.setItem(place, JSON.stringify([`+strings.Join(full, ",")+`])); dispatchEvent(new Event("pageshow")); return ""; })(Object.keys(sessionStorage).find((key) => key.includes("chosen")))`)
		chosen(view.MaxChosen - 1)
		b.click(`tr[data-row]:nth-child(1) input[name=id]`)
		chosen(view.MaxChosen)
		b.click(`tr[data-row]:nth-child(2) input[name=id]`)
		b.until(`document.querySelector("[data-toast].toast-bad") && !document.querySelector("tr[data-row]:nth-child(2) input[name=id]").checked`)
		chosen(view.MaxChosen)
	})
}
