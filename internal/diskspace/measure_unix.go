//go:build linux || darwin

package diskspace

import "golang.org/x/sys/unix"

// Measure returns the free and the total bytes of the folder's disk. free is what this user may still write.
func Measure(folder string) (free, size uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, 0, err
	}
	block := uint64(s.Bsize) // the type of Bsize differs between systems
	return s.Bavail * block, s.Blocks * block, nil
}
