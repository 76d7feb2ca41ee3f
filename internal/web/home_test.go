package web_test

import (
	"net/http"
	"testing"

	"puntuale"
)

// TestHomePages looks at an empty day and at a busy one.
func TestHomePages(t *testing.T) {
	onScreens(t, func(_ *testing.T, w *world, b *browser) {
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages)
		b.check("empty")
		w.traffic().day()
		b.open(w.pages)
		b.check("day")
		b.click(".failure-list a")
		b.until(`document.querySelector(".story")`)
		b.check("failed")
	})
}

func TestHomeGolden(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Owner])
	golden(t, "home-empty", numbered(v.get(w.pages).body))
	w.traffic().day()
	r := v.get(w.pages)
	if r.status != http.StatusOK {
		t.Fatalf("%d", r.status)
	}
	golden(t, "home", numbered(r.body))
}
