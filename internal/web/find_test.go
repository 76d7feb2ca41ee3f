package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"puntuale"
	"puntuale/internal/control"
)

// contact adds a contact of the client.
func (w *world) contact(phone, name string) {
	w.t.Helper()
	_, err := w.Client().AddContact(context.Background(), control.NewContact{Phone: phone, Name: name}, control.Once[puntuale.Contact]{})
	w.must(err)
}

// searched creates what searches find.
func (w *world) searched() (message puntuale.MessageID) {
	w.t.Helper()
	f := w.traffic()
	w.contact("+393331234567", "Mario Rossi")
	w.contact("+393337654321", "Giuseppe Buonarroti")
	w.contact("+393401112223", "Maria Bianchi")
	message = f.planned("+393331234567", "Ciao Mario, ti aspettiamo domani alle 10:30 in via Roma 12.", w.clock.Now().Add(time.Hour))
	f.planned("+393401112223", "Ciao Maria, grazie della visita.", w.clock.Now().Add(2*time.Hour))
	return message
}

// TestFind: the page of a search finds without scripts. Another client's things are not found, a partner finds its clients,
// and a person's own address leads to the right dashboard.
func TestFind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.searched()
	_, err := w.store.Tenant(w.other).MergeContacts(context.Background(), puntuale.ContactBatch{All: []puntuale.Contact{{Phone: "+393331234567", Name: "Mario Altrui"}}, Now: w.clock.Now()})
	w.must(err)
	v := w.visitor(w.clients[puntuale.Reader])
	person, message := `href="`+w.pages+`/person?phone=%2B393331234567"`, `href="`+w.pages+"/messages/"+id.String()+`"`
	for _, text := range []string{"mario rossi", "rosi mario", "+39 333 12 34 567", "333.123.45.67"} {
		query := "?" + url.Values{"text": {text}}.Encode()
		whole := v.get(w.pages + "/search" + query)
		part := v.do(http.MethodGet, w.pages+"/search"+query, nil, http.Header{"Hx-Request": {"true"}})
		for _, got := range []string{inMain(whole.body), part.body} {
			if !strings.Contains(got, person) || !strings.Contains(got, message) || strings.Contains(got, "Altrui") {
				t.Errorf("%q: %s", text, words(got))
			}
		}
		if strings.Contains(part.body, "<main") || !strings.Contains(whole.body, `value="`+text+`"`) {
			t.Errorf("%q: the part has a page, or the page lost the text", text)
		}
	}
	if got := words(inMain(v.get(w.pages + "/search?text=zzz").body)); !strings.Contains(got, "Nessun risultato per «zzz»") {
		t.Errorf("nothing: %s", got)
	}
	if got := v.get(w.pages + "/search"); got.status != http.StatusOK || strings.Contains(got.body, "Nessun risultato") {
		t.Errorf("without a text: %d", got.status)
	}
	if got := v.get(w.pages + "/search?text=" + strings.Repeat("x", puntuale.MaxName+1)); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "f-text-fault") {
		t.Errorf("a long text: %d", got.status)
	}
	if got := v.get("/search?text=mario"); got.status != http.StatusSeeOther || got.to() != w.pages+"/search?text=mario" {
		t.Errorf("a client's own search: %d %s", got.status, got.to())
	}
	for _, path := range []string{w.pages, "/me"} {
		if got := v.get(path).body; !strings.Contains(got, `href="`+w.pages+`/search"`) {
			t.Errorf("%s has no link to the search", path)
		}
	}
	p := w.visitor(w.partners[puntuale.Reader])
	if got := p.get("/search"); got.to() != "/partner/search" {
		t.Errorf("a partner's own search: %d %s", got.status, got.to())
	}
	if got := inMain(p.get("/partner/search?text=bianchi").body); !strings.Contains(got, "/partner/clients/"+w.client.String()+`"`) || strings.Contains(got, "Maria") {
		t.Errorf("a partner finds %s", words(got))
	}
	if got := v.get("/partner/search?text=bianchi"); got.status != http.StatusNotFound {
		t.Errorf("a client at the partner's search: %d", got.status)
	}
}

