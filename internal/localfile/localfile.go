// Package localfile is what commands do with files of this machine. They lock one, write one that is either whole or not there, and
// ask who may read one.
package localfile

import (
	"errors"
	"os"
	"runtime"
)

// ErrLocked says that another process has the lock.
var ErrLocked = errors.New("another process holds it")

// OthersMayRead reports whether a file, if it is one, is open to others than its owner. Windows does not tell.
func OthersMayRead(name string) bool {
	info, err := os.Stat(name)
	return err == nil && runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0
}
