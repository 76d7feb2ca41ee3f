// Package localfile contains file operations for commands. It locks a file, writes a file completely or not at all, and
// checks who may read a file.
package localfile

import (
	"errors"
	"os"
	"runtime"
)

// ErrLocked means that another process holds the lock.
var ErrLocked = errors.New("another process holds it")

// OthersMayRead reports whether name is a file that other users than its owner can read. On Windows it always returns
// false, because file modes do not show this there.
func OthersMayRead(name string) bool {
	info, err := os.Stat(name)
	return err == nil && runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0
}

// OthersMayEnter reports whether name is a folder that other users than its owner can list or enter. On Windows it always
// returns false.
func OthersMayEnter(name string) bool {
	info, err := os.Stat(name)
	return err == nil && runtime.GOOS != "windows" && info.IsDir() && info.Mode().Perm()&0o077 != 0
}
