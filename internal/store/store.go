package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/store/migration"
)

// Config says where the data is. Zero values have defaults, but for Data and Database, one of which is needed.
type Config struct {
	// Database is "" for the SQLite file puntuale.db in the folder Data, "sqlite:" and a path for another file (with
	// "?_pragma=name(value)" for settings of its own), or a PostgreSQL address beginning with postgres:// or
	// postgresql://.
	Database string
	Data     string

	Clock  clock.Clock
	Meter  puntuale.Meter
	Logger *slog.Logger

	// ListTimeout is how long what lists, and may read much, takes at most; default 10 s.
	ListTimeout time.Duration

	// NoMigrate refuses an empty or older database instead of bringing it up to date.
	NoMigrate bool
}

// Store keeps everything. It implements all role interfaces of package puntuale; its methods may be called by many
// goroutines at once.
type Store struct {
	cfg   Config
	d     *dialect
	name  string       // what PostgreSQL shows of our connections
	file  string       // the SQLite file; "" on PostgreSQL
	leave func() error // frees the file for what moves it; nil: it was not shared
	dbs   []*sql.DB
	pools sync.Mutex // guards dbs once the store is open
	read  *pool      // single things that a call needs, and keys
	list  *pool      // what a call lists: it may read much, and never takes a place from the others
	look  *pool      // the dispatcher's, and refills
	work  *pool      // what maintains the store, which may take its time
	past  *pool      // the archiver's
	turns turns      // at list

	machine clock.Clock // this machine's, whatever cfg.Clock shows

	writers  []*writer
	tenants  []*writer // by client
	claims   *writer
	records  *writer
	ledger   *writer // of the sandbox
	fleet    *writer
	feeds    *writer // of campaigns
	archives *writer // the archiver's
	watch    *watch  // nil on SQLite

	checkpoints *checkpointer // nil on PostgreSQL

	beaten   atomic.Pointer[acknowledged]
	lastCall atomic.Pointer[time.Time] // when a call's task was queued last, by this machine's clock; nil: none was

	teller   *teller   // nil on SQLite
	listener *listener // nil until Listen

	lastContact   atomic.Pointer[contactKey] // that Maintain looked at; nil: from the beginning
	lastAlias     atomic.Pointer[aliasKey]   // likewise
	blankedClient atomic.Int64               // the client that Maintain blanked last; 0: from the beginning

	kinds  kinds
	broken atomic.Pointer[error]
	damage atomic.Pointer[error] // that PostgreSQL told of
	failed chan struct{}         // closed once broken
	closed sync.Once
	err    error // of Close
}

// kinds are the kinds of tasks, named for the figures that operators see.
type kinds struct {
	start, free, stop, cancel, write, resend, claim, record, settle, receive, fleet, blank, erase, evidence, heard, archive, campaign, feed *kind
}

// Open opens the store, creating or migrating it where cfg allows. An error that wraps puntuale.ErrUntrusted means that
// it must not be used as it is, and says why; [ErrMoved], that its installation is elsewhere now; one with CodeConflict,
// that it is moving just now; one with CodeUnavailable, that the database could not be reached.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s, err := open(ctx, cfg, serverName)
	if err != nil {
		return nil, err
	}
	if err := s.refuseMoved(ctx, s.read); err != nil {
		return nil, errors.Join(outward(err), s.Close())
	}
	return s, nil
}

