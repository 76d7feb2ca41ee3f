//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestDocsPage reads the page of the API's documentation on a desktop and on a phone, and tries a call with a key. The
// page lists every operation and fits the screen. It breaks no rule of its content security policy, and sends requests
// only to its own server.
func TestDocsPage(t *testing.T) {
	beside(t)
	database := filepath.Join(t.TempDir(), "puntuale.db")
	b := newBrowser(t)
	s := serve(t, database)
	who := createTenant(t, s.base, createPartner(t, database), "full", step("Ciao", 0, ""))
	var document struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	must(t, "GET", s.base+"/openapi.json", "", nil).into(t, &document)
	operations := 0
	for _, methods := range document.Paths {
		operations += len(methods)
	}
	screens := []struct {
		name          string
		width, height int64
		scheme        string
	}{{"desk", 1280, 900, "light"}, {"phone", 390, 844, "light"}, {"desk-dark", 1280, 900, "dark"}, {"phone-dark", 390, 844, "dark"}}
	for _, screen := range screens {
		_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: screen.scheme}}})
		if err != nil {
			t.Fatal(err)
		}
		b.do(chromedp.EmulateViewport(screen.width, screen.height), chromedp.Navigate(s.base+"/docs"),
			chromedp.WaitVisible(chromedp.CSS(".opblock")))
		if shown := evaluate[int](b, `document.querySelectorAll(".opblock").length`); shown != operations {
			t.Errorf("%s: %d operations are shown, the document has %d", screen.name, shown, operations)
		}
		b.screenshot("docs-" + screen.name)
		b.tryCall(who.key, screen.name)
		if wide := evaluate[int64](b, "document.documentElement.scrollWidth"); wide > screen.width {
			t.Errorf("%s: the page is %d wide", screen.name, wide)
		}
		if screen.width < 640 {
			b.openEach(screen.name)
		}
		if kept := evaluate[int](b, "localStorage.length + sessionStorage.length + document.cookie.length"); kept != 0 {
			t.Errorf("%s: the page keeps something", screen.name)
		}
		b.keepsToItself(s.base)
	}
	tried := 0
	for _, r := range b.requests {
		if !strings.Contains(r.URL, "/api/") {
			continue
		}
		tried++
		headers := fmt.Sprint(r.Headers)
		if !strings.Contains(headers, "Bearer "+who.key) || strings.Contains(r.URL, who.key) {
			t.Errorf("%s was asked with %s", r.URL, headers)
		}
	}
	if tried != len(screens) {
		t.Errorf("%d calls were tried, want %d", tried, len(screens))
	}
}

// openEach opens the description of one call of each kind, and checks that none is wider than the page.
func (b *browser) openEach(screen string) {
	b.t.Helper()
	for _, id := range []string{"client-sendMessage", "client-pairSession", "client-getMessageDetails", "partner-changeClient"} {
		operation := "#operations-" + id
		b.do(chromedp.Click(chromedp.CSS(operation+" .opblock-summary-control")),
			chromedp.WaitVisible(chromedp.CSS(operation+" .responses-inner .model-example")))
		if wide := evaluate[[]string](b, beyond); len(wide) > 0 {
			b.t.Errorf("%s: with %s opened %d elements reach beyond the page: %q", screen, id, len(wide), wide[:min(len(wide), 8)])
		}
		b.do(chromedp.Click(chromedp.CSS(operation + " .opblock-summary-control")))
	}
}

// beyond is a script that lists elements that extend beyond the page's right edge, and so make the page wider.
const beyond = `(() => {
	const page = document.documentElement;
	if (page.scrollWidth <= page.clientWidth) return [];
	return [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > page.clientWidth + 0.5)
		.map(e => e.tagName + "." + e.className + " " + Math.round(e.getBoundingClientRect().right));
})()`

// tryCall gives the page a key, and makes the page call the list of sequences.
func (b *browser) tryCall(key, screen string) {
	b.t.Helper()
	const operation = `#operations-client-listSequences`
	b.do(
		chromedp.Click(chromedp.CSS(".btn.authorize")),
		chromedp.WaitVisible(chromedp.CSS("#auth-bearer-value")),
	)
	b.screenshot("docs-authorize-" + screen)
	b.do(
		chromedp.SendKeys(chromedp.CSS("#auth-bearer-value"), key+"\r"),
		chromedp.Click(chromedp.CSS(".auth-btn-wrapper .btn-done")),
		chromedp.Click(chromedp.CSS(operation+" .opblock-summary-control")),
		chromedp.WaitVisible(chromedp.CSS(operation+" .responses-inner .model-example")), // the page builds this part only after it was opened
		chromedp.Click(chromedp.CSS(operation+" .execute")),
		chromedp.WaitVisible(chromedp.CSS(operation+" .live-responses-table .response-col_status")),
	)
	answer := evaluate[string](b, `document.querySelector("`+operation+` .live-responses-table").innerText`)
	if !strings.Contains(answer, "200") || !strings.Contains(answer, "Promemoria") {
		b.t.Errorf("%s: the call was answered %q", screen, answer)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("` + operation + `").scrollIntoView()`))
	b.screenshot("docs-tried-" + screen)
}
