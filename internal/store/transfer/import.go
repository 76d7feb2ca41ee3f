package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/migration"
	"puntuale/internal/store/person"
	"puntuale/internal/store/result"
)

// ImportConfig is the configuration of an import.
type ImportConfig struct {
	// Copy also accepts a file whose installation may still send. The caller must make sure that the other installation
	// no longer runs.
	Copy     bool
	Progress Progress

	restored func(ctx context.Context, s *installation, l *engine.Conn) error // makes a backup's due messages unknown; nil: Import refuses a backup
}

// ErrNotFinal is the error for a file whose installation may still send.
var ErrNotFinal = errors.New("the installation that this export came from may go on sending, and what both send arrives twice")

// ErrBackup is the error for the database of a backup. Messages that are pending in this database may have left after
// the backup was made.
var ErrBackup = errors.New("this is a backup's database, and what it holds as due may have left since; give the whole backup to the command restore")

// Import fills an empty PostgreSQL or SQLite database with an exported installation, and returns the file's header. It
// creates missing tables. All rows are written in one transaction. The transaction commits only after the number and
// the digest of each table's rows in the database were checked. If Import fails, the database is still empty, and the
// caller may try again. If the file is wrong, the error wraps one of the errors of package archive. Codes: conflict
// (the database is not empty, or a server or a command uses it).
func Import(ctx context.Context, cfg engine.Config, from io.Reader, i ImportConfig) (_ archive.Header, err error) {
	file, err := archive.NewReader(from)
	if err != nil {
		return archive.Header{}, err
	}
	if file.Header.Part != nil {
		return file.Header, fmt.Errorf("%w: it is a file of an archive", archive.ErrForeign)
	}
	m := &importer{cfg: i, file: file}
	switch {
	case file.Header.Backup && i.restored == nil:
		return file.Header, ErrBackup
	case !file.Header.Backup && i.restored != nil:
		return file.Header, fmt.Errorf("%w: its database is no backup's", archive.ErrForeign)
	case !file.Header.Final && !file.Header.Backup && !i.Copy:
		return file.Header, ErrNotFinal
	}
	if m.s, err = openInstallation(ctx, cfg, engine.Options{Name: moverName}); err != nil {
		return file.Header, err
	}
	defer func() { err = errors.Join(err, m.s.Close()) }()
	release, err := m.s.HoldFile()
	if err != nil {
		return file.Header, err
	}
	defer func() { err = errors.Join(err, release()) }()
	return file.Header, engine.PublicError(m.Run(ctx))
}

// importer is the work of one call of Import or Restore.
type importer struct {
	s      *installation
	cfg    ImportConfig
	file   *archive.Reader
	link   *engine.Conn
	tables map[string]archive.Table // tables of the database by name

	loaded []archive.Table // tables of the file that have been loaded
	digest []string        // digest of each loaded table
	began  map[string]int64
	block  int64
}

func (m *importer) Run(ctx context.Context) (err error) {
	var free func() error
	if m.link, free, err = m.s.OpenMover(ctx, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, free()) }()
	if err := m.link.Begin(ctx); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	for _, step := range []func(context.Context) error{m.compare, m.lock, m.refuseFull, m.clear, m.load, m.check, m.raiseCounters, m.resetLinksAndArchive, m.hideLost, m.rebuild, m.countResults, m.restored} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := m.link.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return m.analyze(ctx)
}

// compare finds the file's tables and columns in the database. A file of an older version has fewer of them. Missing
// columns get the same defaults as in a migration.
func (m *importer) compare(ctx context.Context) error {
	database := migration.SQLite
	if m.s.Dialect.Postgres {
		database = migration.Postgres
	}
	schema, err := migration.Latest(database)
	if err != nil {
		return err
	}
	if m.file.Header.Schema > schema {
		return fmt.Errorf("%w: its tables have version %d, this program knows up to %d", archive.ErrNewer, m.file.Header.Schema, schema)
	}
	all, _, err := archive.Catalogue(ctx, m.s.Dialect, m.link)
	if err != nil {
		return err
	}
	m.tables = map[string]archive.Table{}
	for _, t := range all {
		m.tables[t.Name] = t
	}
	return m.compareTables(all, m.file.Header.Schema == schema)
}