// open is Open without asking whether the installation moved.
func open(ctx context.Context, cfg Config, name string) (*Store, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if cfg.Meter == nil {
		cfg.Meter = puntuale.NoMeter{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.ListTimeout <= 0 {
		cfg.ListTimeout = listTimeout
	}
	s := &Store{cfg: cfg, name: name, machine: clock.System(), d: &dialect{timeline: untimed}, failed: make(chan struct{}), kinds: kinds{
		start: newStartKind(), free: newFreeStartKind(), stop: newSingle("stop", lanePrevent), cancel: newSingle("cancel", lanePrevent), write: newEffect("write"), resend: newEffect("resend"),
		claim: newClaimKind(), record: newSingle("record", laneSend), settle: newSingle("settle", laneSend), receive: newReceiveKind(),
		fleet: newSingle("fleet", laneSend), blank: newSingle("blank", laneCall), erase: newSingle("erase", lanePrevent),
		evidence: newSingle("evidence", laneCall), heard: newSingle("heard", lanePrevent), archive: newSingle("archive", laneCall), campaign: newSingle("campaign", lanePrevent), feed: newFeedKind(),
	}}
	// Outcomes and settlements compare the intent they saw, what is blanked is not found again, and what was told before
	// changes nothing, and what is archived is gone: a second run finds what the first one did.
	for _, k := range []*kind{s.kinds.record, s.kinds.settle, s.kinds.blank, s.kinds.erase, s.kinds.evidence, s.kinds.heard, s.kinds.archive} {
		k.check = neverSure
	}
	var err error
	switch database := cfg.Database; {
	case database == "" && cfg.Data == "":
		err = errors.New("neither a database nor a data folder is given")
	case database == "":
		err = s.openSQLite(ctx, filepath.Join(cfg.Data, "puntuale.db"), "")
	case strings.HasPrefix(database, "sqlite:"):
		path, query, _ := strings.Cut(strings.TrimPrefix(database, "sqlite:"), "?")
		err = s.openSQLite(ctx, path, query)
	case strings.HasPrefix(database, "postgres://"), strings.HasPrefix(database, "postgresql://"):
		err = s.openPostgres(ctx, database)
	default:
		err = errors.New("the database must begin with sqlite: or postgres://")
	}
	if err != nil {
		return nil, errors.Join(outward(fmt.Errorf("open the store: %w", err)), s.Close())
	}
	return s, nil
}

// neverSure makes a transaction run again whose commit is in doubt.
func neverSure(context.Context, *writer, []*task) (bool, error) { return false, nil }

// Migrate brings the database up to date, creating it if need be.
func Migrate(ctx context.Context, cfg Config) error {
	cfg.NoMigrate = false
	s, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	return s.Close()
}

// Close refuses new calls, waits for what is queued to be committed, and closes the database. It may be called twice.
func (s *Store) Close() error {
	s.closed.Do(func() {
		for _, w := range s.writers {
			w.close()
		}
		s.checkpoints.close()
		s.teller.close()
		s.listener.close()
		s.watch.close()
		s.pools.Lock()
		defer s.pools.Unlock()
		for _, db := range s.dbs {
			s.err = errors.Join(s.err, db.Close())
		}
		if s.leave != nil {
			s.err = errors.Join(s.err, s.leave())
		}
	})
	return s.err
}

// Check reports whether the store answers, with a write that reaches the disk, and still is where its installation is.
func (s *Store) Check(ctx context.Context) error {
	if err := s.damage.Load(); err != nil {
		return puntuale.StoreDamaged(*err)
	}
	return s.fleet.perform(ctx, single(s.kinds.write, func(ctx context.Context, a asker) error {
		if err := s.refuseGone(ctx, a); err != nil {
			return err
		}
		_, err := number(ctx, a, "check")
		return err
	}), true)
}

// fail makes the store refuse everything: what the disk holds after a failed write is known only after opening anew.
func (s *Store) fail(err error) {
	if s.broken.CompareAndSwap(nil, &err) {
		if s.file != "" && damage(err) {
			s.markSuspect(err)
			s.cfg.Logger.Error("the database file is damaged, nothing is written any more: restore a backup", "error", err)
		} else {
			s.cfg.Logger.Error("the disk failed under the database; restart once it is sound", "error", err)
		}
		close(s.failed)
	}
}

// Failed is closed once the disk under the database failed: nothing is written any more, and the process should end, so
// that whoever starts it again opens the database anew.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// Failure says why the store failed; nil while it has not.
func (s *Store) Failure() error {
	err := s.broken.Load()
	switch {
	case err == nil:
		return nil
	case damage(*err):
		return puntuale.StoreDamaged(*err)
	}
	return puntuale.Unavailable(fmt.Errorf("the disk failed under the database: %w", *err))
}

// damage tells a file that was found damaged from a disk that failed.
func damage(err error) bool { return corrupt(err) || errors.Is(err, puntuale.ErrUntrusted) }

// migrate compares the tables with this program and brings them up to date.
func (s *Store) migrate(ctx context.Context, db *sql.DB, which migration.Database) error {
	err := migration.Check(ctx, db, which)
	switch {
	case err == nil:
		return s.compare(ctx, db, which)
	case !errors.Is(err, migration.ErrEmpty) && !errors.Is(err, migration.ErrOlder):
		return err
	case s.cfg.NoMigrate:
		return fmt.Errorf("%w: run the command migrate first", err)
	}
	if err := migration.Up(ctx, db, which, s.cfg.Logger); err != nil {
		return err
	}
	if err := migration.Check(ctx, db, which); err != nil {
		return err
	}
	return s.compare(ctx, db, which)
}

// compare refuses tables that are not as the migrations make them. A PostgreSQL role that may not create temporary tables
// cannot compare, and is told so.
func (s *Store) compare(ctx context.Context, db *sql.DB, which migration.Database) error {
	err := migration.Compare(ctx, db, which)
	if p, ok := errors.AsType[*pgconn.PgError](err); ok && p.Code == "42501" {
		s.cfg.Logger.Warn("the tables were not compared with what this program needs", "error", err)
		return nil
	}
	return err
}
