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

// ownCPU is the processor time of this process, the load generator included.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// endedCPU is the processor time of children of this process that ended.
func endedCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// othersCPU is the processor time of all processes but ours and our databases', on all cores. It includes the time that
// the host took away.
func (b *bench) othersCPU() time.Duration {
	text, _ := os.ReadFile("/proc/stat")
	var busy time.Duration
	for i, field := range strings.Fields(strings.SplitN(string(text), "\n", 2)[0]) {
		if n, err := strconv.Atoi(field); err == nil && i != 4 && i != 5 && i < 9 { // neither idle time nor waiting for the disk
			busy += time.Duration(n) * tick
		}
	}
	own := ownCPU() + endedCPU()
	if b.machine.postmaster > 0 {
		own += childrenCPU(b.machine.postmaster).total()
	}
	return busy - own
}

// usage is the processor time of processes by id. The key 0 has the sum of the processes that ended meanwhile.
type usage map[int]time.Duration

func (u usage) total() (sum time.Duration) {
	for _, d := range u {
		sum += d
	}
	return sum
}

// childrenCPU reads the processor time of a process and its children; the parent's time includes children that ended.
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
