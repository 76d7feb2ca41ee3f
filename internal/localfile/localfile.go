// Package localfile works with files of this machine, for commands. It locks a file, writes a file completely or not at all, and checks who
// may read a file.
package localfile

import (
	"errors"
	"os"
	"runtime"
)

// ErrLocked says that another process has the lock.
var ErrLocked = errors.New("another process holds it")

// OthersMayRead reports whether a file, if it is one, can be read by others than its owner. Windows does not tell.
func OthersMayRead(name string) bool {
	info, err := os.Stat(name)
	return err == nil && runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0
}
