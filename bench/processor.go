package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of /proc's processor times on Linux.
const tick = 10 * time.Millisecond

// ownCPU is the processor time of this process, the load generator included.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// usage is the processor time of processes by id, and of those that ended meanwhile under 0.
type usage map[int]time.Duration

func (u usage) total() (sum time.Duration) {
	for _, d := range u {
		sum += d
	}
	return sum
}

// childrenCPU reads the processor time of a process and its children; those of ended children are in the parent's.
func childrenCPU(parent int) usage {
	u := usage{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it just ended
		}
		// The second field is a name in parentheses, which may hold anything.
		i := strings.LastIndexByte(string(text), ')')
		f := strings.Fields(string(text[i+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if ppid, _ := strconv.Atoi(f[1]); pid != parent && ppid != parent {
			continue
		}
		spent := func(user, system int) time.Duration {
			a, _ := strconv.Atoi(f[user])
			b, _ := strconv.Atoi(f[system])
			return time.Duration(a+b) * tick
		}
		u[pid] = spent(11, 12)
		if pid == parent {
			u[0] = spent(13, 14)
		}
	}
	return u
}

// postmaster returns the process id of the PostgreSQL at an address, 0 when it is not on this machine.
func postmaster(ctx context.Context, address string) int {
	db, err := sql.Open("pgx", address)
	if err != nil {
		return 0
	}
	defer db.Close()
	var folder string
	if err := db.QueryRowContext(ctx, "show data_directory").Scan(&folder); err != nil {
		return 0
	}
	text, err := os.ReadFile(filepath.Join(folder, "postmaster.pid"))
	if err != nil {
		return 0
	}
	pid, _ := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
	return pid
}

// stopwatch measures what the processor does for something on a database.
type stopwatch struct {
	b      *bench
	server int // its process; 0: there is none
	own    time.Duration
	all    usage
}

func (b *bench) watch(engine string) stopwatch {
	w := stopwatch{b: b}
	switch engine {
	case postgres:
		w.server = b.machine.postmaster
	case redis:
		w.server = b.redis.pid()
	}
	w.own, w.all = ownCPU(), childrenCPU(w.server)
	return w
}

// note writes down the processor time for each of n things.
func (w stopwatch) note(what string, n int) {
	own, all := ownCPU(), childrenCPU(w.server)
	w.b.sheet.note(what+": CPU of this process", microCPU, (own-w.own).Seconds()*1e6/float64(n))
	if w.server == 0 {
		return
	}
	w.b.sheet.note(what+": CPU of the database", microCPU, (all.total()-w.all.total()).Seconds()*1e6/float64(n))
	if w.b.backends && w.server == w.b.machine.postmaster {
		w.backends(what, all, n)
	}
}

// backends shows which of PostgreSQL's processes took the time. A connection is told by its last statement.
func (w stopwatch) backends(what string, all usage, n int) {
	db, err := sql.Open("pgx", w.b.address)
	if err != nil {
		return
	}
	defer db.Close()
	names := map[int]string{0: "ended meanwhile", w.server: "postmaster"}
	rows, err := db.Query(`select pid, backend_type || ' ' || coalesce(application_name, '') || ' ' || left(regexp_replace(query, '\s+', ' ', 'g'), 70) from pg_stat_activity`)
	if err != nil {
		return
	}
	defer rows.Close()
	for rows.Next() {
		var pid int
		var name string
		if rows.Scan(&pid, &name) == nil {
			names[pid] = name
		}
	}
	var pids []int
	for pid := range all {
		pids = append(pids, pid)
	}
	spent := func(pid int) time.Duration { return all[pid] - w.all[pid] }
	slices.SortFunc(pids, func(a, b int) int { return int(spent(b) - spent(a)) })
	fmt.Fprintf(os.Stderr, "%s, µs of each of PostgreSQL's processes:\n", what)
	for _, pid := range pids {
		if d := spent(pid); d > 0 {
			fmt.Fprintf(os.Stderr, "  %7.2f  %s\n", d.Seconds()*1e6/float64(n), names[pid])
		}
	}
}
