package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/store/account"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/automation"
	"puntuale/internal/store/calendar"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/event"
	"puntuale/internal/store/file"
	"puntuale/internal/store/fleet"
	"puntuale/internal/store/health"
	"puntuale/internal/store/notice"
	"puntuale/internal/store/person"
	"puntuale/internal/store/queue"
	"puntuale/internal/store/reply"
	"puntuale/internal/store/result"
	"puntuale/internal/store/retention"
	"puntuale/internal/store/statement"
	"puntuale/internal/store/transfer"
)

// Store keeps all data. It implements all role interfaces of package puntuale. Its methods are safe for concurrent use.
type Store struct {
	*engine.DB
	*fleet.Fleet
	*queue.Queue
	*retention.Retention
	*account.Accounts
	*person.Persons
	*event.Events
	*notice.Notices
	*automation.Rules
	*reply.Replies
	*calendar.Feeds
	*health.Health
	*file.Files
	*result.Counter
	*statement.Statements

	kinds   kinds
	closing sync.Once
}

// kinds are the store's task kinds. Their names appear in the metrics.
type kinds struct {
	start, free, stop, cancel, resend, heard, consent, campaign, feed, act, bytes, booking, replan *engine.Kind
}

// Open opens the store, and creates or migrates it if cfg allows that. It returns the errors of [engine.Open], and
// [fleet.ErrMoved] if the installation was moved.
func Open(ctx context.Context, cfg engine.Config) (*Store, error) {
	db, err := engine.Open(ctx, cfg, engine.Options{Name: fleet.ConnectionName, Shared: true, Admit: fleet.RefuseGone})
	if err != nil {
		return nil, err
	}
	s := &Store{DB: db, Queue: queue.New(db), Retention: retention.New(db), Accounts: account.NewAccounts(db), Persons: person.New(db), Events: event.New(db), Rules: automation.New(db), Notices: notice.New(db), Feeds: calendar.New(db), Statements: statement.New(db), Files: file.New(db), kinds: newKinds()}
	s.Replies, s.Health, s.Counter = reply.New(db, s.kinds.heard, s.cancelAll), health.New(db, s.kinds.heard), result.New(db, s.Spend)
	if s.Fleet, err = fleet.New(db, queue.SettleTimeline); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := fleet.RefuseMoved(ctx, s.CallReads); err != nil {
		return nil, errors.Join(engine.PublicError(err), s.Close())
	}
	if err := s.Tie(ctx); err != nil { // files wait, and all else works
		s.Config.Logger.Error("the storage of files cannot be used", "error", err)
	}
	return s, nil
}

func newKinds() kinds {
	heard := engine.NewSingle("heard", engine.PriorityPrevent)
	consent := engine.NewEffect("consent")
	consent.Priority = engine.PriorityPrevent
	heard.Check = engine.RunAgain // a task may run twice, because messages that are already stored change nothing
	heard.Background = true       // calls slow campaigns down, but replies must not: networks may report replies as fast as messages leave
	return kinds{
		start: newStartKind(), free: newFreeStartKind(), stop: engine.NewSingle("stop", engine.PriorityPrevent), cancel: engine.NewSingle("cancel", engine.PriorityPrevent), resend: engine.NewEffect("resend"),
		heard: heard, consent: consent, campaign: engine.NewSingle("campaign", engine.PriorityPrevent), feed: newFeedKind(), act: newActKind(), bytes: engine.NewSingle("bytes", engine.PriorityCall), booking: newBookingKind(), replan: newReplanKind(),
	}
}

// Migrate migrates the database, and creates it if necessary.
func Migrate(ctx context.Context, cfg engine.Config) error {
	cfg.NoMigrate = false
	s, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	return s.Close()
}

// Close refuses new calls, waits until the queued tasks are committed, and closes the database. It may be called again.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.CloseWriters() // close the writers first, because callers of the queued tasks still send wakeups to other nodes
		s.Fleet.Close()
	})
	return s.DB.Close()
}

