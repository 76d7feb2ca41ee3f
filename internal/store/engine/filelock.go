package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"puntuale"
)

// The endings of the names of lock files beside a SQLite file.
const (
	openLock     = ".lock"     // held while it is opened
	useLock      = ".use"      // shared by its users, and held alone by a move
	dispatchLock = ".dispatch" // held by the dispatching process
)

// Faults of this file.
const (
	faultStoreDispatchedByAnother puntuale.ReasonCode = "store.dispatched_by_another"
	faultStoreFileBeingMoved      puntuale.ReasonCode = "store.file_being_moved"
	faultStoreFileInUse           puntuale.ReasonCode = "store.file_in_use"
)

// LockDispatcher keeps a second process from dispatching from the same file.
// Codes: conflict (another process dispatches).
func (s *DB) LockDispatcher() (release func() error, err error) {
	return lockFile(s.File+dispatchLock, syscall.LOCK_EX|syscall.LOCK_NB, faultStoreDispatchedByAnother)
}

// ShareFile blocks imports, and exports that move the installation, until release. Servers without a dispatcher, and commands, hold only
// this lock. Codes: conflict (such an import or export is under way).
func (s *DB) ShareFile() (release func() error, err error) {
	return lockFile(s.File+useLock, syscall.LOCK_SH|syscall.LOCK_NB, faultStoreFileBeingMoved)
}

// HoldFile keeps all other processes from using a SQLite file until release, except exports of a copy. Codes: conflict (a process uses it).
func (s *DB) HoldFile() (release func() error, err error) {
	if s.File == "" {
		return func() error { return nil }, nil
	}
	use, err := lockFile(s.File+useLock, syscall.LOCK_EX|syscall.LOCK_NB, faultStoreFileInUse)
	if err != nil {
		return nil, err
	}
	dispatch, err := s.LockDispatcher() // servers of older versions hold only this lock
	if err != nil {
		return nil, errors.Join(err, use())
	}
	return func() error { return errors.Join(dispatch(), use()) }, nil
}

// lockFile creates a file and takes its lock, with the flags of flock. If the flags forbid waiting, busy is the error for a refused lock.
// The file stays. If it were removed, two processes could hold locks on two files of the same name.
func lockFile(path string, how int, busy puntuale.ReasonCode) (release func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the data folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	for {
		if err = syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errors.Join(puntuale.Conflict(busy), f.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f.Close, nil
}
