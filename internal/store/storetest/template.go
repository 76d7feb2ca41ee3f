package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"slices"
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

// upload stores a file of two parts.
func (c *Client) upload(name string, at time.Time) puntuale.File {
	c.w.t.Helper()
	ctx := context.Background()
	content := append(bytes.Repeat([]byte("x"), puntuale.FilePartBytes), name...)
	hash := sha256.Sum256(content)
	f := puntuale.File{ID: puntuale.FileID(fmt.Sprintf("%026d.jpg", serial.Add(1))), Name: name, Type: "image/jpeg", Hash: hash[:], Size: int64(len(content)), Width: 3, Height: 2, Created: at}
	if err := c.CreateFile(ctx, f); err != nil {
		c.w.t.Fatal(err)
	}
	for n, part := range [][]byte{content[:puntuale.FilePartBytes], content[puntuale.FilePartBytes:]} {
		for range 2 { // a repeat changes nothing
			if err := c.AddFilePart(ctx, f.ID, n, part); err != nil {
				c.w.t.Fatal(err)
			}
		}
	}
	stored, err := c.FinishFile(ctx, f.ID)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return stored
}

// testFiles checks that a client has a file once, that a begun file is not usable, and that the limits hold.
func testFiles(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	first := c.upload("a.jpg", Begin)
	if got, err := c.Tenant.File(ctx, first.ID); err != nil || !reflect.DeepEqual(got, first) || got.Name != "a.jpg" || got.Width != 3 || !got.Created.Equal(Begin) {
		t.Errorf("file = %+v, %v, want %+v", got, err, first)
	}
	if part, err := c.FilePart(ctx, first.ID, 1); err != nil || string(part) != "a.jpg" {
		t.Errorf("part = %q, %v", part, err)
	}
	if again := c.upload("a.jpg", Begin.Add(time.Hour)); again.ID != first.ID {
		t.Errorf("the same bytes became %s and %s", first.ID, again.ID)
	}
	second := c.upload("b.jpg", Begin.Add(time.Hour))
	if all, err := c.Files(ctx); err != nil || len(all) != 2 || all[0].ID != second.ID || all[1].ID != first.ID {
		t.Errorf("files = %+v, %v", all, err)
	}
	if theirs := other.upload("a.jpg", Begin); theirs.ID == first.ID {
		t.Error("two clients share a file")
	}
	WantCode(t, c.AddFilePart(ctx, first.ID, 0, []byte("other bytes")), puntuale.CodeNotFound)

	begun := puntuale.File{ID: puntuale.FileID(fmt.Sprintf("%026d.jpg", serial.Add(1))), Name: "c", Type: "image/jpeg", Hash: make([]byte, 32), Size: puntuale.MaxClientFileBytes - 3<<20, Created: Begin}
	if err := c.CreateFile(ctx, begun); err != nil {
		t.Fatal(err)
	}
	_, err := c.Tenant.File(ctx, begun.ID)
	WantCode(t, err, puntuale.CodeNotFound)
	beyond := begun
	beyond.ID, beyond.Size = puntuale.FileID(fmt.Sprintf("%026d.jpg", serial.Add(1))), 1<<20
	WantCode(t, c.CreateFile(ctx, beyond), puntuale.CodeQuotaReached) // files that still arrive count, too
	w.maintainFiles(Begin.Add(30*time.Minute), time.Time{})
	WantCode(t, c.CreateFile(ctx, beyond), puntuale.CodeQuotaReached)
	w.maintainFiles(Begin.Add(2*time.Hour), time.Time{})
	if err := c.CreateFile(ctx, beyond); err != nil {
		t.Errorf("a file that never arrived still counts: %v", err)
	}
	if err := c.DropFile(ctx, first.ID); err != nil { // does nothing to a finished file
		t.Fatal(err)
	}
	if _, err := c.Tenant.File(ctx, first.ID); err != nil {
		t.Error(err)
	}
}

func (w *World) maintainFiles(now, before time.Time) {
	w.t.Helper()
	if err := w.MaintainFiles(context.Background(), now, before); err != nil {
		w.t.Fatal(err)
	}
}

// testFilesEnd checks that a file lives as long as something names it, or the contents of a message with it are kept; and
// that the file of an erased run goes at once.
func testFilesEnd(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	day := 24 * time.Hour
	unused, named, sent, own, shared := c.upload("u", Begin), c.upload("n", Begin), c.upload("s", Begin), c.upload("o", Begin), c.upload("m", Begin)
	template := puntuale.Template{Name: "foto", Media: named.ID.Address(), Created: Begin, Updated: Begin}
	var err error
	if template.ID, err = c.CreateTemplate(ctx, template, nil); err != nil {
		t.Fatal(err)
	}
	start := func(phone string, due time.Time, f puntuale.File) {
		r := c.Run(phone, due, 1)
		r.Messages[0].Content.MediaURL = f.ID.Address()
		r.Run.Steps = nil
		if _, err := c.Start(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	there := func(want ...puntuale.File) {
		t.Helper()
		var got, ids []string
		all, err := c.Files(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			got = append(got, f.Name)
		}
		for _, f := range want {
			ids = append(ids, f.Name)
		}
		slices.Sort(got)
		slices.Sort(ids)
		if !slices.Equal(got, ids) {
			t.Errorf("files %v, want %v", got, ids)
		}
	}
	start(phone, Begin.Add(30*day), sent)
	start("+393330000002", Begin.Add(30*day), own)
	start(phone, Begin.Add(30*day), shared)
	start("+393330000002", Begin.Add(30*day), shared)
	w.maintainFiles(Begin.Add(10*day), time.Time{})
	there(unused, named, sent, own, shared)
	WantCode(t, c.DeleteFile(ctx, sent.ID, Begin), puntuale.CodeConflict)
	WantCode(t, c.DeleteFile(ctx, named.ID, Begin), puntuale.CodeConflict)
	w.maintainFiles(Begin.Add(10*day), Begin.Add(day))
	there(named, sent, own, shared)

	c.mustErase("+393330000002", Begin.Add(10*day))
	w.maintainFiles(Begin.Add(10*day), time.Time{})
	there(named, sent, shared) // only this person got own; shared is not about one person

	w.maintainFiles(Begin.Add(29*day), Begin.Add(29*day))
	there(named, sent, shared)
	w.maintainFiles(Begin.Add(60*day), Begin.Add(50*day))
	there(named)
	if err := c.DeleteTemplate(ctx, template.ID); err != nil {
		t.Fatal(err)
	}
	w.maintainFiles(Begin.Add(61*day), Begin.Add(51*day)) // it was looked at when the template named it
	w.maintainFiles(Begin.Add(90*day), Begin.Add(80*day))
	there()
	var parts int
	if err := w.DB.SQL.QueryRow("select count(*) from file_part").Scan(&parts); err != nil || parts != 0 {
		t.Errorf("%d parts are left, %v", parts, err)
	}
}
