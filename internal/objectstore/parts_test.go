package objectstore_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"puntuale/internal/clock"
	"puntuale/internal/objectstore"
	"puntuale/internal/objectstore/s3test"
)

func open(t *testing.T, address, endpoint string) objectstore.Storage {
	t.Helper()
	storage, err := objectstore.Open(address, objectstore.S3{Endpoint: endpoint, Region: "us-east-1", AccessKey: s3test.AccessKey, SecretKey: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	return storage
}

// TestParts: parts are stored, replaced, read within their bound, and removed, in a folder and in a bucket.
func TestParts(t *testing.T) {
	t.Parallel()
	server, folder := s3test.New(t), filepath.Join(t.TempDir(), "files")
	for _, address := range []string{folder, "s3://bucket/files"} {
		p := objectstore.NewParts(open(t, address, server.URL), clock.System(), nil)
		big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		for n, content := range [][]byte{big, []byte("the end"), {}} {
			for range 2 { // a repeat replaces
				if err := p.PutPart(t.Context(), "1-a-b", n, content); err != nil {
					t.Fatalf("%s: %v", address, err)
				}
			}
			if got, err := p.Part(t.Context(), "1-a-b", n, int64(len(content))); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s: part %d: %d bytes, %v", address, n, len(got), err)
			}
		}
		if got, err := p.Part(t.Context(), "1-a-b", 0, 10); err != nil || len(got) != 11 {
			t.Errorf("%s: a longer part: %d bytes, %v, want one more than the bound", address, len(got), err)
		}
		if _, err := p.Part(t.Context(), "1-a-b", 3, 10); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a missing part: %v", address, err)
		}
		if err := p.Probe(t.Context()); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		if address == folder { // a process was killed while it wrote
			if err := os.WriteFile(filepath.Join(folder, "1-a-b", ".3.unfinished-1"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := p.RemoveParts(t.Context(), "1-a-b", 4); err != nil {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if left := server.Objects(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestProbeSaysWhy: what the doctor shows names the refusal, and no secret.
func TestProbeSaysWhy(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	p := objectstore.NewParts(open(t, "s3://bucket/files", server.URL), clock.System(), nil)
	for _, refused := range []string{"PUT", "GET", "DELETE"} {
		server.Refuse(func(method, _ string) bool { return method == refused })
		if err := p.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "AccessDenied") && !strings.Contains(err.Error(), "Access Denied") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", refused, err)
		}
	}
}

// TestProbeWithoutList: a key that may not list the bucket gets the same answer for a missing object as for a forbidden one.
func TestProbeWithoutList(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	stored := map[string]bool{}
	server.Refuse(func(method, key string) bool {
		stored[key] = stored[key] || method == http.MethodPut
		return method == http.MethodGet && !stored[key]
	})
	p := objectstore.NewParts(open(t, "s3://bucket/files", server.URL), clock.System(), nil)
	if err := p.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "s3:ListBucket") {
		t.Errorf("%v, want the missing right", err)
	}
}

// hanging is a storage that never answers, whatever its callers do.
type hanging struct {
	objectstore.Storage
	calls   atomic.Int64
	answers atomic.Bool
	end     chan struct{}
}

func (h *hanging) Replace(context.Context, string, int, []byte) error {
	h.calls.Add(1)
	if h.answers.Load() {
		return nil
	}
	<-h.end
	return errors.New("ended")
}

func (h *hanging) RemoveFolder(context.Context, string, int) error {
	<-h.end
	return errors.New("ended")
}

func (h *hanging) Read(context.Context, string, int, int64) ([]byte, error) {
	return nil, h.Replace(context.Background(), "", 0, nil)
}

// TestSilentStorage: a call of a storage that hangs ends after a time. Meanwhile the others fail at once, and the storage is
// asked again only after a while, by a bounded number of calls. A caller who gives up shows nothing about the storage.
func TestSilentStorage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{end: make(chan struct{})}
		defer close(h.end)
		var failures atomic.Int64
		p := objectstore.NewParts(h, clock.System(), func() { failures.Add(1) })
		hurried, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.PutPart(hurried, "x", 0, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller who gives up: %v", err)
		}
		took := func(do func() error) time.Duration {
			begun := time.Now()
			if err := do(); !errors.Is(err, objectstore.ErrSilent) {
				t.Errorf("%v, want silence", err)
			}
			return time.Since(begun)
		}
		put := func() error { return p.PutPart(t.Context(), "x", 0, nil) }
		read := func() error { _, err := p.Part(t.Context(), "x", 0, 1); return err }
		if d := took(put); d != 20*time.Second {
			t.Errorf("the first call took %v", d)
		}
		if d := took(read); d != 0 {
			t.Errorf("a call after it took %v", d)
		}
		if n := failures.Load(); n != 1 {
			t.Errorf("%d failures are counted, want that of the storage", n)
		}
		time.Sleep(11 * time.Second)
		before := h.calls.Load()
		for range 200 {
			go func() { _ = put() }()
		}
		synctest.Wait()
		if n := h.calls.Load() - before; n != 1 {
			t.Errorf("%d calls asked after a while, want one", n)
		}
		time.Sleep(31 * time.Second)
		if d := took(read); d != 10*time.Second {
			t.Errorf("a reading call that asks took %v", d)
		}
		time.Sleep(11 * time.Second)
		h.answers.Store(true)
		if err := read(); err != nil {
			t.Errorf("after the storage answered: %v", err)
		}
		if d := took(func() error { return p.RemoveParts(t.Context(), "x", 100) }); d != time.Minute {
			t.Errorf("a removal took %v", d)
		}
		for range 2 { // a removal that takes long shows nothing about other calls
			if err := put(); err != nil {
				t.Errorf("after the storage answered: %v", err)
			}
		}
		h.answers.Store(false)
		for range 200 {
			go func() { _ = put() }()
		}
		synctest.Wait()
		if n := h.calls.Load(); n > 70 {
			t.Errorf("%d calls hang, want at most 64 and those before", n)
		}
		time.Sleep(21 * time.Second)
	})
}
