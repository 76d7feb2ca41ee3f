package main

import (
	"bytes"
	"crypto/rand"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
)

var (
	keyFile    = flag.String("key", "", "where TestKey writes a secret key")
	publicFile = flag.String("public", "", "where TestKey writes its public key")
)

// TestKey makes a pair of keys for scripts/releasetest. Real keys are made with minisign -G.
func TestKey(t *testing.T) {
	if *keyFile == "" {
		t.Skip("no -key")
	}
	public, secret, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]interface{ MarshalText() ([]byte, error) }{*keyFile: secret, *publicFile: public} {
		text, err := key.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSignature: a key from the environment or from a file, with or without a password, signs the checksums of all
// files. Without a key there is no signature, and a wrong password is an error.
func TestSignature(t *testing.T) {
	t.Parallel()
	public, secret, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := minisign.EncryptKey("secret", secret)
	if err != nil {
		t.Fatal(err)
	}
	env := func(key, password string) func(string) string {
		return func(name string) string {
			return map[string]string{"MINISIGN_KEY": key, "MINISIGN_PASSWORD": password}[name]
		}
	}
	if s, err := readSigner("", env("", "")); s != nil || err != nil {
		t.Errorf("without a key: %v, %v", s, err)
	}
	if _, err := readSigner("", env(string(sealed), "wrong")); err == nil {
		t.Error("a wrong password opens the key")
	}
	s, err := readSigner("", env(string(sealed), "secret"))
	if err != nil {
		t.Fatal(err)
	}
	r := &release{version: "1.2.3", dist: t.TempDir()}
	if err := os.WriteFile(filepath.Join(r.dist, "puntuale_x"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := signDist(r, s); err != nil {
		t.Fatal(err)
	}
	sums, _ := os.ReadFile(filepath.Join(r.dist, sumsFile))
	signature, _ := os.ReadFile(filepath.Join(r.dist, signatureFile))
	if want := "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  puntuale_x\n"; string(sums) != want {
		t.Errorf("got %q, want %q", sums, want)
	}
	verify := func(text []byte) bool {
		reader := minisign.NewReader(bytes.NewReader(text))
		if _, err := new(bytes.Buffer).ReadFrom(reader); err != nil {
			t.Fatal(err)
		}
		return reader.Verify(public, signature)
	}
	if !verify(sums) || verify(append(sums, ' ')) {
		t.Error("the signature fits other checksums")
	}
	if !strings.HasSuffix(public.String(), s.public()) && s.public() == "" {
		t.Errorf("the public key is %q", s.public())
	}
}

// TestArchives: the same entries make the same bytes, whatever the files' own times are.
func TestArchives(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 15, 46, 4, 0, time.UTC)
	for name, write := range map[string]func(*bytes.Buffer, []entry) error{
		"tar.gz": func(w *bytes.Buffer, all []entry) error { return writeTarGz(w, all, at) },
		"zip":    func(w *bytes.Buffer, all []entry) error { return writeZip(w, all, at) },
	} {
		var made [2]bytes.Buffer
		for i := range made {
			file := filepath.Join(t.TempDir(), "x")
			if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, at, at.Add(time.Duration(i)*time.Hour)); err != nil {
				t.Fatal(err)
			}
			if err := write(&made[i], []entry{{name: "p/", mode: 0o755}, {name: "p/x", mode: 0o755, source: file}}); err != nil {
				t.Fatal(name, err)
			}
		}
		if !bytes.Equal(made[0].Bytes(), made[1].Bytes()) || made[0].Len() < 100 {
			t.Errorf("%s: two runs differ", name)
		}
	}
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"Permission is hereby granted, free of\ncharge, to any person obtaining a copy":                                                       {"MIT"},
		"                                 Apache License\n                           Version 2.0, January 2004":                               {"Apache-2.0"},
		"Redistribution and use in source and binary forms ... used to endorse or promote products":                                           {"BSD-3-Clause"},
		"Redistribution and use in source and binary forms, with or without":                                                                  {"BSD-2-Clause"},
		"Mozilla Public License Version 2.0\n==":                                                                                              {"MPL-2.0"},
		"                    GNU GENERAL PUBLIC LICENSE\n                       Version 3, 29 June 2007":                                      {"GPL-3.0-only"},
		"                   GNU LESSER GENERAL PUBLIC LICENSE\n                       Version 3, 29 June 2007":                                {"LGPL-3.0-only"},
		"\t\t  GNU LESSER GENERAL PUBLIC LICENSE\n\t\t       Version 2.1, February 1999":                                                      {"LGPL-2"},
		"                    GNU AFFERO GENERAL PUBLIC LICENSE\n                       Version 3, 19 November 2007":                           {"AGPL-3.0-only"},
		"Permission to use, copy, modify, and distribute this software for any\npurpose with or without fee is hereby granted, provided that": {"ISC"},
		"All rights reserved.": nil,
	} {
		if got := identify([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestChangesOf(t *testing.T) {
	t.Parallel()
	const text = "# Changelog\n\n## [Unreleased]\n\nnew\n\n## [1.2.0] - 2026-11-24\n\n### Added\n\nold\n\n## [1.1.0]\n"
	for version, want := range map[string]string{"1.2.0": "### Added\n\nold", "1.3.0": "new"} {
		if got, found := changesOf(text, version); got != want || found != (version == "1.2.0") {
			t.Errorf("%s: got %q, %v", version, got, found)
		}
	}
}

// TestDistIsOurs: only the files of an earlier release are removed.
func TestDistIsOurs(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"puntuale_1.2.3_amd64.deb", sumsFile, notesFile} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := emptyDist(folder); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(folder, "thesis.doc"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := emptyDist(folder); err == nil {
		t.Error("a folder with other files was taken")
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"1.2.3": true, "1.2.3-rc.1": true, "": false, "1.2": false, "v1.2.3": false, "1.2.3+x": false, "1.2.3 ": false} {
		if versionShape.MatchString(version) != want {
			t.Errorf("%q", version)
		}
	}
}
