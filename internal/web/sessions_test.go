package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/connector/sandbox"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// tap clicks the element of the selector, even if the element is outside the visible part.
func (b *browser) tap(selector string) {
	b.t.Helper()
	find := fmt.Sprintf(`document.querySelector(%q)`, selector)
	b.until(find)
	evaluate[bool](b, `((e) => { e.scrollIntoView({block: "center"}); e.click(); return true })(`+find+`)`)
}

// ticking waits until a script returns true, and advances the world's clock while it waits.
func (b *browser) ticking(script string) {
	b.t.Helper()
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) { // the time between two tries
		if done, _ := b.holds(script); done {
			return
		}
		b.w.clock.Advance(100 * time.Millisecond)
	}
	b.until(script)
}

// inMain returns the main part of a page, without the navigation. The navigation changes whenever it gets a new item.
func inMain(html string) string {
	_, rest, _ := strings.Cut(html, "<main")
	inside, _, _ := strings.Cut(rest, "</main>")
	return "<main" + inside
}

// newSession creates a session, and returns it with the address of its page.
func (w *world) newSession(name string, kind puntuale.ConnectionType, simulated bool) (control.Session, string) {
	w.t.Helper()
	s, err := w.Client().CreateSession(context.Background(), control.NewSession{Name: name, Type: string(kind), Sandbox: &simulated}, control.Once[control.Session]{})
	w.must(err)
	return s, w.pages + "/sessions/" + s.ID.String()
}

// TestSessions adds a simulated number, unlinks it, links it by QR code and by a typed code, and deletes it.
func TestSessions(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		w.own(t)
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/sessions")
		b.check("list")
		b.open(w.pages + "/sessions/new")
		b.check("new")
		b.tap("main form .btn-primary")
		b.until(`document.querySelector(".fault")`)
		b.fill("name", "Segreteria")
		b.tap("[value=sandbox]")
		b.tap("main form .btn-primary")
		b.until(`/sessions\/[0-9]+$/.test(location.pathname)`)
		b.check("sandbox")
		b.tap("[data-open=rename]")
		b.until(`document.activeElement?.name === "name"`)
		b.fill("name", " ")
		b.tap("dialog[open] .btn-primary")
		b.until(`document.querySelector("dialog[open] .fault") && document.activeElement?.name === "name"`)
		b.check("rename")
		b.fill("name", "Segreteria di sopra")
		b.tap("dialog[open] .btn-primary")
		b.until(`document.querySelector("h1").innerText === "Segreteria di sopra" && document.readyState === "complete"`)
		b.tap("[data-open=rename]")
		b.fill("name", "Segreteria")
		b.tap("dialog[open] .btn-primary")
		b.until(`document.querySelector("h1").innerText === "Segreteria" && document.readyState === "complete"`)
		b.tap(".link-state details summary")
		b.tap(".link-state .btn-danger")
		b.until(`document.querySelector(".link-state .tag-bad")`)
		b.check("unlinked")
		b.tap(".link-state .btn-primary")
		b.ticking(`document.querySelector(".pairing .qr path")`)
		first := evaluate[string](b, `document.querySelector(".pairing .qr path").getAttribute("d")`)
		b.check("pairing")
		w.clock.Advance(sandbox.CodeLife)
		b.ticking(`document.querySelector(".pairing .qr path") && document.querySelector(".pairing .qr path").getAttribute("d") !== ` + quote(first))
		w.clock.Advance(sandbox.CodeLife)
		w.clock.Advance(sandbox.PhoneLinks - 2*sandbox.CodeLife)
		b.ticking(`document.querySelector(".link-state .tag-ok")`)
		b.check("linked")

		b.tap(".link-state details summary")
		b.tap(".link-state .btn-danger")
		b.until(`document.querySelector(".link-state .tag-bad")`)
		b.tap(".link-state details summary")
		b.fill("phone", "nessuno")
		b.tap(".link-state details .btn[type=submit]")
		b.until(`document.querySelector(".link-state .fault")`)
		b.fill("phone", "333 1234567")
		b.tap(".link-state details .btn[type=submit]")
		b.ticking(`document.querySelector(".pairing-code")`)
		b.check("code")
		b.tap(".link-state form .btn")
		b.until(`document.querySelector(".link-state .tag-bad")`)

		b.tap(`[href$="/delete"]`)
		b.until(`document.querySelector("[name=confirm]")`)
		b.fill("confirm", "un altro nome")
		b.tap(".btn-danger")
		b.until(`document.querySelector(".fault")`)
		b.check("delete")
		b.fill("confirm", "Segreteria")
		b.tap(".btn-danger")
		b.until(`location.pathname === "` + w.pages + `/sessions" && !document.querySelector("table").innerText.includes("Segreteria")`)
	})
}

