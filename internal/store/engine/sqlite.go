package engine

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/migration"
)

const (
	sqliteReaders = 4 // connections for reading single rows that a call needs
	sqliteListers = 2
	sqliteLookers = 1 // one connection for DispatchReads, because parallel reads would leave the writer too little processor time
	sqliteWorkers = 1 // one connection for maintenance
)

// applicationID marks our SQLite files ("PUNT"). The first migration writes it. The store never changes files of other
// programs.
const applicationID = 0x50554e54

// With synchronous=FULL, SQLite syncs the log at each commit. So a transaction is on disk when its commit returns. The
// checkpointer copies the log into the file. wal_autocheckpoint takes effect only if the checkpointer is too slow. If a
// long reader made the log longer than journal_size_limit, in bytes, SQLite shortens it afterwards.
var sqliteSettings = map[string]string{
	"busy_timeout": "5000", "foreign_keys": "1", "journal_mode": "WAL", "synchronous": "FULL",
	"temp_store": "MEMORY", "cache_size": "-65536", "journal_size_limit": "100000000", "wal_autocheckpoint": strconv.Itoa(checkpointEach),
}

// sqliteReaderCache is the cache_size of each read-only connection. There are eight such connections. Pages that are
// not in this cache are mostly in the operating system's.
const sqliteReaderCache = "-8192"

// sqliteAliases lists other names of our settings that a database address may use.
var sqliteAliases = map[string][]string{
	"busy_timeout": {"_busy_timeout", "_timeout"}, "foreign_keys": {"_foreign_keys", "_fk"},
	"journal_mode": {"_journal_mode", "_journal"}, "synchronous": {"_synchronous", "_sync"},
}

// openSQLite opens the file, or creates it if there is none. It never replaces an incomplete store by an empty store.
func (s *DB) openSQLite(ctx context.Context, path, query string) (err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("find the database file: %w", err)
	}
	s.File = path
	release, err := lockFile(path+openLock, lockAlone, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	unclean := endedUncleanly(path)
	if s.Shared { // lock the file before the check whether the installation was moved
		if s.leave, err = s.ShareFile(); err != nil {
			return err
		}
	}
	exists, err := sqliteThere(path)
	if err != nil {
		return err
	}
	if !exists {
		if s.Config.NoMigrate {
			return fmt.Errorf("%s: %w: run the command migrate first", path, migration.ErrEmpty)
		}
		if err := createSQLite(ctx, path, s); err != nil {
			return err
		}
	}
	db, err := s.SQLitePool(path, query, false, 1)
	if err != nil {
		return err
	}
	if err := trustSQLite(ctx, db, path, unclean); err != nil {
		return err
	}
	if err := s.migrate(ctx, db, migration.SQLite); err != nil {
		return err
	}
	for _, p := range []struct {
		pool    **ReadPool
		size    int
		timeout time.Duration
	}{{&s.CallReads, sqliteReaders, 0}, {&s.ListReads, sqliteListers, s.Config.ListTimeout}, {&s.DispatchReads, sqliteLookers, 0}, {&s.MaintenanceReads, sqliteWorkers, 0}} {
		readers, err := s.SQLitePool(path, query, true, p.size)
		if err != nil {
			return err
		}
		*p.pool = &ReadPool{d: s.Dialect, db: readers, Timeout: p.timeout, noticed: s.noticed}
	}
	s.ArchiveReads = s.MaintenanceReads
	s.CallReads.permits = make(chan struct{}, sqliteReaders)
	copies, err := s.SQLitePool(path, query, false, 1)
	if err != nil {
		return err
	}
	s.checkpoints = startCheckpointer(copies, s.LocalClock)
	w := s.startWriter(Conn{dialect: s.Dialect, db: db})
	s.TenantWriters, s.ClaimWriter, s.RecordWriter, s.LedgerWriter, s.FleetWriter, s.ArchiveWriter, s.FeedWriter, s.EventWriter = []*Writer{w}, w, w, w, w, w, w, w
	return nil
}

func (s *DB) SQLitePool(path, query string, readOnly bool, size int) (*sql.DB, error) {
	d, err := sqliteDriver()
	if err != nil {
		return nil, err
	}
	dsn, err := sqliteDSN(path, query, readOnly)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(sqliteConnector{d: d, dsn: dsn, readOnly: readOnly})
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	s.pools.Lock()
	s.dbs = append(s.dbs, db)
	s.pools.Unlock()
	return db, nil
}

// sqliteDSN returns the address for the driver. query contains the settings of the database address. sqliteDSN keeps
// these settings, which trustSQLite checks later, and adds the missing ones.
func sqliteDSN(path, query string, readOnly bool) (string, error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return "", fmt.Errorf("read the settings of the database's address: %w", err)
	}
	for name, value := range sqliteSettings {
		if name == "cache_size" && readOnly {
			value = sqliteReaderCache
		}
		given := slices.ContainsFunc(sqliteAliases[name], q.Has) || slices.ContainsFunc(q["_pragma"], func(text string) bool {
			return strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), name)
		})
		if !given {
			q.Add("_pragma", name+"("+value+")")
		}
	}
	return fileAddress(path, q), nil
}

