package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/store/storetest"
)

// personURL returns the address of the page of a person.
func (w *world) personURL(phone string) string {
	return w.pages + "/person?" + url.Values{"phone": {phone}}.Encode()
}

// TestPersonStory: somebody stops one run of a person, then all runs, and adds the number to the blacklist. At the end
// the person is erased.
func TestPersonStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		f := w.traffic()
		const phone = "+393401234500"
		f.request = `{"phone":"` + phone + `","nome":"Lucia Neri"}`
		first := f.planned(phone, "Ciao Lucia, fra un'ora ci vediamo!", w.clock.Now().Add(time.Hour))
		second := f.planned(phone, "Com'è andata?", w.clock.Now().Add(26*time.Hour))
		third := f.planned(phone, "A presto!", w.clock.Now().Add(50*time.Hour))
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/messages/" + first.String())
		b.click(`.head-actions a[href*="/person?"]`)
		b.until(`document.querySelectorAll(".run").length === 3`)
		b.check("person")
		b.click(".run:last-child form button")
		b.until(`document.querySelector("[data-toast]") && document.querySelectorAll(".run form").length === 2`)
		for id, want := range map[puntuale.MessageID]puntuale.State{first: puntuale.Cancelled, second: puntuale.Pending, third: puntuale.Pending} {
			if got := detail(t, w, id); got.State != want {
				t.Errorf("%q is %v, want %v", got.Content.Text, got.State, want)
			}
		}
		b.leaves(func() { b.click("[data-toast] form button") }) // undo
		b.until(`document.querySelector("[data-toast]") && document.querySelectorAll(".run form").length === 3`)
		b.check("resumed")
		b.click(".run:last-child form button")
		b.until(`document.querySelector("[data-toast]") && document.querySelectorAll(".run form").length === 2`)
		b.fill("reason", "lo ha chiesto al telefono")
		b.click(`form[action$="/person/block"] button`)
		b.reads("lo ha chiesto al telefono")
		b.until(`document.querySelector(".notice-warn") && document.querySelectorAll(".run .tag-warn").length === 2`)
		b.check("blocked")
		b.click(`form[action$="/person/stop-all"] button`)
		b.until(`document.querySelector(".run") && !document.querySelector(".run form")`)
		if got := detail(t, w, third).State; got != puntuale.Cancelled {
			t.Errorf("after all were stopped: %v", got)
		}
		b.click(`main a[href*="/person/erase"]`)
		b.until(`document.querySelector("button.btn-danger")`)
		b.check("erase")
		b.click("button.btn-danger")
		b.until(`location.pathname.endsWith("/contacts") && document.querySelector("[data-toast]")`)
		if got := detail(t, w, first); !got.Blanked || got.Phone != "" {
			t.Errorf("after the erasure: %+v", got)
		}
	})
}

// TestPersonRuns: the page lists the runs of this number, and of no other number, on both databases.
func TestPersonRuns(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldOn(t, open(t), "")
			f := w.traffic()
			failed, pending := f.day()
			v := w.visitor(w.clients[puntuale.Reader])
			r := v.get(w.personURL("340 1234500"))
			if r.status != http.StatusOK || !strings.Contains(r.body, "/messages/"+pending.String()+`"`) || strings.Contains(r.body, "/messages/"+failed.String()+`"`) {
				t.Errorf("%d: %s", r.status, inMain(r.body))
			}
			if strings.Contains(inMain(r.body), "<form") || strings.Contains(r.body, "/person/erase") {
				t.Error("a reader is offered to change something")
			}
			staff := w.visitor(w.clients[puntuale.Staff])
			run := fmt.Sprint(detail(t, w, pending).Run)
			for name, form := range map[string]url.Values{
				"no run": {"phone": {"+393401234500"}, "run": {"x"}}, "another's number": {"phone": {"+393331239901"}, "run": {run}},
			} {
				if r := staff.post(w.pages+"/person/stop", form); r.status != http.StatusSeeOther || detail(t, w, pending).State != puntuale.Pending {
					t.Errorf("stop with %s: %d", name, r.status)
				}
			}
			if r := staff.post(w.pages+"/person/stop", url.Values{"phone": {"+393401234500"}, "run": {run}}); r.status != http.StatusSeeOther || detail(t, w, pending).State != puntuale.Cancelled {
				t.Errorf("stop: %d, %v", r.status, detail(t, w, pending).State)
			}
			undo := html.UnescapeString(between(staff.get(w.personURL("+393401234500")).body, `action="`+w.pages+`/person/resume`, `"`))
			if undo == "" {
				t.Fatal("no undo after a stop")
			}
			if r := w.visitor(w.foreignOwner).post(w.pages+"/person/resume"+undo, nil); r.status != http.StatusNotFound {
				t.Errorf("a stranger: %d", r.status)
			}
			if r := v.post(w.pages+"/person/resume"+undo, nil); r.status != http.StatusForbidden {
				t.Errorf("a reader: %d", r.status)
			}
			if r := staff.post(w.pages+"/person/resume"+undo, nil); r.status != http.StatusSeeOther {
				t.Errorf("undo: %d", r.status)
			}
			if all, _, err := w.Client().Messages(context.Background(), control.MessageQuery{Phone: "+393401234500", State: "PENDING"}); err != nil || len(all) != 1 {
				t.Errorf("after the undo, %d messages are planned, %v", len(all), err)
			}
			if r := staff.post(w.pages+"/person/resume"+undo, nil); r.status != http.StatusConflict {
				t.Errorf("undo twice: %d", r.status)
			}
			for _, phone := range []string{"", "nessuno", "+39"} {
				if r := v.get(w.personURL(phone)); r.status != http.StatusNotFound {
					t.Errorf("%q: %d", phone, r.status)
				}
			}
		})
	}
}

// TestSingleSendsName: a single send may have a name of its own. Pages do not show this name as the recipient's name.
func TestSingleSendsName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := `{"phone":"+393331234567","name":"Avviso di giugno","text":"Ciao"}`
	_, err := w.Client().Send(context.Background(), control.SingleCall{Phone: "+393331234567", Name: "Avviso di giugno", Fields: map[string]json.RawMessage{"text": json.RawMessage(`"Ciao"`)}, Body: []byte(body)})
	w.must(err)
	r := w.visitor(w.clients[puntuale.Reader]).get(w.pages + "/messages")
	if !strings.Contains(r.body, `data-phone="+393331234567"`) || strings.Contains(r.body, `">Avviso di giugno</a>`) || !strings.Contains(r.body, `<span class="list-below">Avviso di giugno</span>`) {
		t.Error(inMain(r.body))
	}
}
