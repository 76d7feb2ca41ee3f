package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

func TestTemplateStory(t *testing.T) {
	onScreens(t, func(_ *testing.T, w *world, b *browser) {
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/templates")
		b.check("empty")
		b.click(".empty .btn-primary")
		b.until(`document.getElementById("template-form") && document.readyState === "complete"`)
		b.fill("name", "Benvenuto", "text", "Ciao {{nome}}, benvenuto!")
		b.until(`document.querySelector("#preview .bubble-text")?.innerText === "Ciao {{nome}}, benvenuto!"`)
		b.fill("text", "")
		b.click(".editor-save .btn-primary")
		b.until(`document.activeElement?.name === "text"`)
		b.check("refused")
		b.fill("text", "Ciao {{nome}}, benvenuto!")
		b.click(".editor-save .btn-primary")
		b.until(`location.pathname.endsWith("/templates") && document.querySelector(".tile")`)
		b.check("list")
	})
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Owner])
	form := url.Values{"name": {"Saluto"}, "kind": {"location"}, "text": {"Siamo qui, {{nome}}"}, "latitude": {"45.07031, 7.68657"}}
	if got := v.post(w.pages+"/templates", form); got.status != http.StatusSeeOther {
		t.Fatalf("create: %d %s", got.status, got.body)
	}
	golden(t, "templates", mainOf(v.get(w.pages+"/templates").body))
	list, _, err := w.Client().Templates(context.Background(), request.Page{})
	w.must(err)
	if len(list) != 1 || list[0].Latitude == nil || *list[0].Longitude != 7.68657 {
		t.Fatalf("stored: %+v", list)
	}
	at := w.pages + "/templates/" + list[0].ID.String()
	golden(t, "template", mainOf(v.get(at).body))
	if got := v.post(w.pages+"/templates", form); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "f-name-fault") {
		t.Errorf("the same name again: %d", got.status)
	}
	w.sequence(control.NewSequence{Name: "Usa il modello", Steps: []puntuale.Step{{Template: "Saluto", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}}})
	if got := v.post(at+"/delete", nil); got.status != http.StatusConflict || !strings.Contains(got.body, "Una sequenza usa questo template") {
		t.Errorf("delete one in use: %d %s", got.status, got.body)
	}
	form.Set("name", "Altro nome")
	if got := v.post(at, form); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "Altro nome") {
		t.Errorf("rename one in use: %d", got.status)
	}
	form.Set("name", "Saluto")
	form.Set("kind", "text")
	if got := v.post(at, form); got.status != http.StatusSeeOther {
		t.Errorf("update: %d %s", got.status, got.body)
	}
	other, err := w.Client().Template(context.Background(), list[0].ID.String())
	w.must(err)
	if other.Latitude != nil {
		t.Error("the location stayed, though it is a text now")
	}
}
