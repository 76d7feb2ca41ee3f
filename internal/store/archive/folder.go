package archive

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Folder contains files with old rows of an installation, numbered from 1. A writer writes a file under a temporary
// name, syncs it, and then links it under its final name. The link fails if the final name exists. So each number is
// used only once, even with several writers, and a file under a final name is complete. Files never change. To replace
// a file, a writer adds a file with a higher version and removes the old file. The methods are safe for concurrent use,
// even by several processes.
type Folder struct {
	path string
	id   string
}

// Errors of folders.
var (
	ErrNoFolder = errors.New("the folder is no archive yet")
	ErrTaken    = errors.New("there is such a file already")
)

// identity is the name of the file that makes a folder an archive. Without this file, an archiver might continue in a
// wrong, empty folder, for example while a disk is not mounted.
const identity = "archive.json"

type identityFile struct {
	Format string `json:"format"`
	ID     string `json:"id"`
}

// OpenFolder opens an archive. The error wraps [ErrNoFolder] if the folder is no archive.
func OpenFolder(path string) (*Folder, error) {
	text, err := os.ReadFile(filepath.Join(path, identity))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w (there is no %s in it)", path, ErrNoFolder, identity)
	}
	if err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	var i identityFile
	if err := json.Unmarshal(text, &i); err != nil || i.Format != PartFormat || i.ID == "" {
		return nil, fmt.Errorf("open the archive: %s does not say which archive this is", filepath.Join(path, identity))
	}
	return &Folder{path, i.ID}, nil
}

// BeginFolder makes a folder an archive. If the folder already is an archive, BeginFolder opens it. If the folder does
// not exist, BeginFolder creates it.
func BeginFolder(path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make the archive's folder: %w", err)
	}
	f, err := OpenFolder(path)
	if !errors.Is(err, ErrNoFolder) {
		return f, err
	}
	text, err := json.Marshal(identityFile{PartFormat, rand.Text()})
	if err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	if err := put(path, identity, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	}); err != nil && !errors.Is(err, ErrTaken) {
		return nil, fmt.Errorf("begin the archive: %w", err)
	}
	return OpenFolder(path)
}

// ID returns the identifier of the archive. No two archives have the same identifier.
func (f *Folder) ID() string { return f.id }

// Path returns the folder's path.
func (f *Folder) Path() string { return f.path }

// File is the number and the version of a file in a folder.
type File struct {
	Serial  int64
	Version int64 // only the file with the highest version is valid
}

// Name returns the name of the file, such as 00000012-1.gz.
func (f File) Name() string { return fmt.Sprintf("%08d-%d.gz", f.Serial, f.Version) }

var fileName = regexp.MustCompile(`^([0-9]{8,18})-([1-9][0-9]{0,8})\.gz$`)

// Files returns the newest version of each file, sorted by serial.
func (f *Folder) Files() ([]File, error) {
	newest, _, err := f.list()
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(newest), func(a, b File) int { return cmp.Compare(a.Serial, b.Serial) }), nil
}

// Find returns the newest version of a file, or false if there is no such file.
func (f *Folder) Find(serial int64) (File, bool, error) {
	newest, _, err := f.list()
	file, found := newest[serial]
	return file, found, err
}

// list returns the newest version of each file, and all replaced versions.
func (f *Folder) list() (newest map[int64]File, replaced []File, err error) {
	names, err := os.ReadDir(f.path)
	if err != nil {
		return nil, nil, fmt.Errorf("read the archive's folder: %w", err)
	}
	newest = map[int64]File{}
	for _, entry := range names {
		m := fileName.FindStringSubmatch(entry.Name())
		if m == nil {
			continue
		}
		var file File
		file.Serial, _ = strconv.ParseInt(m[1], 10, 64) // the pattern allows only numbers that fit into an int64
		file.Version, _ = strconv.ParseInt(m[2], 10, 64)
		if file.Name() != entry.Name() {
			continue
		}
		switch other, found := newest[file.Serial]; {
		case !found:
			newest[file.Serial] = file
		case other.Version < file.Version:
			replaced = append(replaced, other)
			newest[file.Serial] = file
		default:
			replaced = append(replaced, file)
		}
	}
	return newest, replaced, nil
}

