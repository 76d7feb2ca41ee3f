package archive_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"puntuale/internal/store/archive"
)

func part(f *archive.Folder, file archive.File, rows ...[]any) func(io.Writer) error {
	return func(to io.Writer) error {
		w, err := archive.NewWriter(to, archive.Header{
			Tables: []archive.Table{{Name: "client", Columns: columns, Rows: int64(len(rows))}},
			Part:   &archive.Part{Folder: f.ID(), Serial: file.Serial},
		})
		if err == nil {
			err = w.Begin()
		}
		for _, row := range rows {
			if err == nil {
				err = w.Row(row)
			}
		}
		return errors.Join(err, w.End(), w.Close())
	}
}

func begun(t *testing.T) *archive.Folder {
	t.Helper()
	path := filepath.Join(t.TempDir(), "archive")
	if _, err := archive.OpenFolder(path); !errors.Is(err, archive.ErrNoFolder) {
		t.Fatalf("before it is begun: %v", err)
	}
	f, err := archive.BeginFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	return f
}

func names(t *testing.T, f *archive.Folder) string {
	t.Helper()
	files, err := os.ReadDir(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range files {
		all = append(all, entry.Name())
	}
	return strings.Join(all, " ")
}

// TestFolder checks three rules: each number is used only once, only the highest version is valid, and replaced
// versions are removed.
func TestFolder(t *testing.T) {
	t.Parallel()
	f := begun(t)
	if again, err := archive.BeginFolder(f.Path()); err != nil || again.ID() != f.ID() || f.ID() == "" {
		t.Errorf("begun again: %v, %v", again, err)
	}
	first := archive.File{Serial: 1, Version: 1}
	for i, want := range []error{nil, archive.ErrTaken} {
		if err := f.Put(first, part(f, first, rows[i])); !errors.Is(err, want) {
			t.Errorf("put %d: %v", i, err)
		}
	}
	second, third := archive.File{Serial: 1, Version: 2}, archive.File{Serial: 12, Version: 10}
	for _, file := range []archive.File{third, second} {
		if err := f.Put(file, part(f, file, rows[2])); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Put(archive.File{Serial: 2, Version: 1}, func(io.Writer) error { return io.ErrShortWrite }); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a write that fails: %v", err)
	}
	if err := os.WriteFile(filepath.Join(f.Path(), "12-1.gz"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Sweep(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, f); got != "00000001-2.gz 00000012-10.gz 12-1.gz archive.json" {
		t.Errorf("the folder holds %s", got)
	}
	files, err := f.Files()
	if err != nil || len(files) != 2 || files[0] != second || files[1] != third {
		t.Errorf("%v, %v", files, err)
	}
	if file, found, err := f.Find(2); found || err != nil {
		t.Errorf("%v, %v", file, err)
	}
	n := 0
	if _, err := f.Read(second, func(archive.Table, []any) error { n++; return nil }); err != nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
	if info, err := os.Stat(filepath.Join(f.Path(), second.Name())); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestForeignFiles checks that a file of another archive is refused, and also a file that was renamed to another
// number.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	f, other := begun(t), begun(t)
	file := archive.File{Serial: 3, Version: 1}
	if err := other.Put(file, part(other, file)); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(other.Path(), file.Name()), filepath.Join(other.Path(), "00000004-1.gz")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(other.Path(), file.Name()), filepath.Join(f.Path(), file.Name())); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Header(file); !errors.Is(err, archive.ErrForeign) {
		t.Errorf("another archive's: %v", err)
	}
	if _, err := other.Header(archive.File{Serial: 4, Version: 1}); !errors.Is(err, archive.ErrForeign) {
		t.Errorf("another number's: %v", err)
	}
	if err := os.WriteFile(filepath.Join(f.Path(), "archive.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.OpenFolder(f.Path()); err == nil || errors.Is(err, archive.ErrNoFolder) {
		t.Errorf("an identity that says nothing: %v", err)
	}
}

// TestPutTogether checks that only one goroutine succeeds if several put the same file at the same time.
func TestPutTogether(t *testing.T) {
	t.Parallel()
	f := begun(t)
	file := archive.File{Serial: 1, Version: 1}
	var wg sync.WaitGroup
	var put atomic.Int64
	for i := range 8 {
		wg.Go(func() {
			switch err := f.Put(file, part(f, file, rows[i%3])); {
			case err == nil:
				put.Add(1)
			case !errors.Is(err, archive.ErrTaken):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if put.Load() != 1 || names(t, f) != "00000001-1.gz archive.json" {
		t.Errorf("%d wrote it; there is %s", put.Load(), names(t, f))
	}
	if _, err := f.Read(file, func(archive.Table, []any) error { return nil }); err != nil {
		t.Error(err)
	}
}
