package web_test

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/store/storetest"
	"puntuale/internal/web/page"
)

// listed returns the numbers on the client's blacklist.
func (w *world) listed() (phones []string) {
	w.t.Helper()
	all, _, err := w.Client().Blacklist(context.Background(), request.Page{Limit: "1000"})
	w.must(err)
	for _, e := range all {
		phones = append(phones, e.Phone)
	}
	return phones
}

// upload sends a file in the field of a form.
func (v *visitor) upload(path, field string, content []byte) answer {
	v.w.t.Helper()
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	part, err := m.CreateFormFile(field, "elenco.csv")
	v.w.must(err)
	_, err = part.Write(content)
	v.w.must(err)
	v.w.must(m.Close())
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, v.w.base+path, &body)
	v.w.must(err)
	r.Header.Set("Content-Type", m.FormDataContentType())
	r.Header.Set("Accept-Language", v.language)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	response, err := v.http.Do(r)
	v.w.must(err)
	defer response.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(response.Body)
	v.w.must(err)
	return answer{response.StatusCode, text.String(), response.Header}
}

// TestBlacklist adds a number and undoes this. It corrects a wrong line of a list and imports the list. Then it finds
// and removes a number.
func TestBlacklist(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		w.must(w.prefers("+393339999999"))
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/blacklist")
		b.check("preference")
		b.fill("phone", "non un numero", "reason", "<b>ha chiesto</b>")
		b.tap("main .side-by-side .btn-primary")
		b.until(`document.querySelector(".fault") && document.activeElement.name === "phone" && document.querySelector("[name=reason]").value === "<b>ha chiesto</b>"`)
		b.check("refused")
		b.fill("phone", "333 1234567")
		b.tap("main .side-by-side .btn-primary")
		b.reads("+39 333 123 4567")
		b.until(`document.querySelector("[data-toast] form button")`)
		b.tap("[data-toast] form button")
		b.until(`!document.querySelector('main [data-phone="+393331234567"]')`)

		b.open(w.pages + "/blacklist/import")
		b.click("#blacklist-import summary")
		b.fill("pasted", "333 3333333 ::: 333 4444444,due\n333 1111111,uno\nnessuno,tre\n333 2222222")
		b.click("#blacklist-import .import-file [type=submit]")
		b.until(`document.querySelector("#import-result .mapping") && document.querySelector("[name=pasted]").value.includes("nessuno")`)
		b.reads("333 3333333 ::: 333 4444444 → +39 333 333 3333, +39 333 444 4444")
		b.click("#import-result summary")
		b.check("checked")
		b.click("#import-result .btn-primary")
		b.until(`document.querySelector("#import-result .notice-ok")`)
		b.check("imported")
		b.leaves(func() { b.click(`#import-result a[href$="/blacklist"]`) })
		b.reads("+39 333 333 3333")
		b.check("list")
		b.fill("q", "333 33")
		b.tap(".searchbar .btn")
		b.until(`location.search.includes("q=") && document.querySelectorAll("tbody tr").length === 1`)
		b.tap(".list-actions .btn")
		b.until(`location.pathname.endsWith("/remove")`)
		b.check("remove")
		b.tap("main .btn-danger")
		b.until(`document.querySelector("table") && !document.querySelector('main [data-phone="+393333333333"]')`)
	})
}

