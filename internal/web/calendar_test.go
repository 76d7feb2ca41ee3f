package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"puntuale"
)

// TestCalendarStory drags a message to another day, takes that back, and moves one by its form.
func TestCalendarStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		f := w.traffic()
		_, pending := f.day()
		was := detail(t, w, pending).Planned()
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/calendar?day=2027-06-01")
		b.check("empty")
		b.open(w.pages + "/calendar")
		b.check("week")
		drag(b, `[data-message$="/`+pending.String()+`"]`, `[data-drop="2026-11-22"]`)
		b.until(`document.querySelector("[data-toast] form")`)
		b.check("dragged")
		b.click("[data-toast] form button")
		b.until(`document.querySelector(".week") && !document.querySelector("[data-toast] form")`)
		if n := evaluate[int](b, `document.querySelectorAll("[data-drop='2026-11-20'] .slot").length`); n != 5 {
			t.Errorf("%d messages on the day, moved from %v and back", n, was)
		}
		b.open(w.pages + "/calendar?view=day&day=2026-11-20")
		b.check("day")
		b.click(".slot-move")
		b.until(`document.querySelector("dialog[open]")`)
		b.fill("date", "2026-11-19", "time", "16:30")
		b.click("dialog[open] button.btn-primary")
		b.until(`document.querySelector("dialog[open] .fault")`)
		b.check("not-moved")
		b.fill("date", "2026-11-20")
		b.click("dialog[open] button.btn-primary")
		b.until(`location.pathname.endsWith("/calendar") && document.querySelector("[data-toast] form")`)
		b.reads("16:30")
		b.check("moved")
	})
}

// drag lets the page see what a mouse would do.
func drag(b *browser, from, to string) {
	b.t.Helper()
	b.until(`document.querySelector(` + quote(from) + `)`)
	evaluate[bool](b, `((from, to) => {
		const data = new DataTransfer();
		const send = (on, name) => on.dispatchEvent(new DragEvent(name, {bubbles: true, cancelable: true, dataTransfer: data}));
		send(from, "dragstart"); send(to, "dragover"); send(to, "drop"); send(from, "dragend");
		return true;
	})(document.querySelector(`+quote(from)+`), document.querySelector(`+quote(to)+`))`)
}

func TestCalendarPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	failed, pending := f.day()
	v := w.visitor(w.clients[puntuale.Staff])
	golden(t, "calendar-week", numbered(v.get(w.pages+"/calendar").body))
	golden(t, "calendar-day", numbered(v.get(w.pages+"/calendar?view=day&day=2026-11-20").body))
	for _, day := range []string{"", "x", "0001-01-01", "9999-12-31", "2026-02-30"} {
		if r := v.get(w.pages + "/calendar?day=" + day); r.status != http.StatusOK {
			t.Errorf("day %q: %d", day, r.status)
		}
	}
	// What is dragged comes back to the calendar, also where it cannot be moved; and nowhere else.
	next := w.pages + "/calendar?day=2026-11-20"
	form := url.Values{"date": {"2026-11-22"}, "time": {"10:47"}, "dragged": {"yes"}, "next": {next}}
	if r := v.post(w.pages+"/messages/"+pending.String()+"/move", form); r.status != http.StatusSeeOther || r.to() != next {
		t.Errorf("moved: %d %s", r.status, r.to())
	}
	if r := v.post(w.pages+"/messages/"+failed.String()+"/move", form); r.status != http.StatusSeeOther || r.to() != next || !strings.Contains(v.get(next).body, "Non spostato") {
		t.Errorf("what failed: %d %s", r.status, r.to())
	}
	form.Del("dragged")
	if r := v.post(w.pages+"/messages/"+failed.String()+"/move", form); r.status != http.StatusConflict {
		t.Errorf("what failed, by its form: %d %s", r.status, r.to())
	}
	for _, evil := range []string{"https://evil.example/c/1/calendar", "//evil.example", "/partner"} {
		form.Set("next", evil)
		if r := v.post(w.pages+"/messages/"+pending.String()+"/move", form); strings.Contains(r.to(), "evil") || r.to() == "/partner" {
			t.Errorf("%s: leads to %s", evil, r.to())
		}
	}
}
