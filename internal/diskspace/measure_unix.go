//go:build linux || darwin

package diskspace

import "golang.org/x/sys/unix"

// measure returns the bytes of the folder's disk: those that this user may still fill, and all.
func measure(folder string) (free, size uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, 0, err
	}
	block := uint64(s.Bsize) // the type differs between systems
	return s.Bavail * block, s.Blocks * block, nil
}
