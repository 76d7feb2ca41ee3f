package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var componentsOf = flag.String("components", "", "a release's list of components, which TestComponents checks, too")

// TestBounds: a release stops if its program, its archive or its start is above the bound. The program is a small one.
func TestBounds(t *testing.T) {
	t.Parallel()
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		t.Skip("the bounds of sizes are for linux/amd64")
	}
	for want, b := range map[string]bounds{
		"":                                  kept,
		"the program has 5.":                {program: 1 << 20, archive: kept.archive, ready: kept.ready},
		"the archive has 2.":                {program: kept.program, archive: 1 << 20, ready: kept.ready},
		"ready on an empty database after ": {program: kept.program, archive: kept.archive, ready: 1},
	} {
		r := smallRelease(t, b)
		err := r.build(t.Context(), []string{"linux/amd64"}, true)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("with %+v: got %v, want %q", b, err, want)
		}
	}
}

// smallRelease returns a release of a small program, which is ready at once.
func smallRelease(t *testing.T, b bounds) *release {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module puntuale\n\ngo 1.26.0\n",
		"cmd/puntuale/main.go": `package main

import "net/http"
import "os"

func main() { panic(http.ListenAndServe(os.Args[4], http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))) }
`,
		"internal/none": "", "LICENSE": "Permission is hereby granted, free of charge, to any person obtaining a copy",
		"NOTICE": "", "CHANGELOG.md": "", "docs/install.md": "", "deploy/README.md": "", "README.md": "",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755), os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	small := &tree{folder: folder, commit: strings.Repeat("0", 40), at: time.Date(2026, 11, 24, 15, 46, 4, 0, time.UTC)}
	return &release{version: "1.2.3", dist: t.TempDir(), work: t.TempDir(), kinds: []string{"archive"}, bounds: b, tree: small, program: small,
		modules: map[string]module{}}
}

// TestComponents: the list of components follows CycloneDX's own schema.
func TestComponents(t *testing.T) {
	t.Parallel()
	schema := componentsSchema(t)
	r := smallRelease(t, kept)
	r.licenses = []license{
		{name: "example.com/a", version: "v1.2.3", purl: "pkg:golang/example.com/a@v1.2.3", ids: []string{"MIT"}},
		{name: "example.com/b", version: "v0.1.0", purl: "pkg:golang/example.com/b@v0.1.0", ids: []string{"Apache-2.0", "MIT"}},
		{name: "Unicode CLDR", ids: []string{"Unicode-3.0"}},
	}
	r.modules["example.com/a"] = module{sum: "h1:0"}
	if err := r.writeComponents(); err != nil {
		t.Fatal(err)
	}
	names := []string{filepath.Join(r.work, componentsFile)}
	if *componentsOf != "" {
		names = append(names, *componentsOf)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, schema, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for was, now := range map[string]string{`"library"`: `"part"`, `"2026-`: `"26-`} {
			if wrong := bytes.Replace(text, []byte(was), []byte(now), 1); validate(t, schema, wrong) == nil {
				t.Errorf("%s: with %s instead of %s it is valid, too", name, now, was)
			}
		}
	}
}

// componentsSchema returns the schema of CycloneDX 1.6, which is among the sources of the library that writes the list.
func componentsSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	const main = "http://cyclonedx.org/schema/bom-1.6.schema.json"
	for address, name := range map[string]string{
		main: "bom-1.6.schema.json", "http://cyclonedx.org/schema/spdx.schema.json": "spdx.schema.json",
		"http://cyclonedx.org/schema/jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "schema", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(address, decoded(t, bytes.NewReader(text))); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile(main)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, text []byte) error {
	t.Helper()
	return schema.Validate(decoded(t, bytes.NewReader(text)))
}

func decoded(t *testing.T, r io.Reader) any {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(r)
	if err != nil {
		t.Fatal(err)
	}
	return document
}
