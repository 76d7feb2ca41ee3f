package transfer

import (
	"context"
	"errors"
	"io"
	"time"

	"puntuale/internal/store/archive"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
)

// BackupConfig is the configuration of a backup.
type BackupConfig struct {
	Program  string // name of this program, written into the backup
	Key      []byte // content of the key file; nil: the backup contains no key
	Progress Progress

	// Finish checks the backup and moves it to its final name. If it returns nil, the backup is valid, and the backup's
	// time is stored in the database.
	Finish func() error
}

// Backup writes the whole installation, as it is at one point in time, into a zip file. Servers may run meanwhile. It
// returns the header of the database's entry. In a SQLite installation, it reads the linked numbers shortly after that
// time. So the backup contains all numbers that its database refers to.
func Backup(ctx context.Context, cfg engine.Config, to io.Writer, b BackupConfig) (_ archive.Header, err error) {
	cfg.NoMigrate = true
	s, err := openInstallation(ctx, cfg, engine.Options{Name: moverName})
	if err != nil {
		return archive.Header{}, engine.PublicError(err)
	}
	defer func() { err = s.ended(err, s.Close()) }()
	return s.backup(ctx, to, b)
}

// BackupOpen does the same as [Backup] for a database that is already open.
func BackupOpen(ctx context.Context, db *engine.DB, f *fleet.Fleet, to io.Writer, b BackupConfig) (archive.Header, error) {
	return (&installation{db, f}).backup(ctx, to, b)
}

func (s *installation) backup(ctx context.Context, to io.Writer, b BackupConfig) (archive.Header, error) {
	header, err := s.writeBackup(ctx, to, b)
	if err != nil {
		return header, engine.PublicError(err)
	}
	if err := b.Finish(); err != nil {
		return header, err
	}
	if err := s.noteBackup(ctx, header.At); err != nil {
		s.Config.Logger.Warn("the backup is whole, but when it was made was not noted", "error", err)
	}
	return header, nil
}

func (s *installation) writeBackup(ctx context.Context, to io.Writer, b BackupConfig) (archive.Header, error) {
	x := &export{s: s, cfg: ExportConfig{Program: b.Program, Backup: true, Progress: b.Progress}, now: s.Config.Clock.Now().UTC()}
	w := archive.NewBackupWriter(to)
	if err := x.during(ctx, func(ctx context.Context) error { return x.backUp(ctx, w) }); err != nil {
		return x.header, err
	}
	if b.Key != nil {
		if err := w.Add(archive.KeyEntry, func(to io.Writer) error { _, err := to.Write(b.Key); return err }); err != nil {
			return x.header, err
		}
	}
	return x.header, w.Close(b.Program, x.header.At)
}

// backUp writes the database's entry and the entry of the linked numbers.
func (x *export) backUp(ctx context.Context, w *archive.BackupWriter) (err error) {
	n, err := x.s.openNumbers(ctx, x.link, true)
	if err != nil {
		return err
	}
	if n != nil {
		defer func() { err = errors.Join(err, n.free()) }()
	}
	if err := w.Add(archive.DatabaseEntry, func(to io.Writer) error { return x.write(ctx, to) }); err != nil || n == nil {
		return err
	}
	return w.Add(archive.NumbersEntry, func(to io.Writer) error { return n.write(ctx, to, x.header) })
}

// CheckBackup reads a backup to its end. It checks every checksum, and the number and the digest of each table's rows.
func CheckBackup(ctx context.Context, path string) (err error) {
	r, err := archive.OpenBackup(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.Check(); err != nil {
		return err
	}
	for _, name := range []string{archive.DatabaseEntry, archive.NumbersEntry} {
		if !r.Has(name) {
			continue
		}
		if err := readExport(ctx, r, name); err != nil {
			return err
		}
	}
	return nil
}

// readExport reads an export in a backup to its end. This checks the export's counts and checksums.
func readExport(ctx context.Context, r *archive.BackupReader, name string) error {
	from, err := r.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
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
		for rows.Next() { // Row itself checks the rows that it reads
		}
		if rows.err != nil {
			return rows.err
		}
	}
}

// noteBackup stores the time of the last backup.
func (s *installation) noteBackup(ctx context.Context, at time.Time) error {
	return s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `insert into backup as g (one, at) values (1, $1)
 on conflict (one) do update set at = greatest(g.at, excluded.at)`, engine.Micros(at))
		return err
	})
}
