package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"puntuale/internal/store/archive"
)

// BackupConfig says how to back up.
type BackupConfig struct {
	Program  string // what the backup says of the program that made it
	Key      []byte // the key file; nil: the backup goes without one
	Scratch  string // the path of a file that does not exist, for a copy of the linked numbers; removed at the end
	Progress Progress

	// Finish checks the backup and puts it where it belongs. Once it returned nil the backup counts, and its
	// moment is noted.
	Finish func() error
}

// Backup writes the whole installation as it is at one moment into a zip file, beside servers that run, and returns the
// header of the database's part. The linked numbers of a SQLite installation are copied right after that moment: every
// number that the database knows is among them.
func Backup(ctx context.Context, cfg Config, to io.Writer, b BackupConfig) (archive.Header, error) {
	w := archive.NewBackupWriter(to)
	linked := false
	var header archive.Header
	e := ExportConfig{Program: b.Program, Backup: true, Progress: b.Progress, Begun: func(ctx context.Context, s *Store) (err error) {
		linked, err = s.copyWhatsApp(ctx, b.Scratch)
		return err
	}, Finish: func() error { return nil }}
	err := w.Add(archive.DatabaseEntry, func(to io.Writer) (err error) {
		header, err = Export(ctx, cfg, to, e)
		return err
	})
	if linked {
		defer func() { _ = os.Remove(b.Scratch) }()
	}
	if err != nil {
		return header, err
	}
	if linked {
		if err := w.Add(archive.WhatsAppEntry, contentsOf(b.Scratch)); err != nil {
			return header, err
		}
	}
	if b.Key != nil {
		if err := w.Add(archive.KeyEntry, func(to io.Writer) error { _, err := to.Write(b.Key); return err }); err != nil {
			return header, err
		}
	}
	if err := w.Close(b.Program, header.At); err != nil {
		return header, err
	}
	if err := b.Finish(); err != nil {
		return header, err
	}
	if err := noteBackup(ctx, cfg, header.At); err != nil && cfg.Logger != nil {
		cfg.Logger.Warn("the backup is whole, but when it was made was not noted", "error", err)
	}
	return header, nil
}

// contentsOf returns what copies a file.
func contentsOf(path string) func(to io.Writer) error {
	return func(to io.Writer) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(to, f)
		return err
	}
}

// copyWhatsApp copies the file of linked numbers, and reports whether there is one. The copy is checked. PostgreSQL has
// no such file.
func (s *Store) copyWhatsApp(ctx context.Context, to string) (there bool, err error) {
	if s.file == "" {
		return false, nil
	}
	path := WhatsAppFile(s.file)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600) // SQLite would let others read it
	if err != nil {
		return false, fmt.Errorf("copy the linked numbers: %w", err)
	}
	if err := f.Close(); err != nil {
		return true, fmt.Errorf("copy the linked numbers: %w", err)
	}
	own := &Store{cfg: s.cfg, d: s.d}
	db, err := own.sqlitePool(path, "", false, 1)
	if err != nil {
		return true, err
	}
	_, err = db.ExecContext(ctx, "vacuum into ?", to)
	if err = errors.Join(err, db.Close()); err != nil {
		return true, fmt.Errorf("copy the linked numbers: %w", err)
	}
	return true, s.checkFile(ctx, to)
}

// checkFile reads a SQLite file to its end.
func (s *Store) checkFile(ctx context.Context, path string) error {
	db, err := (&Store{cfg: s.cfg, d: s.d}).sqlitePool(path, "_pragma=journal_mode(off)", true, 1)
	if err != nil {
		return err
	}
	var found string
	err = db.QueryRowContext(ctx, "pragma integrity_check(1)").Scan(&found)
	if err == nil && found != "ok" {
		err = verdict(found)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return damaged(path, err)
	}
	return nil
}

// CheckBackup reads a backup to its end: every sum, and number and digest of each table's rows.
func CheckBackup(ctx context.Context, path string) (err error) {
	r, err := archive.OpenBackup(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.Check(); err != nil {
		return err
	}
	from, err := r.Open(archive.DatabaseEntry)
	if err != nil {
		return err
	}
	defer from.Close()
	return readExport(ctx, from)
}

// readExport reads an export to its end, which compares all that it says of itself.
func readExport(ctx context.Context, from io.Reader) error {
	file, err := archive.NewReader(from)
	if err != nil {
		return err
	}
	for {
		t, found, err := file.Next()
		if err != nil {
			return err
		}
		if !found {
			return file.Close()
		}
		rows := &fileRows{ctx: ctx, file: file, row: make([]any, len(t.Columns)), rows: &rowCounter{}}
		for rows.Next() { // reading compares
		}
		if rows.err != nil {
			return rows.err
		}
	}
}

// noteBackup remembers when the last backup was made.
func noteBackup(ctx context.Context, cfg Config, at time.Time) (err error) {
	cfg.NoMigrate = true
	s, err := open(ctx, cfg, moverName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.onFleet(ctx, func(ctx context.Context, a asker) error {
		_, err := a.exec(ctx, `insert into backup as g (one, at) values (1, $1)
 on conflict (one) do update set at = greatest(g.at, excluded.at)`, micros(at))
		return err
	})
}

// LastBackup returns the moment of the last backup; zero: there is none.
func (s *Store) LastBackup(ctx context.Context) (at time.Time, err error) {
	if _, err := one(ctx, s.read, `select at from backup where one = 1`, nil, moment{&at}); err != nil {
		return at, outward(fmt.Errorf("look for the last backup: %w", err))
	}
	return at, nil
}
