package web_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"puntuale"
	"puntuale/internal/control/account"
)

// TestShellInBrowser: on a long page the navigation stays visible. A click anywhere in a row opens the row's page. A
// moved message shows its earlier due time. A user of a suspended client sees that the client is suspended, and can
// sign out.
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

// TestClickAtOnce: a click immediately after the page appears works, even if animations are on.
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
	places := []string{"/messages", "/calendar", "/templates", "/blacklist", "/sessions", "/contacts"}
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

// TestCopiedNumber: a page shows a phone number in groups, but a copy of the number has no spaces. This also holds if
// the number is a part of a longer selection.
func TestCopiedNumber(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		_, pending := w.traffic().day()
		b.signIn(w.clients[puntuale.Reader])
		b.open(w.pages + "/messages/" + pending.String())
		copied := func(selector string) string {
			return evaluate[string](b, `((e) => {
				getSelection().selectAllChildren(e);
				const event = new ClipboardEvent("copy", {clipboardData: new DataTransfer(), bubbles: true, cancelable: true});
				e.dispatchEvent(event);
				return event.defaultPrevented ? event.clipboardData.getData("text/plain") : "as the browser does";
			})(document.querySelector(`+quote(selector)+`))`)
		}
		if shown := b.text("h1"); shown != "+39\u00a0340\u00a0123\u00a04500" {
			t.Errorf("the heading says %q", shown)
		}
		if got := strings.TrimSpace(copied("h1")); got != "+393401234500" {
			t.Errorf("copied: %q", got)
		}
		if got := copied("main"); !strings.Contains(got, "+393401234500") || strings.Contains(got, "+39\u00a0") || !strings.Contains(got, "\n") {
			t.Errorf("copied with the rest of the page: %q", got)
		}
		if got := copied(".bubble-text"); got != "as the browser does" {
			t.Errorf("copied where no number is: %q", got)
		}
		b.open(w.pages + "/messages")
		if got := evaluate[int](b, `[...document.querySelectorAll("[data-phone]")].filter(e => e.innerText.replaceAll("\u00a0", "") === e.dataset.phone && e.innerText !== e.dataset.phone).length`); got < 5 {
			t.Errorf("%d numbers of the list are in groups", got)
		}
	})
}

// TestToastsStandAside: the toast about the last action covers neither the bar on a phone nor the button that sends a
// form. A person can close the toast.
func TestToastsStandAside(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/users/new")
		const covered = `((box) => [...document.querySelectorAll("main [type=submit], nav.phone")].filter(e => {
			const r = e.getBoundingClientRect();
			return r.height > 0 && r.left < box.right && box.left < r.right && r.top < box.bottom && box.top < r.bottom;
		}).map(e => e.outerHTML.slice(0, 80)))(document.getElementById("toasts").getBoundingClientRect())`
		for _, place := range []string{"end", "center", "start"} {
			evaluate[bool](b, `((e) => {
				document.getElementById("main").style.paddingBlock = "100vh";
				e.scrollIntoView({block: `+quote(place)+`});
				if (`+quote(place)+` === "end") scrollBy(0, 90);
				puntuale.say("È stato fatto quello che si voleva fare, e adesso lo si dice con qualche parola in più.", "ok");
				return true;
			})(document.querySelector("main [type=submit]"))`)
			b.until(`document.querySelector("#toasts[role=status] [data-toast]")`)
			b.picture("toast-" + place)
			if got := evaluate[[]string](b, covered); len(got) > 0 {
				t.Errorf("%s: a toast hides %q", place, got)
			}
			b.do(chromedp.Click(chromedp.CSS("#toasts [data-dismiss]")))
			b.until(`!document.querySelector("#toasts [data-toast]")`)
		}
	})
}

// TestBrightBrand: pages are readable with any colour of a partner. Yellow is the most difficult colour, because it is
// almost as light as white.
func TestBrightBrand(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		w.traffic().day()
		w.must(w.newPartnerHandle().SetBrand(t.Context(), account.BrandChange{Name: "Messaggi Aurora", Colour: "#ffcc00"}))
		b.open("/p/agenzia-aurora")
		b.check("login")
		b.signIn(w.clients[puntuale.Owner])
		for _, page := range []string{"", "/messages", "/calendar", "/usage", "/sequences/new", "/users/new"} {
			b.open(w.pages + page)
			b.check("page" + strings.ReplaceAll(page, "/", "-"))
		}
		// axe does not check two contrasts: of the ring around the focused element, and of the text of a button under
		// the mouse.
		evaluate[bool](b, `(document.querySelector("main .btn-primary[type=submit]").focus({focusVisible: true}), true)`)
		b.picture("focus")
		seen := evaluate[[]string](b, `((e, paper) => {
			const canvas = document.createElement("canvas").getContext("2d");
			const plain = (colour) => {
				canvas.fillStyle = getComputedStyle(paper).backgroundColor;
				canvas.fillRect(0, 0, 1, 1);
				canvas.fillStyle = colour;
				canvas.fillRect(0, 0, 1, 1);
				return "rgb(" + [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).join(", ") + ")";
			};
			const style = getComputedStyle(e);
			return [style.outlineStyle, plain(style.outlineColor), plain("transparent"), plain(style.color), plain(style.backgroundColor)];
		})(document.querySelector("main .btn-primary[type=submit]"), document.querySelector(".card"))`)
		if c := contrastOf(t, seen[1], seen[2]); c < 3 || seen[0] == "none" {
			t.Errorf("the ring is %s on %s: %.2f", seen[1], seen[2], c)
		}
		if c := contrastOf(t, seen[3], seen[4]); c < 4.5 {
			t.Errorf("the words of the button that has the focus are %s on %s: %.2f", seen[3], seen[4], c)
		}
	})
}

