package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"puntuale"
)

// PostgreSQL numbers its timelines: a standby that is promoted, and a server restored to a moment, begin a new one. What
// the old primary had accepted last may be missing there, intents among it: the network has a message, and our row says
// that nobody tried. So a lease is good on one timeline only. The fence of every claim compares the node's timeline with
// the server's present one; after any failover each node must join again, and nobody joins before what may have been
// forgotten is set aside (quarantine.go).
//
// The number is read from the name of the log file being written, which is right from the first moment after a promotion
// and which any user may ask for. (pg_control_checkpoint() still shows the old one until the first checkpoint.)
const timelineNow = `('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint`

// untimed stands for it where there are no timelines: SQLite, and databases that only speak PostgreSQL's protocol. Those
// keep what they accepted by other means, and are asked nothing.
const untimed = "0"

// synchronousNow is whether a commit is on a standby's disk before it is answered. remote_write is not: what a standby has
// only received is lost when its machine fails too. Any standby that synchronous_standby_names lets count is taken as one
// that will be promoted; promoting another is the operator's loss (docs/operate.md).
const synchronousNow = `case when current_setting('synchronous_standby_names') <> ''
 and current_setting('synchronous_commit') in ('on', 'remote_apply') then 1 else 0 end`

// findTimeline chooses how the dialect asks for the timeline.
func (s *Store) findTimeline(ctx context.Context, db *sql.DB) error {
	s.d.timeline = untimed
	var n sql.NullInt64
	err := db.QueryRowContext(ctx, "select "+timelineNow).Scan(&n)
	if _, answered := errors.AsType[*pgconn.PgError](err); err != nil && !answered {
		return fmt.Errorf("ask for the timeline: %w", err)
	}
	if err != nil {
		// A standby cannot say; it will once it is promoted. Whoever else cannot say never will.
		var standby bool
		if db.QueryRowContext(ctx, "select pg_is_in_recovery()").Scan(&standby) == nil && standby {
			s.d.timeline = timelineNow
		}
		return nil // a database without timelines is no fault
	}
	if n.Int64 > 0 {
		s.d.timeline = timelineNow
	}
	return nil
}

func (d *dialect) timed() bool { return d.timeline == timelineNow }

// acknowledged is the last heartbeat that the database said it had stored.
type acknowledged struct {
	node  puntuale.NodeID
	until int64 // of its lease, by the database's clock
}

// failover is a change of timeline that no node has dealt with yet.
type failover struct {
	from, to int64
	lossless bool
	since    time.Time // what was accepted later may be missing; zero: unknown
	joined   time.Time // when the failover before was dealt with, or the first node joined
}

// sameTimeline compares the server's timeline with the one that the nodes joined in, and keeps its record locked until
// the transaction ends. A failover that nobody has dealt with is returned.
func (s *Store) sameTimeline(ctx context.Context, a asker) (*failover, error) {
	if !s.d.timed() {
		return nil, nil
	}
	if _, err := a.exec(ctx, `insert into cluster (one, timeline, synchronous, since)
 values (1, $timeline, `+synchronousNow+`, $clock) on conflict (one) do nothing`); err != nil {
		return nil, fmt.Errorf("note the timeline: %w", err)
	}
	f := &failover{}
	if _, err := one(ctx, a, `select timeline, synchronous, $timeline,
 coalesce((extract(epoch from pg_last_xact_replay_timestamp()) * 1000000)::bigint, 0), since
 from cluster where one = 1 for update`, nil, &f.from, flag{&f.lossless}, &f.to, moment{&f.since}, moment{&f.joined}); err != nil {
		return nil, fmt.Errorf("read the timeline: %w", err)
	}
	if f.from == f.to {
		return nil, s.noteSynchronous(ctx, a)
	}
	if f.lossless {
		kept, err := s.keptHeartbeat(ctx, a)
		if err != nil {
			return nil, err
		}
		f.lossless = kept
	}
	return f, nil
}

// keptHeartbeat reports that the last heartbeat this process was told of is there. The record that says "synchronous" came
// with the same log as everything else: a standby that was left behind, and promoted all the same, still says so.
func (s *Store) keptHeartbeat(ctx context.Context, a asker) (bool, error) {
	last := s.beaten.Load()
	if last == nil {
		return true, nil
	}
	var until int64
	if _, err := one(ctx, a, `select lease_until from node where id = $1`, []any{last.node}, &until); err != nil {
		return false, fmt.Errorf("look for the last heartbeat: %w", err)
	}
	return until >= last.until, nil
}

// noteSynchronous renews the record of how the server commits; it writes only when that has changed.
func (s *Store) noteSynchronous(ctx context.Context, a asker) error {
	if !s.d.timed() {
		return nil
	}
	if _, err := a.exec(ctx, `update cluster set synchronous = `+synchronousNow+`
 where timeline = $timeline and synchronous <> `+synchronousNow); err != nil {
		return fmt.Errorf("note how the server commits: %w", err)
	}
	return nil
}
