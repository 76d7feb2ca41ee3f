package archiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/migration"
	"puntuale/internal/store/statement"
)

// Archiver moves runs that ended long ago from the database into compressed files. Any number of nodes may have an
// archiver for the same folder, but only the node with the lease works. The lease alone does not protect the rows.
// These rules do:
//
//   - A new file gets the number after the last finished file. No number is used twice (archive.Folder).
//   - Before a row is deleted, its file is on disk and was read back. A row is deleted only if it is byte for byte equal
//     to the row in the file. If a row differs, its run is removed from the file.
//   - Each transaction that deletes rows checks the term of the lease. So a node that was stopped for a while deletes
//     nothing after it lost the lease.
//   - Before a node begins a new file, it finishes the file that was begun before, even if another node began it. If
//     rows of this file are missing in the database, they were already deleted.
type Archiver struct {
	s       *engine.DB
	kind    *engine.Kind
	cfg     Config
	Fail    func(step string) error // only for tests: the archiver calls it at certain points, and stops if it returns an error
	working atomic.Bool
}

// Config is the configuration of an [Archiver].
type Config struct {
	Folder  string // folder of the archive; the first use creates it
	Program string // name of this program, written into the files

	// Mark returns the keyed hash that replaces the number of an erased person.
	Mark func(client puntuale.ClientID, phone string) string

	// Lease is the length of a lease. If a node dies during its work, other nodes wait this long. Default: 2 minutes.
	Lease time.Duration

	// Wait is called after each part of the work, with the time that this part took. It should wait, so that others can
	// use the database. nil: wait 19 times as long as the part took, but not longer than 2 s.
	Wait func(ctx context.Context, took time.Duration) error
}

// ArchiveResult counts what one call did.
type ArchiveResult struct {
	Files, Runs, Messages, Erased int
}

// Limits of one file. A file is kept in memory while it is made.
const (
	maxRows  = 40_000
	maxBytes = 12 << 20
	maxLooks = 20_000 // largest number of runs that are read for one file
)

// New returns an archiver for a database.
func New(s *engine.DB, cfg Config) *Archiver {
	if cfg.Lease <= 0 {
		cfg.Lease = 2 * time.Minute
	}
	a := &Archiver{s: s, kind: newArchiveKind(), cfg: cfg}
	if cfg.Wait == nil {
		a.cfg.Wait = a.wait
	}
	return a
}

// newArchiveKind returns a task kind whose tasks may run twice, because the second run finds no rows to delete.
func newArchiveKind() *engine.Kind {
	k := engine.NewSingle("archive", engine.PriorityCall)
	k.Check, k.Background = engine.RunAgain, true
	return k
}

// wait leaves 19/20 of the time to other work, but lasts at most 2 s. If other work keeps the database busy, each part
// of the archiver's work takes longer. Then wait also waits longer.
func (a *Archiver) wait(ctx context.Context, took time.Duration) error {
	return a.s.LocalClock.Sleep(ctx, min(19*took, 2*time.Second))
}

// archiveTerm is the work of one node during one lease.
type archiveTerm struct {
	*Archiver
	folder    *archive.Folder
	tables    []archive.Table
	schema    int64
	now       time.Time
	before    time.Time
	term      int64
	beaten    time.Time         // when the lease was last renewed, by this machine's clock
	serial    int64             // number of the last finished file
	from      puntuale.ClientID // this term has already read the clients with ids up to this one
	moreLater bool              // some old runs are not blanked yet, so a later call must read them again
	looked    lookedAtRuns
	client    statement.NeededMonths // what statements still need of the client whose runs are read
	till      int64                  // runs of this client that ended up to then are old, in µs
	done      ArchiveResult
}

// Run moves blanked runs to the archive, in the order of their identifiers, if they ended before the time in the
// argument before, and if no statement will count them any more. It also removes erased persons from the files. It
// returns when nothing is left to do, or when ctx ends. If something fails, the next call tries it again. If another
// node has the lease, Run does nothing.
func (a *Archiver) Run(ctx context.Context, now, before time.Time) (ArchiveResult, error) {
	if !a.working.CompareAndSwap(false, true) {
		return ArchiveResult{}, nil
	}
	defer a.working.Store(false)
	t := &archiveTerm{Archiver: a, now: now, before: before}
	due, err := t.enter(ctx)
	if err != nil || !due {
		return t.done, engine.PublicError(err)
	}
	leased, err := t.begin(ctx)
	if err != nil || !leased {
		return t.done, engine.PublicError(err)
	}
	err = t.work(ctx)
	switch {
	case errors.Is(err, puntuale.ErrFenced): // another node has the lease now
		return t.done, nil
	case !errors.Is(err, ErrKilled):
		err = errors.Join(err, t.end(context.WithoutCancel(ctx)))
	}
	return t.done, engine.PublicError(err)
}

