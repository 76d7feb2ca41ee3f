package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"puntuale/internal/logging"
	"puntuale/internal/store/transfer"
)

// version is set in builds without a repository, with -ldflags "-X main.version=1.2.3". Builds with a repository use
// the tag of their commit.
var version = ""

// commit is set in builds without a repository, with -ldflags "-X 'main.commit=0123456789ab of 2026-11-20T09:00:00Z'".
var commit = ""

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
	if commit != "" {
		parts = append(parts, "commit "+commit)
	} else if revision := built["vcs.revision"]; revision != "" {
		text := "commit " + revision[:min(12, len(revision))]
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

// upgradeCommand tells whether this program may be installed over a database, before anything is stopped or replaced.
// The upgrade itself needs no command: the new program's start or the command migrate does it.
type upgradeCommand struct {
	baseSettings `embed:""`

	Check bool `local:"" required:"" help:"Only look: nothing is changed. Exit code 0 means that this program may be installed."`
}

func (c *upgradeCommand) Run(ctx context.Context, p *program) error {
	c.Data = p.path(c.Data)
	where := databaseName(&c.baseSettings)
	if newFile(&c.baseSettings, c.Data) != "" {
		return fmt.Errorf("there is no database %s, so there is nothing to upgrade", where)
	}
	u, err := transfer.ReadUpgrade(ctx, storeConfig(&c.baseSettings, p.clock, nil, logging.New(p.stderr, p.logColor, c.LogLevel), true))
	if err != nil {
		return opening(err, &c.baseSettings)
	}
	writeUpgrade(p.stdout, where, &u, p.clock.Now())
	return nil
}

// writeUpgrade writes what an upgrade would change, for people.
func writeUpgrade(w io.Writer, where string, u *transfer.Upgrade, now time.Time) {
	fmt.Fprintf(w, "puntuale %s may be installed over %s.\n", release(), where)
	if len(u.Missing) == 0 {
		fmt.Fprintf(w, "The tables have version %d, as this program needs. Nothing in the database changes.\n", u.Version)
		return
	}
	fmt.Fprintf(w, "The tables have version %d, and this program needs %d. Its first start, or the command migrate, would run:\n", u.Version, u.Wanted)
	for _, m := range u.Missing {
		fmt.Fprintf(w, "  %2d %s: %s\n", m.Number, m.Name, strings.Join(m.Changes, "; "))
	}
	fmt.Fprintf(w, "Servers that run on the database now: %d.\n", u.Servers)
	backup := "There is no backup yet"
	if !u.Backup.IsZero() {
		backup = fmt.Sprintf("The last backup is %v old", now.Sub(u.Backup).Round(time.Minute))
	}
	fmt.Fprintf(w, "%s. An older program refuses the new tables, so a backup is the only way back: puntuale backup.\n", backup)
}
