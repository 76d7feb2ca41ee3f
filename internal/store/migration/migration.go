// Package migration holds the numbered steps that build the store's tables, for both databases, and applies them.
// A step is never edited once landed.
package migration

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"puntuale"
)

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// Database says whose steps are meant.
type Database string

const (
	SQLite   Database = "sqlite"
	Postgres Database = "postgres"
)

const table = "puntuale_version"

// ErrEmpty is returned by Check for a database that holds none of our tables yet, ErrOlder for one that lacks steps.
var (
	ErrEmpty = errors.New("the database holds no tables of Puntuale yet")
	ErrOlder = errors.New("the database's tables are older than this program")
)

// Check compares the tables with this program: nil when they match, ErrEmpty, ErrOlder, or an error that wraps
// puntuale.ErrUntrusted when a newer program has written them.
func Check(ctx context.Context, db *sql.DB, which Database) error {
	there, err := exists(ctx, db, which)
	if err != nil {
		return fmt.Errorf("look for the version table: %w", err)
	}
	if !there {
		return ErrEmpty
	}
	var have sql.NullInt64
	if err := db.QueryRowContext(ctx, "select max(version_id) from "+table).Scan(&have); err != nil {
		return fmt.Errorf("read the tables' version: %w", err)
	}
	want, err := Latest(which)
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

// Up applies the missing steps. On PostgreSQL nodes that do so at once wait for each other on a row of a lock table
// (an advisory lock would bind the product to one primary); on SQLite the caller keeps others out.
func Up(ctx context.Context, db *sql.DB, which Database, log *slog.Logger) error {
	dialect, options := goose.DialectSQLite3, []goose.ProviderOption{
		goose.WithTableName(table), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()),
	}
	if which == Postgres {
		dialect = goose.DialectPostgres
		locker, err := lock.NewPostgresTableLocker(lock.WithTableName("puntuale_migration_lock"),
			lock.WithTableLockTimeout(200*time.Millisecond, 1500), lock.WithTableLogger(log))
		if err != nil {
			return fmt.Errorf("prepare the migration lock: %w", err)
		}
		options = append(options, goose.WithLocker(locker))
	}
	dir, err := fs.Sub(files, string(which))
	if err != nil {
		return fmt.Errorf("open the migrations: %w", err)
	}
	p, err := goose.NewProvider(dialect, db, dir, options...)
	if err != nil {
		return fmt.Errorf("prepare the migrations: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

func exists(ctx context.Context, db *sql.DB, which Database) (there bool, err error) {
	query := "select exists (select 1 from sqlite_schema where type = 'table' and name = $1)"
	if which == Postgres {
		query = "select to_regclass($1) is not null"
	}
	err = db.QueryRowContext(ctx, query, table).Scan(&there)
	return there, err
}

// Latest is the number of the last step.
func Latest(which Database) (int64, error) {
	names, err := fs.Glob(files, string(which)+"/*.sql")
	if err != nil {
		return 0, fmt.Errorf("list the migrations: %w", err)
	}
	var last int64
	for _, name := range names {
		n, err := goose.NumericComponent(name[len(which)+1:])
		if err != nil {
			return 0, fmt.Errorf("read the number of %s: %w", name, err)
		}
		last = max(last, n)
	}
	return last, nil
}
