//go:build s3

package objectstore_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"puntuale/internal/clock"
	"puntuale/internal/objectstore"
)

// TestRealS3Parts stores, replaces, reads and removes the parts of files in a real service. scripts/with-s3 starts the
// service; "make s3" runs the test.
func TestRealS3Parts(t *testing.T) {
	address := os.Getenv("PUNTUALE_TEST_S3")
	if address == "" {
		t.Fatal("PUNTUALE_TEST_S3 is not set; run with scripts/with-s3")
	}
	service := objectstore.S3{Endpoint: address, Region: "us-east-1", AccessKey: os.Getenv("PUNTUALE_TEST_S3_ACCESS_KEY"), SecretKey: os.Getenv("PUNTUALE_TEST_S3_SECRET_KEY")}
	open := func(place string) *objectstore.Parts {
		storage, err := objectstore.Open(place, service)
		if err != nil {
			t.Fatal(err)
		}
		return objectstore.NewParts(storage, clock.System(), nil)
	}
	p := open("s3://puntuale/studio/files")
	for n, size := range []int{0, 1, 1000, 1 << 20} {
		content := make([]byte, size)
		random := rand.NewChaCha8([32]byte{byte(n)})
		for range 2 { // the second replaces the first
			_, _ = random.Read(content)
			if err := p.PutPart(t.Context(), "7-place-hash", n, content); err != nil {
				t.Fatalf("%d bytes: %v", size, err)
			}
		}
		if got, err := p.Part(t.Context(), "7-place-hash", n, int64(size)); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes came back as %d, %v", size, len(got), err)
		}
	}
	if got, err := p.Part(t.Context(), "7-place-hash", 3, 5); err != nil || len(got) != 6 {
		t.Errorf("within a bound: %d bytes, %v", len(got), err)
	}
	for range 2 {
		if err := p.RemoveParts(t.Context(), "7-place-hash", 5); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.Part(t.Context(), "7-place-hash", 3, 5); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed part: %v", err)
	}
	if err := p.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	if err := open("s3://another/files").Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "bucket") {
		t.Errorf("a bucket that is not there: %v", err)
	}
	if _, err := open("s3://another/files").Part(t.Context(), "x", 0, 1); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a part in a bucket that is not there: %v", err)
	}
	service.SecretKey = "wrong"
	if err := open("s3://puntuale/studio/files").Probe(t.Context()); err == nil || strings.Contains(err.Error(), "wrong ") {
		t.Errorf("with a wrong secret: %v", err)
	}
}
