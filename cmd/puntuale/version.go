package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
)

// version is set when a release is built: -ldflags "-X main.version=1.2.3".
var version = ""

type versionCommand struct{}

func (versionCommand) Run(_ context.Context, p *program) error {
	_, err := fmt.Fprintln(p.stdout, "puntuale", versionText())
	return err
}

// versionText names the release, else the commit that the binary was built from, and Go's version.
func versionText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(version, "(unknown)")
	}
	name := version
	if name == "" {
		name = "(devel)"
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				name = "(devel " + s.Value[:min(12, len(s.Value))] + ")"
			}
		}
	}
	return name + " " + info.GoVersion
}
