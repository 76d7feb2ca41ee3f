package web_test

import (
	"context"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
)

// startForm returns the form of a start after the person has seen the preview.
func (v *visitor) startForm(at string, form url.Values) url.Values {
	v.w.t.Helper()
	form.Set("do", "preview")
	got := v.post(at+"/start", form)
	if got.status != http.StatusOK || !strings.Contains(got.body, `value="start"`) {
		v.w.t.Fatalf("preview: %d %s", got.status, mainOf(got.body))
	}
	seen := formOf(got.body)
	seen.Set("do", "start")
	return seen
}

// pendingOf returns the number of a sequence's pending messages.
func (w *world) pendingOf(id string) int {
	w.t.Helper()
	all, _, err := w.Client().Messages(context.Background(), control.MessageQuery{Sequence: id})
	w.must(err)
	return len(all)
}

// TestStartNeedsItsPreview: a start sends only what the screen showed, even if something changed since the preview.
func TestStartNeedsItsPreview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.sequence(appointment())
	at := w.pages + "/sequences/" + id
	v := w.visitor(w.clients[puntuale.Staff])
	given := func() url.Values {
		return url.Values{"phone": {"3337654321"}, "fields.nome": {"Lucia"}, "fields.data_appuntamento": {"2026-11-30T10:00"}}
	}
	refused := func(why string, form url.Values) url.Values {
		t.Helper()
		got := v.post(at+"/start", form)
		if got.status != http.StatusOK || !strings.Contains(got.body, "qualcosa è cambiato") || w.pendingOf(id) != 0 {
			t.Fatalf("%s: %d, %d messages: %s", why, got.status, w.pendingOf(id), mainOf(got.body))
		}
		again := formOf(got.body)
		again.Set("do", "start")
		return again
	}
	unseen := given()
	unseen.Set("do", "start")
	refused("nothing was shown", unseen)
	for name, value := range map[string]string{"phone": "3337654322", "fields.nome": "Anna", "fields.data_appuntamento": "2026-12-01T10:00"} {
		form := v.startForm(at, given())
		form.Set(name, value)
		refused(name, form)
	}
	for _, odd := range []string{"", "x", ".", strings.Repeat("1.", 4), "\x00"} {
		form := v.startForm(at, given())
		form.Set("seen", odd)
		refused("an odd one", form)
	}
	form := v.startForm(at, given())
	w.clock.Advance(2 * time.Hour)
	refused("long ago", form)
	form = v.startForm(at, given())
	changed := appointment()
	changed.Steps[2].Text = "Grazie mille, {{nome}}."
	_, err := w.Client().ReplaceSequence(context.Background(), id, changed)
	w.must(err)
	fresh := refused("another text", form)
	// The person reads for three minutes. So the first message is due three minutes later than the preview showed. The
	// start must succeed all the same.
	w.clock.Advance(3 * time.Minute)

	got := v.post(at+"/start", fresh)
	if got.status != http.StatusSeeOther || w.pendingOf(id) != 3 {
		t.Fatalf("%d %s, %d messages", got.status, got.body, w.pendingOf(id))
	}
	if strings.Contains(got.to(), "3337654321") {
		t.Errorf("the number is in the address: %s", got.to())
	}
	twice := v.post(at+"/start", fresh) // a second click
	if twice.status != http.StatusSeeOther || twice.to() != got.to() || w.pendingOf(id) != 3 {
		t.Errorf("sent twice: %d %s, %d messages", twice.status, twice.to(), w.pendingOf(id))
	}
	for range 2 { // the person opens the page of the result, and then reloads it
		page := v.get(got.to())
		if page.status != http.StatusOK || strings.Count(page.body, "In attesa") != 3 || !strings.Contains(page.body, "telefono di prova") || !strings.Contains(page.body, "/phone?phone=%2B393337654321") {
			t.Errorf("%d %s", page.status, mainOf(page.body))
		}
	}
	other := w.visitor(w.foreignOwner)
	if page := other.get(got.to()); page.status != http.StatusNotFound {
		t.Errorf("a stranger: %d", page.status)
	}
}