// TestFindReadsAPart: if a word may be in a booking behind those that were read, the page does not say that there is nothing. It
// leads to the list, in which the booking is found.
func TestFindReadsAPart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sequence := w.sequence(bookedVisit())
	w.book(sequence, "first", "+393331234567", "Ada", "20/01/2027 15:30", "")
	w.book(sequence, "last", "+393339876543", "Carla", "21/01/2027 15:30", "")
	_, err := w.sql.ExecContext(context.Background(), `update booking set fields = replace(fields, 'Carla', 'Zenobia') where reference = 'last'`)
	w.must(err)
	const columns = "client_id, sequence_id, session_id, phone, zone, fields, status, status_by, revision, as_of, as_of_kind, told_at, moments, created_at, changed_at, erased_at"
	_, err = w.sql.ExecContext(context.Background(), fmt.Sprintf(`insert into booking (id, reference, date_at, %s) with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000)
 select id + 1000000 + i, 'x' || i, date_at + i, %[1]s from booking cross join n where reference = 'first'`, columns))
	w.must(err)
	v := w.visitor(w.clients[puntuale.Reader])
	got := inMain(v.get(w.pages + "/search?text=zenobia").body)
	if text := words(got); strings.Contains(text, "Nessun risultato") || !strings.Contains(text, "Ancora nessun risultato per «zenobia»") || !strings.Contains(text, "Sono stati cercati solo i prossimi appuntamenti.") {
		t.Errorf("behind what was read: %s", text)
	}
	list := w.pages + "/bookings?text=zenobia"
	if !strings.Contains(got, `href="`+list+`"`) || !strings.Contains(words(v.get(list).body), "Zenobia") {
		t.Errorf("no way to the booking: %s", got)
	}
}

// TestFindTapped opens the search on a phone with a finger, by the icon at the top.
func TestFindTapped(t *testing.T) {
	t.Parallel()
	startChromium(t)
	w := newWorld(t)
	w.searched()
	b := newBrowser(t, w, screen{390, 844, "light", "it"})
	b.signIn(w.clients[puntuale.Staff])
	command(b, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true})
	b.open(w.pages)
	b.finger(".top-tools [data-find]")
	b.until(`document.getElementById("find").open && document.activeElement.id === "find-text"`)
	b.do(chromedp.KeyEvent("mario rossi"))
	b.until(`document.querySelector("#find-found a.find")`)
	b.check("tapped")
	b.finger("#find-found a.find")
	b.until(`location.pathname.endsWith("/person") && document.readyState === "complete"`)
}

// TestFindInBrowser finds Mario Rossi in few seconds with the keyboard alone, also misspelled, turned round, and by a number
// with spaces. The last searches are shown again, and forgotten at the sign-out.
func TestFindInBrowser(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		message := w.searched()
		w.sequencesNamed("Mario, benvenuto")
		b.signIn(w.clients[puntuale.Staff])
		const first = `document.querySelector("#find-found a.find")?.getAttribute("href")`
		found := fmt.Sprintf(`%s === %q`, first, w.pages+"/person?phone=%2B393331234567")
		open := func() {
			b.t.Helper()
			b.open(w.pages)
			b.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
			b.until(`document.getElementById("find").open && document.activeElement.id === "find-text"`)
		}
		for i, text := range []string{"mario rossi", "rosi mario", "Mraio Rossi", "+39 333 12 34 567"} {
			begun := time.Now()
			open()
			b.do(chromedp.KeyEvent(text))
			b.until(found)
			b.check(fmt.Sprint("find", i))
			b.enter()
			b.until(`location.pathname.endsWith("/person") && document.readyState === "complete"`)
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("%q took %v", text, took)
			}
		}
		b.open(w.pages + "/messages")
		if !evaluate[bool](b, `(document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "/", bubbles: true})), document.getElementById("find").open)`) {
			t.Error("a slash does not open the search")
		}
		open()
		b.until(`document.querySelectorAll("#find-recent .find").length === 4`)
		b.check("find-recent")
		b.do(chromedp.KeyEvent("mario"))
		b.until(found)
		b.do(chromedp.KeyEvent(kb.ArrowDown + kb.ArrowDown + kb.ArrowUp + kb.ArrowUp))
		b.until(`document.activeElement.id === "find-text"`)
		b.do(chromedp.KeyEvent(kb.ArrowDown))
		for range 10 { // the first message is somewhere below
			if evaluate[bool](b, fmt.Sprintf(`document.activeElement.getAttribute("href") === %q`, w.pages+"/messages/"+message.String())) {
				break
			}
			b.do(chromedp.KeyEvent(kb.ArrowDown))
		}
		b.enter()
		b.until(fmt.Sprintf(`location.pathname === %q && document.readyState === "complete"`, w.pages+"/messages/"+message.String()))
		open()
		b.do(chromedp.KeyEvent("qwertz"))
		b.until(`document.querySelector("#find-found .finds-none") !== null`)
		b.check("find-none")
		b.enter() // nothing to open, so the page of the search opens
		b.until(`location.pathname.endsWith("/search") && document.readyState === "complete"`)
		b.open(w.pages + "/search?text=mario")
		b.check("find-page")
		if n := evaluate[int](b, `Object.keys(localStorage).filter(k => k.startsWith("puntuale:found:")).length`); n != 1 {
			t.Errorf("%d lists of searches are stored", n)
		}
		evaluate[bool](b, `(document.querySelector("form[action='/logout']").requestSubmit(), true)`)
		b.until(`location.pathname.startsWith("/login") && document.readyState === "complete"`)
		if n := evaluate[int](b, `Object.keys(localStorage).filter(k => k.startsWith("puntuale:found:")).length`); n != 0 {
			t.Errorf("after the sign-out %d lists of searches are stored", n)
		}
	})
}
