package localfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Unfinished is a file that has another name until it is complete. Nobody but its owner may read it. Its methods accept a nil receiver, and
// then do nothing. One goroutine uses it at a time.
type Unfinished struct {
	*os.File
	name   string
	unlock func() // called once it is closed
}

// Target is the name that the file will have.
func (u *Unfinished) Target() string { return u.name }

// Create begins a file that gets the name once it is complete. A file of this name must not exist yet, unless the caller wants to replace
// it. Create also removes what killed programs left of the same file.
func Create(name string, replace bool) (*Unfinished, error) {
	if existing, err := os.Stat(name); err == nil && !existing.Mode().IsRegular() {
		return nil, fmt.Errorf("write %s: it is no file that could be replaced", name) // for example /dev/null, if root runs the command
	}
	if _, err := os.Lstat(name); !replace && !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = errors.New("it exists already")
		}
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	f, err := os.CreateTemp(filepath.Dir(name), unfinished(name)+"*") // readable by its owner alone
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	u := &Unfinished{File: f, name: name}
	if u.unlock, err = Lock(f.Name()); err != nil {
		u.unlock = func() {}
		return nil, errors.Join(fmt.Errorf("write %s: %w", name, err), u.Remove())
	}
	u.removeRemains()
	return u, nil
}

// unfinished is the beginning of the names of unfinished files.
func unfinished(name string) string { return "." + filepath.Base(name) + ".unfinished-" }

// remainsAge protects a file that was just made and is not locked yet from being removed.
const remainsAge = time.Minute

// removeRemains removes the unfinished copies of this file that killed programs left. A copy that a program still
// writes is locked, and stays. If a copy cannot be removed, it does no harm.
func (u *Unfinished) removeRemains() {
	own, err := u.File.Stat()
	if err != nil {
		return
	}
	files, _ := os.ReadDir(filepath.Dir(u.name))
	for _, entry := range files {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasPrefix(entry.Name(), unfinished(u.name)) || own.ModTime().Sub(info.ModTime()) < remainsAge {
			continue
		}
		name := filepath.Join(filepath.Dir(u.name), entry.Name())
		if unlock, err := Lock(name); err == nil {
			unlock()
			_ = os.Remove(name)
		}
	}
}

// Finish writes the file to disk under its final name, or fails.
func (u *Unfinished) Finish() error {
	if u == nil {
		return nil
	}
	err := errors.Join(u.File.Sync(), u.File.Close())
	u.unlock()
	if err != nil {
		return fmt.Errorf("write %s: %w", u.name, err)
	}
	if err := os.Rename(u.File.Name(), u.name); err != nil {
		return fmt.Errorf("write %s: %w", u.name, err)
	}
	dir, err := os.Open(filepath.Dir(u.name))
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", u.name, err), os.Remove(u.name)) // otherwise a reader could take it for complete
	}
	return nil
}

// Remove removes an unfinished file.
func (u *Unfinished) Remove() error {
	if u == nil {
		return nil
	}
	_ = u.File.Close() // it may be closed already
	u.unlock()
	if err := os.Remove(u.File.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the unfinished %s: %w", u.name, err)
	}
	return nil
}
