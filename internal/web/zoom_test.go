package web_test

import (
	"fmt"
	"testing"

	"puntuale"
)

// TestZoom: on a desktop's page that is zoomed to 200 %, and on a low phone, each field that gets the focus can be seen. No bar
// covers it, and bars take at most half of the height.
func TestZoom(t *testing.T) {
	t.Parallel()
	startChromium(t)
	for _, look := range []screen{{720, 450, "dark", "it"}, {720, 450, "light", "en"}, {390, 640, "light", "it"}} {
		t.Run(look.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := newBrowser(t, w, look)
			b.signIn(w.clients[puntuale.Owner])
			for _, path := range []string{"/sequences/new?like=welcome", "/templates/new", "/automations/new?like=info", "/messages/new", "/settings", "/sequences/" + w.sequence(appointment()) + "/start", "/campaigns/new"} {
				b.open(w.pages + path)
				covered := evaluate[[]string](b, `(() => {
	const hidden = [];
	for (const field of document.querySelectorAll("main form :is(input:not([type=hidden], [type=radio], [type=checkbox], .visually-hidden), textarea, select)")) {
		if (!field.checkVisibility() || field.disabled) continue;
		scrollTo(0, 0);
		field.focus();
		const r = field.getBoundingClientRect(), at = document.elementFromPoint(r.x + Math.min(r.width, 80) / 2, r.y + Math.min(r.height, 40) / 2);
		if (!at || at !== field && !field.contains(at) && !at.contains(field)) hidden.push((field.name || field.id) + " under " + (at?.className ?? "nothing"));
	}
	return hidden;
})()`)
				if len(covered) > 0 {
					t.Errorf("%s: %q", path, covered)
				}
				if bars := evaluate[float64](b, `[...document.querySelectorAll(".top, .phone, .editor-save, .start-actions")].filter((e) => e.checkVisibility() && ["sticky", "fixed"].includes(getComputedStyle(e).position)).reduce((sum, e) => sum + e.offsetHeight, 0) / innerHeight`); bars > 0.5 {
					t.Errorf("%s: bars take %.2f of the height", path, bars)
				}
				evaluate[bool](b, `(document.activeElement.blur(), scrollTo(0, 0), true)`)
				b.check(fmt.Sprintf("zoom%d", len(path)))
			}
		})
	}
}