// TestOfficial sets up an Official number on the guided page, with a test server that replaces Meta. The connection
// test fails with an explanation, and then succeeds. The templates are listed.
func TestOfficial(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		o := w.own(t)
		paused := graphtest.NewTemplate("sconti_estate", "Sconti per te")
		paused.Status, paused.Category, paused.Quality = "PAUSED", "MARKETING", map[string]any{"score": "RED"}
		o.peer.SetTemplates(o.number.Account, graphtest.NewTemplate("promemoria", "Gentile {{1}}, a domani"), paused)
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/sessions/new")
		b.fill("name", "Ufficiale")
		b.tap("[value=official]")
		b.tap("main form .btn-primary")
		b.until(`location.pathname.endsWith("/official") && document.querySelector("[name=app_secret]")`)
		b.check("setup")
		b.fill("phone_number_id", "+39 02 1234", "business_account_id", o.number.Account, "access_token", o.number.Token, "app_secret", "")
		b.tap("main form .btn-primary")
		b.until(`document.querySelectorAll(".fault").length === 2 && document.activeElement.name === "phone_number_id"`)
		if got := evaluate[string](b, `document.querySelector("[name=access_token]").value`); got != o.number.Token {
			t.Errorf("the token that was typed became %q", got)
		}
		b.check("refused")
		b.fill("phone_number_id", o.number.ID, "app_secret", "sbagliata", "verify_token", o.number.Verify)
		b.tap("main form .btn-primary")
		b.reads(w.base + "/webhooks/official/")
		b.reads(o.number.Verify)
		b.tap("main form .btn")
		b.until(`document.querySelector("form .notice-warn") && document.querySelector("form .notice-warn").innerText.includes("app_secret")`)
		b.check("fails")

		b.open(w.pages + "/sessions")
		b.press("Ufficiale")
		b.tap(`a.btn-primary[href$="/official"]`)
		b.until(`document.querySelector("[name=app_secret]")`)
		for _, key := range []string{o.number.Token, o.number.Verify} {
			if strings.Contains(evaluate[string](b, `document.documentElement.outerHTML`), key) {
				t.Errorf("a stored key is shown again")
			}
		}
		b.check("replace")
		b.fill("app_secret", o.number.Secret)
		b.tap("main form .btn-primary")
		b.reads(w.base + "/webhooks/official/")
		b.tap("main form .btn")
		b.until(`document.querySelector("form .notice-ok") && document.querySelector("form .notice-ok").innerText.includes("+39021234101")`)
		b.check("works")
		b.tap(".card-inside > a.btn")
		b.until(`document.querySelector(".link-state .tag-ok")`)
		b.check("official")
		b.tap(`[href$="/templates"].btn`)
		b.reads("promemoria")
		b.reads("sconti_estate")
		b.check("templates")
		listed := o.peer.Listed()
		b.tap("main header form .btn")
		b.until(`document.querySelector("[data-toast]")`)
		if o.peer.Listed() <= listed {
			t.Error("nobody asked Meta for the templates")
		}
	})
}

// TestSessionPages compares pages with golden files, and uses them as a browser without scripts does.
func TestSessionPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.own(t)
	v := w.visitor(w.clients[puntuale.Owner])
	_, prova := w.newSession("Prova", puntuale.Socket, true)
	_, meta := w.newSession("Ufficiale", puntuale.Official, false)
	if r := v.post(meta+"/test", nil); r.status != http.StatusOK || !strings.Contains(r.body, "Mancano le credenziali di Meta") {
		t.Errorf("a test without keys: %d", r.status)
	}
	golden(t, "sessions", inMain(v.get(w.pages+"/sessions").body))
	golden(t, "session", inMain(v.get(prova).body))
	golden(t, "session-official", inMain(strings.ReplaceAll(v.get(meta).body, w.base, "http://host")))

	if r := v.post(prova+"/unlink", nil); r.status != http.StatusSeeOther || r.to() != prova {
		t.Fatalf("unlink: %d %s", r.status, r.to())
	}
	if r := v.post(prova+"/pair", url.Values{"method": {"qr"}}); r.status != http.StatusSeeOther {
		t.Fatalf("pair: %d %s", r.status, r.body)
	}
	shown := v.get(prova)
	if !strings.Contains(shown.body, `class="qr"`) || shown.header.Get("Cache-Control") != "no-store" {
		t.Errorf("no code, or one that is kept: %q", shown.header.Get("Cache-Control"))
	}
	reader := w.visitor(w.clients[puntuale.Reader])
	if r := reader.get(prova); strings.Contains(r.body, `class="qr"`) {
		t.Error("who may only look sees a code")
	}
	for who, event := range map[*visitor]string{v: v.event(prova + "/link/live"), reader: reader.event(prova + "/link/live")} {
		if has := strings.Contains(event, `class="qr"`); !strings.Contains(event, `class="tag tag-wait"`) || has != (who == v) {
			t.Errorf("the first event: %s", event)
		}
	}
	if r := v.post(prova+"/pace", url.Values{"per_minute": {"molti"}, "per_day": {"-1"}, "cold_per_minute": {"0"}, "cold_per_day": {"0"}, "jitter": {"0"}}); r.status != http.StatusUnprocessableEntity ||
		strings.Count(r.body, `class="fault"`) != 2 || !strings.Contains(r.body, `value="molti"`) {
		t.Errorf("a pace that is none: %d", r.status)
	}
	if r := v.post(prova+"/pace", url.Values{"per_minute": {"7"}, "per_day": {"100"}, "cold_per_minute": {"0"}, "cold_per_day": {"0"}, "jitter": {"0"}}); r.status != http.StatusSeeOther {
		t.Errorf("a pace: %d", r.status)
	}
	if r := v.get(prova + "/official"); r.status != http.StatusNotFound {
		t.Errorf("keys of a session that has none: %d", r.status)
	}
}

