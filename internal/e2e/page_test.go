//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// These helpers use the dashboards' pages on the built server, as the tests of internal/web do.

// speak sets the language in which the browser asks for pages.
func (b *browser) speak(language string) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": language}}); err != nil {
		b.t.Fatal(err)
	}
}

// visit goes to a page, and waits until it is ready.
func (b *browser) visit(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address))
	b.waitFor(`document.readyState === "complete"`)
}

// becomesTrue is a script that waits in the page until a condition is true, but at most a second. If the browser goes to
// another page meanwhile, the script ends with an error.
const becomesTrue = `new Promise((done) => {
	const end = performance.now() + 1000
	const look = () => {
		let met = false
		try { met = Boolean(%s) } catch {}
		if (met || performance.now() > end) done(met)
		else setTimeout(look, 20)
	}
	look()
})`

// waitFor waits until the script returns true. If the browser goes to another page meanwhile, waitFor looks at that page.
func (b *browser) waitFor(script string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	for {
		done, err := chromedp.Run(ctx, chromedp.Evaluate[bool](fmt.Sprintf(becomesTrue, script), chromedp.EvalAwaitPromise))
		if err == nil && done {
			return
		}
		if ctx.Err() != nil {
			b.screenshot("failed")
			words, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.pathname + " " + document.body.innerText`))
			b.t.Fatalf("never came true: %s (%v); the page says %.900q; the console says %q", script, err, words, b.said)
		}
	}
}

// tap waits for the element with the selector, and clicks on it.
func (b *browser) tap(selector string) {
	b.t.Helper()
	find := fmt.Sprintf(`document.querySelector(%q)`, selector)
	b.waitFor(find)
	evaluate[bool](b, `((e) => { e.scrollIntoView({block: "center"}); e.click(); return true })(`+find+`)`)
}

// fill types texts into fields. pairs contains each field's name, followed by its text.
func (b *browser) fill(pairs ...string) {
	b.t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		field := fmt.Sprintf(`document.querySelector("[name='%s']")`, pairs[i])
		b.waitFor(field)
		text, _ := json.Marshal(pairs[i+1])
		evaluate[bool](b, fmt.Sprintf(`((e, text) => { e.focus(); e.value = text; e.dispatchEvent(new Event("input", {bubbles: true})); e.dispatchEvent(new Event("change", {bubbles: true})); return true })(%s, %s)`, field, text))
	}
}

// reads waits until the page shows the words.
func (b *browser) reads(words string) {
	b.t.Helper()
	quoted, _ := json.Marshal(words)
	b.waitFor(`document.body?.innerText.replace(/\s+/g, " ").includes(` + string(quoted) + `)`)
}

// looks checks the page on a desktop and on a phone, in light and dark colours. No element may be wider than the
// screen, and no text may be missing. looks also stores pictures of the page.
func (b *browser) looks(name string) {
	b.t.Helper()
	for _, screen := range []struct {
		width, height int64
		scheme        string
	}{{390, 844, "light"}, {390, 844, "dark"}, {1280, 900, "dark"}, {1280, 900, "light"}} {
		if screen.scheme == "dark" && os.Getenv("PUNTUALE_SCREENSHOTS") == "" {
			continue
		}
		_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: screen.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		if err != nil {
			b.t.Fatal(err)
		}
		b.do(chromedp.EmulateViewport(screen.width, screen.height))
		if wide := evaluate[[]string](b, beyond); len(wide) > 0 {
			b.t.Errorf("%s, %d wide: %d elements reach beyond the page: %q", name, screen.width, len(wide), wide[:min(len(wide), 8)])
		}
		b.whole(fmt.Sprintf("%s-%d-%s", name, screen.width, screen.scheme))
	}
	if missing := evaluate[[]string](b, `document.documentElement.outerHTML.match(/⟦[^⟧]*⟧/g) || []`); len(missing) > 0 {
		b.t.Errorf("%s: texts are missing: %q", name, missing)
	}
}

// whole stores a picture of the whole page, if PUNTUALE_SCREENSHOTS names a folder.
func (b *browser) whole(name string) {
	b.t.Helper()
	folder := os.Getenv("PUNTUALE_SCREENSHOTS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, strings.ReplaceAll(b.t.Name(), "/", "-")+"-"+name+".png"), picture, 0o600)
	}
	if err != nil {
		b.t.Log(err)
	}
}
