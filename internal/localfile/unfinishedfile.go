package localfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Unfinished is a file that gets its final name only when it is complete. Only the file's owner may read it. If the
// receiver is nil, the methods do nothing. Unfinished is not safe for concurrent use.
type Unfinished struct {
	*os.File
	name   string
	unlock func() // called after the file is closed
}

// Target returns the name that the file will have.
func (u *Unfinished) Target() string { return u.name }

// Create creates a file that will get the name when it is complete. If replace is false, a file with this name must not
// exist yet. Create also removes unfinished copies of the same file that killed programs left.
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
	f, err := os.CreateTemp(filepath.Dir(name), unfinished(name)+"*") // only the file's owner can read it
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

// unfinished returns the beginning of the names of unfinished files.
func unfinished(name string) string { return "." + filepath.Base(name) + ".unfinished-" }

// remainsAge is the least age of a file that is removed, because a new file may not be locked yet.
const remainsAge = time.Minute

// removeRemains removes the unfinished copies of this file that killed programs left. A copy that a program still
// writes is locked, and is not removed. If a copy cannot be removed, this is harmless.
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

// Finish writes the file to disk under its final name. If Finish fails, no file with the new content has this name.
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
		if runtime.GOOS != "windows" { // Windows cannot sync a folder
			err = dir.Sync()
		}
		err = errors.Join(err, dir.Close())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", u.name, err), os.Remove(u.name)) // without the removal, a reader could consider the file complete
	}
	return nil
}

// Remove removes an unfinished file.
func (u *Unfinished) Remove() error {
	if u == nil {
		return nil
	}
	_ = u.File.Close() // the file may already be closed
	u.unlock()
	if err := os.Remove(u.File.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the unfinished %s: %w", u.name, err)
	}
	return nil
}
