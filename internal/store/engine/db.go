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
	"puntuale/internal/semaphore"
	"puntuale/internal/store/migration"
)

// Config says where the database is. Data or Database must be set. All other fields have defaults.
type Config struct {
	// Database is the address of the database. "" means the SQLite file puntuale.db in the folder Data. "sqlite:" and a
	// path mean another SQLite file. After the path, "?_pragma=name(value)" may set its settings. A PostgreSQL address
	// begins with postgres:// or postgresql://.
	Database string
	Data     string

	Clock  clock.Clock
	Meter  Meter
	Logger *slog.Logger

	// ListTimeout is how long reading a list may take; default 10 s.
	ListTimeout time.Duration

	// NoMigrate makes Open return an error for an empty database, and for a database with older tables. If NoMigrate is
	// false, Open migrates the database.
	NoMigrate bool

	// Public is the address at which the internet reaches the service; "": none. Tracked links begin with it, unless the
	// partner has a host name of its own.
	Public string

	// Objects keeps the bytes of uploaded files. nil: the database keeps them.
	Objects Objects
}

// Objects keeps the parts of uploaded files outside of the database. Every call ends after a time, even if the storage does
// not answer. Its methods are safe for concurrent use.
type Objects interface {
	// PutPart stores part n of a file, or replaces it. All parts of a file are in one folder.
	PutPart(ctx context.Context, folder string, n int, content []byte) error
	// Part reads a part. If it is longer than most, Part returns most+1 bytes. fs.ErrNotExist: it is not there.
	Part(ctx context.Context, folder string, n int, most int64) ([]byte, error)
	// RemoveParts removes the parts 0 to n-1, as far as they are there.
	RemoveParts(ctx context.Context, folder string, n int) error
	// Mark stores a marker if the storage has none, unless the marker is empty. It returns the marker that the storage has.
	Mark(ctx context.Context, marker string) (there string, err error)
	// Expect makes the calls fail while the storage does not have this marker, because it is another place.
	Expect(marker string)
}

// Options says how a program uses the database.
type Options struct {
	Name string // name that PostgreSQL shows for our connections
	// Shared prevents imports into the SQLite file, and exports that move its data, while this program has the database
	// open.
	Shared bool
	Admit  func(ctx context.Context, a Querier) error // checks each new connection of a writer; nil: no check
}

// DB is an open database: its connections, and the writers that commit. Its own tables are the counters of identifiers
// and the idempotency records. It knows no other tables. Its methods are safe for concurrent use.
type DB struct {
	Options

	Config  Config
	Dialect *Dialect
	File    string       // path of the SQLite file; "" on PostgreSQL
	leave   func() error // releases the lock on the file; nil: the file is not locked
	pools   sync.Mutex   // guards dbs
	dbs     []*sql.DB

	readPools
	listSlots *semaphore.Semaphore // let each client read only one list at a time

	LocalClock clock.Clock // this machine's clock, even if Config.Clock is another clock

	writers
	Writes      *Kind         // task kind of Write: each task has its own function
	Monitor     *Monitor      // nil on SQLite
	checkpoints *checkpointer // nil on PostgreSQL

	LastCall atomic.Pointer[time.Time] // when a call last queued a task, by LocalClock; nil: never
	failure  failure

	closed sync.Once
	err    error // the result of Close
}

// readPools contains the pools of connections for reading.
type readPools struct {
	CallReads        *ReadPool // used for authentication, and for single rows that a call needs
	ListReads        *ReadPool // used for lists, which may read much and must not block the other connections
	DispatchReads    *ReadPool // used by background work that must be quick: the dispatcher, campaigns, automations, webhooks
	MaintenanceReads *ReadPool // used by maintenance, which may be slow
	ArchiveReads     *ReadPool // used by the archiver
}

// writers contains the writers of the database. On SQLite all fields are the same writer.
type writers struct {
	all           []*Writer
	TenantWriters []*Writer // commit the calls of clients and partners; TenantWriter chooses the writer of an owner
	ClaimWriter   *Writer
	RecordWriter  *Writer
	LedgerWriter  *Writer // commits the sandbox's ledger
	FleetWriter   *Writer
	FeedWriter    *Writer // commits large background work: chunks of campaigns, acts of automations, merges of contacts
	EventWriter   *Writer // commits events, deliveries, and triggers of automations
	ArchiveWriter *Writer // commits the archiver's changes
}

// failure contains the error after which the store refuses all work.
type failure struct {
	broken atomic.Pointer[error]
	damage atomic.Pointer[error] // damage that PostgreSQL reported
	closed chan struct{}         // closed when the store has failed
}

// Open opens the database. It creates or migrates the database if cfg allows that. If the error wraps
// puntuale.ErrUntrusted, the database must not be used, and the error says why. CodeConflict: a command is moving the
// database now. CodeUnavailable: the database cannot be reached.
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
	s := &DB{Options: o, Config: cfg, listSlots: semaphore.New(0), LocalClock: clock.System(), Dialect: &Dialect{Timeline: untimed}, Writes: NewEffect("write"), failure: failure{closed: make(chan struct{})}}
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

// CloseWriters refuses new tasks, and waits until the queued tasks are committed.
func (s *DB) CloseWriters() {
	for _, w := range s.writers.all {
		w.close()
	}
}

// Close refuses new calls, waits until the queued tasks are committed, and closes the database. It may be called again.
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

// fail makes the store refuse all work. After a failed write, nobody knows what is on the disk until the next start
// opens the database again and reads it.
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

// Damage returns the damage that PostgreSQL reported, or nil.
func (s *DB) Damage() error {
	if err := s.failure.damage.Load(); err != nil {
		return *err
	}
	return nil
}

// Failed returns a channel that is closed when the disk under the database has failed. After that the store writes
// nothing. The process should end, so that its next start opens the database again.
func (s *DB) Failed() <-chan struct{} { return s.failure.closed }

// Failure returns why the store failed, or nil if it has not failed.
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

// damage reports whether the error means a damaged file. Any other error means that the disk failed.
func damage(err error) bool { return corrupt(err) || errors.Is(err, puntuale.ErrUntrusted) }

// migrate compares the version of the tables with the version of this program, and migrates the tables if necessary.
func (s *DB) migrate(ctx context.Context, db *sql.DB, database migration.Database) error {
	err := migration.Check(ctx, db, database)
	switch {
	case err == nil:
		return s.ready(ctx, db, database)
	case !errors.Is(err, migration.ErrEmpty) && !errors.Is(err, migration.ErrOlder):
		return err
	case s.Config.NoMigrate:
		return fmt.Errorf("%w: run the command migrate first", err)
	}
	if err := migration.Up(ctx, db, database, s.Config.Logger); err != nil {
		return err
	}
	if err := migration.Check(ctx, db, database); err != nil {
		return err
	}
	return s.ready(ctx, db, database)
}

// ready compares the tables, and tells SQLite how big they may become.
func (s *DB) ready(ctx context.Context, db *sql.DB, database migration.Database) error {
	if err := s.compare(ctx, db, database); err != nil || database == migration.Postgres {
		return err
	}
	return estimate(ctx, db)
}

// compare returns an error if the tables differ from the migrations. It needs a PostgreSQL role that may create
// temporary tables. If the role may not do this, compare only logs that it did not compare the tables.
func (s *DB) compare(ctx context.Context, db *sql.DB, database migration.Database) error {
	err := migration.Compare(ctx, db, database)
	if p, ok := errors.AsType[*pgconn.PgError](err); ok && p.Code == "42501" {
		s.Config.Logger.Warn("the tables were not compared with what this program needs", "error", err)
		return nil
	}
	return err
}
