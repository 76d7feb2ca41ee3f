package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/objectstore"
	"puntuale/internal/store/engine"
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

// newFile returns a file of two parts, and its bytes.
func newFile(name string, at time.Time) (puntuale.File, []byte) {
	content := append(bytes.Repeat([]byte("x"), puntuale.FilePartBytes), name...)
	hash := sha256.Sum256(content)
	return puntuale.File{
		ID: puntuale.FileID(fmt.Sprintf("%026d.jpg", serial.Add(1))), Name: name, Type: "image/jpeg", Hash: hash[:], Size: int64(len(content)), Width: 3, Height: 2, Small: []byte("small " + name), Created: at,
	}, content
}

// upload stores a file.
func (c *Client) upload(name string, at time.Time) puntuale.File {
	c.w.t.Helper()
	ctx := context.Background()
	f, content := newFile(name, at)
	begun, err := c.CreateFile(ctx, f)
	if err != nil {
		c.w.t.Fatal(err)
	}
	if begun.ID != f.ID {
		return begun
	}
	c.addParts(f, content)
	stored, err := c.FinishFile(ctx, f)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return stored
}

func (c *Client) addParts(f puntuale.File, content []byte) {
	c.w.t.Helper()
	for n, part := range [][]byte{content[:puntuale.FilePartBytes], content[puntuale.FilePartBytes:]} {
		for range 2 { // a repeat changes nothing
			if err := c.AddFilePart(context.Background(), f.ID, n, part); err != nil {
				c.w.t.Fatal(err)
			}
		}
	}
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
	if small, err := c.SmallPicture(ctx, first.ID); err != nil || string(small) != "small a.jpg" {
		t.Errorf("small picture = %q, %v", small, err)
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

	// Two uploads of the same bytes at the same time become one file, with the latest name.
	f, content := newFile("due.jpg", Begin)
	slow := f
	slow.ID, slow.Name = puntuale.FileID(fmt.Sprintf("%026d.jpg", serial.Add(1))), "tre.jpg"
	for _, one := range []puntuale.File{f, slow} {
		if _, err := c.CreateFile(ctx, one); err != nil {
			t.Fatal(err)
		}
		c.addParts(one, content)
	}
	for range 2 { // also if the answer of the first call is lost
		for _, one := range []puntuale.File{f, slow} {
			if got, err := c.FinishFile(ctx, one); err != nil || got.ID != f.ID {
				t.Errorf("the same bytes at once: %+v, %v", got, err)
			}
		}
	}
	if got, err := c.Tenant.File(ctx, f.ID); err != nil || got.Name != "tre.jpg" {
		t.Errorf("its name is %q, %v", got.Name, err)
	}

	c.fillsRoom(t, first)
	if err := c.DropFile(ctx, first.ID); err != nil { // does nothing to a finished file
		t.Fatal(err)
	}
	if _, err := c.Tenant.File(ctx, first.ID); err != nil {
		t.Error(err)
	}
}

// fillsRoom uploads until the client has no more room: by bytes, and by the number of files. first is a file of the client.
func (c *Client) fillsRoom(t *testing.T, first puntuale.File) {
	t.Helper()
	ctx := context.Background()
	big := puntuale.File{ID: puntuale.FileID(fmt.Sprintf("%026d.jpg", serial.Add(1))), Name: "c", Type: "image/jpeg", Hash: make([]byte, 32), Size: puntuale.MaxClientFileBytes - 4<<20, Created: Begin}
	if _, err := c.CreateFile(ctx, big); err != nil {
		t.Fatal(err)
	}
	_, err := c.Tenant.File(ctx, big.ID)
	WantCode(t, err, puntuale.CodeNotFound)
	beyond := big
	beyond.ID, beyond.Size = puntuale.FileID(fmt.Sprintf("%026d.jpg", serial.Add(1))), 1<<20
	create := func() error {
		_, err := c.CreateFile(ctx, beyond)
		return err
	}
	WantCode(t, create(), puntuale.CodeQuotaReached) // files that still arrive count, too
	if again := c.upload("a.jpg", Begin); again.ID != first.ID {
		t.Error("the same bytes were refused, because there is no room")
	}
	c.w.maintainFiles(Begin.Add(30*time.Minute), time.Time{})
	WantCode(t, create(), puntuale.CodeQuotaReached)
	c.w.maintainFiles(Begin.Add(2*time.Hour), time.Time{})
	if err := create(); err != nil {
		t.Errorf("a file that never arrived still counts: %v", err)
	}
	c.w.Exec(`insert into file (client_id, id, name, type, hash, size, created_at, needed_at) -- all but one
 with recursive n(i) as (select 2 + (select count(*) from file where client_id = $1 and hidden_at = 0) union all select i + 1 from n where i < $2)
 select client_id, 'n' || i, name, type, hash, 1, created_at, needed_at from file cross join n where client_id = $1 and id = $3`, c.ID, puntuale.MaxClientFiles, first.ID)
	for n := range 2 {
		last := beyond
		last.ID, last.Hash, last.Size = puntuale.FileID(fmt.Sprintf("%026d.jpg", serial.Add(1))), bytes.Repeat([]byte{byte(n + 1)}, 32), 1
		_, err = c.CreateFile(ctx, last)
		if n == 0 && err != nil {
			t.Errorf("the last of %d files: %v", puntuale.MaxClientFiles, err)
		}
	}
	WantCode(t, err, puntuale.CodeQuotaReached)
	if refused, ok := errors.AsType[*puntuale.Error](err); ok && (refused.Reason.Code != "file.too_many" || !slices.Equal(refused.Reason.Args, []string{"1000"})) {
		t.Errorf("too many files: %v", err)
	}
	if again := c.upload("a.jpg", Begin); again.ID != first.ID {
		t.Error("the same bytes were refused, because there are too many files")
	}
}

func (w *World) maintainFiles(now, before time.Time) {
	w.t.Helper()
	w.DB.Clock.Set(now)
	for _, at := range []time.Time{now, now.Add(20 * time.Minute)} { // hidden files are deleted later
		if err := w.MaintainFiles(context.Background(), at, before); err != nil {
			w.t.Fatal(err)
		}
	}
}

// there checks which files a client has.
func (c *Client) there(want ...puntuale.File) {
	c.w.t.Helper()
	var got, names []string
	all, err := c.Files(context.Background())
	if err != nil {
		c.w.t.Fatal(err)
	}
	for _, f := range all {
		got = append(got, f.Name)
	}
	for _, f := range want {
		names = append(names, f.Name)
	}
	slices.Sort(got)
	slices.Sort(names)
	if !slices.Equal(got, names) {
		c.w.t.Errorf("files %v, want %v", got, names)
	}
}

// noParts checks that no part of a file is left.
func (w *World) noParts() {
	w.t.Helper()
	var parts int
	if err := w.DB.SQL.QueryRow("select count(*) from file_part").Scan(&parts); err != nil || parts != 0 {
		w.t.Errorf("%d parts are left, %v", parts, err)
	}
}

// withFile starts a run with a file.
func (c *Client) withFile(phone string, due time.Time, f puntuale.File) puntuale.MessageID {
	c.w.t.Helper()
	r := c.Run(phone, due, 1)
	r.Messages[0].Content.MediaURL = f.ID.Address()
	r.Run.Steps = nil
	started, err := c.Start(context.Background(), r)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return started.IDs[0]
}

const fileDay = 24 * time.Hour

// testFilesEnd checks that a file lives as long as something names it, or the contents of a message with it are kept.
func testFilesEnd(t *testing.T, w *World) {
	ctx, day := context.Background(), fileDay
	c := w.Client(puntuale.AccountFull)
	unused, named, sent := c.upload("u", Begin), c.upload("n", Begin), c.upload("s", Begin)
	template := puntuale.Template{Name: "foto", Media: named.ID.Address(), Created: Begin, Updated: Begin}
	var err error
	if template.ID, err = c.CreateTemplate(ctx, template, nil); err != nil {
		t.Fatal(err)
	}
	if users, err := c.FileUsers(ctx); err != nil || len(users) != 1 || !slices.Equal(users[named.ID], []puntuale.FileUser{{Kind: puntuale.FileUserTemplate, ID: int64(template.ID), Name: "foto"}}) {
		t.Errorf("users = %+v, %v", users, err)
	}
	message := c.withFile(phone, Begin.Add(30*day), sent)
	w.maintainFiles(Begin.Add(10*day), time.Time{})
	c.there(unused, named, sent)
	WantCode(t, c.DeleteFile(ctx, sent.ID, Begin), puntuale.CodeConflict)
	WantCode(t, c.DeleteFile(ctx, named.ID, Begin), puntuale.CodeConflict)
	w.maintainFiles(Begin.Add(10*day), Begin.Add(day))
	c.there(named, sent)
	w.maintainFiles(Begin.Add(29*day), Begin.Add(29*day))
	c.there(named, sent)

	again := puntuale.Resend{Day: Day, Now: Begin, Messages: []puntuale.ResendMessage{{ID: message, Desired: Begin, Due: Begin.Add(60 * day), ValidUntil: Begin.Add(61 * day)}}}
	moved, err := c.Resend(ctx, again)
	if err != nil {
		t.Fatal(err)
	}
	w.maintainFiles(Begin.Add(60*day), Begin.Add(50*day))
	c.there(named, sent) // the message was moved, with its file
	w.maintainFiles(Begin.Add(90*day), Begin.Add(80*day))
	c.there(named)
	again.Messages[0].ID = moved.IDs[0]
	_, err = c.Resend(ctx, again)
	WantCode(t, err, puntuale.CodeConflict) // its file is gone

	if err := c.DeleteTemplate(ctx, template.ID); err != nil {
		t.Fatal(err)
	}
	w.maintainFiles(Begin.Add(91*day), Begin.Add(81*day)) // it was looked at when the template named it
	w.maintainFiles(Begin.Add(120*day), Begin.Add(110*day))
	c.there()
	w.noParts()
}

// testFilesOfPeople checks that a file that only one person got goes with the person, and at once; and that files go with
// their client.
func testFilesOfPeople(t *testing.T, w *World) {
	ctx, day := context.Background(), fileDay
	c := w.Client(puntuale.AccountFull)
	const erased = "+393330000002"
	own, moved, shared, named := c.upload("o", Begin), c.upload("v", Begin), c.upload("m", Begin), c.upload("n", Begin)
	c.withFile(erased, Begin.Add(30*day), own)
	c.withFile(erased, Begin.Add(30*day), moved)
	c.withFile(erased, Begin.Add(31*day), moved)
	c.withFile(phone, Begin.Add(30*day), shared)
	c.withFile(erased, Begin.Add(30*day), shared)
	c.withFile(erased, Begin.Add(30*day), named)
	if _, err := c.CreateTemplate(ctx, puntuale.Template{Name: "foto", Media: named.ID.Address(), Created: Begin, Updated: Begin}, nil); err != nil {
		t.Fatal(err)
	}
	c.mustErase(erased, Begin.Add(10*day))
	c.there(shared, named) // the others are about this person
	_, err := c.Tenant.File(ctx, own.ID)
	WantCode(t, err, puntuale.CodeNotFound)
	w.maintainFiles(Begin.Add(11*day), time.Time{})
	c.there(shared, named)

	if err := w.Store.Partner(w.Partner).DeleteClient(ctx, c.ID, Begin.Add(12*day)); err != nil {
		t.Fatal(err)
	}
	w.maintainFiles(Begin.Add(12*day), time.Time{})
	w.noParts()
}

// testFilesComeBack checks that a file that is being removed comes back if something names it meanwhile.
func testFilesComeBack(t *testing.T, w *World) {
	ctx, day := context.Background(), fileDay
	c := w.Client(puntuale.AccountFull)
	started, named, uploaded, value, undone, gone := c.upload("s", Begin), c.upload("n", Begin), c.upload("u", Begin), c.upload("v", Begin), c.upload("r", Begin), c.upload("g", Begin)
	all := []puntuale.File{started, named, uploaded, value, undone, gone}
	c.there(all...)
	for _, f := range all {
		for range 2 { // also if the answer of the first call is lost
			if err := c.DeleteFile(ctx, f.ID, Begin); err != nil {
				t.Fatal(err)
			}
		}
		WantCode(t, c.DeleteFile(ctx, f.ID, Begin.Add(time.Second)), puntuale.CodeNotFound)
	}
	c.there()
	c.withFile(phone, Begin.Add(day), started)
	if again := c.upload("u", Begin); again.ID != uploaded.ID {
		t.Errorf("the same bytes became %s", again.ID)
	}
	c.there(started, uploaded)
	if _, err := c.CreateTemplate(ctx, puntuale.Template{Name: "foto", Media: named.ID.Address(), Created: Begin, Updated: Begin}, nil); err != nil {
		t.Fatal(err)
	}
	w.Exec(`update booking set fields = $1 where client_id = $2`, `{"foto":"`+value.ID.Address()+`"}`, int64(c.ID))
	w.Exec(`insert into person (client_id, id, phone, fields, created_at, changed_at) values ($1, 1, '+39333', $2, 1, 1)`, int64(c.ID), `{"foto":"`+value.ID.Address()+`"}`)
	sequence := puntuale.Sequence{Name: "x", Steps: []puntuale.Step{{Text: "x", Media: undone.ID.Address()}}, Created: Begin, Updated: Begin}
	id, err := c.CreateSequence(ctx, sequence, nil)
	if err == nil {
		err = c.DeleteSequence(ctx, id, false, false, Begin)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.maintainFiles(Begin.Add(time.Hour), time.Time{})
	c.there(started, named, uploaded, value, undone)
	WantCode(t, c.DeleteFile(ctx, value.ID, Begin.Add(2*time.Hour)), puntuale.CodeConflict)
	WantCode(t, c.DeleteFile(ctx, undone.ID, Begin.Add(2*time.Hour)), puntuale.CodeConflict)
	if err := c.DeleteFile(ctx, undone.ID, Begin.Add(25*time.Hour)); err != nil { // the deletion of its sequence cannot be undone any more
		t.Error(err)
	}
	r := c.Run(phone, Begin.Add(day), 1)
	r.Messages[0].Content.MediaURL, r.Run.Steps = gone.ID.Address(), nil
	_, err = c.Start(ctx, r)
	WantCode(t, err, puntuale.CodeInvalid)
}

// Outside lets the world's store keep the bytes of files in these objects.
func (w *World) Outside(o engine.Objects) {
	w.DB.Config.Objects, w.Store.Config.Objects = o, o
}

// outsideOf runs a test of files while the bytes go into a folder. In the end, when all files were removed, nothing of them is
// left there but the marker.
func outsideOf(t *testing.T, w *World, test func(*testing.T, *World)) {
	folder := t.TempDir()
	storage, err := objectstore.Open(folder, objectstore.S3{})
	if err != nil {
		t.Fatal(err)
	}
	w.Outside(objectstore.NewParts(storage, w.DB.Clock, nil))
	test(t, w)
	w.Exec("update file set hidden_at = 1, stored_at = 0")
	for year := 1; year <= 2 || year <= 20 && w.Int("select count(*) from file") > 0; year++ { // a round removes some of many
		w.maintainFiles(Begin.AddDate(year, 0, 0), time.Time{})
	}
	w.noParts()
	if n := w.Int("select count(*) from file"); n != 0 {
		t.Errorf("%d files are left", n)
	}
	if all, err := os.ReadDir(folder); err != nil || len(all) != 1 || all[0].Name() != "marker" {
		t.Errorf("left outside: %v, %v", all, err)
	}
}

func testFilesOutside(t *testing.T, w *World)         { outsideOf(t, w, testFiles) }
func testFilesEndOutside(t *testing.T, w *World)      { outsideOf(t, w, testFilesEnd) }
func testFilesOfPeopleOutside(t *testing.T, w *World) { outsideOf(t, w, testFilesOfPeople) }
func testFilesComeBackOutside(t *testing.T, w *World) { outsideOf(t, w, testFilesComeBack) }
