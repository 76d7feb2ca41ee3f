package fleet

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// SynchronousNow reads whether a standby has a commit on its disk before the server confirms the commit. remote_write
// is not enough: a standby that has only received the data loses the data if its machine also fails. Puntuale assumes
// that only a standby in synchronous_standby_names is promoted. An operator who promotes another standby may lose
// messages (docs/nodes.md).
const SynchronousNow = `case when current_setting('synchronous_standby_names') <> ''
 and current_setting('synchronous_commit') in ('on', 'remote_apply') then 1 else 0 end`

// heartbeatMark is the last heartbeat that the database confirmed.
type heartbeatMark struct {
	node     puntuale.NodeID
	leaseEnd int64 // end of the node's lease, by the database's clock
}

// Failover is a change of the timeline for which no node has done the quarantine yet.
type Failover struct {
	From, To int64
	Lossless bool
	Since    time.Time // messages that were accepted after this time may be missing; zero: unknown
	Joined   time.Time // when the last quarantine ended, or when the first node joined
}

// SameTimeline compares the server's present timeline with the timeline on which the nodes joined. It keeps the record
// of the timeline locked until the transaction ends. If the timelines differ, it returns a Failover.
func (s *Fleet) SameTimeline(ctx context.Context, a engine.Querier) (*Failover, error) {
	if !s.Dialect.Timed() {
		return nil, nil
	}
	if _, err := a.Exec(ctx, `insert into cluster (one, timeline, synchronous, since)
 values (1, $timeline, `+SynchronousNow+`, $clock) on conflict (one) do nothing`); err != nil {
		return nil, fmt.Errorf("note the timeline: %w", err)
	}
	f := &Failover{}
	if _, err := engine.QueryOne(ctx, a, `select timeline, synchronous, $timeline,
 coalesce((extract(epoch from pg_last_xact_replay_timestamp()) * 1000000)::bigint, 0), since
 from cluster where one = 1 for update`, nil, &f.From, engine.ScanBool(&f.Lossless), &f.To, engine.ScanTime(&f.Since), engine.ScanTime(&f.Joined)); err != nil {
		return nil, fmt.Errorf("read the timeline: %w", err)
	}
	if f.From == f.To {
		return nil, s.noteSynchronous(ctx, a)
	}
	if f.Lossless {
		kept, err := s.keptHeartbeat(ctx, a)
		if err != nil {
			return nil, err
		}
		f.Lossless = kept
	}
	return f, nil
}

// keptHeartbeat reports whether the database still has the last confirmed heartbeat of this process. If this heartbeat
// is missing, the failover has lost commits. The column "synchronous" proves nothing: a standby that was behind, and was
// promoted anyway, has the same value in this column.
func (s *Fleet) keptHeartbeat(ctx context.Context, a engine.Querier) (bool, error) {
	last := s.beaten.Load()
	if last == nil {
		return true, nil
	}
	var leaseEnd int64
	if _, err := engine.QueryOne(ctx, a, `select lease_until from node where id = $1`, []any{last.node}, &leaseEnd); err != nil {
		return false, fmt.Errorf("look for the last heartbeat: %w", err)
	}
	return leaseEnd >= last.leaseEnd, nil
}

// noteSynchronous stores whether PostgreSQL commits synchronously. It writes only if the value has changed.
func (s *Fleet) noteSynchronous(ctx context.Context, a engine.Querier) error {
	if !s.Dialect.Timed() {
		return nil
	}
	if _, err := a.Exec(ctx, `update cluster set synchronous = `+SynchronousNow+`
 where timeline = $timeline and synchronous <> `+SynchronousNow); err != nil {
		return fmt.Errorf("note how the server commits: %w", err)
	}
	return nil
}
