// Package migration contains the migrations of the store for both databases, and runs them. A migration is one numbered
// SQL file that creates or changes tables. In this package, a migration is also called a step. A released step is never
// changed.
package migration

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"puntuale"
	"puntuale/internal/clock"
)

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// Database is the kind of database for which a migration is written.
type Database string

const (
	SQLite   Database = "sqlite"
	Postgres Database = "postgres"
)

const table = "puntuale_version"

// Errors of Check: the database does not contain our tables, or steps have not run on it yet.
var (
	ErrEmpty = errors.New("the database holds no tables of Puntuale yet")
	ErrOlder = errors.New("the database's tables are older than this program")
)

// Check compares the version of the tables with this program. It returns nil if they match. Otherwise it returns
// ErrEmpty or ErrOlder. If a newer program wrote the tables, the error wraps puntuale.ErrUntrusted.
func Check(ctx context.Context, db *sql.DB, database Database) error {
	found, err := exists(ctx, db, database)
	if err != nil {
		return fmt.Errorf("look for the version table: %w", err)
	}
	if !found {
		return ErrEmpty
	}
	var have sql.NullInt64
	if err := db.QueryRowContext(ctx, "select max(version_id) from "+table).Scan(&have); err != nil {
		return fmt.Errorf("read the tables' version: %w", err)
	}
	want, err := Latest(database)
	switch {
	case err != nil:
		return err
	case have.Int64 > want:
		return fmt.Errorf("%w: its tables have version %d, this program knows up to %d; start a newer program",
			puntuale.ErrUntrusted, have.Int64, want)
	case have.Int64 == 0:
		return ErrEmpty
	case have.Int64 < want:
		return ErrOlder
	}
	return nil
}

// These values say how a step waits for locks. A step fails if it cannot get a lock within its own lock_timeout. So
// other statements do not wait behind it for long. A failed step has changed nothing, and is tried again after a rest.
const (
	tries  = 120              // how often a step is tried
	rest   = 3 * time.Second  // how long a node waits between two tries
	held   = 10 * time.Second // how long other nodes wait for a node that died during a step
	glance = 500 * time.Millisecond
	// glances is how often a node checks whether the lock is free. After each check, the node waits for the time in
	// glance. Together this takes 15 minutes, which is longer than all tries of another node.
	glances = 1800
)

// Up runs the missing steps, each in a transaction. On PostgreSQL, nodes that call Up at the same time wait for each
// other at a row of a lock table. An advisory lock would work only with a single primary. On SQLite, the caller must
// prevent other processes from using the file. An interrupted step changes nothing, and the next call runs it again.
func Up(ctx context.Context, db *sql.DB, database Database, log *slog.Logger) error {
	return up(ctx, db, database, math.MaxInt64, log)
}

func up(ctx context.Context, db *sql.DB, database Database, last int64, log *slog.Logger) error {
	for try := 1; ; try++ {
		p, err := provider(db, database, log)
		if err != nil {
			return err
		}
		if _, err = p.UpTo(ctx, last); err == nil {
			return nil
		}
		if !passing(err) || try == tries {
			return fmt.Errorf("migrate: %w", err)
		}
		log.Warn("the database's tables are busy, bringing them up to date is tried again", "try", try, "error", err)
		if err := clock.System().Sleep(ctx, rest); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
	}
}

func provider(db *sql.DB, database Database, log *slog.Logger) (*goose.Provider, error) {
	dialect, options := goose.DialectSQLite3, []goose.ProviderOption{
		goose.WithTableName(table), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()),
	}
	if database == Postgres {
		dialect = goose.DialectPostgres
		locker, err := lock.NewPostgresTableLocker(lock.WithTableName("puntuale_migration_lock"),
			lock.WithTableLeaseDuration(held), lock.WithTableHeartbeatInterval(held/5),
			lock.WithTableLockTimeout(glance, glances), lock.WithTableUnlockTimeout(glance, 4),
			lock.WithTableRetryPolicy(answered), lock.WithTableLogger(log))
		if err != nil {
			return nil, fmt.Errorf("prepare the migration lock: %w", err)
		}
		options = append(options, goose.WithLocker(locker))
	}
	dir, err := fs.Sub(files, string(database))
	if err != nil {
		return nil, fmt.Errorf("open the migrations: %w", err)
	}
	p, err := goose.NewProvider(dialect, db, dir, options...)
	if err != nil {
		return nil, fmt.Errorf("prepare the migrations: %w", err)
	}
	return p, nil
}

// answered reports whether the database server is running and another node has the lock. If the database server has
// stopped, waiting is useless.
func answered(err error) bool {
	_, said := errors.AsType[*pgconn.PgError](err)
	return said || strings.Contains(err.Error(), "held by another instance")
}

// passing reports whether a step may succeed if it is tried again. Perhaps it did not get a lock in time. Or another
// node ran the same step at the same time, because one of the two nodes had lost the lock.
func passing(err error) bool {
	p, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch p.Code {
	case "55P03", "40P01", "40001", "42701", "42P07", "23505":
		return true
	}
	return false
}

func exists(ctx context.Context, db *sql.DB, database Database) (found bool, err error) {
	query := "select exists (select 1 from sqlite_schema where type = 'table' and name = $1)"
	if database == Postgres {
		query = "select to_regclass($1) is not null"
	}
	err = db.QueryRowContext(ctx, query, table).Scan(&found)
	return found, err
}

// Latest returns the number of the newest migration.
func Latest(database Database) (int64, error) {
	names, err := fs.Glob(files, string(database)+"/*.sql")
	if err != nil {
		return 0, fmt.Errorf("list the migrations: %w", err)
	}
	var last int64
	for _, name := range names {
		n, err := goose.NumericComponent(name[len(database)+1:])
		if err != nil {
			return 0, fmt.Errorf("read the number of %s: %w", name, err)
		}
		last = max(last, n)
	}
	return last, nil
}