// Put writes a file, and returns when the file is on disk under its final name. The error wraps [ErrTaken] if the name
// already exists. After any other error, the file is either complete or does not exist.
func (f *Folder) Put(file File, write func(io.Writer) error) error {
	if err := put(f.path, file.Name(), write); err != nil {
		return fmt.Errorf("write %s into the archive: %w", file.Name(), err)
	}
	return nil
}

// Sweep removes replaced versions of files. It does not remove unfinished files of killed writers: Put does.
func (f *Folder) Sweep() error {
	_, replaced, err := f.list()
	if err != nil {
		return err
	}
	for _, file := range replaced {
		if err := os.Remove(filepath.Join(f.path, file.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove what was replaced in the archive: %w", err)
		}
	}
	if len(replaced) > 0 {
		return syncFolder(f.path)
	}
	return nil
}

// Size returns a file's size in bytes.
func (f *Folder) Size(file File) (int64, error) {
	info, err := os.Stat(filepath.Join(f.path, file.Name()))
	if err != nil {
		return 0, fmt.Errorf("look at the archive: %w", err)
	}
	return info.Size(), nil
}

// Header reads the header of a file.
func (f *Folder) Header(file File) (h Header, err error) {
	err = f.open(file, func(r *Reader) error { h = r.Header; return nil })
	return h, err
}

// Read reads a file to its end. It calls row for each row, always with the same slice. It returns nil only if all
// checksums are right.
func (f *Folder) Read(file File, row func(t Table, values []any) error) (h Header, err error) {
	err = f.open(file, func(r *Reader) error {
		h = r.Header
		for {
			t, found, err := r.Next()
			if err != nil {
				return err
			}
			if !found {
				return r.Close()
			}
			for values := make([]any, len(t.Columns)); ; {
				found, err := r.Row(values)
				if err != nil {
					return err
				}
				if !found {
					break
				}
				if err := row(t, values); err != nil {
					return err
				}
			}
		}
	})
	return h, err
}

func (f *Folder) open(file File, use func(*Reader) error) (err error) {
	name := filepath.Join(f.path, file.Name())
	from, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open a file of the archive: %w", err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	r, err := NewReader(from)
	if err == nil && (r.Header.Part == nil || r.Header.Part.Folder != f.id || r.Header.Part.Serial != file.Serial) {
		err = fmt.Errorf("%w: it does not belong here", ErrForeign)
	}
	if err == nil {
		err = use(r)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// unfinished is the prefix of temporary names. A file that has not grown for remainsAge belongs to no running process.
const (
	unfinished = ".unfinished-"
	remainsAge = time.Hour
)

// put writes a complete file under the name, or no file. It never replaces a file.
func put(folder, name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(folder, unfinished+"*") // only the user of this process may read the file
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // if this fails, a later removeRemains removes the file
	removeRemains(folder, f)
	buffered := bufio.NewWriterSize(f, 1<<20)
	err = write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), filepath.Join(folder, name)); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s: %w", name, ErrTaken)
		}
		return err
	}
	return syncFolder(folder)
}

// removeRemains removes unfinished files of killed writers. A file that cannot be removed does no harm.
func removeRemains(folder string, own *os.File) {
	present, err := own.Stat()
	if err != nil {
		return
	}
	files, _ := os.ReadDir(folder)
	for _, entry := range files {
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() && strings.HasPrefix(entry.Name(), unfinished) && present.ModTime().Sub(info.ModTime()) > remainsAge {
			_ = os.Remove(filepath.Join(folder, entry.Name()))
		}
	}
}

func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // Windows cannot sync a folder
		return dir.Close()
	}
	return errors.Join(dir.Sync(), dir.Close())
}