// TestTotals: the blacklist and the audit log say how many entries they have, and the blacklist also how many a search
// finds. Beyond 10,000 it says that there are more.
func TestTotals(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		v, partner := w.visitor(w.clients[puntuale.Owner]), w.visitor(w.partners[puntuale.Owner])
		entries := func(from, to int, reason string) (all []puntuale.BlacklistEntry) {
			for i := from; i < to; i++ {
				all = append(all, puntuale.BlacklistEntry{Phone: fmt.Sprintf("+39333%07d", i), Reason: reason, Added: w.clock.Now()})
			}
			return all
		}
		note := func(n int, client puntuale.ClientID) {
			for range n {
				w.must(w.store.Partner(w.partner).AddAudit(t.Context(), puntuale.AuditEntry{Client: client, Action: "blacklist.import", Target: "7", At: w.clock.Now()}))
			}
		}
		says := func(v *visitor, path, language, want string) {
			t.Helper()
			if got := v.total(path, language); got != want {
				t.Errorf("%s in %s: %q, want %q", path, language, got, want)
			}
		}
		list, log := w.pages+"/blacklist", w.pages+"/audit"
		for i, test := range []struct {
			more                                                  []puntuale.BlacklistEntry
			all, allEnglish, found, foundEnglish, log, logEnglish string
		}{
			{nil, "", "", "", "", "Un’azione", "One action"},
			{entries(0, 1, "uno"), "Un numero", "One number", "Un numero", "One number", "2 azioni", "2 actions"},
			{entries(1, 1234, "altri"), "1.234 numeri", "1,234 numbers", "Un numero", "One number", "4 azioni", "4 actions"},
			{entries(1234, puntuale.MaxCounted, "altri"), "10.000 numeri", "10,000 numbers", "Un numero", "One number", "7 azioni", "7 actions"},
			{entries(puntuale.MaxCounted, puntuale.MaxCounted+1, "altri"), "10.000+ numeri", "10,000+ numbers", "Un numero", "One number", "11 azioni", "11 actions"},
		} {
			_, err := w.store.Tenant(w.client).AddAllBlacklisted(t.Context(), test.more)
			w.must(err)
			note(i, w.client)
			says(v, list, "it", test.all)
			says(v, list, "en", test.allEnglish)
			says(v, list+"?q=UNO", "it", test.found)
			says(v, list+"?q=UNO", "en", test.foundEnglish)
			says(v, log, "it", test.log)
			says(v, log, "en", test.logEnglish)
		}
		says(v, list+"?q=altri", "it", "10.000 numeri")
		says(v, list+"?q=333000999", "it", "10 numeri")
		_, err := w.store.Tenant(w.client).AddAllBlacklisted(t.Context(), entries(puntuale.MaxCounted+1, 2*puntuale.MaxCounted+1, "altri"))
		w.must(err)
		says(v, list, "it", "10.000+ numeri")
		// A page of a search reads the newest 20,000 entries, and leads on to older ones.
		v.language = "it"
		first := v.get(list + "?q=UNO").body
		_, next, _ := strings.Cut(first, `rel="next" href="`)
		next, _, _ = strings.Cut(next, `"`)
		if second := v.get(html.UnescapeString(next)).body; strings.Contains(first, "Un numero") || strings.Contains(first, "uno</td>") || !strings.Contains(second, "+39 333 000 0000") && !strings.Contains(second, "+393330000000") {
			t.Errorf("the search leads to %q", next)
		}
		note(1, 0)
		says(v, log, "it", "11 azioni")
		says(partner, "/partner/audit", "it", "13 azioni")
	})
}

// total returns what a page says above its list, in a language: how many entries the list has on all pages.
func (v *visitor) total(path, language string) string {
	v.w.t.Helper()
	v.language = language
	body := v.get(path).body
	for _, mark := range []string{`list-found">`, `<p class="soft found" role="status">`} {
		if _, after, there := strings.Cut(body, mark); there {
			said, _, _ := strings.Cut(after, "</p>")
			return words(said)
		}
	}
	return ""
}