// Check writes to the disk to find out whether the store works. It also finds out whether the installation was moved.
func (s *Store) Check(ctx context.Context) error {
	if err := s.Damage(); err != nil {
		return puntuale.StoreDamaged(err)
	}
	return s.FleetWriter.Do(ctx, engine.Single(s.Writes, func(ctx context.Context, a engine.Querier) error {
		if err := fleet.RefuseGone(ctx, a); err != nil {
			return err
		}
		_, err := engine.NextNumber(ctx, a, "check")
		return err
	}), true)
}

// Verify reads the whole database. If it finds damage, it returns an error that wraps puntuale.ErrUntrusted. It reads
// one table at a time, so that it does not block writers for long. It takes about a second for 100 MB.
//
// On SQLite, Verify also checks the file of linked numbers. If the database is damaged, all later calls of the
// store fail. On PostgreSQL, Verify reads every row but not the indexes.
func (s *Store) Verify(ctx context.Context) error {
	err := s.DB.Verify(ctx)
	if err != nil || s.File == "" {
		return err
	}
	path := transfer.WhatsAppFile(s.File) // after damage in this file the store continues, because messages do not need the keys in it
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	return s.VerifyFile(ctx, path)
}

// LastBackup returns the time of the last backup, or zero if there is none.
func (s *Store) LastBackup(ctx context.Context) (at time.Time, err error) {
	if _, err := engine.QueryOne(ctx, s.CallReads, `select at from backup where one = 1`, nil, engine.ScanTime(&at)); err != nil {
		return at, engine.PublicError(fmt.Errorf("look for the last backup: %w", err))
	}
	return at, nil
}

// Backup writes a backup of the open store, as [transfer.Backup] does.
func (s *Store) Backup(ctx context.Context, to io.Writer, b transfer.BackupConfig) (archive.Header, error) {
	return transfer.BackupOpen(ctx, s.DB, s.Fleet, to, b)
}

// DatabaseVersion returns the name and version of the database program. old is true if the program is older than this
// server supports.
func (s *Store) DatabaseVersion(ctx context.Context) (name string, old bool, err error) {
	if s.File != "" {
		_, err = engine.QueryOne(ctx, s.CallReads, `select sqlite_version()`, nil, &name)
		return "SQLite " + name, false, err
	}
	var number int64
	if _, err = engine.QueryOne(ctx, s.CallReads, `select current_setting('server_version'), current_setting('server_version_num')::bigint`, nil, &name, &number); err != nil {
		return "", false, engine.PublicError(fmt.Errorf("ask the database for its version: %w", err))
	}
	return "PostgreSQL " + name, number < oldestPostgres, nil
}

// oldestPostgres is the number of the oldest version of PostgreSQL that docs/operate.md names.
const oldestPostgres = 150000

// DatabaseSize returns about how many bytes the database takes on its disk, and with it the files whose bytes are outside,
// because backups have them.
func (s *Store) DatabaseSize(ctx context.Context) (bytes int64, err error) {
	if _, err := engine.QueryOne(ctx, s.MaintenanceReads, `select cast(coalesce(sum(f.size), 0) as bigint) from file f where f.place <> ''`, nil, &bytes); err != nil {
		return 0, engine.PublicError(fmt.Errorf("measure the files: %w", err))
	}
	own, err := s.databaseBytes(ctx)
	return bytes + own, err
}

func (s *Store) databaseBytes(ctx context.Context) (bytes int64, err error) {
	if s.File != "" {
		for _, part := range []string{"", "-wal"} {
			if info, err := os.Stat(s.File + part); err == nil {
				bytes += info.Size()
			}
		}
		return bytes, nil
	}
	if _, err := engine.QueryOne(ctx, s.MaintenanceReads, `select pg_database_size(current_database())`, nil, &bytes); err != nil {
		return 0, engine.PublicError(fmt.Errorf("measure the database: %w", err))
	}
	return bytes, nil
}

// WhatsApp opens the database of linked numbers. Closing the store also closes it.
func (s *Store) WhatsApp(ctx context.Context) (db *sql.DB, postgres bool, err error) {
	return transfer.OpenWhatsApp(ctx, s.DB)
}
