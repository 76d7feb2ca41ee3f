//go:build s3

package backup_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"puntuale/internal/backup"
	"puntuale/internal/objectstore"
)

// TestRealS3 stores files of several sizes in a real service, and a backup with its rehearsal. scripts/with-s3 starts the
// service; "make s3" runs the test.
func TestRealS3(t *testing.T) {
	address := os.Getenv("PUNTUALE_TEST_S3")
	if address == "" {
		t.Fatal("PUNTUALE_TEST_S3 is not set; run with scripts/with-s3")
	}
	service := objectstore.S3{Endpoint: address, Region: "us-east-1", AccessKey: os.Getenv("PUNTUALE_TEST_S3_ACCESS_KEY"), SecretKey: os.Getenv("PUNTUALE_TEST_S3_SECRET_KEY")}
	storage, err := objectstore.Open("s3://puntuale/studio/a", service)
	if err != nil {
		t.Fatal(err)
	}
	for i, size := range []int{0, 1, 1 << 20, 16 << 20, 16<<20 + 1, 40_000_000} {
		content := make([]byte, size)
		random := rand.NewChaCha8([32]byte{byte(i)})
		_, _ = random.Read(content)
		name := backup.Name(time.Unix(int64(i), 0), true)
		if err := storage.Put(t.Context(), name, bytes.NewReader(content)); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if err := storage.Put(t.Context(), name, strings.NewReader("another")); err == nil {
			t.Errorf("%d bytes: it was replaced", size)
		}
		from, err := storage.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(from)
		from.Close()
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes came back as %d, %v", size, len(got), err)
		}
	}
	cut := io.MultiReader(bytes.NewReader(make([]byte, 17<<20)), brokenReader{})
	if err := storage.Put(t.Context(), backup.Name(time.Unix(99, 0), true), cut); err == nil {
		t.Error("a file that broke off was stored")
	}
	if err := storage.Sweep(t.Context(), time.Now().Add(time.Hour), backup.IsBackup); err != nil {
		t.Errorf("sweep: %v", err)
	}
	files, err := storage.List(t.Context())
	if err != nil || len(files) != 6 || files[5].Size != 40_000_000 {
		t.Fatalf("listed: %v, %v", files, err)
	}
	for _, f := range files {
		if err := storage.Remove(t.Context(), f.Name); err != nil {
			t.Error(err)
		}
	}
	if files, err = storage.List(t.Context()); err != nil || len(files) > 0 {
		t.Errorf("left: %v, %v", files, err)
	}
	if _, err := storage.Get(t.Context(), "nothing"); err == nil {
		t.Error("a file that is not there was opened")
	}
	wrong := service
	wrong.SecretKey = "wrong"
	locked, err := objectstore.Open("s3://puntuale/studio/a", wrong)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locked.List(t.Context()); err == nil || strings.Contains(err.Error(), wrong.SecretKey+" ") {
		t.Errorf("with a wrong secret: %v", err)
	}
	recipient, own := identity(t)
	b := newBench(t, storage, recipient)
	b.contents = strings.Repeat("ciao ", 8_000_000)
	if err := b.round(t); err != nil {
		t.Fatal(err)
	}
	if b.restored.Load() != b.contents {
		t.Error("the rehearsal read something else")
	}
	files, err = storage.List(t.Context())
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	path, err := backup.Fetch(t.Context(), storage, files[0].Name, own, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := os.ReadFile(path); err != nil || string(plain) != b.contents {
		t.Errorf("%d bytes, %v", len(plain), err)
	}
}

// brokenReader is a source that fails.
type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
