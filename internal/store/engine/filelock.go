package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"puntuale"
)

// Suffixes of the lock files' names. The lock files are in the folder of the SQLite file.
const (
	openLock     = ".lock"     // locked while the file is being opened
	useLock      = ".use"      // all users of the file share this lock; a command that moves the data holds it alone
	dispatchLock = ".dispatch" // locked by the process that dispatches
)

// errLocked means that another process has locked the file, and that the flags forbid waiting.
var errLocked = errors.New("another process has locked the file")

// Codes of the faults that functions in this file return.
const (
	faultStoreDispatchedByAnother puntuale.ReasonCode = "store.dispatched_by_another"
	faultStoreFileBeingMoved      puntuale.ReasonCode = "store.file_being_moved"
	faultStoreFileInUse           puntuale.ReasonCode = "store.file_in_use"
)

// LockDispatcher prevents a second process from dispatching from the same file. Code: conflict (another process
// dispatches).
func (s *DB) LockDispatcher() (release func() error, err error) {
	return lockFile(s.File+dispatchLock, lockAlone|lockNow, faultStoreDispatchedByAnother)
}

// ShareFile prevents imports, and exports that move the data, until release is called. Servers without a dispatcher
// hold only this lock, and so do commands. Code: conflict (an import, or an export that moves the data, is running).
func (s *DB) ShareFile() (release func() error, err error) {
	return lockFile(s.File+useLock, lockShared|lockNow, faultStoreFileBeingMoved)
}

// HoldFile prevents all other processes from using a SQLite file until release is called. Only exports that copy the
// data may still use it. Code: conflict (another process uses the file).
func (s *DB) HoldFile() (release func() error, err error) {
	if s.File == "" {
		return func() error { return nil }, nil
	}
	use, err := lockFile(s.File+useLock, lockAlone|lockNow, faultStoreFileInUse)
	if err != nil {
		return nil, err
	}
	dispatch, err := s.LockDispatcher() // servers of older versions hold only the dispatch lock
	if err != nil {
		return nil, errors.Join(err, use())
	}
	return func() error { return errors.Join(dispatch(), use()) }, nil
}

// lockFile creates a file and locks it. If the flags forbid waiting and another process has locked the file, the error
// has the reason busy. The file is never removed. If it were removed, two processes could
// lock two different files of the same name.
func lockFile(path string, flags int, busy puntuale.ReasonCode) (release func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the data folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	err = lock(f, flags)
	switch {
	case errors.Is(err, errLocked):
		return nil, errors.Join(puntuale.Conflict(busy), f.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f.Close, nil
}