// TestStartWarns: before and after a start, the page warns about a blacklisted number and about a sequence that is
// already running.
func TestStartWarns(t *testing.T) {
	t.Parallel()
	for _, try := range []struct{ running, before, after string }{
		{"allow", "avrà i messaggi di tutte e due", "i messaggi di prima restano"},
		{"skip", "non verrà avviata di nuovo", "non è stato aggiunto niente"},
		{"restart", "si ricomincia da capo", "annullati e sostituiti"},
		{"reject", "verrà rifiutato", ""},
	} {
		t.Run(try.running, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := appointment()
			r.IfRunning = try.running
			at := w.pages + "/sequences/" + w.sequence(r)
			v := w.visitor(w.clients[puntuale.Staff])
			given := url.Values{"phone": {"3337654321"}, "fields.nome": {"Lucia"}, "fields.data_appuntamento": {"2026-11-30T10:00"}}
			v.post(at+"/start", v.startForm(at, given))
			given.Set("do", "look")
			page := html.UnescapeString(v.htmx(at+"/start", given).body)
			if !strings.Contains(page, try.before) || strings.Contains(page, "blacklist") {
				t.Errorf("before: %s", page)
			}
			got := v.post(at+"/start", v.startForm(at, given))
			if try.after == "" {
				if got.status != http.StatusConflict {
					t.Errorf("refused: %d %s", got.status, got.body)
				}
				return
			}
			if page := v.get(got.to()); !strings.Contains(page.body, try.after) {
				t.Errorf("after: %d %s", page.status, mainOf(page.body))
			}
		})
	}
}

// TestStartOfBlacklisted: if the number is in the blacklist, the page shows a warning before the start and after it.
func TestStartOfBlacklisted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	at := w.pages + "/sequences/" + w.sequence(appointment())
	v := w.visitor(w.clients[puntuale.Staff])
	given := url.Values{"phone": {"333 765 4321"}, "fields.nome": {"Lucia"}, "fields.data_appuntamento": {"2026-11-30T10:00"}}
	form := v.startForm(at, given)
	_, err := w.Client().AddBlacklisted(context.Background(), "+393337654321", "", control.Once[puntuale.BlacklistEntry]{})
	w.must(err)
	if got := v.post(at+"/start", form); got.status != http.StatusOK || !strings.Contains(got.body, "è nella blacklist") {
		t.Fatalf("it changed since: %d %s", got.status, got.body)
	}
	got := v.post(at+"/start", v.startForm(at, given))
	if page := v.get(got.to()); !strings.Contains(page.body, "i messaggi in attesa non verranno mandati") || strings.Contains(page.body, "partono da soli") {
		t.Errorf("after: %d %s", page.status, mainOf(page.body))
	}
	given.Set("do", "look") // the page must not say that the sequence is already running, because none of its messages will leave
	page := html.UnescapeString(v.htmx(at+"/start", given).body)
	if !strings.Contains(page, `value="start" class="btn"`) || !strings.Contains(page, "Avvia comunque: non partirà nulla") || strings.Contains(page, "già in corso") {
		t.Errorf("again: %s", page)
	}
}

