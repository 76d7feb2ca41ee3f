package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const componentsFile = "sbom.cdx.json"

// readManifest reads a file vendored.json, and returns the terms of its packages.
func readManifest(name string) ([]license, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var manifest struct {
		Packages []struct{ Package, Version, License string }
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	var all []license
	for _, p := range manifest.Packages {
		l := license{name: p.Package, version: p.Version, purl: "pkg:npm/" + strings.ReplaceAll(p.Package, "@", "%40") + "@" + p.Version}
		folder := filepath.Join(filepath.Dir(name), strings.TrimPrefix(p.Package, "@"))
		if _, err := os.Stat(folder); err == nil {
			if err := l.read(folder); err != nil {
				return nil, err
			}
		}
		l.ids = []string{strings.Replace(p.License, "BSD-0-Clause", "0BSD", 1)} // npm's own name of this license
		all = append(all, l)
	}
	return all, nil
}

// writeComponents writes the list of all parts of the programs, in the form of CycloneDX 1.6, into the work folder and
// among the release's files. Licenses are expressions, even a single one: the schema lists the identifiers of single
// licenses, and many tools have an old list, without Unicode-3.0.
func (r *release) writeComponents() error {
	bom := cdx.NewBOM()
	bom.SpecVersion, bom.JSONSchema = cdx.SpecVersion1_6, "http://cyclonedx.org/schema/bom-1.6.schema.json"
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.tree.at.Format(time.RFC3339),
		Component: &cdx.Component{
			BOMRef: "puntuale", Type: cdx.ComponentTypeApplication, Name: "puntuale", Version: r.version,
			Licenses: &cdx.Licenses{{Expression: "GPL-3.0-or-later"}},
		},
	}
	var parts []cdx.Component
	var refs []string
	for _, l := range r.licenses {
		c := cdx.Component{BOMRef: l.purl, Type: cdx.ComponentTypeLibrary, Name: l.name, Version: l.version, PackageURL: l.purl}
		if l.purl == "" {
			c.BOMRef, c.Type = strings.ReplaceAll(l.name, " ", "-"), cdx.ComponentTypeData
		}
		c.Licenses = &cdx.Licenses{{Expression: strings.Join(l.ids, " AND ")}}
		if m, ok := r.modules[l.name]; ok {
			c.Properties = &[]cdx.Property{{Name: "go.sum", Value: m.sum}}
		}
		parts, refs = append(parts, c), append(refs, c.BOMRef)
	}
	bom.Components, bom.Dependencies = &parts, &[]cdx.Dependency{{Ref: "puntuale", Dependencies: &refs}}
	var text bytes.Buffer
	if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return fmt.Errorf("write the components: %w", err)
	}
	for _, name := range []string{filepath.Join(r.work, componentsFile), filepath.Join(r.dist, "puntuale_"+r.version+"_"+componentsFile)} {
		if err := os.WriteFile(name, text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(r.dist, "puntuale_"+r.version+"_"+licensesFile), r.licensesText(), 0o644)
}
