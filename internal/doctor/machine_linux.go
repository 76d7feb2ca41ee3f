package doctor

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Synchronised asks the kernel whether a program keeps the clock right. The error is [ErrUnsynchronised] if none does,
// and errors.ErrUnsupported if the system does not say.
func Synchronised() error {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return fmt.Errorf("ask the kernel about the clock: %w", err)
	}
	if state == unix.TIME_ERROR {
		return ErrUnsynchronised
	}
	return nil
}

// OpenFiles returns how many files this process may open; 0 if that is unknown.
func OpenFiles() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Cur
}
