package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"puntuale/internal/store/archive"
	"puntuale/internal/store/engine"
)

// ErrMayNotCreate is the error of a PostgreSQL role that may not create databases.
var ErrMayNotCreate = errors.New("the role may not create databases")

// RehearsalResult says what a rehearsal found.
type RehearsalResult struct {
	Rows     int64 // rows of all tables, compared with the backup
	Messages int64 // messages among them
}

// Rehearse restores a backup into an empty scratch database, and reads everything back. Restore compares the number and
// the digest of each table's rows with the backup. Rehearse then counts the messages, and looks for damage. The caller
// deletes the scratch database; no server may ever use it.
func Rehearse(ctx context.Context, scratch engine.Config, backup *archive.BackupReader, makeNumbers func(context.Context, *sql.DB, bool) error) (done RehearsalResult, err error) {
	header, err := databaseHeader(backup)
	if err != nil {
		return done, err
	}
	if _, err := Restore(ctx, scratch, backup, RestoreConfig{Hold: true, MakeNumbers: makeNumbers}); err != nil {
		return done, err
	}
	scratch.NoMigrate = true
	s, err := openInstallation(ctx, scratch, engine.Options{Name: moverName})
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Verify(ctx); err != nil {
		return done, err
	}
	if _, err := engine.QueryOne(ctx, s.MaintenanceReads, `select count(*) from message`, nil, &done.Messages); err != nil {
		return done, engine.PublicError(fmt.Errorf("count the restored messages: %w", err))
	}
	if want := header.RowsOf("message"); done.Messages != want {
		return done, fmt.Errorf("the restored database has %d messages, and the backup %d", done.Messages, want)
	}
	done.Rows = header.Rows()
	return done, nil
}

// databaseHeader reads the header of a backup's database.
func databaseHeader(backup *archive.BackupReader) (*archive.Header, error) {
	from, err := backup.Open(archive.DatabaseEntry)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	file, err := archive.NewReader(from)
	if err != nil {
		return nil, err
	}
	return &file.Header, nil
}

// MayCreateScratch reports whether the role may create databases on PostgreSQL.
func MayCreateScratch(ctx context.Context, db *engine.DB) (bool, error) {
	var may int64
	if _, err := engine.QueryOne(ctx, db.CallReads, `select case when rolcreatedb or rolsuper then 1 else 0 end from pg_roles where rolname = current_user`, nil, &may); err != nil {
		return false, engine.PublicError(fmt.Errorf("look what the role may do: %w", err))
	}
	return may == 1, nil
}

// rehearsalComment is the comment of scratch databases. Only a database with this comment is ever dropped.
const rehearsalComment = "scratch of a rehearsal of Puntuale; it is dropped"

// CreateScratch creates an empty PostgreSQL database beside that of cfg, for a rehearsal. Its name is the database's name
// with "_rehearsal". A scratch database that a killed rehearsal left is dropped first. [ErrMayNotCreate]: the role may
// not create databases.
func CreateScratch(ctx context.Context, cfg engine.Config) (scratch engine.Config, drop func(context.Context) error, err error) {
	s, err := openInstallation(ctx, noMigrate(cfg), engine.Options{Name: moverName})
	if err != nil {
		return scratch, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	db, err := s.PostgresPool(cfg.Database, map[string]string{"statement_timeout": "0", "lock_timeout": writerLock}, 1)
	if err != nil {
		return scratch, nil, err
	}
	if may, err := MayCreateScratch(ctx, s.DB); err != nil || !may {
		return scratch, nil, errors.Join(err, ErrMayNotCreate)
	}
	var name string
	if err := db.QueryRowContext(ctx, `select current_database() || '_rehearsal'`).Scan(&name); err != nil {
		return scratch, nil, engine.PublicError(fmt.Errorf("name the scratch database: %w", err))
	}
	if err := dropScratch(ctx, db, name); err != nil {
		return scratch, nil, err
	}
	for _, statement := range []string{"create database " + quoted(name) + " template template0", "comment on database " + quoted(name) + " is '" + rehearsalComment + "'"} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return scratch, nil, engine.PublicError(fmt.Errorf("create the scratch database: %w", err))
		}
	}
	scratch = cfg
	if scratch.Database, err = besideAddress(cfg.Database, name); err != nil {
		return scratch, nil, err
	}
	scratch.NoMigrate, scratch.Meter = false, nil
	return scratch, func(ctx context.Context) (err error) {
		own, err := openInstallation(ctx, noMigrate(cfg), engine.Options{Name: moverName})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, own.Close()) }()
		db, err := own.PostgresPool(cfg.Database, map[string]string{"statement_timeout": "0"}, 1)
		if err != nil {
			return err
		}
		return dropScratch(ctx, db, name)
	}, nil
}

// writerLock bounds how long creating and dropping wait for others, in milliseconds.
const writerLock = "5000"

func noMigrate(cfg engine.Config) engine.Config {
	cfg.NoMigrate = true
	return cfg
}

// dropScratch drops a scratch database, if there is one. It refuses a database of this name that no rehearsal made.
func dropScratch(ctx context.Context, db *sql.DB, name string) error {
	var comment sql.NullString
	err := db.QueryRowContext(ctx, `select shobj_description(oid, 'pg_database') from pg_database where datname = $1`, name).Scan(&comment)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return engine.PublicError(fmt.Errorf("look for the scratch database: %w", err))
	case comment.String != rehearsalComment:
		return fmt.Errorf("there is a database %s that no rehearsal made; rename it, or drop it", name)
	}
	if _, err := db.ExecContext(ctx, "drop database "+quoted(name)+" with (force)"); err != nil {
		return engine.PublicError(fmt.Errorf("drop the scratch database: %w", err))
	}
	return nil
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// besideAddress returns the address of another database on the same server.
func besideAddress(address, name string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("the address of the database cannot be read")
	}
	query := u.Query()
	query.Del("dbname")
	u.Path, u.RawQuery = "/"+name, query.Encode()
	return u.String(), nil
}
