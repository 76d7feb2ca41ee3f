package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"puntuale/internal/store/archive"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/file"
	"puntuale/internal/store/migration"
)

// ExportConfig is the configuration of an export.
type ExportConfig struct {
	Program  string // name of this program, written into the file
	Final    bool   // true: the export marks the installation as moved, so that no server starts on it again
	Backup   bool   // true: the file is part of a backup, so only Restore accepts it
	Progress Progress

	// Finish moves the file to its final name. It may be nil. It is called last. If it returns nil, the file is valid
	// and a final export keeps its moved mark. If it returns an error, a final export removes the mark.
	Finish func() error
}

// Export writes the whole installation, as it is at one point in time, and returns the file's header. Servers may run
// meanwhile. The memory that Export uses does not depend on the size of the installation.
//
// With Final, Export returns conflict if a server runs or a command uses the database. After an error, the installation
// has no moved mark. If the process is killed, the mark may stay. Then the export may be repeated.
func Export(ctx context.Context, cfg engine.Config, to io.Writer, e ExportConfig) (_ archive.Header, err error) {
	cfg.NoMigrate = true
	s, err := openInstallation(ctx, cfg, engine.Options{Name: moverName})
	if err != nil {
		return archive.Header{}, err
	}
	defer func() { err = s.ended(err, s.Close()) }()
	x := &export{s: s, cfg: e, now: s.Config.Clock.Now().UTC()}
	if e.Final {
		err = x.finally(ctx, to)
	} else {
		err = x.run(ctx, to)
	}
	return x.header, engine.PublicError(err)
}

// export is the work of one call of Export or Backup.
type export struct {
	s      *installation
	cfg    ExportConfig
	now    time.Time
	header archive.Header
	link   *engine.Conn
}

// finally marks the installation as moved, and then calls run.
func (x *export) finally(ctx context.Context, to io.Writer) (err error) {
	release, err := x.s.HoldFile()
	if err != nil {
		return err
	}
	defer func() { err = x.s.ended(err, release()) }()
	undo, err := x.s.markMoved(ctx, x.now)
	if err != nil {
		return err
	}
	if err := x.run(ctx, to); err != nil {
		return errors.Join(err, undo(context.WithoutCancel(ctx)))
	}
	return nil
}

// ended returns an export's error, joined with the error of closing. After a successful export, it only logs the error
// of closing, because the file already has its final name.
func (s *installation) ended(err, end error) error {
	if err == nil && end != nil {
		s.Config.Logger.Warn("the exported database was not closed in order", "error", end)
		return nil
	}
	return errors.Join(err, end)
}

// run writes the file, and then calls Finish.
func (x *export) run(ctx context.Context, to io.Writer) error {
	if err := x.during(ctx, func(ctx context.Context) error { return x.write(ctx, to) }); err != nil {
		return err
	}
	if x.cfg.Finish != nil {
		return x.cfg.Finish()
	}
	return nil
}

// during calls do with a snapshot of the database. Before that, it makes the file's header from the snapshot.
func (x *export) during(ctx context.Context, do func(context.Context) error) (err error) {
	var free func() error
	if x.link, free, err = x.s.OpenMover(ctx, true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	if err := x.link.BeginSnapshot(ctx); err != nil {
		return err
	}
	if err := x.describe(ctx); err != nil {
		return err
	}
	return do(ctx)
}

// describe makes the header of the file.
func (x *export) describe(ctx context.Context) error {
	database := migration.SQLite
	if x.s.Dialect.Postgres {
		database = migration.Postgres
	}
	schema, err := migration.Latest(database)
	if err != nil {
		return err
	}
	x.header = archive.Header{Schema: schema, Program: x.cfg.Program, Database: string(database), At: x.now, Final: x.cfg.Final, Backup: x.cfg.Backup}
	var foreign []string
	if x.header.Tables, foreign, err = archive.Catalogue(ctx, x.s.Dialect, x.link); err != nil {
		return err
	}
	if x.cfg.Backup { // a backup contains the tables of linked numbers in another entry, so the warning must not name them
		foreign = slices.DeleteFunc(foreign, ofNumbers)
	}
	if len(foreign) > 0 {
		x.s.Config.Logger.Warn("tables that are none of Puntuale's stay where they are", "tables", foreign)
	}
	return countRows(ctx, x.link, x.header.Tables)
}

func countRows(ctx context.Context, a engine.Querier, tables []archive.Table) error {
	for i := range tables {
		t := &tables[i]
		if _, err := engine.QueryOne(ctx, a, "select count(*) from "+t.Name, nil, &t.Rows); err != nil {
			return fmt.Errorf("count the rows of %s: %w", t.Name, err)
		}
	}
	return nil
}

func (x *export) write(ctx context.Context, to io.Writer) error {
	return writeTables(ctx, x.link, to, x.header, x.cfg.Progress, x.s.DB)
}

// partTable has the parts of uploaded files. Its bytes may be outside of the database, but never outside of an export.
const partTable = "file_part"

// readTable does the same as [archive.ReadTable] for a snapshot of db. It reads the bytes of files wherever they are.
func readTable(ctx context.Context, a engine.Querier, t archive.Table, db *engine.DB, take func([]any) error) error {
	if t.Name != partTable {
		return archive.ReadTable(ctx, a, t, take)
	}
	row := make([]any, len(t.Columns))
	return file.ReadParts(ctx, a, db, func(client int64, id string, n int64, content []byte) error {
		for i, c := range t.Columns {
			row[i] = map[string]any{"client_id": client, "file_id": id, "n": n, "content": content}[c.Name]
		}
		return take(row)
	})
}

// writeTables writes a file with the header's tables. db may be nil if they do not include the parts of files.
func writeTables(ctx context.Context, a engine.Querier, to io.Writer, h archive.Header, report Progress, db *engine.DB) error {
	w, err := archive.NewWriter(to, h)
	if err != nil {
		return err
	}
	rows := &rowCounter{stage: Exporting, total: h.Rows(), report: report}
	for _, t := range h.Tables {
		if err := w.Begin(); err != nil {
			return err
		}
		if err := readTable(ctx, a, t, db, func(row []any) error {
			rows.row()
			return w.Row(row)
		}); err != nil {
			return err
		}
		if err := w.End(); err != nil {
			return err
		}
	}
	rows.end()
	return w.Close()
}
