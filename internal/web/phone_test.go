package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale"
)

// TestPhone sees a message arrive on the recipient's phone, without a click.
func TestPhone(t *testing.T) {
	onScreens(t, func(_ *testing.T, w *world, b *browser) {
		f := w.traffic()
		b.signIn(w.clients[puntuale.Reader])
		b.open(w.pages + "/sessions/" + f.session.String() + "/phone")
		b.check("silent")
		b.until(`document.querySelector("[hx-sse\\:connect]")?._htmx?.sse || true`)
		f.day()
		for range 40 {
			w.clock.Advance(time.Second)
			time.Sleep(50 * time.Millisecond) // between two looks
			if evaluate[bool](b, `!!document.querySelector(".handset")`) {
				break
			}
		}
		b.reads("Ciao Elena, ti aspettiamo domani")
		b.check("arrived")
	})
}

func TestPhonePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	f.day()
	f.ended("+393339998877", `<script>alert(1)</script>`, w.clock.Now().Add(-time.Minute), puntuale.Outcome{Verdict: puntuale.Sent})
	v := w.visitor(w.clients[puntuale.Reader])
	page := w.pages + "/sessions/" + f.session.String() + "/phone"
	r := v.get(page)
	if strings.Contains(r.body, "<script>alert") || !strings.Contains(r.body, "&lt;script&gt;") {
		t.Error("the text is more than text")
	}
	golden(t, "phone", numbered(v.get(page+"?phone="+url.QueryEscape("+393331234500")).body))
	for name, path := range map[string]string{"another session": w.pages + "/sessions/987654/phone", "no id": w.pages + "/sessions/x/phone"} {
		if r := v.get(path); r.status != http.StatusNotFound {
			t.Errorf("%s: %d", name, r.status)
		}
	}
}
