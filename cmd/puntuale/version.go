package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"strings"
)

// version is set when a release is built: -ldflags "-X main.version=1.2.3".
var version = ""

type versionCommand struct{}

func (versionCommand) Run(_ context.Context, p *program) error {
	_, err := fmt.Fprintln(p.stdout, "puntuale", versionText())
	return err
}

// versionText names the release, the commit that the binary was built from with its date, and Go's version.
func versionText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(version, "(unknown)")
	}
	return versionOf(version, info)
}

func versionOf(release string, info *debug.BuildInfo) string {
	built := map[string]string{}
	for _, s := range info.Settings {
		built[s.Key] = s.Value
	}
	var parts []string
	if commit := built["vcs.revision"]; commit != "" {
		text := "commit " + commit[:min(12, len(commit))]
		if date := built["vcs.time"]; date != "" {
			text += " of " + date
		}
		if built["vcs.modified"] == "true" {
			text += " with changes"
		}
		parts = append(parts, text)
	}
	return fmt.Sprintf("%s (%s)", cmp.Or(release, "development"), strings.Join(append(parts, info.GoVersion), ", "))
}
