//go:build unix

package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// hold locks a file until release or the end of the process, however it ends.
func hold(name string) (release func(), err error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errHeld
		}
		return nil, &os.PathError{Op: "flock", Path: name, Err: err}
	}
	return func() { _ = f.Close() }, nil
}
