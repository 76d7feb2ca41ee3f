package engine

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Flags of lockFile. A lock that is not for one process alone has no flag on Windows.
const (
	lockAlone  = windows.LOCKFILE_EXCLUSIVE_LOCK
	lockShared = 0
	lockNow    = windows.LOCKFILE_FAIL_IMMEDIATELY // do not wait
)

// lock locks the first byte of an open file until the file is closed, or until the process ends in any way.
func lock(f *os.File, flags int) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()), uint32(flags), 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errLocked
	}
	return err
}