// TestTotalsOfObjects: the lists of clients, campaigns, sequences and people who wrote say how many there are, on each page and
// with their filters. They do not count those of others. Those of templates and numbers say it if one page has them all.
func TestTotalsOfObjects(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		v, partner := w.visitor(w.clients[puntuale.Owner]), w.visitor(w.partners[puntuale.Owner])
		says := func(v *visitor, path, it, en string) {
			t.Helper()
			for language, want := range map[string]string{"it": it, "en": en} {
				if got := v.total(path, language); got != want {
					t.Errorf("%s in %s: %q, want %q", path, language, got, want)
				}
			}
		}
		says(partner, "/partner", "2 clienti", "2 clients")
		says(partner, "/partner?q=verdi&state=active", "Un cliente", "One client")
		says(partner, "/partner?state=suspended", "", "")
		partner.language = "it"
		_, states, _ := strings.Cut(partner.get("/partner?q=verdi").body, `id="f-state"`)
		states, _, _ = strings.Cut(states, "</select>")
		if got := words("<" + states); got != "Tutti (2) Attivi (2) In scadenza (1) Scaduti (0) Sospesi (0) Senza crediti (0)" {
			t.Errorf("the states have %q", got)
		}

		sessions, _, err := w.Client().Sessions(t.Context(), request.Page{})
		w.must(err)
		theirs, err := w.store.Tenant(w.other).DefaultSession(t.Context())
		w.must(err)
		campaign := func(client puntuale.ClientID, session puntuale.SessionID) {
			_, err := w.store.Tenant(client).CreateCampaign(t.Context(), puntuale.Campaign{Session: session, Name: "Saldi", Created: w.clock.Now()}, storetest.Day, nil)
			w.must(err)
		}
		campaign(w.other, theirs.ID)
		says(v, w.pages+"/campaigns", "", "")
		campaign(w.client, sessions[0].ID)
		says(v, w.pages+"/campaigns", "Una campagna", "One campaign")
		campaign(w.client, sessions[0].ID)
		says(v, w.pages+"/campaigns", "2 campagne", "2 campaigns")
		if part := v.get(w.pages + "/campaigns?part=rows").body; strings.Contains(part, "list-found") {
			t.Error("the reloaded rows have the total, too")
		}

		says(v, w.pages+"/sequences", "", "")
		w.sequencesNamed("Visita")
		says(v, w.pages+"/sequences", "Una sequenza", "One sequence")
		for i := range 52 {
			w.sequencesNamed(fmt.Sprintf("Serie %02d", i))
		}
		_, next, err := w.Client().Sequences(t.Context(), control.SequenceSearch{Newest: true, Page: request.Page{Limit: page.RowsOfPage}})
		w.must(err)
		for _, path := range []string{"/sequences", "/start", "/sequences?" + url.Values{"cursor": {next}}.Encode()} {
			says(v, w.pages+path, "53 sequenze", "53 sequences")
		}
		says(v, w.pages+"/sequences?text=serie", "52 sequenze trovate", "52 sequences found")
		says(v, w.pages+"/sequences?text=visita", "Una sequenza trovata", "One sequence found")

		says(v, w.pages+"/templates", "", "")
		says(v, w.pages+"/sessions", "Un numero", "One number")
		for i := range 51 {
			if _, err = w.Client().CreateTemplate(t.Context(), control.NewTemplate{Template: puntuale.Template{Name: fmt.Sprintf("Modello %d", i), Text: "Ciao"}}, control.Once[control.Template]{}); err != nil {
				t.Fatal(err)
			}
			switch i {
			case 0:
				says(v, w.pages+"/templates", "Un template", "One template")
			case 49:
				says(v, w.pages+"/templates", "50 template", "50 templates")
			}
		}
		says(v, w.pages+"/templates", "", "") // the list is not whole

		tabs := func(it, en string) {
			t.Helper()
			for language, want := range map[string]string{"it": it, "en": en} {
				v.language = language
				_, page, _ := strings.Cut(v.get(w.pages+"/replies").body, `id="inbox-tabs"`)
				page, _, _ = strings.Cut(page, "</nav>")
				if got := words("<" + page); got != want {
					t.Errorf("tabs in %s: %q, want %q", language, got, want)
				}
			}
		}
		tabs("Tutte 0 Da leggere 0", "All 0 Unread 0")
		w.wrote("+393331234501", "Ciao")
		w.wrote("+393331234501", "Ci siete?")
		tabs("Tutte 1 Da leggere 1", "All 1 Unread 1")
		w.wrote("+393331234502", "Ciao")
		_, err = w.Client().MarkRead(t.Context(), "+393331234501", 0)
		w.must(err)
		tabs("Tutte 2 Da leggere 1", "All 2 Unread 1")
	})
}

