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
		Paths    map[string]map[string]any `json:"paths"`
		Webhooks map[string]any            `json:"webhooks"`
	}
	must(t, "GET", s.base+"/openapi.json", "", nil).into(t, &document)
	operations := len(document.Webhooks)
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
		b.finds(screen.name)
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

// finds checks the page's introduction, the order of its subjects, and its search.
func (b *browser) finds(screen string) {
	b.t.Helper()
	if text := evaluate[string](b, `document.querySelector(".info .description").innerText`); !strings.Contains(text, "Idempotency-Key") {
		b.t.Errorf("%s: the introduction is %q", screen, text)
	}
	const subjects = `[...document.querySelectorAll(".opblock-tag")].map(e => e.dataset.tag)`
	if shown := evaluate[[]string](b, subjects); len(shown) < 15 || shown[0] != "Start and stop" || shown[len(shown)-1] != "After a restore" {
		b.t.Errorf("%s: the subjects are %q", screen, shown)
	}
	b.do(chromedp.SendKeys(chromedp.CSS(".search input"), "rotate secret"),
		chromedp.WaitNotPresent(chromedp.CSS("#operations-Messages-sendMessage")))
	if shown := evaluate[[]string](b, `[...document.querySelectorAll(".opblock:not([hidden])")].map(e => e.id)`); len(shown) != 1 || shown[0] != "operations-Webhooks-rotateWebhook" {
		b.t.Errorf("%s: the search finds %q", screen, shown)
	}
	b.screenshot("docs-search-" + screen)
	b.do(chromedp.SendKeys(chromedp.CSS(".search input"), strings.Repeat("\b", 13)+"message.sent"))
	if shown := evaluate[int](b, `document.querySelectorAll(".webhooks .opblock:not([hidden])").length`); shown != 1 {
		b.t.Errorf("%s: the search finds %d webhooks", screen, shown)
	}
	b.do(chromedp.SendKeys(chromedp.CSS(".search input"), strings.Repeat("\b", 12)),
		chromedp.WaitVisible(chromedp.CSS("#operations-Messages-sendMessage")))
}

// openEach opens the description of one call of each kind, and checks that none is wider than the page.
func (b *browser) openEach(screen string) {
	b.t.Helper()
	for _, id := range []string{"Messages-sendMessage", "Sessions-pairSession", "Messages-getMessageDetails", "Clients-changeClient"} {
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
	const operation = `#operations-Sequences-listSequences`
	b.do(
		chromedp.Click(chromedp.CSS(".btn.authorize")),
		chromedp.WaitVisible(chromedp.CSS("#auth-bearer-value")),
	)
	if ways := evaluate[int](b, `document.querySelectorAll(".auth-container").length`); ways != 1 {
		b.t.Errorf("%s: the page offers %d ways to give a key", screen, ways)
	}
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
	if sample := evaluate[string](b, `document.querySelector("`+operation+` .curl").innerText`); strings.Contains(sample, key) || !strings.Contains(sample, "Authorization") {
		b.t.Errorf("%s: the sample line is %q", screen, sample)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("` + operation + `").scrollIntoView()`))
	b.screenshot("docs-tried-" + screen)
}
