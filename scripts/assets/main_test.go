package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestVendoredFiles: the files of other projects in this tree are equal to the published files.
func TestVendoredFiles(t *testing.T) {
	t.Parallel()
	faults, err := verify("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Error(f)
	}
	for _, folder := range []string{"internal/httpapi/docs/static", "internal/web/static", "internal/web/testdata"} {
		if _, err := readManifest("../../" + folder); err != nil {
			t.Error(err)
		}
	}
}

// TestDifferencesAreFound: the comparison reports each file that differs from the manifest.
func TestDifferencesAreFound(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	p := pkg{Name: "@some/thing", Version: "1.0.0", License: "MIT", Integrity: integrity([]byte("archive")), Files: map[string]string{
		"LICENSE": integrity([]byte("words")), "dist/thing.js": integrity([]byte("code")),
	}}
	if err := p.store(folder, map[string][]byte{"LICENSE": []byte("words"), "dist/thing.js": []byte("code"), "package.json": []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	if err := (manifest{[]pkg{p}}).write(folder); err != nil {
		t.Fatal(err)
	}
	expect := func(want ...string) {
		t.Helper()
		faults, err := verify(folder)
		if err != nil {
			t.Fatal(err)
		}
		if len(faults) != len(want) {
			t.Errorf("found %q, want %q", faults, want)
			return
		}
		for _, w := range want {
			if !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, w) }) {
				t.Errorf("found %q, want %q", faults, want)
			}
		}
	}
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, "some/thing", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect()
	write("dist/thing.js", "code ")
	expect("thing.js is not the file")
	write("more.js", "x")
	expect("thing.js is not the file", "more.js is not in the manifest")
	if err := os.RemoveAll(filepath.Join(folder, "some")); err != nil {
		t.Fatal(err)
	}
	expect("LICENSE is missing", "thing.js is missing")
	if err := (pkg{Name: "../outside"}).store(folder, nil); err == nil {
		t.Error("a package that leads elsewhere was stored")
	}
	p.Files["../../outside"] = integrity(nil)
	if err := p.store(folder, nil); err == nil {
		t.Error("a path that leads elsewhere was stored")
	}
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	for name, content := range map[string]string{"package/LICENSE": "words", "package/dist/a.js": "code"} {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	z.Close()
	files, err := unpack(archive.Bytes())
	if err != nil || len(files) != 2 || string(files["dist/a.js"]) != "code" || string(files["LICENSE"]) != "words" {
		t.Errorf("unpacked %q, %v", files, err)
	}
	if _, err := unpack(archive.Bytes()[:40]); err == nil {
		t.Error("half an archive was unpacked")
	}
}