// prefers adds a number to the blacklist, in the form in which an earlier version stored a preference in WhatsApp.
func (w *world) prefers(phone string) error {
	return w.store.Uncounted(w.client).AddBlacklisted(context.Background(), puntuale.BlacklistEntry{
		Phone: phone, Reason: puntuale.PreferenceReason + "codice Meta 131050, 2026-11-20T09:00:00Z", Added: w.clock.Now(),
	}, puntuale.DateOf(w.clock.Now()), nil)
}

// TestBlacklistFiles: the page reads every form in which spreadsheets save a list. A check stores nothing, and shows which
// columns have numbers; a person may choose others.
func TestBlacklistFiles(t *testing.T) {
	t.Parallel()
	utf16 := func(text string) []byte {
		content := []byte{0xff, 0xfe}
		for _, r := range text {
			content = append(content, byte(r), byte(r>>8))
		}
		return content
	}
	for name, content := range map[string][]byte{
		"comma":        []byte("333 1111111,perché\n\n3332222222\n"),
		"semicolon":    []byte("\ufeffMotivo;Telefono\r\nperché;333 1111111\r\n;\"333 2222222\"\r\n"),
		"tab":          []byte("numero\tcittà\tnote\n333 1111111\tTorino\tperché\n333 2222222\tRoma\t\n"),
		"Windows-1252": []byte("telefono;motivo\r\n333 1111111;perch\xe9\r\n333 2222222;\x80\r\n"),
		"UTF-16":       utf16("telefono\tmotivo\r\n333 1111111\tperché\r\n333 2222222\t\r\n"),
		"our own":      []byte("telefono;motivo;aggiunto\n'+393331111111;perché;2026-11-20 10:00\n'+393332222222;;2026-11-20 10:00\n"),
		"two numbers":  []byte("Telefono;Cellulare;Motivo\n333 1111111;333 2222222;perché\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			v := w.visitor(w.clients[puntuale.Staff])
			if r := v.upload(w.pages+"/blacklist/import", "file", content); r.status != http.StatusOK || !strings.Contains(words(r.body), "→ +39 333 111 1111") || len(w.listed()) != 0 {
				t.Fatalf("the check: %d %v %s", r.status, w.listed(), r.body)
			}
			if r := v.upload(w.pages+"/blacklist/import?do=import", "file", content); r.status != http.StatusSeeOther {
				t.Fatalf("%d %s", r.status, r.body)
			}
			if got := w.listed(); !slices.Equal(got, []string{"+393331111111", "+393332222222"}) {
				t.Fatalf("the list holds %v", got)
			}
			all, _, err := w.Client().Blacklist(context.Background(), request.Page{})
			w.must(err)
			if all[0].Reason != "perché" {
				t.Errorf("the reason is %q", all[0].Reason)
			}
		})
	}
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Staff])
	for name, content := range map[string]string{"nothing": "", "only a heading": "telefono\n", "no number": "città\nRoma\n"} {
		if r := v.upload(w.pages+"/blacklist/import?do=import", "file", []byte(content)); r.status != http.StatusUnprocessableEntity || len(w.listed()) != 0 {
			t.Errorf("%s: %d", name, r.status)
		}
	}
	r := v.upload(w.pages+"/blacklist/import?do=import", "file", []byte("telefono;motivo\n3331111111;\nMario;\n3,93331E+11;\n"))
	for _, words := range []string{"Riga 3:", "Riga 4:", "(Mario)", "Un numero aggiunto"} {
		if !strings.Contains(r.body, words) {
			t.Errorf("it does not say %q: %s", words, inMain(r.body))
		}
	}
}