// ErrKilled is an error for tests: the work stops immediately, as if the process was killed.
var ErrKilled = errors.New("killed")

func (t *archiveTerm) at(step string) error {
	if t.Fail == nil {
		return nil
	}
	return t.Fail(step)
}

// enter opens the archive's folder, and reports whether there is work. At first use, it makes the folder the archive of
// this installation.
func (t *archiveTerm) enter(ctx context.Context) (due bool, err error) {
	var id string
	var doneTo, erasures int64
	read := func() (found bool, err error) {
		found, err = engine.QueryOne(ctx, t.s.ArchiveReads, `select folder, done_to, (select count(*) from archive_erasure) from archive where one = 1`,
			nil, &id, &doneTo, &erasures)
		if err != nil {
			return false, fmt.Errorf("read the archive's state: %w", err)
		}
		return found, nil
	}
	found, err := read()
	if err != nil {
		return false, err
	}
	if !found {
		if t.folder, err = archive.BeginFolder(t.cfg.Folder); err != nil {
			return false, err
		}
		files, err := t.folder.Files()
		if err != nil {
			return false, err
		}
		if len(files) == 0 {
			return true, t.adopt(ctx)
		}
		// Perhaps another node of this installation adopted the folder and wrote a file after this node read the state.
		if found, err = read(); err != nil {
			return false, err
		}
		if !found {
			return false, fmt.Errorf("%s holds the archive of another installation; give this one a folder of its own", t.cfg.Folder)
		}
	}
	if t.folder, err = openKnown(t.cfg.Folder, id); err != nil {
		return false, err
	}
	return erasures > 0 || !t.before.IsZero() && engine.Micros(t.before) > doneTo, nil
}

// openKnown opens the folder at path. The folder must have the identifier that is stored in the database.
func openKnown(path, id string) (*archive.Folder, error) {
	f, err := archive.OpenFolder(path)
	if err == nil && f.ID() != id {
		err = fmt.Errorf("%s holds another archive than the one that this installation has begun", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w. Give the folder that holds it, or begin a new one with puntuale archive begin", err)
	}
	return f, nil
}

// adopt stores the folder's identifier in the database. From then on the folder is the archive of this installation.
func (t *archiveTerm) adopt(ctx context.Context) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `insert into archive (one, folder) values (1, $1) on conflict (one) do nothing`, t.folder.ID())
		return err
	})
}

// Begin makes the folder at path the archive of the installation. If the installation had another archive, that archive
// is no longer used.
func Begin(ctx context.Context, s *engine.DB, path string) error {
	f, err := archive.BeginFolder(path)
	if err != nil {
		return err
	}
	files, err := f.Files()
	if err != nil {
		return err
	}
	last := int64(0)
	if len(files) > 0 {
		last = files[len(files)-1].Serial
	}
	return engine.PublicError(s.ArchiveWriter.Do(ctx, engine.Single(newArchiveKind(), func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `insert into archive (one, folder, serial) values (1, $1, $2)
 on conflict (one) do update set folder = excluded.folder, term = archive.term + 1,
 serial = case when archive.folder = excluded.folder then archive.serial when archive.serial > excluded.serial then archive.serial else excluded.serial end`, f.ID(), last)
		return err
	}), false))
}

// write runs a transaction. It may call do again although the changes of the first call are already on disk.
func (t *archiveTerm) write(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
	begun := t.s.LocalClock.Now()
	if err := t.s.ArchiveWriter.Do(ctx, engine.Single(t.kind, do), false); err != nil {
		return err
	}
	return t.cfg.Wait(ctx, t.s.LocalClock.Now().Sub(begun))
}

