//go:build unix

package engine

import (
	"errors"
	"os"
	"syscall"
)

// Flags of lockFile.
const (
	lockAlone  = syscall.LOCK_EX
	lockShared = syscall.LOCK_SH
	lockNow    = syscall.LOCK_NB // do not wait
)

// lock locks an open file until it is closed, or until the process ends in any way.
func lock(f *os.File, flags int) error {
	for {
		err := syscall.Flock(int(f.Fd()), flags)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		default:
			return err
		}
	}
}
