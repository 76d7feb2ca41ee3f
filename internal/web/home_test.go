package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"puntuale"
)

// TestHomePages compares the first page of an empty day and of a busy day with golden files.
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

// TestHomeShowsEverySession: the first page names every session that is down, even if there are many sessions.
func TestHomeShowsEverySession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 120 {
		_, err := w.sql.ExecContext(context.Background(), fmt.Sprintf(`insert into session (client_id, name, type, sandbox, created_at)
 select client_id, 'Numero %d', type, sandbox, created_at from session where client_id = %d limit 1`, i, w.client))
		w.must(err)
	}
	if page := w.visitor(w.clients[puntuale.Owner]).get(w.pages).body; !strings.Contains(page, "Numero 119") {
		t.Error("the last session is not there")
	}
}

// TestHomeSaysWhatToDo: the first page says, in the reader's language, what to do about a session that is down.
func TestHomeSaysWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.everything(w.client)
	for language, says := range map[string]string{"it": "Inserisci, o correggi, le credenziali di Meta", "en": "Enter, or correct,"} {
		v := w.visitor(w.clients[puntuale.Reader])
		v.post("/language", url.Values{"language": {language}})
		if page := between(v.get(w.pages).body, `class="notice notice-warn"`, "</div> <dl"); !strings.Contains(page, says) {
			t.Errorf("%s: %s", language, page)
		}
	}
}
