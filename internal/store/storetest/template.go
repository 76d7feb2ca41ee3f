package storetest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"puntuale"
)

func testTemplates(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	lat, lon := 45.5, -9.25
	full := puntuale.Template{Name: "benvenuto è 🎉", Text: "Ciao {{nome}}", Media: "https://example.com/a.jpg", MediaName: "a.jpg",
		Latitude: &lat, Longitude: &lon, Created: Begin, Updated: Begin,
		Official: &puntuale.Approved{Name: "benvenuto", Language: "it", Body: []puntuale.Parameter{{Name: "nome", Text: "{{nome}} è 🎉"}}}}
	bare := puntuale.Template{Name: "breve", Text: "Ciao", Created: Begin, Updated: Begin}
	for _, m := range []*puntuale.Template{&full, &bare} {
		var err error
		if m.ID, err = c.CreateTemplate(ctx, *m, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Tenant.Template(ctx, m.ID); err != nil || !reflect.DeepEqual(got, *m) {
			t.Errorf("template = %+v, %v, want %+v", got, err, *m)
		}
	}
	full.Text, full.Latitude, full.Longitude, full.Official, full.Updated = "Altro", nil, nil, nil, Begin.Add(time.Hour)
	changed := full
	changed.Created = Begin.Add(time.Hour) // an update must not change the time of creation
	if err := c.UpdateTemplate(ctx, changed); err != nil {
		t.Fatal(err)
	}
	first, next, err := c.Templates(ctx, puntuale.Page{Limit: 1})
	if err != nil || next == "" || len(first) != 1 || !reflect.DeepEqual(first[0], full) {
		t.Fatalf("first page = %+v, %q, %v", first, next, err)
	}
	rest, next, err := c.Templates(ctx, puntuale.Page{Limit: 1, Cursor: next})
	if err != nil || next != "" || len(rest) != 1 || !reflect.DeepEqual(rest[0], bare) {
		t.Fatalf("second page = %+v, %q, %v", rest, next, err)
	}
	named, err := c.TemplatesNamed(ctx, []string{"breve", "mai visto", "breve"})
	if err != nil || len(named) != 1 || named["breve"].ID != bare.ID {
		t.Fatalf("named = %+v, %v", named, err)
	}
	if err := c.DeleteTemplate(ctx, bare.ID); err != nil {
		t.Fatal(err)
	}
	_, err = c.Tenant.Template(ctx, bare.ID)
	WantCode(t, err, puntuale.CodeNotFound)
	WantCode(t, c.DeleteTemplate(ctx, bare.ID), puntuale.CodeNotFound)
	WantCode(t, c.UpdateTemplate(ctx, bare), puntuale.CodeNotFound)
}

// testTemplateNamesUnique checks that a client cannot use a template name twice. Other clients may use it.
func testTemplateNamesUnique(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	first, err := c.CreateTemplate(ctx, puntuale.Template{Name: "uno"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.CreateTemplate(ctx, puntuale.Template{Name: "uno"}, nil); err != nil {
		t.Fatal(err)
	}
	_, err = c.CreateTemplate(ctx, puntuale.Template{Name: "uno"}, nil)
	WantCode(t, err, puntuale.CodeConflict)
	second, err := c.CreateTemplate(ctx, puntuale.Template{Name: "due"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	WantCode(t, c.UpdateTemplate(ctx, puntuale.Template{ID: second, Name: "uno"}), puntuale.CodeConflict)
	if err := c.UpdateTemplate(ctx, puntuale.Template{ID: first, Name: "tre"}); err != nil {
		t.Fatal(err)
	}
	if err := c.UpdateTemplate(ctx, puntuale.Template{ID: second, Name: "uno"}); err != nil {
		t.Fatal(err)
	}
}

// testTemplateOfSequenceStays checks a template that a sequence uses. It can be changed, but neither deleted nor
// renamed. A sequence can only use existing templates.
func testTemplateOfSequenceStays(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	id, err := c.CreateTemplate(ctx, puntuale.Template{Name: `"tre" \ 50%`, Text: "Ciao"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	named := puntuale.Sequence{Steps: []puntuale.Step{{Text: "x"}, {Template: `"tre" \ 50%`}, {Template: "mai visto"}}}
	_, err = c.CreateSequence(ctx, named, nil)
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok || e.Code != puntuale.CodeInvalid || len(e.Faults) != 1 || e.Faults[0].Location != "body.steps[2].template" {
		t.Fatalf("a template that is not there: %v", err)
	}
	named.Steps = named.Steps[:2]
	if named.ID, err = c.CreateSequence(ctx, named, nil); err != nil {
		t.Fatal(err)
	}
	WantCode(t, c.DeleteTemplate(ctx, id), puntuale.CodeConflict)
	WantCode(t, c.UpdateTemplate(ctx, puntuale.Template{ID: id, Name: "altro"}), puntuale.CodeConflict)
	if err := c.UpdateTemplate(ctx, puntuale.Template{ID: id, Name: `"tre" \ 50%`, Text: "Salve"}); err != nil {
		t.Fatal(err)
	}
	named.Steps = named.Steps[:1]
	if err := c.UpdateSequence(ctx, named); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteTemplate(ctx, id); err != nil {
		t.Fatal(err)
	}
}
