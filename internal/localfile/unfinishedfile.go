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

// Unfinished is a file that has another name until it is complete. Nobody but its owner may read it. Its methods take nil, which
// is no file, and do nothing then. One goroutine uses it at a time.
type Unfinished struct {
	*os.File
	name   string
	unlock func() // called once it is closed
}

// Target is the name that the file will have.
func (u *Unfinished) Target() string { return u.name }

// Create begins a file that has the name once it is complete. It must not exist yet, unless it is to be replaced. Create also removes
// what killed programs left of the same file.
func Create(name string, replace bool) (*Unfinished, error) {
	if there, err := os.Stat(name); err == nil && !there.Mode().IsRegular() {
		return nil, fmt.Errorf("write %s: it is no file that could be replaced", name) // such as /dev/null, for root
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

// unfinished begins the names of files that are to have a name.
func unfinished(name string) string { return "." + filepath.Base(name) + ".unfinished-" }

// remainsAge keeps from removing a file that was just made and is not locked yet.
const remainsAge = time.Minute

// removeRemains removes what killed programs left of the same file. A file that is being written is locked. What cannot be
// removed is in nobody's way.
func (u *Unfinished) removeRemains() {
	own, err := u.File.Stat()
	if err != nil {
		return
	}
	there, _ := os.ReadDir(filepath.Dir(u.name))
	for _, entry := range there {
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

// Finish has the file on disk under its own name, or fails.
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
		return errors.Join(fmt.Errorf("write %s: %w", u.name, err), os.Remove(u.name)) // nobody may take it for whole
	}
	return nil
}

// Remove removes what was begun.
func (u *Unfinished) Remove() error {
	if u == nil {
		return nil
	}
	_ = u.File.Close() // perhaps it is
	u.unlock()
	if err := os.Remove(u.File.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the unfinished %s: %w", u.name, err)
	}
	return nil
}
