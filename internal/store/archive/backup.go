package archive

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"slices"
	"time"
)

// A backup is a zip file. Its last entry, backup.json, is a [Backup] that contains the SHA-256 of every other entry.
// The entry database.gz is an export of the database (archive.go), and its header says that it is part of a backup. The
// entry whatsapp.gz is an export of the tables of linked numbers. Its header's Schema is the version of the library
// that made these tables.
const (
	BackupFormat  = "puntuale backup"
	BackupVersion = 1

	DatabaseEntry = "database.gz"
	NumbersEntry  = "whatsapp.gz" // the keys of linked numbers
	KeyEntry      = "key"         // the key file with which the secrets in the database are sealed

	backupEntry = "backup.json"
	maxManifest = 1 << 20 // largest size of backup.json, in bytes
)

// Errors of backups, besides [ErrNewer].
var (
	ErrNoBackup      = errors.New("this is no backup of Puntuale, or it was cut short")
	ErrDamagedBackup = errors.New("the backup is damaged")
)

// Backup is the last entry of a backup. It describes the backup.
type Backup struct {
	Format  string       `json:"format"`
	Version int          `json:"version"`
	Program string       `json:"program"` // program that made the backup
	At      time.Time    `json:"at"`      // time of the backup; later changes are not in the backup
	Files   []BackupFile `json:"files"`
}

// BackupFile describes one entry of a backup.
type BackupFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"` // length of the entry in bytes
	SHA256 string `json:"sha256"`
}

// BackupWriter writes a backup, entry by entry. Only one goroutine may use it.
type BackupWriter struct {
	zip   *zip.Writer
	files []BackupFile
}

// NewBackupWriter begins a backup.
func NewBackupWriter(to io.Writer) *BackupWriter { return &BackupWriter{zip: zip.NewWriter(to)} }

// Add adds an entry. fill writes the content of the entry.
func (w *BackupWriter) Add(name string, fill func(to io.Writer) error) error {
	method := zip.Deflate
	if name == DatabaseEntry || name == NumbersEntry {
		method = zip.Store // the exports are already compressed
	}
	entry, err := w.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method})
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	sum := newSummer(entry)
	if err := fill(sum); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	w.files = append(w.files, sum.file(name))
	return nil
}

// Close writes the end of the backup. Readers refuse a backup without an end.
func (w *BackupWriter) Close(program string, at time.Time) error {
	text, err := json.MarshalIndent(Backup{BackupFormat, BackupVersion, program, at.UTC(), w.files}, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", backupEntry, err)
	}
	entry, err := w.zip.Create(backupEntry)
	if err == nil {
		_, err = entry.Write(append(text, '\n'))
	}
	if err == nil {
		err = w.zip.Close()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", backupEntry, err)
	}
	return nil
}

// BackupReader reads a backup. Only one goroutine may use it.
type BackupReader struct {
	Backup
	zip *zip.ReadCloser
}

// OpenBackup opens a backup and checks the list of its entries. It does not check the entries' contents; Copy and Check
// do. Errors wrap [ErrNoBackup], [ErrNewer] or [ErrDamagedBackup].
func OpenBackup(path string) (_ *BackupReader, err error) {
	z, err := zip.OpenReader(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read the backup: %w", err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNoBackup, err)
	}
	r := &BackupReader{zip: z}
	defer func() {
		if err != nil {
			err = errors.Join(err, z.Close())
		}
	}()
	if err := r.manifest(); err != nil {
		return nil, err
	}
	for _, f := range r.Files {
		if _, err := r.entry(f.Name); err != nil {
			return nil, err
		}
	}
	if len(z.File) != len(r.Files)+1 || !r.Has(DatabaseEntry) {
		return nil, fmt.Errorf("%w: its entries are not those that it lists", ErrDamagedBackup)
	}
	return r, nil
}

