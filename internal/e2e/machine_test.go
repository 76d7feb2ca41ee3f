//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

// A test that measures the server's delays proves nothing while the host gives the processors to other machines. On one
// host, other machines used a third of the processors' time for a minute. Delays were then ten times as long.
const (
	hostShare    = 0.05 // a larger share of the processors' time is a disturbance
	maxDisturbed = 20   // how many measurements may be repeated because of a disturbance
)

// hostTook runs f. It returns the share of the processors' time that the host gave to other machines during f. It
// returns 0 if the system does not report this time.
func hostTook(f func()) float64 {
	all, stolen := processors()
	f()
	allThen, stolenThen := processors()
	return (stolenThen - stolen) / max(allThen-all, 1)
}

// processors returns the sum of all processors' times since the machine started, and the part that the host took; see
// proc_stat(5).
func processors() (all, stolen float64) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	var user, nice, system, idle, iowait, irq, softirq float64
	if _, err := fmt.Sscanf(string(content), "cpu %g %g %g %g %g %g %g %g", &user, &nice, &system, &idle, &iowait, &irq, &softirq, &stolen); err != nil {
		return 0, 0
	}
	return user + nice + system + idle + iowait + irq + softirq + stolen, stolen
}

// withoutDisk puts the folders of a test into memory if there is room. scripts/with-postgres does the same with its
// cluster. The test measures the server's own delays. One fsync on a disk may take 0.3 s, even if nothing else runs.
func withoutDisk(t *testing.T) {
	t.Helper()
	const memory = "/dev/shm"
	var at syscall.Statfs_t
	if err := syscall.Statfs(memory, &at); err == nil && at.Bavail*uint64(at.Bsize) > 1<<30 { //nolint:gosec,unconvert // a block's size is positive; its type differs by system
		t.Setenv("TMPDIR", memory)
	}
}
