package web_test

import (
	"context"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
)

// TestChangedNumberStory: a person has another number. The page says so under both numbers, and somebody undoes the change.
// Once somebody else writes from the old number, its page only says whose the number was.
func TestChangedNumberStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		f := w.traffic()
		const old, fresh = "+393401234500", "+393409876500"
		f.request = `{"phone":"` + old + `","nome":"Lucia Neri"}`
		waiting := f.planned(old, "Ciao Lucia, fra un'ora ci vediamo!", w.clock.Now().Add(time.Hour))
		w.wrote(old, "Ci sarò")
		sessions, _, err := w.Client().Sessions(context.Background(), request.Page{})
		w.must(err)
		change := func(id string) {
			w.clock.Advance(time.Minute)
			w.must(w.store.ChangeNumber(context.Background(), w.clock.Now(), puntuale.NumberChange{
				Client: w.client, Session: sessions[0].ID, ID: id, Mark: id, At: w.clock.Now(), Old: []string{old}, New: []string{fresh},
			}))
		}
		change("1")
		b.signIn(w.clients[puntuale.Owner])
		for _, phone := range []string{old, fresh} {
			b.open(w.personURL(phone))
			b.until(`document.querySelector(".notice form") && document.querySelectorAll(".run").length === 1`)
			b.reads("Ci sarò")
		}
		if got := detail(t, w, waiting).Phone; got != fresh {
			t.Errorf("the message goes to %s", got)
		}
		b.check("changed-number")
		b.click(`form[action$="/person/undo-change"] button`)
		b.until(`document.querySelector("[data-toast]") && location.search.includes("393401234500") && !document.querySelector('form[action$="/person/undo-change"]')`)
		if got := detail(t, w, waiting).Phone; got != old {
			t.Errorf("after the undo, the message goes to %s", got)
		}
		b.check("changed-number-undone")
		change("2")
		w.clock.Advance(time.Minute)
		w.wrote(old, "Chi siete?", func(m *puntuale.TakenMessage) { m.Names = nil })
		b.open(w.personURL(old))
		b.until(`document.querySelector(".notice") && !document.querySelector('form[action$="/person/undo-change"]')`)
		b.check("left-number")
	})
}