// compareTables returns an error if the file contains a table that is not in this database. If whole is true, it also
// returns an error if one of the tables in all is missing in the file.
func (m *importer) compareTables(all []archive.Table, whole bool) error {
	seen, columns := map[string]bool{}, 0
	for _, t := range m.file.Header.Tables {
		own, ok := m.tables[t.Name]
		if !ok || seen[t.Name] {
			return fmt.Errorf("%w: its header names the table %.60q, which this program does not know, or twice", archive.ErrDamaged, t.Name)
		}
		seen[t.Name] = true
		for _, c := range t.Columns {
			if !slices.Contains(own.Columns, c) || seen[t.Name+"."+c.Name] {
				return fmt.Errorf("%w: its header names the column %.60q of table %s as %q, which this program does not know, or twice",
					archive.ErrDamaged, c.Name, t.Name, c.Kind)
			}
			seen[t.Name+"."+c.Name] = true
			columns++
		}
	}
	for _, t := range all {
		columns -= len(t.Columns)
	}
	if whole && columns != 0 {
		return fmt.Errorf("%w: its header lacks tables or columns that it must have", archive.ErrDamaged)
	}
	return nil
}

// Codes of the faults that functions in this file return.
const (
	faultStoreNotEmpty       puntuale.ReasonCode = "store.not_empty"
	faultStoreSomebodyWrites puntuale.ReasonCode = "store.somebody_writes"
)

// lock prevents all other transactions from writing until this transaction ends. On SQLite, the transaction itself does
// this.
func (m *importer) lock(ctx context.Context) error {
	if !m.s.Dialect.Postgres {
		return nil
	}
	names := []string{"node"}
	for _, t := range archive.MovedTables {
		names = append(names, t.Name)
	}
	if _, err := m.link.Exec(ctx, "lock table "+strings.Join(names, ", ")+" in share row exclusive mode"); err != nil {
		if engine.LockedOut(err) {
			return puntuale.Conflict(faultStoreSomebodyWrites)
		}
		return fmt.Errorf("lock the tables: %w", err)
	}
	return m.s.refuseServers(ctx)
}

// refuseFull returns an error if the database is not empty.
func (m *importer) refuseFull(ctx context.Context) error {
	for _, t := range archive.MovedTables {
		if slices.Contains(archive.BeginTables, t.Name) {
			continue
		}
		var n int64
		found, err := engine.QueryOne(ctx, m.link, "select 1 from "+t.Name+" limit 1", nil, &n)
		if err != nil {
			return fmt.Errorf("look whether %s is empty: %w", t.Name, err)
		}
		if found {
			return puntuale.Conflict(faultStoreNotEmpty, t.Name)
		}
	}
	return nil
}

// clear empties the tables that contain rows even in a new database. Before that, it reads the values of the counters.
func (m *importer) clear(ctx context.Context) error {
	m.began = map[string]int64{}
	if err := m.eachCounter(ctx, func(noun string, next int64) { m.began[noun] = next }); err != nil {
		return err
	}
	if _, err := engine.QueryOne(ctx, m.link, `select next from id_block where one = 1`, nil, &m.block); err != nil {
		return fmt.Errorf("read the block counter: %w", err)
	}
	for _, name := range archive.BeginTables {
		if _, err := m.link.Exec(ctx, "delete from "+name); err != nil {
			return fmt.Errorf("empty %s: %w", name, err)
		}
	}
	return nil
}

// check reads the database again, and compares the number and the digest of each table's rows with the file.
func (m *importer) check(ctx context.Context) error {
	rows := &rowCounter{stage: Checking, total: m.file.Header.Rows(), report: m.cfg.Progress}
	var line []byte
	for i, t := range m.loaded {
		var n int64
		var digest archive.Digest
		if err := archive.ReadTable(ctx, m.link, t, func(row []any) (err error) {
			if line, err = archive.AppendRow(line[:0], row); err != nil {
				return err
			}
			digest.Add(line)
			n++
			rows.row()
			return nil
		}); err != nil {
			return err
		}
		if n != t.Rows || digest.String() != m.digest[i] {
			return fmt.Errorf("the table %s came out other than it went in: %d rows of %d, digest %s and not %s",
				t.Name, n, t.Rows, &digest, m.digest[i])
		}
	}
	rows.end()
	return nil
}