// TestStartFollowsTheForm: the Start button disappears while somebody types. It is shown again together with the new
// preview.
func TestStartFollowsTheForm(t *testing.T) {
	onScreens(t, func(_ *testing.T, w *world, b *browser) {
		at := w.pages + "/sequences/" + w.sequence(appointment())
		b.signIn(w.clients[puntuale.Staff])
		b.open(at + "/start")
		stands := func() (left, top float64) {
			place := evaluate[[]float64](b, `(() => { document.activeElement?.blur(); scrollTo(0, 0); const r = document.querySelector(".start-actions button").getBoundingClientRect(); return [r.left, r.top] })()`)
			return place[0], place[1]
		}
		left, top := stands()
		stays := func(when string) {
			b.t.Helper()
			if x, y := stands(); x != left || y != top {
				b.t.Errorf("%s: the button is at %v, %v and was at %v, %v", when, x, y, left, top)
			}
		}
		b.check("nothing yet")
		evaluate[bool](b, `((e) => { e.focus(); e.value = "12"; e.dispatchEvent(new Event("input", {bubbles: true})); return true })(document.querySelector("#f-phone"))`)
		b.until(`document.querySelector("[data-fault-of=f-phone]")`)
		if evaluate[bool](b, `Boolean(document.querySelector("#f-phone-fault"))`) {
			b.t.Error("a number is wrong while it is being typed")
		}
		b.fill("phone", "12")
		b.until(`document.querySelector("#f-phone[aria-invalid=true].is-invalid") && document.querySelector("#f-phone-fault").innerText.trim() && document.querySelector("#f-phone").getAttribute("aria-describedby") === "f-phone-hint f-phone-fault"`)
		b.check("wrong")
		same := evaluate[bool](b, `((e) => { const p = getComputedStyle(e).paddingRight; e.classList.add("is-invalid"); const now = getComputedStyle(e).paddingRight; e.classList.remove("is-invalid"); return p === now })(document.querySelector("[type=datetime-local]"))`)
		if !same {
			b.t.Error("a date's calendar moves when it is wrong")
		}
		b.fill("phone", "333 765 4321")
		b.until(`!document.querySelector("#f-phone-fault") && !document.querySelector("[data-fault-of=f-phone]") && document.querySelector(".start-missing")`)
		b.check("not yet")
		stays("something is missing")
		b.fill("fields.nome", "Lucia", "fields.data_appuntamento", "2026-11-30T15:30")
		b.until(`document.querySelector("#start-preview [value=start]:enabled") && document.querySelector("#start-preview").innerText.includes("Lucia")`)
		b.check("preview")
		stays("with its preview")
		gone := evaluate[bool](b, `((e) => { e.value = "Anna"; e.dispatchEvent(new Event("input", {bubbles: true})); return document.querySelector("#start-preview [value=start]").disabled })(document.querySelector("[name='fields.nome']"))`)
		if !gone {
			b.t.Error("the button still starts what was shown before")
		}
		b.until(`document.querySelector("#start-preview [value=start]:enabled") && document.querySelector("#start-preview").innerText.includes("Anna")`)
		b.click("[value=start]")
		b.until(`location.pathname.endsWith("/started") && document.readyState === "complete" && document.querySelectorAll(".started li").length === 3`)
		b.check("started")
		b.open(evaluate[string](b, `location.pathname + location.search`))
		b.until(`document.querySelectorAll(".started li").length === 3`)
		b.open(at + "/start?phone=3337654321&fields.nome=Anna&fields.data_appuntamento=2026-11-30T15:30")
		b.click("[value=preview]")
		b.until(`document.querySelector("#start-preview .start-note")`)
		b.check("running")
		stays("with a warning")
	})
}

// TestStartedNumbersTheSequence: the second of three steps is skipped. The page numbers the steps as the sequence does, in
// its order, and leads to this person's messages.
func TestStartedNumbersTheSequence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.sequence(appointment())
	at := w.pages + "/sequences/" + id
	v := w.visitor(w.clients[puntuale.Staff])
	got := v.post(at+"/start", v.startForm(at, url.Values{"phone": {"3337654321"}, "fields.nome": {"Lucia"}, "fields.data_appuntamento": {"2026-11-21T10:00"}}))
	page := mainOf(v.get(got.to()).body)
	list := between(page, `<ol class="started">`, "</ol>")
	first, second, third := strings.Index(list, "Passo 1<"), strings.Index(list, "Passo 2<"), strings.Index(list, "Passo 3<")
	skipped := strings.Index(list, "Saltato")
	if first < 0 || second < first || skipped < second || third < skipped {
		t.Errorf("the steps: %s", list)
	}
	if !strings.Contains(page, "/messages?phone=%2B393337654321&amp;sequence="+id+`"`) {
		t.Errorf("the messages of everybody: %s", page)
	}
}
