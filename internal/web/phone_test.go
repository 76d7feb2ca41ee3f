package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// TestPhone: a new message is shown on the simulated phone without a click.
func TestPhone(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		f := w.traffic()
		b.signIn(w.clients[puntuale.Reader])
		b.open(w.pages)
		if b.look.width < 600 {
			if n := evaluate[int](b, `[...document.querySelectorAll("[data-open=more]")].filter((e) => e.checkVisibility()).length`); n != 1 {
				t.Errorf("%d ways to the menu, want one", n)
			}
			b.click(".phone [data-open=more]")
			b.check("menu")
			b.click("#more a[href='" + w.pages + "/phone']")
		} else {
			b.click(".side a[href='" + w.pages + "/phone']")
		}
		b.until(`location.pathname === "` + w.pages + `/phone" && document.readyState === "complete"`)
		if got := strings.TrimSpace(b.text(".side-link.active")); got != b.text("h1") { // trimmed, because the text of an invisible element contains the spaces of its source
			t.Errorf("the menu says one is at %q", got)
		}
		b.check("silent")
		b.until(`document.querySelector("[hx-sse\\:connect]")?._htmx?.sse || true`)
		f.day()
		b.ticking(`!!document.querySelector(".handset")`)
		b.reads("Ciao Elena, ti aspettiamo domani")
		b.check("arrived")
		chat, list := evaluate[float64](b, `document.querySelector(".handset").getBoundingClientRect().top`), evaluate[float64](b, `document.querySelector(".chats").getBoundingClientRect().top`)
		if b.look.width < 600 && chat > list {
			t.Errorf("on a phone the list comes first: it is at %v, the chat at %v", list, chat)
		}
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

// TestPhoneInMenu: the menu shows the simulated phone only if the client has a simulated session.
func TestPhoneInMenu(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	c := w.Client()
	all, _, err := c.Sessions(ctx, request.Page{})
	w.must(err)
	v := w.visitor(w.clients[puntuale.Owner])
	entry := `href="` + w.pages + `/phone"`
	for _, page := range []string{w.pages, "/me"} {
		if !strings.Contains(v.get(page).body, entry) {
			t.Errorf("%s: the menu has no phone", page)
		}
	}
	second, err := c.CreateSession(ctx, control.NewSession{Name: "Simulata", Type: string(puntuale.Socket), Sandbox: new(true)}, control.Once[control.Session]{})
	w.must(err)
	r := v.get(w.pages + "/phone")
	if r.status != http.StatusOK || !strings.Contains(r.body, `hx-sse:connect="`+w.pages+"/sessions/"+all[0].ID.String()+"/phone/live") {
		t.Fatalf("%d, want the default session's phone", r.status)
	}
	if !strings.Contains(mainOf(r.body), `href="`+w.pages+`/sessions/`+second.ID.String()+`/phone"`) {
		t.Error("one phone does not lead to the other")
	}
	w.must(c.DeleteSession(ctx, second.ID.String(), "cancel", ""))
	_, err = w.sql.Exec(`update session set sandbox = 0`) // the client now uses a real number
	w.must(err)
	for _, page := range []string{w.pages, "/me"} {
		if strings.Contains(v.get(page).body, entry) {
			t.Errorf("%s: the menu has a phone, and there is none", page)
		}
	}
	if r := v.get(w.pages + "/phone"); r.status != http.StatusSeeOther || r.to() != w.pages+"/sessions" {
		t.Errorf("without a phone: %d %s", r.status, r.to())
	}
}

// TestPhoneTellsTheTruth: the page says whether the person's answer is kept among the replies. A planned message is enough
// to know the person.
func TestPhoneTellsTheTruth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	page := w.pages + "/sessions/" + f.session.String() + "/phone"
	v := w.visitor(w.clients[puntuale.Staff])
	says := func(phone string) string {
		t.Helper()
		r := v.post(page, url.Values{"phone": {phone}, "text": {"Va bene " + phone}, "key": {phone}})
		if r.status != http.StatusSeeOther {
			t.Fatalf("%d %s", r.status, mainOf(r.body))
		}
		return between(v.get(r.to()).body, `id="toasts"`, "</form>")
	}
	if got := says("+393339998877"); !strings.Contains(got, "non conservata") {
		t.Errorf("of a stranger: %s", got)
	}
	_, err := w.Client().Send(t.Context(), control.SingleCall{Phone: "+393339998866", Purpose: "service", Body: []byte(`{}`),
		Fields: map[string]json.RawMessage{"text": json.RawMessage(`"A domani"`), "date": json.RawMessage(`"2026-12-01T10:00"`)}})
	w.must(err)
	if got := says("+393339998866"); !strings.Contains(got, "la trovi fra le Risposte") {
		t.Errorf("of a person with a planned message: %s", got)
	}
	if found := v.get(w.pages + "/replies").body; !strings.Contains(found, "393339998866") || strings.Contains(found, "393339998877") {
		t.Error("the list of replies says something else")
	}
}
