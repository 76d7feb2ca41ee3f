package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"puntuale"
)

// dispatchLock ends the name of the file whose lock the dispatching process holds.
const dispatchLock = ".dispatch"

// LockDispatch keeps a second process from dispatching from the same SQLite file, where leases could not tell them
// apart in time; release gives the place free. Whoever holds the lock is alone, so nodes of a process that was killed
// are removed at once and need not be waited for. On PostgreSQL nodes share the work, and nothing is locked.
// Codes: conflict (another process dispatches).
func (s *Store) LockDispatch(ctx context.Context) (release func() error, err error) {
	if s.file == "" {
		return func() error { return nil }, nil
	}
	release, err = lockFile(s.file+dispatchLock, false)
	if err != nil {
		return nil, err
	}
	if err := s.onFleet(ctx, func(ctx context.Context, a asker) error {
		if _, err := a.exec(ctx, `delete from node`); err != nil {
			return err
		}
		_, err := a.exec(ctx, `update session set owner = 0 where owner <> 0`)
		return err
	}); err != nil {
		return nil, errors.Join(fmt.Errorf("remove dead nodes: %w", err), release())
	}
	return release, nil
}

// lockFile takes the lock of a file, which is created. The file stays: removing it would let two processes hold locks
// of two files of the same name.
func lockFile(path string, wait bool) (release func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create the data folder: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		if err = syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errors.Join(puntuale.Conflict("another process dispatches from this file"), f.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f.Close, nil
}
