package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const licensesFile = "LICENSES.txt"

// module is a library in the program, as go.mod names it.
type module struct {
	Path, Version string
	Dir           string // folder of its sources
	sum           string // as in go.sum
}

// license is a part of the program that others wrote, and its terms.
type license struct {
	name, version string
	purl          string   // package URL; "": the part is in no registry
	ids           []string // SPDX identifiers
	texts         []string // the files of its terms, without repeats
	noticed       bool     // a file NOTICE is among them
}

// allowed lists the terms under which a part may be, as the product itself is under the GPL, version 3 or later.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0", "CC0-1.0", "GPL-3.0-only", "0BSD", "ISC", "LGPL-3.0-only", "MIT", "MIT-0", "MPL-2.0", "Unicode-3.0", "Unlicense", "Zlib"}

// marks are pieces of text that tell licenses apart. Blanks are compared as one space.
var marks = []struct{ id, text string }{
	{"GPL-3.0-only", "GNU GENERAL PUBLIC LICENSE Version 3"},
	{"AGPL-3.0-only", "GNU AFFERO GENERAL PUBLIC LICENSE Version 3"},
	{"LGPL-3.0-only", "GNU LESSER GENERAL PUBLIC LICENSE Version 3"},
	{"LGPL-2", "GNU LESSER GENERAL PUBLIC LICENSE Version 2"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"MPL-2.0", "Mozilla Public License, version 2.0"},
	{"Apache-2.0", "Apache License Version 2.0"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that"},
	{"ISC", "Permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted, provided that"},
	{"Unlicense", "This is free and unencumbered software released into the public domain"},
	{"CC0-1.0", "CC0 1.0 Universal"},
	{"Unicode-3.0", "UNICODE LICENSE V3"},
}

// identify returns the SPDX identifiers of the licenses in a text.
func identify(text []byte) (ids []string) {
	flat := strings.Join(strings.Fields(string(text)), " ")
	for _, m := range marks {
		if strings.Contains(strings.ToLower(flat), strings.ToLower(m.text)) {
			ids = append(ids, m.id)
		}
	}
	if strings.Contains(flat, "Permission is hereby granted, free of charge, to any person obtaining a copy") && !slices.Contains(ids, "Unicode-3.0") {
		ids = append(ids, "MIT")
	}
	if strings.Contains(flat, "Redistribution and use in source and binary forms") {
		id := "BSD-2-Clause"
		if strings.Contains(flat, "endorse or promote") {
			id = "BSD-3-Clause"
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

var (
	termsName  = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([-._].*)?$`)
	versionEnd = regexp.MustCompile(`/v[0-9]+$`) // of a module's path
	noticeName = regexp.MustCompile(`(?i)^(notice|patents|authors)([-._](txt|md))?$`)
)

// findLicenses finds the terms of every part of the programs, and writes them into one file. A part without known terms
// stops the release.
func (r *release) findLicenses(ctx context.Context) error {
	if err := r.findModules(ctx); err != nil {
		return err
	}
	named, err := os.ReadFile(r.tree.path("NOTICE"))
	if err != nil {
		return err
	}
	notice := string(named)
	for _, name := range slices.Sorted(maps.Keys(r.modules)) {
		m := r.modules[name]
		one := license{name: m.Path, version: m.Version, purl: "pkg:golang/" + strings.ToLower(m.Path) + "@" + m.Version}
		if err := one.read(m.Dir); err != nil {
			return err
		}
		if one.noticed && !strings.Contains(notice, strings.TrimPrefix(versionEnd.ReplaceAllString(m.Path, ""), "github.com/")) {
			return fmt.Errorf("%s has a notice, and NOTICE does not name it", m.Path)
		}
		r.licenses = append(r.licenses, one)
	}
	library := license{name: "Go's standard library", version: strings.TrimPrefix(goVersion, "go"), purl: "pkg:golang/std@" + strings.TrimPrefix(goVersion, "go")}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find Go's own license: %w", err)
	}
	if err := library.read(strings.TrimSpace(string(root))); err != nil {
		return err
	}
	roots, err := r.rootsLicense(ctx)
	if err != nil {
		return err
	}
	r.licenses = append(r.licenses, library, roots)
	vendored, err := readVendored(r.program.folder)
	if err != nil {
		return err
	}
	r.licenses = append(r.licenses, vendored...)
	for _, l := range r.licenses {
		if len(l.ids) == 0 || len(without(l.ids, allowed)) > 0 {
			return fmt.Errorf("the terms of %s %s are %q, which are unknown or not among those allowed: %s", l.name, l.version, l.ids, strings.Join(allowed, ", "))
		}
	}
	return os.WriteFile(filepath.Join(r.work, licensesFile), r.licensesText(), 0o644)
}

// rootsLicense returns the terms of the certificates that the image contains. This command imports them, the program
// does not.
func (r *release) rootsLicense(ctx context.Context) (license, error) {
	const module = "golang.org/x/crypto/x509roots/fallback"
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", module).Output()
	version, folder, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || folder == "" {
		return license{}, fmt.Errorf("find the module of the image's certificates: %w", err)
	}
	one := license{name: "Mozilla's certificates of authorities, in the image (" + module + ")", version: version, purl: "pkg:golang/" + module + "@" + version}
	return one, one.read(folder)
}

// findModules sets the folders of the modules' sources.
func (r *release) findModules(ctx context.Context) error {
	if len(r.modules) == 0 {
		return nil // without names, go list names the program's own module
	}
	args := []string{"list", "-m", "-json"}
	cmd := exec.CommandContext(ctx, "go", append(args, slices.Sorted(maps.Keys(r.modules))...)...)
	cmd.Dir, cmd.Stderr, cmd.Env = r.program.folder, os.Stderr, append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list the modules: %w", err)
	}
	for list := json.NewDecoder(bytes.NewReader(out)); list.More(); {
		var m struct {
			Path, Dir string
			Replace   *struct{ Dir string }
		}
		if err := list.Decode(&m); err != nil {
			return fmt.Errorf("read the list of modules: %w", err)
		}
		found := r.modules[m.Path]
		if found.Dir = m.Dir; m.Replace != nil {
			found.Dir = m.Replace.Dir
		}
		if found.Dir == "" {
			return fmt.Errorf("the sources of %s are not here", m.Path)
		}
		r.modules[m.Path] = found
	}
	return nil
}

// read reads the terms in a folder.
func (l *license) read(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("look for the terms of %s: %w", l.name, err)
	}
	for _, entry := range entries {
		terms := termsName.MatchString(entry.Name())
		if entry.IsDir() || !terms && !noticeName.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		if terms {
			l.ids = append(l.ids, identify(text)...)
		}
		l.noticed = l.noticed || strings.HasPrefix(strings.ToUpper(entry.Name()), "NOTICE")
		l.texts = append(l.texts, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")))
	}
	slices.Sort(l.ids)
	l.ids = slices.Compact(l.ids)
	return nil
}

// readVendored returns the terms of the browser files of others, which the program contains, and of Unicode's data. A
// file vendored.json lists the packages of its folder.
func readVendored(folder string) (all []license, err error) {
	unicode, err := os.ReadFile(filepath.Join(folder, "internal/icalendar/LICENSE-UNICODE"))
	switch {
	case err == nil:
		all = append(all, license{name: "Unicode CLDR", ids: identify(unicode), texts: []string{strings.TrimSpace(string(unicode))}})
	case !os.IsNotExist(err):
		return nil, err
	}
	err = filepath.WalkDir(filepath.Join(folder, "internal"), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "vendored.json" || strings.Contains(name, "testdata") {
			return err
		}
		packages, err := readManifest(name)
		all = append(all, packages...)
		return err
	})
	return all, err
}

func (r *release) licensesText() []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "Puntuale %s is free software under the GNU General Public License, version 3 or later (LICENSE).\n", r.version)
	text.WriteString("The programs contain parts that others wrote. This file lists these parts, and then their terms.\n\n")
	byTerms := map[string][]string{}
	for _, l := range r.licenses {
		fmt.Fprintf(&text, "  %-60s %-42s %s\n", l.name, l.version, strings.Join(l.ids, ", "))
		for _, terms := range l.texts {
			byTerms[terms] = append(byTerms[terms], strings.TrimSpace(l.name+" "+l.version))
		}
	}
	for _, terms := range slices.SortedFunc(maps.Keys(byTerms), func(a, b string) int {
		return cmp.Or(strings.Compare(byTerms[a][0], byTerms[b][0]), strings.Compare(a, b))
	}) {
		fmt.Fprintf(&text, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(byTerms[terms], "\n"), terms)
	}
	return text.Bytes()
}

// sorted sorts entries by name.
func sorted(all []entry) []entry {
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(path.Clean(a.name), path.Clean(b.name)) })
	return all
}
