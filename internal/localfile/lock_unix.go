//go:build unix

package localfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Lock locks a file until release, or until the process ends in any way.
func Lock(name string) (release func(), err error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, &os.PathError{Op: "flock", Path: name, Err: err}
	}
	return func() { _ = f.Close() }, nil
}