// TestBlacklistExport: no cell of the list is a formula, and an import of the file restores the list.
func TestBlacklistExport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.Client()
	reasons := []string{`=HYPERLINK("http://evil.example")`, "+1", "-2+3", "@SUM(1)", "\t=1", "è; \"così\"", "riga\nnuova"}
	for i, reason := range reasons {
		_, err := c.AddBlacklisted(context.Background(), fmt.Sprintf("+39333000000%d", i), reason, control.Once[puntuale.BlacklistEntry]{})
		w.must(err)
	}
	v := w.visitor(w.clients[puntuale.Staff])
	r := v.get(w.pages + "/blacklist/export")
	if r.status != http.StatusOK || !strings.HasPrefix(r.header.Get("Content-Disposition"), `attachment; filename="blacklist-2026-11-20.csv"`) || !strings.HasPrefix(r.body, "\ufeff") {
		t.Fatalf("%d %v", r.status, r.header)
	}
	for line := range strings.Lines(r.body) {
		for cell := range strings.SplitSeq(strings.TrimSpace(line), ";") {
			if bare := strings.TrimLeft(cell, `"`); bare != "" && strings.ContainsRune("=+-@\t", rune(bare[0])) {
				t.Errorf("a spreadsheet would reckon with %q", cell)
			}
		}
	}
	for _, phone := range w.listed() {
		_, err := c.RemoveBlacklisted(context.Background(), phone)
		w.must(err)
	}
	if r := v.upload(w.pages+"/blacklist/import?do=import", "file", []byte(r.body)); r.status != http.StatusSeeOther {
		t.Fatalf("its own list is refused: %d %s", r.status, r.body)
	}
	if got := len(w.listed()); got != len(reasons) {
		t.Errorf("%d of %d came back", got, len(reasons))
	}
}

// TestExportsBreakOff: if the server cannot read all rows of an export, the reader can see that the file is not complete.
func TestExportsBreakOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const rows = 1001
	var numbers, contacts strings.Builder
	contacts.WriteString("phone;nome\n")
	for i := range rows {
		fmt.Fprintf(&numbers, "333%07d\n", i)
		fmt.Fprintf(&contacts, "333%07d;Anna\n", i)
	}
	staff := w.visitor(w.clients[puntuale.Owner])
	if r := staff.upload(w.pages+"/blacklist/import?do=import", "file", []byte(numbers.String())); r.status != http.StatusSeeOther {
		t.Fatal(r.status, r.body)
	}
	if _, err := w.Client().ImportContacts(t.Context(), strings.NewReader(contacts.String()), "text/csv", control.ContactImport{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"blacklist", "contacts"} {
		for _, full := range []bool{false, true} {
			gate := admission.NewGate(admission.GateConfig{Seats: 1, LongestWait: 100 * time.Millisecond, Now: time.Now})
			w.serveAs(page.Config{Admit: admission.Limits{Gate: gate}})
			v := w.visitor(w.clients[puntuale.Owner])
			var once sync.Once
			w.written = func() {
				if full {
					once.Do(func() {
						_, _, err := gate.Enter(context.Background(), admission.CallerKey{}, admission.PriorityWrite) // this call never returns its seat
						w.must(err)
					})
				}
			}
			answer, err := v.http.Get(w.base + w.pages + "/" + name + "/export") //nolint:noctx // the test ends the server
			w.must(err)
			text, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			w.written = nil
			if lines := strings.Count(string(text), "\n"); full != (err != nil) || full == (lines == rows+1) {
				t.Errorf("%s, cut off %t: %d, %d lines, %v, %.200s", name, full, answer.StatusCode, lines, err, text)
			}
		}
	}
}

// TestBlacklistPages: a person can remove a number that the network added to the list. The page first explains what
// this means. A user with the role reader sees the list without buttons.
func TestBlacklistPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Staff])
	golden(t, "blacklist-empty", inMain(v.get(w.pages+"/blacklist").body))
	w.must(w.prefers("+393339999999"))
	w.clock.Advance(time.Minute)
	if r := v.post(w.pages+"/blacklist", url.Values{"phone": {"333 1234567"}, "reason": {"<script>alert(1)</script>"}}); r.status != http.StatusSeeOther {
		t.Fatalf("%d", r.status)
	}
	golden(t, "blacklist", inMain(v.get(w.pages+"/blacklist").body))
	reader := w.visitor(w.clients[puntuale.Reader]).get(w.pages + "/blacklist")
	if strings.Contains(reader.body, "/remove") || strings.Contains(reader.body, `name="phone"`) {
		t.Error("who may only look is offered more")
	}
	page := w.pages + "/blacklist/1/remove"
	if r := v.get(page); r.status != http.StatusOK || !strings.Contains(r.body, "consenso") || !strings.Contains(r.body, "131050") {
		t.Errorf("the question: %d", r.status)
	}
	if r := v.post(page, nil); r.status != http.StatusSeeOther || !slices.Equal(w.listed(), []string{"+393331234567"}) {
		t.Errorf("%d, the list holds %v", r.status, w.listed())
	}
	if r := v.post(page, nil); r.status != http.StatusNotFound {
		t.Errorf("again: %d", r.status)
	}
}