// contrastOf returns the WCAG contrast of two colours, given in the form that browsers use, such as rgb(1, 2, 3).
func contrastOf(t *testing.T, a, b string) float64 {
	t.Helper()
	light := func(text string) float64 {
		var c [3]float64
		if _, err := fmt.Sscanf(text, "rgb(%f, %f, %f)", &c[0], &c[1], &c[2]); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i := range c {
			if c[i] /= 255; c[i] <= 0.04045 {
				c[i] /= 12.92
			} else {
				c[i] = math.Pow((c[i]+0.055)/1.055, 2.4)
			}
		}
		return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2]
	}
	x, y := light(a), light(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// TestWhoseDashboard: a client's users see the client's name below the brand. A partner's users see the name in a bar.
func TestWhoseDashboard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const name = `<span class="brand-client" title="Studio Bianchi">Studio Bianchi</span>`
	if page := w.visitor(w.clients[puntuale.Reader]).get(w.pages).body; !strings.Contains(page, name) || !strings.Contains(page, `<span class="brand-name">Agenzia Aurora</span>`) {
		t.Error("a client's user does not read whose dashboard it is")
	}
	inside := w.visitor(w.partners[puntuale.Owner])
	inside.post("/partner/clients/"+w.client.String()+"/enter", nil)
	for _, path := range []string{w.pages, "/partner"} {
		if page := inside.get(path).body; !strings.Contains(page, `<span class="brand-name">Agenzia Aurora</span>`) || strings.Contains(page, "brand-client") {
			t.Errorf("%s: the partner's own name is another", path)
		}
	}
}

// TestTidyHeads: a long name is shown on one line, and its title attribute contains the whole name. The days of the
// calendar begin at the same height. On a phone, buttons below a heading fill each row. If not all tabs of states fit,
// the last tabs fade at the edge.
func TestTidyHeads(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		failed, pending := w.traffic().day()
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/calendar")
		if b.look.width <= 960 {
			b.click(".phone [data-open=more]")
			b.until(`document.querySelector("#more[open]")`)
		}
		b.picture("person")
		lines := evaluate[[]string](b, `[...document.querySelectorAll(".person-name, .brand-client")].filter(e => e.checkVisibility()).filter(e =>
			e.getBoundingClientRect().height > 1.6 * parseFloat(getComputedStyle(e).fontSize) || e.title !== e.innerText).map(e => e.outerHTML)`)
		if len(lines) > 0 {
			t.Errorf("on more than a line, or without a title: %q", lines)
		}
		if heads := evaluate[[]float64](b, `[...new Set([...document.querySelectorAll(".week-name")].map(e => Math.round(e.getBoundingClientRect().height)))]`); len(heads) != 1 {
			t.Errorf("the heads of days are as high as %v", heads)
		}
		const ragged = `((box) => {
			const edge = box.getBoundingClientRect(), rows = new Map();
			for (const e of [...box.children].filter(e => e.checkVisibility())) {
				const r = e.getBoundingClientRect(), row = rows.get(Math.round(r.y + r.height / 2)) ?? [Infinity, 0];
				rows.set(Math.round(r.y + r.height / 2), [Math.min(row[0], r.left), Math.max(row[1], r.right)]);
			}
			return [...rows.values()].filter(([left, right]) => left > edge.left + 1 || right < edge.right - 1).map(String);
		})(document.querySelector(".head-actions"))`
		for _, page := range []string{"", "/calendar", "/messages/" + pending.String(), "/messages/" + failed.String(), "/sessions"} {
			b.open(w.pages + page)
			if got := evaluate[[]string](b, ragged); b.look.width < 640 && len(got) > 0 {
				t.Errorf("%q: rows of buttons that are not full: %q", page, got)
			}
		}
		b.open(w.pages + "/messages")
		b.check("tabs")
		if faded := evaluate[bool](b, `getComputedStyle(document.querySelector(".tabs")).maskImage.includes("gradient")`); faded != (b.look.width < 768) {
			t.Errorf("states that do not fit fade: %v", faded)
		}
	})
}
