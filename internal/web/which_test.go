package web_test

import (
	"strings"
	"testing"

	"puntuale"
)

// TestWhichSequence: the button on the first page asks which sequence to start. Each row starts the row's own sequence.
func TestWhichSequence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Staff])
	if !strings.Contains(inMain(v.get(w.pages).body), `href="`+w.pages+`/start"`) {
		t.Error("the first page does not lead there")
	}
	if empty := inMain(v.get(w.pages + "/start").body); !strings.Contains(empty, "Non c’è ancora nessuna sequenza") || !strings.Contains(empty, `href="`+w.pages+`/sequences"`) {
		t.Errorf("without sequences: %s", empty)
	}
	id := w.sequence(appointment())
	got := v.get(w.pages + "/start").body
	for _, part := range []string{"Quale sequenza vuoi avviare?", `class="btn btn-small btn-primary" href="` + w.pages + `/sequences/` + id + `/start"`} {
		if !strings.Contains(inMain(got), part) {
			t.Errorf("without %s: %s", part, inMain(got))
		}
	}
	if !strings.Contains(got, `<a href="`+w.pages+`/sequences" class="side-link active" aria-current="page">`) {
		t.Error("the navigation does not mark the sequences")
	}
	if strings.Contains(w.visitor(w.clients[puntuale.Reader]).get(w.pages).body, w.pages+`/start"`) {
		t.Error("a reader is led there")
	}
}
