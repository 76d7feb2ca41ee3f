package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// writeNotes writes the notes of the release: what changed, how to check the files, and the sizes.
func (r *release) writeNotes(s *signer) error {
	changes, err := os.ReadFile(r.tree.path("CHANGELOG.md"))
	if err != nil {
		return err
	}
	section, ok := changesOf(string(changes), r.version)
	if !ok {
		r.warnings = append(r.warnings, "warning: CHANGELOG.md has no section "+r.version+", so the notes have what is under Unreleased")
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "# Puntuale %s\n\nCommit %.12s of %s, compiled with %s. `docs/install.md` in each archive explains how to install it.\n\n",
		r.version, r.program.commit, r.program.at.Format(time.DateOnly), goVersion)
	if s == nil {
		r.warnings = append(r.warnings, "warning: no key was given, so this release is unsigned")
		text.WriteString("**This release is unsigned.** `sha256sum -c --ignore-missing SHA256SUMS` finds damaged files, but does not show who made them.\n")
	} else {
		fmt.Fprintf(&text, "```sh\nminisign -V -m SHA256SUMS -P %s\nsha256sum -c --ignore-missing SHA256SUMS\n```\n", s.public())
	}
	text.WriteString("\n## Sizes\n\n")
	for _, line := range r.figures {
		fmt.Fprintf(&text, "- %s\n", line)
	}
	fmt.Fprintf(&text, "\n## Changes\n\n%s\n", section)
	return os.WriteFile(filepath.Join(r.dist, notesFile), text.Bytes(), 0o644)
}

// changesOf returns the section of a version, or else the section of what is not released yet.
func changesOf(changes, version string) (section string, ok bool) {
	for _, name := range []string{version, "Unreleased"} {
		begin := regexp.MustCompile(`(?m)^## \[?` + regexp.QuoteMeta(name) + `\b.*\n`).FindStringIndex(changes)
		if begin == nil {
			continue
		}
		section, _, _ = strings.Cut(changes[begin[1]:], "\n## ")
		return strings.TrimSpace(section), name == version
	}
	return "", false
}