// event returns the first event of a stream.
func (v *visitor) event(path string) string {
	v.w.t.Helper()
	ctx, end := context.WithTimeout(context.Background(), within)
	defer end()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.w.base+path, nil)
	v.w.must(err)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Accept-Language", v.language)
	response, err := v.http.Do(r)
	v.w.must(err)
	defer response.Body.Close()
	if response.Header.Get("Content-Type") != "text/event-stream" || response.Header.Get("Cache-Control") != "no-store" {
		v.w.t.Errorf("%s is %v", path, response.Header)
	}
	var event strings.Builder
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		text := lines.Text()
		if data, ok := strings.CutPrefix(text, "data: "); ok {
			event.WriteString(data + "\n")
		} else if text == "" && event.Len() > 0 {
			break
		}
	}
	return event.String()
}

// TestDeleteSession: pending messages go to another session or are cancelled, depending on the person's choice.
func TestDeleteSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.own(t)
	ctx, c, v := context.Background(), w.Client(), w.visitor(w.clients[puntuale.Owner])
	all, _, err := c.Sessions(ctx, request.Page{})
	w.must(err)
	for _, choice := range []struct{ pending, state string }{{"move", "PENDING"}, {"cancel", "CANCELLED"}} {
		s, page := w.newSession("Da eliminare", puntuale.Socket, true)
		sent, err := c.Send(ctx, control.SingleCall{Phone: "+393331234567", Session: s.ID.String(), Fields: map[string]json.RawMessage{"text": json.RawMessage(`"Ciao"`)}})
		w.must(err)
		r := v.post(page+"/delete", url.Values{"pending": {choice.pending}, "move_to": {all[0].ID.String()}, "confirm": {"Da eliminare"}})
		if r.status != http.StatusSeeOther {
			t.Fatalf("delete: %d %s", r.status, r.body)
		}
		details, err := c.Details(ctx, []string{sent.IDs[0].String()})
		w.must(err)
		if len(details) != 1 || details[0].State.String() != choice.state {
			t.Errorf("%s: %+v", choice.pending, details)
		}
	}
	if r := v.get(w.pages + "/sessions/" + all[0].ID.String() + "/delete"); r.status != http.StatusSeeOther {
		t.Errorf("the default session: %d", r.status)
	}
}

// TestHealthCard: the page of an Official session shows what Meta says about the number and its business, and what to
// do.
func TestHealthCard(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		s, page := w.newSession("Ufficiale", puntuale.Official, false)
		now := w.clock.Now()
		keep := func(all ...puntuale.HealthReport) {
			t.Helper()
			for i := range all {
				all[i].Client, all[i].Session, all[i].At = s.Client, s.ID, now
			}
			if err := w.store.KeepHealth(t.Context(), all, now); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.store.NoteOfficial(t.Context(), s.ID, "101", "55101"); err != nil {
			t.Fatal(err)
		}
		keep(puntuale.HealthReport{Kind: puntuale.HealthChecked, Value: "1"}, puntuale.HealthReport{Kind: puntuale.HealthQuality, Value: "GREEN"},
			puntuale.HealthReport{Kind: puntuale.HealthLimit, Value: "2000"}, puntuale.HealthReport{Kind: puntuale.HealthNameStatus, Value: "approved"})
		b.signIn(w.clients[puntuale.Owner])
		b.open(page)
		b.until(`document.querySelector(".health .notice-ok") && /2[.,]000/.test(document.querySelector(".health").innerText)`)
		b.check("calm")
		paused := puntuale.NetworkTemplate{Name: "sconti_estate", Language: "it", Status: puntuale.TemplatePaused, Category: "MARKETING"}
		if err := w.store.KeepNetworkTemplates(t.Context(), s.ID, "55101", now, []puntuale.NetworkTemplate{paused}, puntuale.Reason{}); err != nil {
			t.Fatal(err)
		}
		keep(puntuale.HealthReport{Kind: puntuale.HealthQuality, Value: "RED"},
			puntuale.HealthReport{Kind: puntuale.HealthRestriction, Subject: puntuale.RestrictedTemplates, Value: "RESTRICTED", Until: now.Add(72 * time.Hour), Confirmed: now},
			puntuale.HealthReport{Kind: puntuale.HealthSecurity, Value: "PIN_CHANGED"})
		b.open(page)
		b.until(`document.querySelectorAll(".health .notice-warn").length === 3 && document.querySelector(".health").innerText.includes("sconti_estate")`)
		b.check("health")
		b.open("/me/notices")
		b.reads("Ufficiale")
	})
}
