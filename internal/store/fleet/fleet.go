package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// This package decides which node sends for which session. A lease is only the row of the node. Every claim locks this
// row FOR KEY SHARE until the claim commits. So nobody can delete the row while a claim is open, and a node without a
// row can claim nothing. The owner of a session is only an assignment. Leases are measured by the database's clock. So
// differences between the clocks of nodes do not matter here.
//
// The transactions of this package have their own writer and connection. On SQLite there is one queue for all writes,
// and these transactions come first in it. So a node does not lose its lease because many other writes wait.

// Fleet stores which node owns which sessions. It implements puntuale.Fleet, and gives sessions their
// commands. Its methods are safe for concurrent use.
type Fleet struct {
	*engine.DB

	kind   *engine.Kind
	settle func(ctx context.Context, s *Fleet, f *Failover) error

	beaten   atomic.Pointer[heartbeatMark]
	notifier *notifier // nil: the database is SQLite
	listener *listener // nil: Listen was not called yet
}

// New returns the Fleet of a database. After a failover, the Fleet calls settle for the quarantine before any node joins.
func New(db *engine.DB, settle func(ctx context.Context, s *Fleet, f *Failover) error) (*Fleet, error) {
	s := &Fleet{DB: db, kind: engine.NewSingle("fleet", engine.PrioritySend), settle: settle}
	if !db.Dialect.Postgres {
		return s, nil
	}
	var err error
	s.notifier, err = s.newNotifier()
	return s, err
}

// Close stops sending and receiving wakeups. The database stays open.
func (s *Fleet) Close() {
	s.notifier.close()
	s.listener.close()
}

func (s *Fleet) OnFleet(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
	return s.FleetWriter.Do(ctx, engine.Single(s.kind, do), true)
}

func (s *Fleet) Join(ctx context.Context, lease time.Duration) (puntuale.NodeID, error) {
	for {
		var f *Failover
		var last *heartbeatMark
		err := s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) error {
			var err error
			if f, err = s.SameTimeline(ctx, a); err != nil || f != nil {
				return err
			}
			last, err = s.register(ctx, a, lease)
			return err
		})
		if err != nil {
			return 0, err
		}
		if f == nil {
			s.beaten.Store(last)
			return last.node, nil
		}
		if err := s.settle(ctx, s, f); err != nil {
			return 0, err
		}
	}
}

func (s *Fleet) register(ctx context.Context, a engine.Querier, lease time.Duration) (*heartbeatMark, error) {
	id, err := engine.NextNumber(ctx, a, "node")
	if err != nil {
		return nil, err
	}
	last := &heartbeatMark{node: puntuale.NodeID(id)}
	_, err = engine.QueryOne(ctx, a, `insert into node (id, lease_until, timeline, reads_keys) values ($1, $clock + $2::bigint, $timeline, 1) returning lease_until`,
		[]any{id, lease.Microseconds()}, &last.leaseEnd)
	return last, err
}

func (s *Fleet) Beat(ctx context.Context, node puntuale.NodeID, lease time.Duration) error {
	last := &heartbeatMark{node: node}
	err := s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) error {
		if err := s.noteSynchronous(ctx, a); err != nil {
			return err
		}
		alive, err := engine.QueryOne(ctx, a, `update node set lease_until = $clock + $2::bigint where id = $1 and timeline = $timeline
 returning lease_until`, []any{node, lease.Microseconds()}, &last.leaseEnd)
		if err == nil && !alive {
			return puntuale.ErrFenced
		}
		return err
	})
	if err == nil {
		s.beaten.Store(last)
	}
	return err
}

// Reap deletes nodes whose lease has ended, and frees the sessions and triggers of nodes that are gone. It skips a node
// whose row is locked. A later call tries this node again. Such a node may hang during a claim. If Reap waited for the
// node, the leases of other nodes would end meanwhile. The hanging node keeps its sessions until its row is deleted.
func (s *Fleet) Reap(ctx context.Context) (freed int, err error) {
	err = s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `delete from node where id in (
 select id from node where lease_until <= $clock order by id for update skip locked)`); err != nil {
			return fmt.Errorf("remove dead nodes: %w", err)
		}
		n, err := a.Exec(ctx, `update session set owner = 0 where id in (select s.id from session s
 where s.owner <> 0 and s.deleted_at = 0 and not exists (select 1 from node n where n.id = s.owner)
 order by s.id for no key update of s skip locked)`)
		freed = int(n)
		if err != nil {
			return fmt.Errorf("free the sessions of dead nodes: %w", err)
		}
		_, err = a.Exec(ctx, freeTriggers)
		return err
	})
	return freed, err
}

