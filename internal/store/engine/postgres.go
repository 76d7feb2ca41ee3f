package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"puntuale"
	"puntuale/internal/store/migration"
)

const (
	postgresTenants = 2 // connections of writers for clients' calls
	postgresReaders = 5 // connections for reading single rows that a call needs
	postgresListers = 2
	postgresLookers = 5               // connections for DispatchReads: the dispatcher needs four for due messages and one for contents
	postgresWorkers = 1               // connections for maintenance
	connectTimeout  = 5 * time.Second // how long connecting may take, if the database address sets no other limit
)

// postgresSettings apply to every connection. No transaction may hold locks for ever. Each statement sees the data that
// were committed before it began.
var postgresSettings = map[string]string{
	"default_transaction_isolation":       "read committed",
	"statement_timeout":                   strconv.FormatInt(statementTimeout.Milliseconds(), 10),
	"idle_in_transaction_session_timeout": strconv.FormatInt(statementTimeout.Milliseconds(), 10),
}

// writerSettings apply to the connections of writers. To join a batch with a big table, PostgreSQL must look up the
// batch's rows one after another. All other plans are switched off. PostgreSQL's statistics may be a minute old, from a
// time when the table was empty, so it might choose a bad plan. Choosing a plan would also take time.
var writerSettings = map[string]string{
	"lock_timeout":     strconv.FormatInt(lockTimeout.Milliseconds(), 10),
	"enable_hashjoin":  "off",
	"enable_mergejoin": "off",
	"enable_seqscan":   "off",
	"plan_cache_mode":  "force_generic_plan",
}

func (s *DB) openPostgres(ctx context.Context, address string) error {
	s.Dialect.Postgres = true
	readers, err := s.PostgresPool(address, nil, postgresReaders)
	if err != nil {
		return err
	}
	if err := trustPostgres(ctx, readers); err != nil {
		return err
	}
	if err := s.findTimeline(ctx, readers); err != nil {
		return err
	}
	if err := s.migratePostgres(ctx, address); err != nil {
		return err
	}
	beats, err := s.PostgresPool(address, map[string]string{"lock_timeout": writerSettings["lock_timeout"]}, 2) // one of the two connections is for the monitor
	if err != nil {
		return err
	}
	s.Monitor = startMonitor(beats, s.Config.Logger)
	// The database server itself must end statements that take too long. Otherwise they would continue after their
	// caller's process has ended.
	listers, err := s.PostgresPool(address, map[string]string{
		"statement_timeout": strconv.FormatInt(s.Config.ListTimeout.Milliseconds(), 10),
	}, postgresListers)
	if err != nil {
		return err
	}
	lookers, err := s.PostgresPool(address, nil, postgresLookers)
	if err != nil {
		return err
	}
	workers, err := s.PostgresPool(address, map[string]string{
		"statement_timeout": strconv.FormatInt(workTimeout.Milliseconds(), 10),
	}, postgresWorkers)
	if err != nil {
		return err
	}
	s.MaintenanceReads = &ReadPool{d: s.Dialect, db: workers, watch: s.Monitor, noticed: s.noticed}
	s.CallReads = &ReadPool{d: s.Dialect, db: readers, watch: s.Monitor, permits: make(chan struct{}, postgresReaders), noticed: s.noticed}
	s.ListReads = &ReadPool{d: s.Dialect, db: listers, watch: s.Monitor, Timeout: 2 * s.Config.ListTimeout, noticed: s.noticed} // half of the time is for waiting for a connection
	s.DispatchReads = &ReadPool{d: s.Dialect, db: lookers, watch: s.Monitor, noticed: s.noticed}
	writers, err := s.PostgresPool(address, writerSettings, postgresTenants+3)
	if err != nil {
		return err
	}
	l := Conn{dialect: s.Dialect, watch: s.Monitor, admit: s.Admit}
	newWriter := func(db *sql.DB) *Writer {
		l.db = db
		return s.startWriter(l)
	}
	for range postgresTenants {
		s.TenantWriters = append(s.TenantWriters, newWriter(writers))
	}
	s.ClaimWriter, s.RecordWriter, s.LedgerWriter, s.FleetWriter = newWriter(writers), newWriter(writers), newWriter(writers), newWriter(beats)
	// The archiver reads by primary keys, like the writers, but on two connections of its own. They are opened at the
	// first use.
	archivers, err := s.PostgresPool(address, writerSettings, 2)
	if err != nil {
		return err
	}
	s.ArchiveReads, s.ArchiveWriter = &ReadPool{d: s.Dialect, db: archivers, watch: s.Monitor, noticed: s.noticed}, newWriter(archivers)
	// Large background work, such as chunks of campaigns, has its own connection, which is opened at the first use. So
	// this work and a call wait for each other only if both change rows of the same client.
	feeders, err := s.PostgresPool(address, writerSettings, 1)
	if err != nil {
		return err
	}
	s.FeedWriter = newWriter(feeders)
	// Numbering has its own connection, which is opened at the first event. So numbering does not wait for transactions
	// that write facts.
	numberers, err := s.PostgresPool(address, writerSettings, 1)
	if err != nil {
		return err
	}
	s.EventWriter = newWriter(numberers)
	return nil
}