// fenced does the same as write, but fails if this node has lost the lease. It also renews the lease.
func (t *archiveTerm) fenced(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
	t.beaten = t.s.LocalClock.Now()
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `update archive set until = $clock + $2::bigint where one = 1 and term = $1`, t.term, t.cfg.Lease.Microseconds())
		if err != nil {
			return fmt.Errorf("prolong the archiver's lease: %w", err)
		}
		if n == 0 {
			return fmt.Errorf("another server archives: %w", puntuale.ErrFenced)
		}
		return do(ctx, a)
	})
}

// rested waits after a read. The argument begun is the time at which the read began. rested renews the lease if necessary.
func (t *archiveTerm) rested(ctx context.Context, begun time.Time) error {
	if err := t.cfg.Wait(ctx, t.s.LocalClock.Now().Sub(begun)); err != nil {
		return err
	}
	if t.s.LocalClock.Now().Sub(t.beaten) < t.cfg.Lease/4 {
		return nil
	}
	return t.fenced(ctx, func(context.Context, engine.Querier) error { return nil })
}

// begin takes the lease, unless another node has it. leased reports whether this node has the lease now.
func (t *archiveTerm) begin(ctx context.Context) (leased bool, err error) {
	t.beaten = t.s.LocalClock.Now()
	err = t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		leased, err = engine.QueryOne(ctx, a, `update archive set term = term + 1, until = $clock + $2::bigint
 where one = 1 and folder = $1 and until <= $clock returning term, serial`, []any{t.folder.ID(), t.cfg.Lease.Microseconds()}, &t.term, &t.serial)
		return err
	})
	if err != nil || !leased {
		return false, err
	}
	all, _, err := archive.Catalogue(ctx, t.s.Dialect, t.s.ArchiveReads)
	if err != nil {
		return false, err
	}
	for _, name := range PastTables {
		t.tables = append(t.tables, all[slices.IndexFunc(all, func(table archive.Table) bool { return table.Name == name })])
	}
	database := migration.SQLite
	if t.s.Dialect.Postgres {
		database = migration.Postgres
	}
	t.schema, err = migration.Latest(database)
	return true, err
}

// end gives up the lease, so that another node can take it immediately.
func (t *archiveTerm) end(ctx context.Context) error {
	return t.s.ArchiveWriter.Do(ctx, engine.Single(t.kind, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `update archive set until = 0 where one = 1 and term = $1`, t.term)
		return err
	}), false)
}

// work first finishes a file that was begun, and then makes one file after another. Before each new file, it does
// erasures.
func (t *archiveTerm) work(ctx context.Context) error {
	if err := t.folder.Sweep(); err != nil {
		return err
	}
	for {
		if err := t.finish(ctx); err != nil {
			return err
		}
		if err := t.looked.note(ctx, t); err != nil {
			return err
		}
		if err := t.forget(ctx); err != nil {
			return err
		}
		if t.before.IsZero() {
			return nil
		}
		p, more, err := t.collect(ctx)
		if err != nil {
			return err
		}
		switch {
		case p.empty() && !more:
			return t.complete(ctx)
		case p.empty():
			continue
		}
		if err := t.at("gathered"); err != nil {
			return err
		}
		err = t.put(archive.File{Serial: t.serial + 1, Version: 1}, p)
		if errors.Is(err, archive.ErrTaken) { // another node wrote this file after it lost the lease; the next round finishes it like any other file
			t.looked, t.from = lookedAtRuns{}, 0
		} else if err != nil {
			return err
		}
		if err := t.at("written"); err != nil {
			return err
		}
	}
}

// put writes the file of a batch.
func (t *archiveTerm) put(file archive.File, p *archiveBatch) error {
	database := string(migration.SQLite)
	if t.s.Dialect.Postgres {
		database = string(migration.Postgres)
	}
	return t.folder.Put(file, func(to io.Writer) error {
		return p.write(to, archive.Header{Schema: t.schema, Program: t.cfg.Program, Database: database, At: t.now.UTC(),
			Part: &archive.Part{Folder: t.folder.ID(), Serial: file.Serial}})
	})
}

// complete stores that all runs were read.
func (t *archiveTerm) complete(ctx context.Context) error {
	if err := t.looked.note(ctx, t); err != nil || t.moreLater {
		return err
	}
	return t.fenced(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `update archive set done_to = $1 where one = 1 and done_to < $1`, engine.Micros(t.before))
		return err
	})
}
