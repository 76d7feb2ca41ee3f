package engine

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

// Config says where the data is. Each field has a default, except that either Data or Database is needed.
type Config struct {
	// Database is "" for the SQLite file puntuale.db in the folder Data. "sqlite:" and a path name another file, with
	// "?_pragma=name(value)" for its settings. A PostgreSQL address begins with postgres:// or postgresql://.
	Database string
	Data     string

	Clock  clock.Clock
	Meter  puntuale.StoreMeter
	Logger *slog.Logger

	// ListTimeout is how long a list may take; default 10 s.
	ListTimeout time.Duration

	// NoMigrate refuses an empty or older database instead of bringing it up to date.
	NoMigrate bool
}

// Options say how one user of the database opens it.
type Options struct {
	Name   string                                     // what PostgreSQL shows of our connections
	Shared bool                                       // blocks imports and moving exports of a SQLite file while it is open
	Admit  func(ctx context.Context, a Querier) error // checks each new connection of a writer; nil: no check
}

// DB is an open database: its connections, and the writers that commit. Its own tables are the counters of identifiers and the idempotency
// records; it knows no other tables. Many goroutines may call its methods at once.
type DB struct {
	Options

	Config  Config
	Dialect *Dialect
	File    string       // the SQLite file; "" on PostgreSQL
	leave   func() error // ends the share of the file; nil: the file is not shared
	pools   sync.Mutex   // guards dbs once the database is open
	dbs     []*sql.DB

	readPools
	ListSlots listSlots // limits the use of ListReads

	LocalClock clock.Clock // the clock of this machine, even if Config.Clock is another one

	writers
	Writes      *Kind         // a transaction of one caller
	Monitor     *Monitor      // nil on SQLite
	checkpoints *checkpointer // nil on PostgreSQL

	LastCall atomic.Pointer[time.Time] // when a call last queued a task, by this machine's clock; nil: no call has queued one
	failure  failure

	closed sync.Once
	err    error // what Close returned
}

// readPools are the connections for reading.
type readPools struct {
	CallReads        *ReadPool // for single things that a call needs, and for keys
	ListReads        *ReadPool // for the lists of calls, which may read much and must not use the other connections
	DispatchReads    *ReadPool // for the dispatcher and for refills
	MaintenanceReads *ReadPool // for maintenance, which may be slow
	ArchiveReads     *ReadPool // for the archiver
}

// writers are the writers of the database. On SQLite there is only one.
type writers struct {
	all           []*Writer
	TenantWriters []*Writer // for calls, chosen by client
	ClaimWriter   *Writer
	RecordWriter  *Writer
	LedgerWriter  *Writer // for the sandbox
	FleetWriter   *Writer
	FeedWriter    *Writer // for campaigns
	EventWriter   *Writer // for events and deliveries
	ArchiveWriter *Writer // for the archiver
}

// failure is the error after which the store cannot work any more.
type failure struct {
	broken atomic.Pointer[error]
	damage atomic.Pointer[error] // PostgreSQL reported it
	closed chan struct{}         // closed when the store has failed
}

// Open opens the database, and creates or migrates it if cfg allows that. An error that wraps puntuale.ErrUntrusted means that the database
// must not be used, and says why. CodeConflict means that a command is moving the database now. CodeUnavailable means that it could not be
// reached.
func Open(ctx context.Context, cfg Config, o Options) (*DB, error) {
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
	s := &DB{Options: o, Config: cfg, LocalClock: clock.System(), Dialect: &Dialect{Timeline: untimed}, Writes: NewEffect("write"), failure: failure{closed: make(chan struct{})}}
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
		return nil, errors.Join(PublicError(fmt.Errorf("open the store: %w", err)), s.Close())
	}
	return s, nil
}

// CloseWriters refuses new tasks, and waits until queued tasks are committed.
func (s *DB) CloseWriters() {
	for _, w := range s.writers.all {
		w.close()
	}
}

// Close refuses new calls, waits until queued tasks are committed, and closes the database. It may be called twice.
func (s *DB) Close() error {
	s.closed.Do(func() {
		s.CloseWriters()
		s.checkpoints.close()
		s.Monitor.close()
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

// fail makes the store refuse everything. After a failed write, the data on disk is unknown until the next start opens the database again.
func (s *DB) fail(err error) {
	if s.failure.broken.CompareAndSwap(nil, &err) {
		if s.File != "" && damage(err) {
			s.markSuspect(err)
			s.Config.Logger.Error("the database file is damaged, nothing is written any more: restore a backup", "error", err)
		} else {
			s.Config.Logger.Error("the disk failed under the database; restart once it is sound", "error", err)
		}
		close(s.failure.closed)
	}
}

// Damage is the damage that PostgreSQL reported; nil if there is none.
func (s *DB) Damage() error {
	if err := s.failure.damage.Load(); err != nil {
		return *err
	}
	return nil
}

// Failed is closed when the disk under the database failed. Then nothing is written any more. The process should end, so that its next
// start opens the database again.
func (s *DB) Failed() <-chan struct{} { return s.failure.closed }

// Failure says why the store failed; nil while it has not.
func (s *DB) Failure() error {
	err := s.failure.broken.Load()
	switch {
	case err == nil:
		return nil
	case damage(*err):
		return puntuale.StoreDamaged(*err)
	}
	return puntuale.Unavailable(fmt.Errorf("the disk failed under the database: %w", *err))
}

// damage distinguishes a damaged file from a disk that failed.
func damage(err error) bool { return corrupt(err) || errors.Is(err, puntuale.ErrUntrusted) }

// migrate compares the tables with this program and brings them up to date.
func (s *DB) migrate(ctx context.Context, db *sql.DB, which migration.Database) error {
	err := migration.Check(ctx, db, which)
	switch {
	case err == nil:
		return s.compare(ctx, db, which)
	case !errors.Is(err, migration.ErrEmpty) && !errors.Is(err, migration.ErrOlder):
		return err
	case s.Config.NoMigrate:
		return fmt.Errorf("%w: run the command migrate first", err)
	}
	if err := migration.Up(ctx, db, which, s.Config.Logger); err != nil {
		return err
	}
	if err := migration.Check(ctx, db, which); err != nil {
		return err
	}
	return s.compare(ctx, db, which)
}

// compare refuses tables that differ from the migrations. It needs a PostgreSQL role that may create temporary tables; for another role, it
// says so.
func (s *DB) compare(ctx context.Context, db *sql.DB, which migration.Database) error {
	err := migration.Compare(ctx, db, which)
	if p, ok := errors.AsType[*pgconn.PgError](err); ok && p.Code == "42501" {
		s.Config.Logger.Warn("the tables were not compared with what this program needs", "error", err)
		return nil
	}
	return err
}
