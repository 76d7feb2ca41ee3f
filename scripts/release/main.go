// Command release builds everything that a release consists of, from one commit: archives for six platforms, packages
// for Debian and for Red Hat, an image for containers, a list of components, licenses, checksums and a signature. It
// needs git and Go, and no daemon. Two runs of the same commit write the same bytes.
//
//	go -C scripts/release run . -version 1.2.3 -dist ../../dist
//
// It is a module of its own, so that its libraries never enter the product's go.mod.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// bounds are what the files of a release keep. program and archive are for Linux on amd64.
type bounds struct {
	program int64         // bytes of the stripped program
	archive int64         // bytes of its archive
	image   int64         // bytes of the compressed layers of one platform's image
	ready   time.Duration // from the start on an empty folder until /readyz answers 200
}

// kept are the bounds of each release: 60 MiB, 22 MiB, 40 MB and a second.
var kept = bounds{program: 60 << 20, archive: 22 << 20, image: 40_000_000, ready: time.Second}

// goVersion is the version of Go that compiles a release, and that runs this command, whose libraries compress. Another
// version makes other bytes. The Makefile reads it here.
const goVersion = "go1.26.8"

var (
	allTargets = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}
	allKinds   = []string{"archive", "deb", "rpm", "image", "source"}
)

// release is one run of this command.
type release struct {
	version string // without v, such as 1.2.3 or 1.2.3-rc.1
	dist    string // folder that gets the files
	work    string // temporary folder
	kinds   []string
	bounds  bounds
	tree    *tree // the commit that is released
	program *tree // the commit of the program; the same as tree, except in tests of upgrades

	licenses []license
	modules  map[string]module // all modules of all programs, by path
	figures  []string          // lines for the notes
	warnings []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := os.Setenv("GOTOOLCHAIN", goVersion) // for every call of go
	if runtime.Version() != goVersion {
		err = fmt.Errorf("%s runs this command; make the release with GOTOOLCHAIN=%s", runtime.Version(), goVersion)
	}
	if err == nil {
		err = run(ctx, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// versionShape allows what Debian, RPM and Semantic Versioning all sort in the same way.
var versionShape = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[a-z]+\.[0-9]+)?$`)

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	version := flags.String("version", "", "the release's version, such as 1.2.3")
	dist := flags.String("dist", "dist", "the folder that gets the files; what an earlier release left there is removed")
	commit := flags.String("commit", "HEAD", "the commit to release")
	program := flags.String("program", "", "another commit whose program is packaged; for tests of upgrades")
	targets := flags.String("targets", strings.Join(allTargets, ","), "the platforms")
	kinds := flags.String("kinds", strings.Join(allKinds, ","), "what to make for them")
	key := flags.String("key", "", "the file of a minisign key that signs SHA256SUMS; otherwise the environment's MINISIGN_KEY, or no signature")
	start := flags.Bool("start", true, "start this machine's program, and check how long it takes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r := &release{version: strings.TrimPrefix(*version, "v"), kinds: strings.Split(*kinds, ","), bounds: kept, modules: map[string]module{}}
	if !versionShape.MatchString(r.version) {
		return fmt.Errorf("%q is no version such as 1.2.3 or 1.2.3-rc.1: make release VERSION=1.2.3", *version)
	}
	wanted := strings.Split(*targets, ",")
	for _, unknown := range slices.Concat(without(wanted, allTargets), without(r.kinds, allKinds)) {
		return fmt.Errorf("%q is neither a platform (%s) nor a kind (%s)", unknown, strings.Join(allTargets, ", "), strings.Join(allKinds, ", "))
	}
	signer, err := readSigner(*key, os.Getenv)
	if err != nil {
		return err
	}
	if r.dist, err = filepath.Abs(*dist); err != nil {
		return err
	}
	if err := emptyDist(r.dist); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "puntuale-release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	if r.tree, err = checkout(ctx, *commit, filepath.Join(r.work, "tree")); err != nil {
		return err
	}
	r.program = r.tree
	if *program != "" {
		if r.program, err = checkout(ctx, *program, filepath.Join(r.work, "program")); err != nil {
			return err
		}
	}
	if err := r.build(ctx, wanted, *start); err != nil {
		return err
	}
	if err := r.writeNotes(signer); err != nil {
		return err
	}
	if err := signDist(r, signer); err != nil {
		return err
	}
	for _, line := range slices.Concat(r.figures, r.warnings) {
		fmt.Println(line)
	}
	return nil
}

// build makes the programs, and from them all files of the release.
func (r *release) build(ctx context.Context, targets []string, start bool) error {
	var programs []program
	for _, target := range targets {
		p, err := r.compile(ctx, target)
		if err != nil {
			return err
		}
		programs = append(programs, p)
	}
	if err := r.findLicenses(ctx); err != nil {
		return err
	}
	if err := r.writeComponents(); err != nil {
		return err
	}
	if start {
		if err := r.checkStart(ctx, programs); err != nil {
			return err
		}
	}
	for _, kind := range r.kinds {
		var err error
		switch kind {
		case "archive":
			err = each(programs, r.writeArchive)
		case "deb", "rpm":
			err = each(onLinux(programs), func(p program) error { return r.writePackage(kind, p) })
		case "image":
			err = r.writeImage(onLinux(programs))
		case "source":
			err = r.writeSource(ctx)
		}
		if err != nil {
			return fmt.Errorf("make the %s: %w", kind, err)
		}
	}
	return nil
}

func each(all []program, do func(program) error) error {
	for _, p := range all {
		if err := do(p); err != nil {
			return fmt.Errorf("%s/%s: %w", p.os, p.arch, err)
		}
	}
	return nil
}

func onLinux(all []program) []program {
	return slices.DeleteFunc(slices.Clone(all), func(p program) bool { return p.os != "linux" })
}

func without(all, known []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(one string) bool { return slices.Contains(known, one) })
}

// emptyDist makes the folder, or removes the files of an earlier release from it. It refuses a folder with other files.
func emptyDist(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		ours := strings.HasPrefix(name, "puntuale_") || strings.HasPrefix(name, "puntuale-") || slices.Contains([]string{sumsFile, signatureFile, notesFile}, name)
		if entry.IsDir() || !ours {
			return fmt.Errorf("%s holds %s, which no release makes: empty the folder, or choose another with -dist", folder, name)
		}
	}
	for _, entry := range entries {
		if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
