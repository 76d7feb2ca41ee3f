package web_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
)

// TestSendOne: somebody writes one message for tomorrow. The page does not preselect a purpose.
func TestSendOne(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/messages")
		b.click(`main a[href$="/messages/new"]`)
		b.until(`document.querySelector("#f-phone") && document.readyState === "complete"`)
		b.check("new")
		b.fill("phone", "333 123 4567", "text", "Il suo ordine è pronto.")
		b.click("main form button.btn-primary")
		b.until(`document.querySelectorAll(".fault").length === 1`)
		b.check("fault")
		b.click("[name=purpose][value=service]")
		b.click("[name=when][value=date]")
		b.fill("date", w.clock.Now().Add(24*time.Hour).Format("2006-01-02")+"T09:30")
		b.check("later")
		b.click("main form button.btn-primary")
		b.until(`/\/messages\/\d+$/.test(location.pathname) && document.querySelector("[data-toast]")`)
		b.check("sent")
		sent, _, err := w.Client().Messages(t.Context(), control.MessageQuery{})
		w.must(err)
		if len(sent) != 1 || sent[0].Phone != "+393331234567" || sent[0].Content.Text != "Il suo ordine è pronto." || sent[0].Origin != puntuale.OriginSingle {
			t.Fatalf("sent: %+v", sent)
		}
		if got := sent[0].Planned(); !got.After(w.clock.Now().Add(20*time.Hour)) || got.UTC().Format("15:04") != "08:30" {
			t.Errorf("planned: %v", got)
		}
	})
}

// TestSendOneTwice: a form is sent twice, but only one message is sent. A user with the role reader cannot send.
func TestSendOneTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	form := url.Values{"phone": {"3331234567"}, "text": {"x"}, "purpose": {"marketing"}, "when": {"now"}, "key": {"once"}}
	page := w.pages + "/messages/new"
	if r := w.visitor(w.clients[puntuale.Reader]).post(page, form); r.status != http.StatusForbidden {
		t.Errorf("a reader: %d", r.status)
	}
	if r := w.visitor(w.foreignOwner).post(page, form); r.status != http.StatusNotFound {
		t.Errorf("a stranger: %d", r.status)
	}
	v := w.visitor(w.clients[puntuale.Staff])
	first, second := v.post(page, form), v.post(page, form)
	sent, _, err := w.Client().Messages(t.Context(), control.MessageQuery{})
	w.must(err)
	if first.status != http.StatusSeeOther || first.to() != second.to() || len(sent) != 1 {
		t.Errorf("%d %s, %d %s: %d messages", first.status, first.to(), second.status, second.to(), len(sent))
	}
}
