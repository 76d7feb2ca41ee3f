package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/stdlib"

	"puntuale/internal/store/migration"
)

// OpenReading opens a database of any version only for reading, also beside running servers. It checks nothing and
// changes nothing; on SQLite it does not even make a file, unless a server of another user is running. The caller closes
// the pool. Codes: those of [Open]. If there is no SQLite file yet, the error wraps [migration.ErrEmpty].
func OpenReading(ctx context.Context, cfg Config) (db *sql.DB, database migration.Database, err error) {
	if strings.HasPrefix(cfg.Database, "postgres://") || strings.HasPrefix(cfg.Database, "postgresql://") {
		database = migration.Postgres
		db, err = openReadingPostgres(cfg.Database)
	} else {
		database = migration.SQLite
		db, err = openReadingSQLite(cfg)
	}
	if err == nil {
		err = db.PingContext(ctx)
	}
	if err != nil {
		return nil, "", PublicError(fmt.Errorf("open the store: %w", err))
	}
	return db, database, nil
}

func openReadingPostgres(address string) (*sql.DB, error) {
	pool := &DB{Options: Options{Name: "puntuale upgrade"}}
	cfg, err := pool.PostgresConfig(address, map[string]string{"default_transaction_read_only": "on"})
	if err != nil {
		return nil, err
	}
	return stdlib.OpenDB(*cfg), nil
}

func openReadingSQLite(cfg Config) (*sql.DB, error) {
	path := filepath.Join(cfg.Data, "puntuale.db")
	if cfg.Database != "" {
		path, _, _ = strings.Cut(strings.TrimPrefix(cfg.Database, "sqlite:"), "?")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the database file: %w", err)
	}
	exists, err := sqliteThere(path)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, fmt.Errorf("%s: %w", path, migration.ErrEmpty)
	}
	query := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}}
	if _, err := os.Stat(path + "-wal"); errors.Is(err, os.ErrNotExist) {
		query.Set("immutable", "1") // no server uses the file; otherwise SQLite would make files beside it, which belong to this user
	}
	return sql.Open("sqlite", fileAddress(path, query))
}
