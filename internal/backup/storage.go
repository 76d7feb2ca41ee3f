package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"puntuale/internal/localfile"
)

// Storage keeps the files of backups. Its methods are safe for concurrent use.
type Storage interface {
	// Put stores a file under a new name. It never replaces a file. Only when Put returns without an error, the file
	// exists under its name, with all its bytes.
	Put(ctx context.Context, name string, from io.Reader) error
	// Get opens a file. The caller must read to the end before it trusts any byte.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List returns all files, also those that are no backups; at most maxFiles.
	List(ctx context.Context) ([]File, error)
	Remove(ctx context.Context, name string) error
	// Sweep removes what attempts left that ended half-way before a time.
	Sweep(ctx context.Context, before time.Time) error
}

// File is a stored file.
type File struct {
	Name string
	Size int64 // bytes
}

// maxFiles is how many files a storage may have. A folder with more is hardly one for backups only.
const maxFiles = 20_000

var errTooManyFiles = fmt.Errorf("it has more than %d files: use a folder for backups only", maxFiles)

// Open opens a storage: a folder, which must be absolute and is created if it is missing, or s3://bucket/folder.
func Open(address string, s S3) (Storage, error) {
	if rest, ok := strings.CutPrefix(address, s3Scheme); ok {
		return s.open(rest)
	}
	if err := os.MkdirAll(address, 0o700); err != nil {
		return nil, fmt.Errorf("open the folder of backups: %w", err)
	}
	return folder{address}, nil
}

// folder stores files in a folder of this machine.
type folder struct{ path string }

func (f folder) Put(ctx context.Context, name string, from io.Reader) error {
	to, err := localfile.Create(filepath.Join(f.path, name), false)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, reader{ctx, from}); err != nil {
		return errors.Join(fmt.Errorf("write the backup: %w", err), to.Remove())
	}
	return to.Finish()
}

func (f folder) Get(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(f.path, name))
}

func (f folder) List(context.Context) (all []File, err error) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, fmt.Errorf("list the backups: %w", err)
	}
	if len(entries) > maxFiles {
		return nil, errTooManyFiles
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the backups: %w", err)
		}
		if info.Mode().IsRegular() {
			all = append(all, File{e.Name(), info.Size()})
		}
	}
	return all, nil
}

func (f folder) Remove(_ context.Context, name string) error {
	return os.Remove(filepath.Join(f.path, name))
}

// Sweep removes the unfinished files of killed servers. Package localfile names them.
func (f folder) Sweep(_ context.Context, before time.Time) error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return fmt.Errorf("list the backups: %w", err)
	}
	for _, e := range entries {
		target, _, unfinished := strings.Cut(strings.TrimPrefix(e.Name(), "."), ".unfinished-")
		if _, ours := NameTime(target); !ours || !unfinished {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
			if err := os.Remove(filepath.Join(f.path, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// reader ends with its context.
type reader struct {
	ctx  context.Context
	from io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.from.Read(p)
}