// freeTriggers makes the triggers due that a node took which is gone. So they need not wait for the end of their lease.
const freeTriggers = `update automation_trigger set next_at = at, node = 0 where id in (select t.id from automation_trigger t
 where t.node <> 0 and not exists (select 1 from node n where n.id = t.node) order by t.id for update of t skip locked)`

// sendsCampaigns is 1 for a session s whose campaign queue must be read. It is 0 if no campaign of the session has
// messages that may leave.
const sendsCampaigns = `case when exists (select 1 from campaign c where c.session_id = s.id and c.state in (3, 7, 8, 9)
 and (c.state = 3 or exists (select 1 from message m where m.campaign_id = c.id and m.state = 0))) then 1 else 0 end`

func (s *Fleet) Roster(ctx context.Context, node puntuale.NodeID) ([]puntuale.NodeID, []puntuale.Session, error) {
	nodes, err := engine.QueryAll(ctx, s.DispatchReads, `select id from node where lease_until > $clock order by id`, nil, engine.ScanOne[puntuale.NodeID])
	if err != nil {
		return nil, nil, engine.PublicError(fmt.Errorf("read nodes: %w", err))
	}
	sessions, err := engine.QueryAll(ctx, s.DispatchReads, `select `+linkedColumns+`, `+sendsCampaigns+` from session s join client k on k.id = s.client_id and k.deleted_at = 0
 where s.deleted_at = 0 and s.owner in (0, $1) order by s.id`, []any{node}, func(rows engine.Row, s *puntuale.Session) error {
		return rows.Scan(append(LinkedFields(s), engine.ScanBool(&s.Campaigns))...)
	})
	if err != nil {
		return nil, nil, engine.PublicError(fmt.Errorf("read sessions: %w", err))
	}
	return nodes, sessions, nil
}

func (s *Fleet) Assign(ctx context.Context, owner, newOwner puntuale.NodeID, sessions []puntuale.SessionID) (moved []puntuale.SessionID, err error) {
	if len(sessions) == 0 {
		return nil, nil
	}
	sessions = slices.Sorted(slices.Values(sessions))
	err = s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) error {
		if newOwner != 0 {
			if err := Fence(ctx, a, newOwner); err != nil {
				return err
			}
		}
		var err error
		moved, err = engine.QueryAll(ctx, a, `update session set owner = $1::bigint from $u(s bigint)
 where session.id = u.s and session.owner = $2 and session.deleted_at = 0 returning session.id`,
			[]any{newOwner, owner, SessionColumn(sessions)}, engine.ScanOne[puntuale.SessionID])
		return err
	})
	slices.Sort(moved)
	return moved, err
}

func (s *Fleet) Leave(ctx context.Context, node puntuale.NodeID) error {
	return s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `delete from node where id = $1`, node); err != nil {
			return fmt.Errorf("remove the node: %w", err)
		}
		_, err := a.Exec(ctx, `update session set owner = 0 where owner = $1`, node)
		return err
	})
}

// LockDispatch prevents a second process from dispatching from the same SQLite file. Leases alone would notice the
// second process too late. release frees the lock. No other process can have this lock, so the new holder deletes the
// nodes of killed processes immediately. On PostgreSQL nothing is locked, because nodes share the work. Codes: conflict
// (another process dispatches).
func (s *Fleet) LockDispatch(ctx context.Context) (release func() error, err error) {
	if s.File == "" {
		return func() error { return nil }, nil
	}
	release, err = s.LockDispatcher()
	if err != nil {
		return nil, err
	}
	if err := s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `delete from node`); err != nil {
			return err
		}
		if _, err := a.Exec(ctx, `update session set owner = 0 where owner <> 0`); err != nil {
			return err
		}
		_, err := a.Exec(ctx, `update campaign set checked_at = 0 where state = 1`) // a killed process made these checks, so the next call need not wait for them
		return err
	}); err != nil {
		return nil, errors.Join(fmt.Errorf("remove dead nodes: %w", err), release())
	}
	return release, nil
}
