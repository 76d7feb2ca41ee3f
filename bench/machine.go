package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
)

// machine describes the machine on which a run is measured.
type machine struct {
	lines      []string // the description, for people
	postmaster int      // id of PostgreSQL's main process; 0: it runs on another machine
}

// describe examines the machine. It returns an error if PostgreSQL answers a commit before the log of the commit is on
// disk.
func describe(ctx context.Context, b *bench) (machine, error) {
	var m machine
	add := func(format string, args ...any) { m.lines = append(m.lines, fmt.Sprintf(format, args...)) }
	add("%d cores, %s, %.0f GiB of memory, %s", runtime.NumCPU(), field("/proc/cpuinfo", "model name"), memory()/(1<<20), kernel())
	add("%s; peers: %s", runtime.Version(), strings.Join(modules("riverqueue/river", "hibiken/asynq", "jackc/pgx", "modernc.org/sqlite"), ", "))
	kind, place := filesystem(b.folder)
	add("SQLite and Redis on %s (%s), where an fsync after 8 KiB takes %v", kind, place, syncTime(b.folder))
	if text, err := exec.CommandContext(ctx, "redis-server", "--version").Output(); err == nil {
		add("%s", strings.Join(strings.Fields(string(text))[:3], " "))
	}
	if b.address == "" {
		add("no PostgreSQL")
		return m, nil
	}
	m.postmaster = postmaster(ctx, b.address)
	db, err := sql.Open("pgx", b.address)
	if err != nil {
		return m, err
	}
	defer db.Close()
	settings := map[string]string{}
	rows, err := db.QueryContext(ctx, "select name, current_setting(name) from pg_settings")
	if err != nil {
		return m, fmt.Errorf("read PostgreSQL's settings: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return m, err
		}
		settings[name] = value
	}
	if err := rows.Err(); err != nil {
		return m, err
	}
	var shown []string
	for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes", "wal_compression", "wal_sync_method", "shared_buffers", "max_wal_size", "checkpoint_timeout", "autovacuum_naptime"} {
		shown = append(shown, name+" = "+settings[name])
	}
	for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		if settings[name] != "on" {
			return m, fmt.Errorf("PostgreSQL runs with %s = %s: what it can do so is no measure", name, settings[name])
		}
	}
	kind, place = filesystem(settings["data_directory"])
	add("PostgreSQL %s on %s (%s): %s", settings["server_version"], kind, place, strings.Join(shown, ", "))
	return m, nil
}

// field returns the first value of a name in one of the files in /proc.
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + `\s*:\s*(.*)$`).FindSubmatch(text)
	if found == nil {
		return ""
	}
	return string(found[1])
}

// memory returns the machine's memory in KiB.
func memory() (kib float64) {
	_, _ = fmt.Sscanf(field("/proc/meminfo", "MemTotal"), "%f", &kib)
	return kib
}

func kernel() string {
	text, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return "Linux " + strings.TrimSpace(string(text))
}

// modules returns the versions of libraries in this program.
func modules(parts ...string) (versions []string) {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return nil
	}
	for _, part := range parts {
		i := slices.IndexFunc(info.Deps, func(d *debug.Module) bool { return strings.Contains(d.Path, part) })
		if i >= 0 {
			versions = append(versions, part+" "+info.Deps[i].Version)
		}
	}
	return versions
}

// filesystem returns the kind of file system of a folder, and where the file system is mounted.
func filesystem(folder string) (kind, place string) {
	text, _ := os.ReadFile("/proc/mounts")
	longest := ""
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 3 || len(f[1]) < len(longest) {
			continue
		}
		if inside, err := filepath.Rel(f[1], folder); err == nil && !strings.HasPrefix(inside, "..") {
			longest, kind, place = f[1], f[2], f[0]
		}
	}
	if kind == "tmpfs" {
		kind = "tmpfs, WHICH IS MEMORY AND FLATTERS"
	}
	return kind, place
}

// syncTime returns the median time to write and sync 8 KiB.
func syncTime(folder string) time.Duration {
	f, err := os.Create(filepath.Join(folder, "sync"))
	if err != nil {
		return 0
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var all []time.Duration
	for i := range 101 {
		begun := time.Now()
		_, _ = f.WriteAt(make([]byte, 8192), int64(i)*8192)
		_ = syscall.Fdatasync(int(f.Fd()))
		all = append(all, time.Since(begun))
	}
	slices.Sort(all)
	return all[len(all)/2].Round(time.Microsecond)
}
