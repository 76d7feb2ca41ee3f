package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"puntuale"
)

// Damage to a SQLite file is found in four ways:
//
//   - A statement reads damaged data. After that, all calls of the store fail (see noticed).
//   - Verify checks the whole file, in the background or by command.
//   - A start after an unclean end checks as much as it can in a few seconds.
//   - Damage that was found once leaves a mark file beside the database. Then the next start checks the whole file,
//     however long that takes, and refuses a damaged file.
const (
	suspectMark  = ".suspect"
	smallFile    = 16 << 20        // bytes; a file up to this size is checked completely at every start, in about 0.1 s
	uncleanCheck = 3 * time.Second // how long a start checks a larger file after an unclean end
)

// noticed is called with the error of a statement that failed. If a SQLite file is damaged, all later calls of the store fail.
// If PostgreSQL reports damage, perhaps only one page or index is bad. So this process continues, but reports that
// it is not ready until it is started again.
func (s *DB) noticed(err error) {
	switch {
	case !corrupt(err):
	case !s.Dialect.Postgres:
		s.fail(err)
	case s.failure.damage.CompareAndSwap(nil, &err):
		s.Config.Logger.Error("the database is damaged: have PostgreSQL mended, then restart this server", "error", err)
	}
}

// markSuspect writes the mark file, so that the next start checks the whole file.
func (s *DB) markSuspect(cause error) {
	text := fmt.Sprintf("%s: damage was met; the next start checks the whole file: %v\n", s.LocalClock.Now().Format(time.RFC3339), cause)
	if err := os.WriteFile(s.File+suspectMark, []byte(text), 0o600); err != nil {
		s.Config.Logger.Error("the damage could not be noted, so the next start may not see it: run puntuale check", "error", err)
	}
}

// endedUncleanly reports whether the file's log exists although no process uses the file. A process that closes the
// file cleanly removes the log.
func endedUncleanly(path string) bool {
	log, err := os.Stat(path + "-wal")
	if err != nil || log.Size() == 0 {
		return false
	}
	release, err := lockFile(path+useLock, lockAlone|lockNow, faultStoreFileInUse)
	return err == nil && release() == nil
}

// inspect checks as much of a file as a start has time for.
func inspect(ctx context.Context, db *sql.DB, path string, unclean bool) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at the database file: %w", err)
	}
	_, err = os.Lstat(path + suspectMark)
	suspect := err == nil
	check, within := "pragma integrity_check(1)", time.Duration(0)
	switch {
	case suspect || info.Size() <= smallFile:
	case unclean:
		check, within = "pragma quick_check(1)", uncleanCheck
	default:
		check = "select 'ok' from sqlite_schema limit 1" // reads the header and the schema
	}
	bounded := ctx
	if within > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	var found string
	err = db.QueryRowContext(bounded, check).Scan(&found)
	switch {
	case err != nil && bounded.Err() != nil && ctx.Err() == nil: // only the time for this check is over, so there is no error; the check in the background reads the rest
		return nil
	case err != nil:
		return damaged(path, err)
	case found != "ok":
		return damaged(path, integrityResult(found))
	case suspect: // the check found no damage, so the file was restored or repaired: remove the mark file
		if err := os.Remove(path + suspectMark); err != nil {
			return fmt.Errorf("remove the mark of damage: %w", err)
		}
	}
	return nil
}

// Verify reads the whole database. If it finds damage, it returns an error that wraps puntuale.ErrUntrusted. After
// damage on SQLite, all later calls of the store fail.
func (s *DB) Verify(ctx context.Context) error {
	if s.Dialect.Postgres {
		return s.readAll(ctx)
	}
	err := s.VerifyFile(ctx, s.File)
	if errors.Is(err, puntuale.ErrUntrusted) {
		s.fail(err)
	}
	return err
}

// VerifyFile does the same as Verify for one SQLite file.
func (s *DB) VerifyFile(ctx context.Context, path string) error {
	db, err := s.SQLitePool(path, "", true, 1)
	if err != nil {
		return err
	}
	defer s.release(db)
	return checkTables(ctx, db, path)
}

// checkTables checks a SQLite file, one table after another, each together with its indexes.
func checkTables(ctx context.Context, db *sql.DB, path string) error {
	tables, err := texts(ctx, db, "select name from sqlite_schema where type = 'table' order by name")
	if err != nil {
		return damagedIn(ctx, path, err)
	}
	for _, table := range tables {
		found, err := texts(ctx, db, "pragma integrity_check('"+strings.ReplaceAll(table, "'", "''")+"')")
		if err != nil {
			return damagedIn(ctx, path, err)
		}
		if len(found) != 1 || found[0] != "ok" { // SQLite returns the one row "ok", or one row for each error that it found
			lines := strings.Split(strings.TrimPrefix(strings.Join(found, "\n"), "*** in database main ***\n"), "\n")
			return damaged(path, integrityResult("table "+table+": "+strings.Join(lines[:min(len(lines), 3)], "; ")))
		}
	}
	return nil
}

// damagedIn does the same as damaged, but returns the error of ctx if ctx has ended.
func damagedIn(ctx context.Context, path string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("check the database file: %w", ctx.Err())
	}
	return damaged(path, err)
}

// readAll reads every row of our tables on PostgreSQL. If PostgreSQL's pages have checksums, PostgreSQL checks them
// during this read.
func (s *DB) readAll(ctx context.Context) error {
	db, err := s.PostgresPool(s.Config.Database, map[string]string{"statement_timeout": "0"}, 1)
	if err != nil {
		return err
	}
	defer s.release(db)
	tables, err := texts(ctx, db, `select quote_ident(relname) from pg_class where relkind = 'r'
 and relnamespace = (select relnamespace from pg_class where oid = to_regclass('puntuale_version')) order by relname`)
	if err != nil {
		return PublicError(fmt.Errorf("list the tables: %w", err))
	}
	for _, table := range tables {
		if _, err := texts(ctx, db, "select sum(length(t::text))::text from "+table+" t"); err != nil {
			s.noticed(err)
			if corrupt(err) {
				return fmt.Errorf("%w: the table %s is damaged (%w); have PostgreSQL mended, or restore a backup", puntuale.ErrUntrusted, table, err)
			}
			return PublicError(fmt.Errorf("read the table %s: %w", table, err))
		}
	}
	return nil
}

// release closes one pool while the database stays open.
func (s *DB) release(db *sql.DB) {
	s.pools.Lock()
	defer s.pools.Unlock()
	for i, other := range s.dbs {
		if other == db {
			s.dbs = append(s.dbs[:i], s.dbs[i+1:]...)
			_ = db.Close() // the pool only reads, so nothing can be lost
			return
		}
	}
}

// texts reads a statement's only column, which contains texts.
func texts(ctx context.Context, db *sql.DB, query string) (all []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text sql.NullString
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text.String)
	}
	return all, rows.Err()
}
