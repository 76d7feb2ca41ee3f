package web_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"puntuale"
)

// middle returns the position of an element's middle on the screen.
func (b *browser) middle(selector string) (x, y float64) {
	b.t.Helper()
	at := evaluate[[]float64](b, fmt.Sprintf(`((e) => { e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })(document.querySelector(%q))`, selector))
	return at[0], at[1]
}

// mouse presses and releases the left button once, as a person does. Unlike a click by a script, this first moves the
// focus.
func (b *browser) mouse(selector string) {
	b.t.Helper()
	x, y := b.middle(selector)
	for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
		command(b, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Button: input.MouseButtonLeft, ClickCount: 1})
	}
}

// finger taps on an element, as a person does on a touch screen.
func (b *browser) finger(selector string) {
	b.t.Helper()
	x, y := b.middle(selector)
	b.do(chromedp.TapXY(x, y))
}

// TestStartTakesTheFirstClick: the person clicks or taps Start, or presses Enter, while the last field still has the
// focus. The first click must be enough.
func TestStartTakesTheFirstClick(t *testing.T) {
	onScreens(t, func(_ *testing.T, w *world, b *browser) {
		at := w.pages + "/sequences/" + w.sequence(appointment())
		b.signIn(w.clients[puntuale.Staff])
		command(b, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true})
		for i, how := range []struct {
			name string
			act  func()
		}{
			{"mouse", func() { b.mouse("[value=start]") }},
			{"touch", func() { b.finger("[value=start]") }},
			{"Enter", func() { b.enter() }},
		} {
			b.open(fmt.Sprintf("%s/start?phone=33376543%d&fields.data_appuntamento=2026-11-30T15:30", at, 20+i))
			b.mouse("[name='fields.nome']")
			b.do(chromedp.KeyEvent("Lucia"))
			b.until(`document.querySelector("[value=start]:enabled") && document.querySelector("#start-preview").innerText.includes("Lucia")`)
			b.t.Logf("Start by %s", how.name)
			how.act()
			b.until(`location.pathname.endsWith("/started") && document.readyState === "complete"`)
		}
	})
}

// TestPreviewKeepsFaults: if "Show the preview" is refused because of a field, the fault is still visible afterwards.
func TestPreviewKeepsFaults(t *testing.T) {
	onScreens(t, func(_ *testing.T, w *world, b *browser) {
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/sequences/" + w.sequence(appointment()) + "/start")
		b.mouse("#f-phone")
		b.do(chromedp.KeyEvent("12"))
		b.mouse("[name='fields.nome']")
		b.until(`document.querySelector("#f-phone-fault") && !document.querySelector(".start-stale")`)
		b.mouse("[value=preview]")
		const refused = `document.querySelector("#f-phone[aria-invalid=true]") && document.querySelector("#f-phone-fault")?.innerText.trim()`
		b.until(refused + ` && document.querySelectorAll(".start-fields .fault").length === 3`)
		b.check("refused")
		b.mouse("[name='fields.nome']")
		b.do(chromedp.KeyEvent("Lucia"))
		b.until(`document.querySelector("#start-preview .start-missing") && !document.querySelector(".start-stale")`)
		b.until(refused)
	})
}
