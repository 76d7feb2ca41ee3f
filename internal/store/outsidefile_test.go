package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/objectstore"
	"puntuale/internal/objectstore/s3test"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/storetest"
	"puntuale/internal/store/transfer"
)

// bucketWorld is a world whose files are in a bucket.
type bucketWorld struct {
	*storetest.World
	server *s3test.Server
	parts  *objectstore.Parts
}

// objects lists the objects of files.
func (w *bucketWorld) objects() []string {
	return slices.DeleteFunc(w.server.Objects(), func(name string) bool { return strings.HasSuffix(name, "/marker/0") })
}

func inBucket(t *testing.T, test func(t *testing.T, w *bucketWorld)) {
	t.Helper()
	both(t, func(t *testing.T, w *storetest.World) {
		b := &bucketWorld{World: w, server: s3test.New(t)}
		b.parts = b.open(t, "s3://bucket/files")
		w.Outside(b.parts)
		test(t, b)
	})
}

func (b *bucketWorld) open(t *testing.T, address string) *objectstore.Parts {
	t.Helper()
	storage, err := objectstore.Open(address, objectstore.S3{Endpoint: b.server.URL, Region: "us-east-1", AccessKey: s3test.AccessKey, SecretKey: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	return objectstore.NewParts(storage, b.DB.Clock, nil)
}

// documentOf returns a file of two parts, and its bytes.
func documentOf(name string) (puntuale.File, [][]byte) {
	content := append(bytes.Repeat([]byte(name), puntuale.FilePartBytes/len(name)+1), name...)
	hash := sha256.Sum256(content)
	id := puntuale.FileID(fmt.Sprintf("%026x.pdf", hash[:13]))
	return puntuale.File{ID: id, Name: name + ".pdf", Type: "application/pdf", Hash: hash[:], Size: int64(len(content)), Created: storetest.Begin},
		[][]byte{content[:puntuale.FilePartBytes], content[puntuale.FilePartBytes:]}
}

func begin(t *testing.T, c *storetest.Client, f puntuale.File) {
	t.Helper()
	if _, err := c.CreateFile(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

func storeFile(t *testing.T, c *storetest.Client, name string) puntuale.File {
	t.Helper()
	f, parts := documentOf(name)
	return storeParts(t, c, f, parts)
}

func storeParts(t *testing.T, c *storetest.Client, f puntuale.File, parts [][]byte) puntuale.File {
	t.Helper()
	begin(t, c, f)
	for n, part := range parts {
		if err := c.AddFilePart(t.Context(), f.ID, n, part); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := c.FinishFile(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// reads checks the bytes of a file.
func reads(t *testing.T, c *storetest.Client, name string) {
	t.Helper()
	f, parts := documentOf(name)
	for n, want := range parts {
		if got, err := c.FilePart(t.Context(), f.ID, n); err != nil || !bytes.Equal(got, want) {
			t.Errorf("part %d of %s: %d bytes, %v", n, name, len(got), err)
		}
	}
}

// maintained runs the maintenance as often as it takes to remove a file: hidden, then its parts, then its objects.
func (b *bucketWorld) maintained(t *testing.T, from time.Time) {
	t.Helper()
	for i := range 4 {
		if err := b.MaintainFiles(t.Context(), from.Add(time.Duration(i)*15*time.Minute), time.Time{}); err != nil {
			t.Error(err)
		}
	}
}

// TestFilesInBucket: the bytes of a file are in the bucket and not in the database. Two clients with the same bytes share
// nothing, and when one file goes, the other stays. Files that were in the database before stay there, and can be read.
func TestFilesInBucket(t *testing.T) {
	t.Parallel()
	inBucket(t, func(t *testing.T, w *bucketWorld) {
		one, two := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
		w.Outside(nil)
		storeFile(t, one, "prima")
		w.Outside(w.parts)
		for _, c := range []*storetest.Client{one, two} {
			storeFile(t, c, "listino")
			reads(t, c, "listino")
		}
		reads(t, one, "prima")
		if n := w.Int("select count(*) from file_part where length(content) > 0 and length(hash) = 0"); n != 2 {
			t.Errorf("%d parts are in the database, want the 2 from before", n)
		}
		objects := w.objects()
		if len(objects) != 4 {
			t.Fatalf("objects: %v", objects)
		}
		for i, c := range []*storetest.Client{one, two} {
			f, parts := documentOf("listino")
			begins := fmt.Sprintf("bucket/files/%d-", c.ID)
			if mine := objects[2*i]; !strings.HasPrefix(mine, begins) || !strings.HasSuffix(mine, fmt.Sprintf("-%x/0", f.Hash[:16])) || len(mine) < len(begins)+26+32 || !bytes.Equal(w.server.Object(mine), parts[0]) {
				t.Errorf("object %s, want client, place and hash", mine)
			}
		}
		f, _ := documentOf("listino")
		if err := one.DeleteFile(t.Context(), f.ID, storetest.Begin); err != nil {
			t.Fatal(err)
		}
		w.maintained(t, storetest.Begin)
		if left := w.objects(); len(left) != 2 || left[0] != objects[2] {
			t.Errorf("left: %v", left)
		}
		reads(t, two, "listino")
		if err := w.Store.Partner(w.Partner).DeleteClient(t.Context(), two.ID, storetest.Begin); err != nil {
			t.Fatal(err)
		}
		w.maintained(t, storetest.Begin.Add(time.Hour))
		if left := w.objects(); len(left) != 0 {
			t.Errorf("left of a deleted client: %v", left)
		}
	})
}

// cutting is a storage near which the process dies.
type cutting struct {
	engine.Objects
	beforePart   func()
	afterPut     func()
	beforeRemove error
}

func (c *cutting) PutPart(ctx context.Context, folder string, n int, content []byte) error {
	err := c.Objects.PutPart(ctx, folder, n, content)
	if c.afterPut != nil {
		c.afterPut()
	}
	return err
}

func (c *cutting) Part(ctx context.Context, folder string, n int, most int64) ([]byte, error) {
	if c.beforePart != nil {
		c.beforePart()
	}
	return c.Objects.Part(ctx, folder, n, most)
}

func (c *cutting) RemoveParts(ctx context.Context, folder string, n int) error {
	if c.beforeRemove != nil {
		return c.beforeRemove
	}
	return c.Objects.RemoveParts(ctx, folder, n)
}

// TestKilledBetweenObjectAndRow: an object without a row goes when the upload's time is over. A row goes before its objects,
// and these are removed later. Nothing is ever named that is not there.
func TestKilledBetweenObjectAndRow(t *testing.T) {
	t.Parallel()
	inBucket(t, func(t *testing.T, w *bucketWorld) {
		c := w.Client(puntuale.AccountFull)
		near := &cutting{Objects: w.parts}
		w.Outside(near)
		kept := storeFile(t, c, "resta")
		f, parts := documentOf("tagliato")
		begin(t, c, f)
		ctx, kill := context.WithCancel(t.Context())
		near.afterPut = kill
		if err := c.AddFilePart(ctx, f.ID, 0, parts[0]); err == nil {
			t.Fatal("a killed upload has stored a part")
		}
		near.afterPut = nil
		if n := w.Int("select count(*) from file_part"); n != 2 || len(w.objects()) != 3 {
			t.Fatalf("%d rows, and %v", n, w.objects())
		}
		w.maintained(t, storetest.Begin.Add(2*time.Hour))
		if left := w.objects(); len(left) != 2 {
			t.Errorf("left: %v", left)
		}
		if err := c.AddFilePart(t.Context(), f.ID, 1, parts[1]); puntuale.CodeOf(err) != puntuale.CodeNotFound || len(w.objects()) != 2 {
			t.Errorf("a late part: %v, %v", err, w.objects())
		}

		near.beforeRemove = errors.New("killed")
		if err := c.DeleteFile(t.Context(), kept.ID, storetest.Begin.Add(3*time.Hour)); err != nil {
			t.Fatal(err)
		}
		var failed error
		for i := range 4 {
			failed = errors.Join(failed, w.MaintainFiles(t.Context(), storetest.Begin.Add(3*time.Hour+time.Duration(i)*15*time.Minute), time.Time{}))
		}
		if failed == nil || len(w.objects()) != 2 || w.Int("select count(*) from file_part") != 0 || w.Int("select count(*) from file where removed_at > 0 and name = ''") != 1 {
			t.Errorf("the objects cannot be removed: %v, %v", failed, w.objects())
		}
		if _, err := c.FilePart(t.Context(), kept.ID, 0); puntuale.CodeOf(err) != puntuale.CodeNotFound {
			t.Errorf("a removed file is read: %v", err)
		}
		again, bytesAgain := documentOf("resta")
		again.ID = puntuale.FileID(strings.Repeat("b", 26) + ".pdf")
		storeParts(t, c, again, bytesAgain) // has its own objects
		near.beforeRemove = nil
		w.maintained(t, storetest.Begin.Add(5*time.Hour))
		if left := w.objects(); len(left) != 2 || w.Int("select count(*) from file") != 1 {
			t.Errorf("left: %v", left)
		}
		if got, err := c.FilePart(t.Context(), again.ID, 0); err != nil || !bytes.Equal(got, bytesAgain[0]) {
			t.Errorf("the same bytes, uploaded again: %d, %v", len(got), err)
		}
	})
}

// TestHostileBucket: a bucket that refuses, hangs, or returns what it did not get is named in the error, and no wrong byte
// comes out.
func TestHostileBucket(t *testing.T) {
	t.Parallel()
	inBucket(t, func(t *testing.T, w *bucketWorld) {
		c := w.Client(puntuale.AccountFull)
		f := storeFile(t, c, "listino")
		object := w.objects()[0]
		whole := w.server.Object(object)
		flipped := bytes.Clone(whole)
		flipped[7] ^= 1
		read := func(what string, want puntuale.Code, reason puntuale.ReasonCode) {
			t.Helper()
			content, err := c.FilePart(t.Context(), f.ID, 0)
			e, _ := errors.AsType[*puntuale.Error](err)
			if e == nil || e.Code != want || e.Reason.Code != reason || len(content) != 0 {
				t.Errorf("%s: %d bytes, %v", what, len(content), err)
			}
		}
		for what, content := range map[string][]byte{"longer": append(bytes.Clone(whole), 0), "much longer": bytes.Repeat(whole, 20), "shorter": whole[:len(whole)-1], "empty": {}, "another byte": flipped} {
			w.server.Set(object, content)
			read(what, puntuale.CodeGone, "file.storage_lost")
		}
		w.server.Forget(object)
		read("404", puntuale.CodeGone, "file.storage_lost")
		w.server.Set(object, whole)
		w.server.Refuse(func(method, _ string) bool { return true })
		read("403", puntuale.CodeUnavailable, "file.storage_away")
		other, parts := documentOf("altro")
		begin(t, c, other)
		if err := c.AddFilePart(t.Context(), other.ID, 0, parts[0]); puntuale.CodeOf(err) != puntuale.CodeUnavailable || !strings.Contains(err.Error(), "AccessDenied") || strings.Contains(err.Error(), "secret") {
			t.Errorf("a refused put: %v", err)
		}
		w.server.Refuse(nil)
		reads(t, c, "listino")
		w.Outside(nil)
		read("no setting", puntuale.CodeUnavailable, "file.storage_away")
	})
}

// TestMovesWithBucket: an export and a backup have the bytes of files in a bucket, so that an import into a database without a
// bucket has everything. MoveOut moves them to another bucket's folder, also after it was interrupted.
func TestMovesWithBucket(t *testing.T) {
	t.Parallel()
	eachDirection(t, func(t *testing.T, from, to *storetest.Database) {
		w := &bucketWorld{World: storetest.NewWorld(t, from), server: s3test.New(t)}
		w.parts = w.open(t, "s3://bucket/files")
		c := w.Client(puntuale.AccountFull)
		storeFile(t, c, "dentro")
		w.Outside(w.parts)
		storeFile(t, c, "fuori")
		before := w.objects()
		file := exported(t, from, transfer.ExportConfig{})

		w.server.Refuse(func(method, name string) bool { return name == before[1] })
		from.Config.Clock = hasty{from.Clock}
		if _, err := transfer.Export(t.Context(), from.Config, &bytes.Buffer{}, transfer.ExportConfig{}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf(".pdf of client %d cannot be read: ", c.ID)) {
			t.Errorf("an export without the bytes: %v", err)
		}
		w.server.Refuse(nil)

		imported(t, to, file)
		copied := storetest.WorldOf(t, to)
		mine := &storetest.Client{Tenant: copied.Tenant(c.ID), ID: c.ID}
		reads(t, mine, "dentro")
		reads(t, mine, "fuori")
		if n := int64(2); copied.Int("select count(*) from file where place = ''") != n || len(w.objects()) != len(before) {
			t.Errorf("an import touched the bucket: %v", w.objects())
		}

		target := w.open(t, "s3://bucket/copy")
		copied.Outside(target)
		puts := 0
		w.server.Refuse(func(method, _ string) bool { puts++; return method == http.MethodPut && puts == 3 })
		if _, err := copied.MoveOut(t.Context()); err == nil {
			t.Error("a move that was refused has no error")
		}
		reads(t, mine, "dentro")
		reads(t, mine, "fuori")
		w.server.Refuse(nil)
		if _, err := copied.MoveOut(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := copied.Int("select count(*) from file_part where length(content) > 0"); n != 0 {
			t.Errorf("%d parts are still in the database", n)
		}
		reads(t, mine, "dentro")
		reads(t, mine, "fuori")
		if n := len(w.objects()) - len(before); n != 4 {
			t.Errorf("%d objects of the copy, want 4", n)
		}
		reads(t, c, "fuori")
	})
}

// TestNodesWithoutBucket: without a bucket, what one node stores, another node reads.
func TestNodesWithoutBucket(t *testing.T) {
	t.Parallel()
	w := storetest.NewWorld(t, storetest.Postgres(t))
	c := w.Client(puntuale.AccountFull)
	other := storetest.WorldOf(t, w.DB)
	there := &storetest.Client{Tenant: other.Tenant(c.ID), ID: c.ID}
	storeFile(t, c, "listino")
	reads(t, there, "listino")
	storeFile(t, there, "orari")
	reads(t, c, "orari")
}

// hasty is a clock on which nobody waits.
type hasty struct{ *clock.Fake }

func (h hasty) Sleep(ctx context.Context, d time.Duration) error {
	h.Advance(d)
	return ctx.Err()
}

// TestExportWhileFilesGo: a file that is deleted while an export reads its snapshot does not end the export, also if its
// objects are gone before their turn. What the export has of it is never sent. A file that was not deleted ends it.
func TestExportWhileFilesGo(t *testing.T) {
	t.Parallel()
	eachDirection(t, func(t *testing.T, from, to *storetest.Database) {
		w := &bucketWorld{World: storetest.NewWorld(t, from), server: s3test.New(t)}
		w.parts = w.open(t, "s3://bucket/files")
		near := &cutting{Objects: w.parts}
		w.Outside(near)
		c := w.Client(puntuale.AccountFull)
		storeFile(t, c, "resta")
		hidden, late := storeFile(t, c, "nascosto"), storeFile(t, c, "tardi")
		drop := func(id puntuale.FileID) {
			if err := c.DeleteFile(t.Context(), id, storetest.Begin); err != nil {
				t.Error(err)
			}
		}
		drop(hidden.ID)
		near.beforePart = func() {
			near.beforePart = nil
			drop(late.ID)
			w.maintained(t, storetest.Begin)
		}
		file := exported(t, from, transfer.ExportConfig{})
		if left := w.objects(); len(left) != 2 {
			t.Fatalf("the maintenance left %v", left)
		}
		imported(t, to, file)
		copied := storetest.WorldOf(t, to)
		mine := &storetest.Client{Tenant: copied.Tenant(c.ID), ID: c.ID}
		reads(t, mine, "resta")
		for _, f := range []puntuale.File{hidden, late} {
			if got, err := mine.FilePart(t.Context(), f.ID, 0); puntuale.CodeOf(err) != puntuale.CodeGone {
				t.Errorf("a file without its bytes: %d bytes, %v", len(got), err)
			}
			if _, err := mine.File(t.Context(), f.ID); puntuale.CodeOf(err) != puntuale.CodeNotFound {
				t.Errorf("a file without its bytes can be used: %v", err)
			}
		}

		again, parts := documentOf("tardi")
		again.ID = puntuale.FileID(strings.Repeat("c", 26) + ".pdf")
		if stored := storeParts(t, mine, again, parts); stored.ID != again.ID {
			t.Errorf("a file without its bytes came back: %s", stored.ID)
		}

		w.server.Forget(w.objects()[1])
		if _, err := transfer.Export(t.Context(), from.Config, &bytes.Buffer{}, transfer.ExportConfig{}); err == nil || !strings.Contains(err.Error(), "does not have them any more") {
			t.Errorf("an export of a file whose bytes are lost: %v", err)
		}
	})
}

// TestExportWaitsForStorage: an export asks again for some minutes if the storage refuses.
func TestExportWaitsForStorage(t *testing.T) {
	t.Parallel()
	inBucket(t, func(t *testing.T, w *bucketWorld) {
		storeFile(t, w.Client(puntuale.AccountFull), "listino")
		w.DB.Config.Clock = hasty{w.DB.Clock}
		gets := 0
		w.server.Refuse(func(method, _ string) bool { gets++; return gets < 20 })
		exported(t, w.DB, transfer.ExportConfig{})
		if waited := w.DB.Clock.Now().Sub(storetest.Begin); gets != 21 || waited < 3*time.Minute {
			t.Errorf("%d requests in %v", gets, waited)
		}
	})
}

// TestOtherPlace: a server whose storage is another place than the one that has the files reads, stores and removes nothing
// there. The names of objects stay until the right place is back. A new storage is marked at first use.
func TestOtherPlace(t *testing.T) {
	t.Parallel()
	inBucket(t, func(t *testing.T, w *bucketWorld) {
		c := w.Client(puntuale.AccountFull)
		if err := w.Tie(t.Context()); err != nil {
			t.Fatal(err)
		}
		gone, kept := storeFile(t, c, "sparisce"), storeFile(t, c, "resta")
		objects := w.server.Objects()
		if len(objects) != 5 {
			t.Fatalf("objects: %v, want those of two files and a marker", objects)
		}
		if err := c.DeleteFile(t.Context(), gone.ID, storetest.Begin); err != nil {
			t.Fatal(err)
		}
		w.server.Set("bucket/foreign/marker/0", []byte("of another installation"))
		for _, place := range []string{"s3://bucket/elsewhere", "s3://bucket/foreign", t.TempDir()} {
			w.Outside(w.open(t, place))
			if err := w.Tie(t.Context()); puntuale.CodeOf(err) != puntuale.CodeUnavailable {
				t.Errorf("%s is taken: %v", place, err)
			}
			if _, err := c.FilePart(t.Context(), kept.ID, 0); puntuale.CodeOf(err) != puntuale.CodeUnavailable {
				t.Errorf("%s: a file is read: %v", place, err)
			}
			other, _ := documentOf("altro")
			if _, err := c.CreateFile(t.Context(), other); puntuale.CodeOf(err) != puntuale.CodeUnavailable {
				t.Errorf("%s: a file begins: %v", place, err)
			}
			for i := range 4 {
				_ = w.MaintainFiles(t.Context(), storetest.Begin.Add(time.Duration(i)*15*time.Minute), time.Time{})
			}
			if n := w.Int("select count(*) from file where removed_at > 0"); n != 1 {
				t.Errorf("%s: %d names of removed files, want 1", place, n)
			}
		}
		w.Outside(w.open(t, "s3://bucket/files"))
		if err := w.Tie(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.maintained(t, storetest.Begin.Add(time.Hour))
		reads(t, c, "resta")
		if left := w.server.Objects(); len(left) != 4 {
			t.Errorf("left: %v", left)
		}
	})
}

// TestUploadRepairs: a part of a finished file that the storage lost is stored again if its bytes are the same, and only then.
func TestUploadRepairs(t *testing.T) {
	t.Parallel()
	inBucket(t, func(t *testing.T, w *bucketWorld) {
		c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
		f := storeFile(t, c, "listino")
		_, parts := documentOf("listino")
		w.server.Forget(w.objects()[1])
		for _, err := range []error{c.AddFilePart(t.Context(), f.ID, 1, parts[0]), c.AddFilePart(t.Context(), f.ID, 2, parts[1]), other.AddFilePart(t.Context(), f.ID, 1, parts[1])} {
			if puntuale.CodeOf(err) != puntuale.CodeNotFound || len(w.objects()) != 1 {
				t.Errorf("other bytes: %v", err)
			}
		}
		if err := c.AddFilePart(t.Context(), f.ID, 1, parts[1]); err != nil {
			t.Error(err)
		}
		reads(t, c, "listino")
	})
}