// TestMessageOfBlacklisted: the page of a message that does not leave, or did not, says since when and why the number is in the
// blacklist, and leads to the page that takes it out. The search shows how far a message got.
func TestMessageOfBlacklisted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, v := w.traffic(), w.visitor(w.clients[puntuale.Staff])
	const phone = "+393331239905"
	waits := f.planned(phone, "Ciao", w.clock.Now().Add(time.Hour))
	did := f.planned(phone, "Ciao", w.clock.Now())
	_, err := w.Client().AddBlacklisted(t.Context(), phone, "ha chiesto di smettere", control.Once[puntuale.BlacklistEntry]{})
	w.must(err)
	answers, err := w.store.Claim(t.Context(), puntuale.Claim{Node: f.node, Token: storetest.Token(f.node), Now: w.clock.Now(), Messages: []puntuale.ClaimItem{{MessageRef: puntuale.MessageRef{Client: w.client, ID: did}, Phone: phone}}})
	w.must(err)
	listed, _, err := w.Client().FindBlacklisted(t.Context(), phone, request.Page{})
	w.must(err)
	remove := fmt.Sprintf(`href="%s/blacklist/%d/remove"`, w.pages, listed[0].ID)
	if text := words(inMain(v.get(w.pages + "/messages/" + did.String()).body)); !strings.Contains(text, "Non è partito. Il testo era") || strings.Contains(text, "Come lo vede") ||
		strings.Index(text, "Motivo: «ha chiesto") > strings.Index(text, "La persona non vuole messaggi") {
		t.Errorf("the message that did not leave: %s", text)
	}
	if text := words(inMain(v.get(w.personURL(phone)).body)); !strings.Contains(text, "una risposta non partirebbe") || strings.Contains(text, "/person/answer") {
		t.Errorf("the person: %s", text)
	}
	for _, id := range []puntuale.MessageID{waits, did} {
		page := inMain(v.get(w.pages + "/messages/" + id.String()).body)
		if !strings.Contains(words(page), "Motivo: «ha chiesto di smettere». Dal") || !strings.Contains(page, remove) {
			t.Errorf("message %d (%v): %s", id, answers, words(page))
		}
		if reader := w.visitor(w.clients[puntuale.Reader]).get(w.pages + "/messages/" + id.String()).body; strings.Contains(reader, "/remove") {
			t.Error("a reader may take the number out")
		}
	}
	_, err = w.Client().RemoveBlacklisted(t.Context(), phone)
	w.must(err)
	if text := words(inMain(v.get(w.pages + "/messages/" + did.String()).body)); !strings.Contains(text, "Ora il numero non è più in blacklist") {
		t.Errorf("after the removal: %s", text)
	}

	read := f.ended("+393331239906", "Una parola rara", w.clock.Now(), puntuale.Outcome{Verdict: puntuale.Sent})
	_, err = w.store.KeepReceipts(t.Context(), w.clock.Now(), []puntuale.DeliveryReceipt{{MessageRef: puntuale.MessageRef{Client: w.client, ID: read}, Session: f.session, Token: storetest.Token(f.node), Kind: puntuale.ReceiptRead, At: w.clock.Now()}})
	w.must(err)
	if text := words(inMain(v.get(w.pages + "/search?text=rara").body)); !strings.Contains(text, "Letto") {
		t.Errorf("the search: %s", text)
	}
}