// fileAddress returns SQLite's address of a file. On Windows, SQLite wants /C:/folder/file.
func fileAddress(path string, settings url.Values) string {
	if runtime.GOOS == "windows" {
		path = "/" + filepath.ToSlash(path)
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: settings.Encode()}).String()
}

func untrusted(path, reason string) error {
	return fmt.Errorf("%w: %s %s", puntuale.ErrUntrusted, path, reason)
}

// sqliteThere reports whether the file exists. It returns an error if the file is missing but other files show that it
// existed. It also returns an error if the file is not one of ours.
func sqliteThere(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		for _, rest := range []string{"-wal", "-journal"} {
			if _, err := os.Lstat(path + rest); err == nil {
				return false, untrusted(path, "is missing, but its log "+filepath.Base(path)+rest+
					" is there; put the file back, or restore both from a backup")
			}
		}
		// If a file has a dispatch lock beside it, the file was complete at some time. Only a process that may send
		// creates this lock. A ".lock" file proves nothing: a process that died while it created the store may have
		// left it.
		if _, err := os.Lstat(path + dispatchLock); err == nil {
			return false, untrusted(path, "is missing, but "+filepath.Base(path)+dispatchLock+" beside it shows that it was in use; "+
				"put the file back or restore it from a backup, or remove "+filepath.Base(path)+dispatchLock+" to begin with nothing")
		}
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open the database file: %w", err)
	}
	head := make([]byte, 100)
	n, err := io.ReadFull(f, head)
	if closed := f.Close(); closed != nil {
		return false, fmt.Errorf("close the database file: %w", closed)
	}
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return false, untrusted(path, "is empty, and a store's file is never empty; restore it from a backup, or remove it to begin with nothing")
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return false, fmt.Errorf("read the database file: %w", err)
	case n < len(head), !bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return false, untrusted(path, "is not a SQLite file, or its beginning is damaged; restore it from a backup")
	case binary.BigEndian.Uint32(head[68:]) != applicationID:
		return false, untrusted(path, "is a SQLite file, but none of Puntuale; name another file")
	}
	return true, nil
}

// createSQLite creates a new file under another name, and renames the file when it is complete. So a file under its
// final name may be damaged, but it is never half created. The caller has locked the file.
func createSQLite(ctx context.Context, path string, s *DB) (err error) {
	fresh := path + ".new"
	for _, rest := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(fresh + rest); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove an unfinished database: %w", err)
		}
	}
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("create the database file: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("create the database file: %w", err)
	}
	db, err := (&DB{Dialect: s.Dialect}).SQLitePool(fresh, "", false, 1)
	if err != nil {
		return err
	}
	err = s.migrate(ctx, db, migration.SQLite)
	if err == nil {
		_, err = db.ExecContext(ctx, "pragma wal_checkpoint(truncate)")
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	if err := os.Rename(fresh, path); err != nil {
		return fmt.Errorf("put the new database in its place: %w", err)
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the data folder: %w", err)
	}
	if runtime.GOOS == "windows" { // Windows cannot sync a folder, and needs no such call for a rename
		return dir.Close()
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync the data folder: %w", err)
	}
	return nil
}

// trustSQLite returns an error for a damaged file, and for settings that could lose accepted data.
func trustSQLite(ctx context.Context, db *sql.DB, path string, unclean bool) error {
	var journal string
	var level int
	if err := db.QueryRowContext(ctx, "pragma journal_mode").Scan(&journal); err != nil {
		return damaged(path, err)
	}
	if err := db.QueryRowContext(ctx, "pragma synchronous").Scan(&level); err != nil {
		return damaged(path, err)
	}
	if !strings.EqualFold(journal, "wal") || level < 2 {
		return untrusted(path, fmt.Sprintf("is opened with journal_mode %s and synchronous %d and would lose what it has accepted; "+
			"leave both out of the address (WAL and FULL)", journal, level))
	}
	return inspect(ctx, db, path, unclean)
}

// damaged returns the error for a damaged file. If the file merely cannot be read now, it returns an error with err inside.
func damaged(path string, err error) error {
	if _, own := errors.AsType[integrityResult](err); own || broken(err) {
		return untrusted(path, fmt.Sprintf("is damaged (%v); restore it from a backup, or save what is left of it with sqlite3's .recover", err))
	}
	return fmt.Errorf("check the database file: %w", err)
}

// integrityResult is the result of an integrity check.
type integrityResult string

func (v integrityResult) Error() string { return string(v) }
