package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
)

// TestCalendarStory drags a message to another day, undoes this, and moves a message with its form.
func TestCalendarStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		f := w.traffic()
		_, pending := f.day()
		was := detail(t, w, pending).Planned()
		_, err := w.Client().AddBlacklisted(context.Background(), "+393401234501", "", control.Once[puntuale.BlacklistEntry]{})
		w.must(err)
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/calendar?day=2027-06-01")
		b.check("empty")
		b.open(w.pages + "/calendar")
		b.check("week")
		if n := evaluate[int](b, `[...document.querySelectorAll(".slot .tag")].filter(e => e.scrollHeight > e.clientHeight + 1).length`); n > 0 {
			t.Errorf("%d marks lie on what is beside them", n)
		}
		drag(b, `[data-message$="/`+pending.String()+`"]`, `[data-drop="2026-11-22"]`)
		b.until(`document.querySelector("[data-toast] form")`)
		b.check("dragged")
		b.click("[data-toast] form button")
		b.until(`document.querySelector(".week") && !document.querySelector("[data-toast] form")`)
		if n := evaluate[int](b, `document.querySelectorAll("[data-drop='2026-11-20'] .slot").length`); n != 5 {
			t.Errorf("%d messages on the day, moved from %v and back", n, was)
		}
		b.open(w.pages + "/calendar?day=2026-11-18")
		if got := evaluate[int](b, `document.querySelectorAll(".week-past[data-past]:not([data-drop])").length`); got != 2 {
			t.Errorf("%d days are past, of those from Wednesday on, on a Friday", got)
		}
		b.refusesPast(`[data-drop="2026-11-20"] .slot`, `.week-past`)
		b.open(w.pages + "/calendar?view=day&day=2026-11-20")
		b.refusesPast(`[data-drop="2026-11-20"] .slot`, `.hour-past`)
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

// refusesPast drops a message on a time in the past. The message must not move, and the page must give the reason.
func (b *browser) refusesPast(message, past string) {
	b.t.Helper()
	was := evaluate[string](b, `location.href`)
	drag(b, message, past)
	b.until(`document.querySelector("[data-toast].toast-bad")`)
	b.reads(map[string]string{"it": "già passato", "en": "past already"}[b.look.language])
	b.picture("past")
	b.click("[data-toast].toast-bad [data-dismiss]")
	b.until(`!document.querySelector("[data-toast].toast-bad")`)
	if now := evaluate[string](b, `location.href`); now != was {
		b.t.Errorf("what was dropped on the past led from %s to %s", was, now)
	}
}

// drag simulates the mouse events of a drag in the page.
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
	// After a drag the browser returns to the calendar, even if the message cannot be moved. The form accepts no other
	// return address.
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

// TestCalendarWeek: a week shows seven days, beginning with the requested day, even if this day is a Sunday. Without a
// requested day it begins today. A message cannot be dropped on past days, and today is marked.
func TestCalendarWeek(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.traffic().day()
	v := w.visitor(w.clients[puntuale.Staff])
	for language, days := range map[string][2]string{"it": {"mer 18", "dom 22"}, "en": {"Wed 18", "Sun 22"}} {
		v.post("/language", url.Values{"language": {language}})
		week := v.get(w.pages + "/calendar?day=2026-11-18").body
		if first := between(week, `class="week-name"`, `</a>`); !strings.Contains(first, days[0]) || !strings.Contains(week, days[1]) {
			t.Errorf("%s: the days begin with %q", language, first)
		}
		if strings.Count(week, "data-past") != 2 || strings.Contains(week, `data-drop="2026-11-19"`) || strings.Count(week, `aria-current="date"`) != 1 {
			t.Errorf("%s: the past days of the week: %s", language, week)
		}
		day := v.get(w.pages + "/calendar?view=day&day=2026-11-20").body
		if strings.Contains(day, `data-hour="09"`) || !strings.Contains(day, `data-hour="10"`) || strings.Count(day, "hour-now") != 1 {
			t.Errorf("%s: at 10:00 the hours of the day: %s", language, day)
		}
	}
	w.clock.Advance(48 * time.Hour) // it is Sunday now, and the visit has ended
	v = w.visitor(w.clients[puntuale.Staff])
	if week := v.get(w.pages + "/calendar").body; strings.Contains(week, "data-past") || strings.Count(week, "data-drop=") != 7 {
		t.Errorf("on a Sunday: %s", mainOf(week))
	}
	month := v.get(w.pages + "/calendar?view=month&day=2026-11-22").body
	if strings.Count(month, `class="month-day"`) != 42 || !strings.Contains(month, `href="`+w.pages+`/calendar?view=month&amp;day=2026-12-01"`) {
		t.Errorf("the month: %s", mainOf(month))
	}
}
