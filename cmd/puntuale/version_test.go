package main

import (
	"runtime/debug"
	"testing"
)

func TestVersionNamesCommitAndDate(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{GoVersion: "go1.26", Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-11-20T09:00:00Z"}, {Key: "vcs.modified", Value: "true"}}}
	const want = "1.2.0 (commit 0123456789ab of 2026-11-20T09:00:00Z with changes, go1.26)"
	if got := versionOf("1.2.0", info); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := versionOf("", &debug.BuildInfo{GoVersion: "go1.26"}), "development (go1.26)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
