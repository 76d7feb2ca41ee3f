package web_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"

	"puntuale"
)

// TestShellInBrowser: on a long page the navigation stays in sight; a row opens wherever it is clicked; a moved message says
// where from; a suspended client is told so and can go.
func TestShellInBrowser(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		f := w.traffic()
		var last puntuale.MessageID
		for i := range 40 {
			last = f.planned(fmt.Sprintf("+3933311122%02d", i), "Ci vediamo domani", w.clock.Now().Add(24*time.Hour))
		}
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/messages")
		evaluate[bool](b, `(scrollTo(0, document.documentElement.scrollHeight), true)`)
		if b.look.width > 960 {
			if top := evaluate[float64](b, `document.querySelector(".side").getBoundingClientRect().top`); top < -1 || top > 1 {
				t.Errorf("at the end of a long page the navigation's top is at %v", top)
			}
		}
		b.click("tr[data-row] .message-text")
		b.until(`location.pathname.endsWith("` + last.String() + `") && document.readyState === "complete"`)
		b.click("[data-open=move]")
		b.fill("date", "2026-12-04", "time", "18:30")
		b.click("dialog[open] button.btn-primary")
		b.until(`document.querySelector("[data-toast] form")`)
		b.check("moved")
		b.open(w.pages + "/messages")
		b.check("list")
		w.visitor(w.partners[puntuale.Owner]).post("/partner/clients/"+w.client.String()+"/suspend", nil)
		b.open(w.pages)
		b.check("suspended")
		b.click("form[action='/logout'] button")
		b.until(`location.pathname === "/login"`)
	})
}

// TestClickAtOnce: a click right after a page came is taken, with motion as most have it.
func TestClickAtOnce(t *testing.T) {
	t.Parallel()
	startChromium(t)
	w := newWorld(t)
	b := newBrowser(t, w, screen{1280, 900, "light", "it"})
	command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "no-preference"}}})
	b.signIn(w.clients[puntuale.Owner])
	b.open(w.pages)
	at := func(path string) (x, y float64) {
		box := evaluate[[]float64](b, fmt.Sprintf(`(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector(".side-link[href='%s']").getBoundingClientRect())`, w.pages+path))
		return box[0], box[1]
	}
	places := []string{"/messages", "/calendar", "/templates", "/blacklist", "/sessions", "/usage"}
	spots := map[string][2]float64{}
	for _, p := range places {
		x, y := at(p)
		spots[p] = [2]float64{x, y}
	}
	for _, p := range places {
		for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
			command(b, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: spots[p][0], Y: spots[p][1], Button: input.MouseButtonLeft, ClickCount: 1})
		}
		b.until(`location.pathname === "` + w.pages + p + `" && document.readyState !== "loading"`)
	}
}