func (r *BackupReader) manifest() error {
	entry, err := r.entry(backupEntry)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoBackup, err)
	}
	f, err := entry.Open()
	if err != nil {
		return damagedEntry(backupEntry, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest))
	if err != nil {
		return damagedEntry(backupEntry, err)
	}
	if err := json.Unmarshal(text, &r.Backup); err != nil || r.Format != BackupFormat {
		return ErrNoBackup
	}
	if r.Version > BackupVersion {
		return fmt.Errorf("%w: its form has version %d, this program knows up to %d", ErrNewer, r.Version, BackupVersion)
	}
	return nil
}

// Has reports whether the backup has this entry.
func (r *BackupReader) Has(name string) bool {
	return slices.ContainsFunc(r.Files, func(f BackupFile) bool { return f.Name == name })
}

func (r *BackupReader) entry(name string) (*zip.File, error) {
	i := slices.IndexFunc(r.zip.File, func(f *zip.File) bool { return f.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%w: its entry %.60q is missing", ErrDamagedBackup, name)
	}
	return r.zip.File[i], nil
}

// Copy copies the content of an entry to the writer to. It compares size and SHA-256 with the backup's list.
func (r *BackupReader) Copy(name string, to io.Writer) error {
	i := slices.IndexFunc(r.Files, func(f BackupFile) bool { return f.Name == name })
	entry, err := r.entry(name)
	if i < 0 || err != nil {
		return errors.Join(fmt.Errorf("%w: it has no %s", ErrDamagedBackup, name), err)
	}
	f, err := entry.Open()
	if err != nil {
		return damagedEntry(name, err)
	}
	defer f.Close()
	sum := newSummer(to)
	if _, err := io.Copy(sum, io.LimitReader(f, r.Files[i].Size+1)); err != nil { // one byte more than the list says, to find an entry that is too long
		if sum.failed {
			return fmt.Errorf("copy %s: %w", name, err)
		}
		return damagedEntry(name, err)
	}
	if got := sum.file(name); got != r.Files[i] {
		return fmt.Errorf("%w: %s has %d bytes with the SHA-256 %s, and should have %d with %s",
			ErrDamagedBackup, name, got.Size, got.SHA256, r.Files[i].Size, r.Files[i].SHA256)
	}
	return nil
}

// Check reads every entry and compares it with the backup's list.
func (r *BackupReader) Check() error {
	for _, f := range r.Files {
		if err := r.Copy(f.Name, io.Discard); err != nil {
			return err
		}
	}
	return nil
}

// Open opens an entry. It does not check the entry's content; Copy and Check do.
func (r *BackupReader) Open(name string) (io.ReadCloser, error) {
	entry, err := r.entry(name)
	if err != nil {
		return nil, err
	}
	f, err := entry.Open()
	if err != nil {
		return nil, damagedEntry(name, err)
	}
	return f, nil
}

// Close closes the backup's file.
func (r *BackupReader) Close() error {
	if err := r.zip.Close(); err != nil {
		return fmt.Errorf("close the backup: %w", err)
	}
	return nil
}

func damagedEntry(name string, err error) error {
	return fmt.Errorf("%w: %s cannot be read: %w", ErrDamagedBackup, name, err)
}

// checksumWriter counts the bytes that are written to it, and computes their checksum.
type checksumWriter struct {
	both   io.Writer
	sum    hash.Hash
	size   int64
	failed bool // true: the destination returned an error
}

func newSummer(to io.Writer) *checksumWriter {
	h := sha256.New()
	return &checksumWriter{both: io.MultiWriter(to, h), sum: h}
}

func (s *checksumWriter) Write(p []byte) (int, error) {
	n, err := s.both.Write(p)
	s.size += int64(n)
	s.failed = err != nil
	return n, err
}

func (s *checksumWriter) file(name string) BackupFile {
	return BackupFile{name, s.size, hex.EncodeToString(s.sum.Sum(nil))}
}
