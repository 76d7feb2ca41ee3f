package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
)

// version is set in builds without a repository, with -ldflags "-X main.version=1.2.3". Builds with a repository use
// the tag of their commit.
var version = ""

// taggedRelease matches the tag of a release as Go's build writes it, such as v1.2.3 or v1.2.3-rc.1. For commits
// between tags, Go writes other forms, which do not match.
var taggedRelease = regexp.MustCompile(`^v(\d+\.\d+\.\d+(?:-[a-z]+\.\d+)?)(?:\+dirty)?$`)

// releaseOf returns the name of the release. It is "development" if the commit has no tag.
func releaseOf(given string, info *debug.BuildInfo) string {
	if given != "" {
		return strings.TrimPrefix(given, "v")
	}
	if tag := taggedRelease.FindStringSubmatch(info.Main.Version); tag != nil {
		return tag[1]
	}
	return "development"
}

// release returns the name of this build's release.
func release() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return releaseOf(version, info)
}

type versionCommand struct{}

func (versionCommand) Run(_ context.Context, p *program) error {
	_, err := fmt.Fprintln(p.stdout, "puntuale", versionText())
	return err
}

// versionText returns the release, the commit with its date, and Go's version.
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
	return fmt.Sprintf("%s (%s)", releaseOf(release, info), strings.Join(append(parts, info.GoVersion), ", "))
}
