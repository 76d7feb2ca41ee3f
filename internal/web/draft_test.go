package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"

	"puntuale"
)

// TestDraftSurvivesTheSession: a visit ends while a form has unsaved text. After the next sign-in, the same page offers
// the unsaved text again.
func TestDraftSurvivesTheSession(t *testing.T) {
	onScreens(t, func(_ *testing.T, w *world, b *browser) {
		command(b, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Pacific/Auckland"})
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/sequences/new?like=welcome")
		b.until(`document.querySelector(".draft-found") && document.readyState === "complete"`)
		b.fill("name", "Mia bozza", "steps[1].text", "Testo che non va perso")
		b.until(`JSON.stringify({...sessionStorage}).includes("Testo che non va perso")`)
		b.fill("phone", "+39 347 765 4321")
		if kept := evaluate[string](b, `JSON.stringify({...sessionStorage})`); strings.Contains(kept, "765 4321") || strings.Contains(kept, "fields.") {
			b.t.Errorf("for whom it was tried is kept: %s", kept)
		}
		warns := evaluate[bool](b, `(() => { const e = new Event("beforeunload", {cancelable: true}); dispatchEvent(e); return e.defaultPrevented })()`)
		if !warns {
			b.t.Error("leaving warns of nothing")
		}
		evaluate[bool](b, `fetch("/logout", {method: "POST"}).then(() => true)`) // the person signs out in another tab
		b.click(".editor-save .btn-primary")
		b.until(`location.pathname === "/login" && document.readyState === "complete"`)
		b.fill("email", "studio@example.com", "password", password)
		b.click("form [type=submit]")
		b.until(`location.pathname.endsWith("/sequences/new") && document.querySelector(".draft-found:not([hidden])")`)
		b.check("offered")
		// The reader may be in another zone. The page still shows the time in the client's zone, like all times.
		const script = `document.querySelector("[data-draft-at]").textContent === new Date(JSON.parse(Object.entries({...sessionStorage}).find(([k]) => k.startsWith("puntuale:draft:"))[1]).at).toLocaleString(document.documentElement.lang, {timeZone: `
		if !evaluate[bool](b, script+`"Europe/Rome"})`) || evaluate[bool](b, script+`"Pacific/Auckland"})`) {
			b.t.Errorf("the draft is of %s", b.text("[data-draft-at]"))
		}
		const kept = `Object.keys(sessionStorage).find(k => k.startsWith("puntuale:draft:"))`
		evaluate[bool](b, `(() => { window.name = sessionStorage.getItem(`+kept+`); return true })()`)
		for what, change := range map[string]string{"too old": fmt.Sprint("at: Date.now() - ", puntuale.UnfinishedDraft.Lifetime().Milliseconds()), "another user's": `of: "0"`} {
			evaluate[bool](b, `(() => { sessionStorage.setItem("puntuale:draft:" + new URL(document.querySelector("form.editor").action).pathname, JSON.stringify({...JSON.parse(window.name), `+change+`})); return true })()`)
			b.open(w.pages + "/sequences/new?like=welcome")
			b.until(`document.readyState === "complete" && !(` + kept + `)`)
			if evaluate[bool](b, `Boolean(document.querySelector(".draft-found:not([hidden])"))`) {
				b.t.Errorf("a draft is offered that is %s", what)
			}
		}
		evaluate[bool](b, `(() => { sessionStorage.setItem("puntuale:draft:" + new URL(document.querySelector("form.editor").action).pathname, window.name); return true })()`)
		b.open(w.pages + "/sequences/new?like=welcome")
		b.until(`document.querySelector(".draft-found:not([hidden])")`)
		b.click("[data-draft=take]")
		b.until(`document.querySelector("[name='steps[1].text']")?.value === "Testo che non va perso" && document.querySelector("[name=name]").value === "Mia bozza"`)
		b.click(".editor-save .btn-primary")
		b.until(`/\/sequences\/\d+$/.test(location.pathname) && document.readyState === "complete"`)
		b.until(`!Object.keys(sessionStorage).some(k => k.startsWith("puntuale:draft:"))`)
	})
}

// TestSignInLeadsBack: after a sign-in, the browser returns to the page of this service where the person was before. It
// never opens another site.
func TestSignInLeadsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	nobody := w.visitor(0)
	for from, want := range map[string]string{
		w.base + w.pages + "/sequences/new?like=welcome": "/login?next=" + url.QueryEscape(w.pages+"/sequences/new?like=welcome"),
		"https://evil.example" + w.pages:                 "/login",
		w.base + "//evil.example/":                       "/login",
		w.base + "/login":                                "/login",
		"":                                               "/login",
		"%zz":                                            "/login",
	} {
		for _, partial := range []bool{false, true} {
			header := http.Header{"Referer": {from}}
			if partial {
				header["Hx-Request"] = []string{"true"}
			}
			got := nobody.do(http.MethodPost, w.pages+"/sequences", url.Values{"name": {"x"}}, header)
			to := got.to()
			if partial {
				to = got.header.Get("Hx-Redirect")
			}
			if to != want || strings.Contains(to, "evil") {
				t.Errorf("from %q: %d to %q", from, got.status, to)
			}
		}
	}
}
