package main

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of /proc's processor times on Linux.
const tick = 10 * time.Millisecond

// ownCPU returns the processor time of this process. It includes the load generator.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// endedCPU returns the processor time of those children of this process that have ended.
func endedCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// othersCPU returns the processor time of all processes on all cores, except this process and its databases. It
// includes the time that the machine's host took away.
func (b *bench) othersCPU() time.Duration {
	text, _ := os.ReadFile("/proc/stat")
	var busy time.Duration
	for i, field := range strings.Fields(strings.SplitN(string(text), "\n", 2)[0]) {
		if n, err := strconv.Atoi(field); err == nil && i != 4 && i != 5 && i < 9 { // leaves out idle time and time of waiting for the disk
			busy += time.Duration(n) * tick
		}
	}
	own := ownCPU() + endedCPU()
	if b.machine.postmaster > 0 {
		own += childrenCPU(b.machine.postmaster).total()
	}
	return busy - own
}

// usage contains the processor time of processes, by process id. Key 0 contains the sum for the processes that ended.
type usage map[int]time.Duration

func (u usage) total() (sum time.Duration) {
	for _, d := range u {
		sum += d
	}
	return sum
}

// childrenCPU reads the processor time of a process and its children. The parent's time includes children that ended.
func childrenCPU(parent int) usage {
	u := usage{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // this process has just ended
		}
		// The second field is a name in parentheses. The name may contain any character.
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

// postmaster returns the id of PostgreSQL's main process at an address. It returns 0 if PostgreSQL runs on another
// machine.
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
