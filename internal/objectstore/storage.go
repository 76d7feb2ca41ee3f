package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"puntuale/internal/localfile"
)

// Storage keeps files. Its methods are safe for concurrent use.
type Storage interface {
	// Put stores a file under a new name. It never replaces a file. Only when Put returns without an error, the file
	// exists under its name, with all its bytes.
	Put(ctx context.Context, name string, from io.Reader) error
	// Get opens a file. The caller must read to the end before it trusts any byte.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List returns all files, also those of others; at most maxFiles. It leaves out what is in folders.
	List(ctx context.Context) ([]File, error)
	Remove(ctx context.Context, name string) error
	// Sweep removes what attempts left that ended half-way before a time, if ours says that the file's name is one of the
	// caller's.
	Sweep(ctx context.Context, before time.Time, ours func(name string) bool) error

	// Replace stores a file of at most a few MiB in a folder of the storage. If the file exists, Replace replaces it. Only
	// when Replace returns without an error, the file has exactly these bytes.
	Replace(ctx context.Context, folder string, n int, content []byte) error
	// Read returns the bytes of such a file. If it is longer than most, Read returns most+1 bytes. If there is no such file,
	// the error is fs.ErrNotExist.
	Read(ctx context.Context, folder string, n int, most int64) ([]byte, error)
	// RemoveFolder removes the files 0 to n-1 of a folder. Files that are not there do not matter.
	RemoveFolder(ctx context.Context, folder string, n int) error
}

// File is a stored file.
type File struct {
	Name string
	Size int64 // bytes
}

// maxFiles is how many files List returns. A folder with more is hardly one for backups only.
const maxFiles = 20_000

var errTooManyFiles = fmt.Errorf("it has more than %d files: use a folder of its own", maxFiles)

// Open opens a storage: a folder, which must be absolute and is created if it is missing, or s3://bucket/folder.
func Open(address string, s S3) (Storage, error) {
	if rest, ok := strings.CutPrefix(address, s3Scheme); ok {
		return s.open(rest)
	}
	if err := os.MkdirAll(address, 0o700); err != nil {
		return nil, fmt.Errorf("open the folder: %w", err)
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
		return errors.Join(fmt.Errorf("write the file: %w", err), to.Remove())
	}
	return to.Finish()
}

func (f folder) Get(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(f.path, name))
}

func (f folder) List(context.Context) (all []File, err error) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, fmt.Errorf("list the files: %w", err)
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
			return nil, fmt.Errorf("list the files: %w", err)
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
func (f folder) Sweep(_ context.Context, before time.Time, ours func(string) bool) error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return fmt.Errorf("list the files: %w", err)
	}
	for _, e := range entries {
		target, _, unfinished := strings.Cut(strings.TrimPrefix(e.Name(), "."), ".unfinished-")
		if !unfinished || !ours(target) {
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

// Replace makes the folder if it is missing. The folder's name must be on the disk before its file counts as stored.
func (f folder) Replace(_ context.Context, folder string, n int, content []byte) error {
	dir := filepath.Join(f.path, folder)
	if err := os.Mkdir(dir, 0o700); err == nil {
		if err := syncFolder(f.path); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make a folder: %w", err)
	}
	to, err := localfile.Create(filepath.Join(dir, strconv.Itoa(n)), true)
	if err != nil {
		return err
	}
	if _, err := to.Write(content); err != nil {
		return errors.Join(fmt.Errorf("write the file: %w", err), to.Remove())
	}
	return to.Finish()
}

func syncFolder(name string) error {
	if runtime.GOOS == "windows" { // it cannot sync folders
		return nil
	}
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (f folder) Read(_ context.Context, folder string, n int, most int64) ([]byte, error) {
	from, err := os.Open(filepath.Join(f.path, folder, strconv.Itoa(n)))
	if err != nil {
		return nil, err
	}
	defer from.Close()
	return io.ReadAll(io.LimitReader(from, most+1))
}

// RemoveFolder also removes unfinished files.
func (f folder) RemoveFolder(_ context.Context, folder string, _ int) error {
	return os.RemoveAll(filepath.Join(f.path, folder))
}

// Until returns a reader that ends with its context.
func Until(ctx context.Context, from io.Reader) io.Reader { return reader{ctx, from} }

type reader struct {
	ctx  context.Context //nolint:containedctx // it lives as long as one call
	from io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.from.Read(p)
}
