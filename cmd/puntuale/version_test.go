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
	for tag, want := range map[string]string{
		"v0.1.0": "0.1.0", "v0.1.0+dirty": "0.1.0", "v1.2.3-rc.1": "1.2.3-rc.1",
		"v0.1.1-0.20261124153752-d029ff267214": "development", "(devel)": "development", "": "development",
	} {
		if got := releaseOf("", &debug.BuildInfo{Main: debug.Module{Version: tag}}); got != want {
			t.Errorf("%q: got %s, want %s", tag, got, want)
		}
	}
	if got := releaseOf("v1.2.0", &debug.BuildInfo{}); got != "1.2.0" {
		t.Errorf("a name with a v: got %s", got)
	}
}