// migratePostgres uses separate connections, because a migration may take longer than the time limit of other
// statements.
func (s *DB) migratePostgres(ctx context.Context, address string) error {
	patient := &DB{Options: s.Options, Config: s.Config, Dialect: s.Dialect}
	db, err := patient.PostgresPool(address, map[string]string{"statement_timeout": "0"}, 3)
	if err != nil {
		return err
	}
	return errors.Join(patient.migrate(ctx, db, migration.Postgres), db.Close())
}

func (s *DB) PostgresPool(address string, settings map[string]string, size int) (*sql.DB, error) {
	cfg, err := s.PostgresConfig(address, settings)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	s.pools.Lock()
	s.dbs = append(s.dbs, db)
	s.pools.Unlock()
	return db, nil
}

func (s *DB) PostgresConfig(address string, settings map[string]string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("read the PostgreSQL address: %w", err)
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
	}
	maps.Copy(cfg.RuntimeParams, postgresSettings)
	maps.Copy(cfg.RuntimeParams, settings)
	cfg.RuntimeParams["application_name"] = s.Name
	return cfg, nil
}

// trustPostgres returns an error for a PostgreSQL server that confirms a commit before the commit is on disk.
func trustPostgres(ctx context.Context, db *sql.DB) error {
	for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		var value string
		if err := db.QueryRowContext(ctx, "select current_setting($1)", setting).Scan(&value); err != nil {
			return fmt.Errorf("read the setting %s: %w", setting, err)
		}
		if value == "off" {
			return fmt.Errorf("%w: PostgreSQL runs with %s = off and would lose what it has accepted; "+
				"set it to on, in the server's configuration or in the address", puntuale.ErrUntrusted, setting)
		}
	}
	return nil
}

// PostgreSQL numbers its timelines. A promoted standby begins a new timeline, and so does a server that was restored to
// an earlier time. On the new timeline, the last rows that the old primary accepted may be missing, even intents. If an
// intent is missing, the network may have a message for which our row shows no attempt. So a lease is valid on one
// timeline only. The fence of every claim compares the node's timeline with PostgreSQL's present timeline. After a
// failover, each node must join again. No node can join before the quarantine of messages with lost intents has ended
// (queue/quarantine.go).
//
// timelineNow reads the number from the name of the log file that is being written. This number is right immediately
// after a promotion, and any user may read it. pg_control_checkpoint() would show the old timeline until the first
// checkpoint.
const timelineNow = `('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint`

// untimed is the timeline of databases that have no timelines: SQLite, and databases that only use PostgreSQL's
// protocol. These databases do not lose accepted data in a failover.
const untimed = "0"

// findTimeline finds out how the timeline can be read, and stores this in the dialect.
func (s *DB) findTimeline(ctx context.Context, db *sql.DB) error {
	s.Dialect.Timeline = untimed
	var n sql.NullInt64
	err := db.QueryRowContext(ctx, "select "+timelineNow).Scan(&n)
	if _, answered := errors.AsType[*pgconn.PgError](err); err != nil && !answered {
		return fmt.Errorf("ask for the timeline: %w", err)
	}
	if err != nil {
		// A standby can read its timeline only after its promotion. Any other database that cannot read a timeline has
		// no timelines.
		var standby bool
		if db.QueryRowContext(ctx, "select pg_is_in_recovery()").Scan(&standby) == nil && standby {
			s.Dialect.Timeline = timelineNow
		}
		return nil // a database without timelines is allowed
	}
	if n.Int64 > 0 {
		s.Dialect.Timeline = timelineNow
	}
	return nil
}

func (d *Dialect) Timed() bool { return d.Timeline == timelineNow }