// raiseCounters sets each counter to the larger of its values in the file and in this database.
func (m *importer) raiseCounters(ctx context.Context) error {
	for noun, next := range m.began {
		if _, err := m.link.Exec(ctx, `insert into counter as g (noun, next) values ($1, $2)
 on conflict (noun) do update set next = case when g.next > excluded.next then g.next else excluded.next end`, noun, next); err != nil {
			return fmt.Errorf("set the counter %s: %w", noun, err)
		}
	}
	if _, err := m.link.Exec(ctx, `insert into id_block as g (one, next) values (1, $1)
 on conflict (one) do update set next = case when g.next > excluded.next then g.next else excluded.next end`, m.block); err != nil {
		return fmt.Errorf("set the block counter: %w", err)
	}
	if !m.s.Dialect.Postgres {
		return nil
	}
	for _, t := range archive.MovedTables {
		if t.Serial == "" {
			continue
		}
		var next int64
		if _, err := engine.QueryOne(ctx, m.link, fmt.Sprintf(`select setval(pg_get_serial_sequence('%[1]s', '%[2]s'), coalesce(max(%[2]s), 0) + 1, false) from %[1]s`,
			t.Name, t.Serial), nil, &next); err != nil {
			return fmt.Errorf("set the numbers of %s: %w", t.Name, err)
		}
	}
	return nil
}

// resetLinkStates changes states of links that are true only while a node owns the session. A linked session becomes
// not connected, and a pairing ends. An unlinked session stays unlinked, even a sandbox, because a person unlinked it.
// Devices stay linked, because their tokens move, too.
const resetLinkStates = `
update session set link = case link when $1 then $2::smallint else $3::smallint end, link_at = $4, link_detail = ''
where link in ($1, $5) and way = ''`

// resetLinksAndArchive changes the links of sessions as if all nodes had stopped. A copy begins a new archive, because
// two installations with the same archive folder would undo each other's work. A restored installation continues with
// its own archive.
func (m *importer) resetLinksAndArchive(ctx context.Context) error {
	if !m.file.Header.Final && !m.file.Header.Backup {
		for _, table := range []string{"archive", "archive_erasure"} {
			if _, err := m.link.Exec(ctx, "delete from "+table); err != nil {
				return fmt.Errorf("leave the archive behind: %w", err)
			}
		}
	}
	return m.resetLinks(ctx)
}

func (m *importer) resetLinks(ctx context.Context) error {
	if _, err := m.link.Exec(ctx, resetLinkStates, int64(puntuale.LinkOnline), int64(puntuale.LinkLinked), int64(puntuale.LinkUnlinked),
		engine.Micros(m.s.Config.Clock.Now()), int64(puntuale.LinkPairing)); err != nil {
		return fmt.Errorf("reset the links: %w", err)
	}
	return nil
}

// hideLost hides files that were deleted while their export was made, so that it has no bytes of them. Nothing gives them back.
func (m *importer) hideLost(ctx context.Context) error {
	if _, err := m.link.Exec(ctx, `update file set stored_at = 0, hidden_at = 1 where exists (
 select 1 from file_part p where p.client_id = file.client_id and p.file_id = file.id and length(p.content) = 0)`); err != nil {
		return fmt.Errorf("hide files without bytes: %w", err)
	}
	return nil
}

// rebuild fills the tables that follow from others, and therefore do not move.
func (m *importer) rebuild(ctx context.Context) error { return person.RebuildWords(ctx, m.link) }

// The numbers of the first schemas whose files have results, and results of bookings.
const (
	withResults        = 50
	withBookingResults = 56
)

// countResults lets the servers count what a file has no results of.
func (m *importer) countResults(ctx context.Context) error {
	text := result.CountAll
	switch schema := m.file.Header.Schema; {
	case schema >= withBookingResults:
		return nil
	case schema >= withResults:
		text = result.CountBookings
	}
	if _, err := m.link.Exec(ctx, text); err != nil {
		return fmt.Errorf("have results counted: %w", err)
	}
	return nil
}

// restored makes messages unknown whose outcomes may be missing in a backup.
func (m *importer) restored(ctx context.Context) error {
	if m.cfg.restored == nil {
		return nil
	}
	return m.cfg.restored(ctx, m.s, m.link)
}

// analyze makes PostgreSQL collect statistics about the new rows for its planner. Otherwise PostgreSQL would do this
// only after a minute.
func (m *importer) analyze(ctx context.Context) error {
	if !m.s.Dialect.Postgres {
		return nil
	}
	for _, t := range m.loaded {
		if _, err := m.link.Exec(ctx, "analyze "+t.Name); err != nil {
			m.s.Config.Logger.Warn("the tables were not analyzed", "error", err) // a failure here does not make the import fail
			return nil
		}
	}
	return nil
}
