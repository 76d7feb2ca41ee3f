package store

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Replans of edited sequences. One node works on a replan, as long as its row names this node. The row has a cursor, so
// that another node goes on after the node's death. What was done since the last stored cursor is done again, and changes
// nothing.

const replanColumns = `p.client_id, p.sequence_id, p.state, p.door, p.edited_at, p.cursor_id, p.last_id, p.bookings, p.done, p.planned, p.moved, p.cancelled, p.refused,
 p.started_at, p.ended_at, p.owned_until, k.held_at <> 0 from replan p join client k on k.id = p.client_id`

func replanFields(p *puntuale.Replan) []any {
	return []any{&p.Client, &p.Sequence, &p.State, &p.Door, engine.ScanTime(&p.Edited), &p.Cursor, &p.Last, &p.Bookings, &p.Done, &p.Planned, &p.Moved, &p.Cancelled, &p.Refused,
		engine.ScanTime(&p.Started), engine.ScanTime(&p.Ended), engine.ScanTime(&p.Owned), &p.Held}
}

// Codes of refusals of replans.
const (
	faultReplanRunning    puntuale.ReasonCode = "booking.replan_running"
	faultReplanWrongState puntuale.ReasonCode = "booking.replan_state"
)

// StartReplan begins a replan of the bookings that there are now.
func (t tenant) StartReplan(ctx context.Context, r puntuale.Replan) error {
	err := t.s.Write(ctx, int64(t.id), func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `
insert into replan as p (client_id, sequence_id, state, door, edited_at, last_id, bookings, started_at)
select q.client_id, q.id, 0, $3::smallint, $4::bigint, coalesce((select max(b.id) from booking b where b.client_id = $1 and b.sequence_id = $2), 0), $5::bigint, $6::bigint
from sequence q where q.client_id = $1 and q.id = $2 and q.deleted_at = 0
on conflict (client_id, sequence_id) do update set state = 0, door = excluded.door, edited_at = excluded.edited_at, cursor_id = 0, last_id = excluded.last_id,
 bookings = excluded.bookings, done = 0, planned = 0, moved = 0, cancelled = 0, refused = 0, started_at = excluded.started_at, ended_at = 0, owner = 0, owned_until = 0
 where p.state in (2, 3)`, t.id, r.Sequence, r.Door, engine.Micros(r.Edited), r.Bookings, engine.Micros(r.Started))
		if err != nil {
			return fmt.Errorf("start a replan: %w", err)
		}
		if n > 0 {
			return nil
		}
		return t.noReplan(ctx, a, r.Sequence, faultReplanRunning)
	})
	return engine.PublicError(err)
}

// noReplan returns the refusal of a change that found no row: the sequence is gone, or the replan is in another state.
func (t tenant) noReplan(ctx context.Context, a engine.Querier, sequence puntuale.SequenceID, otherwise puntuale.ReasonCode) error {
	var one int
	found, err := engine.QueryOne(ctx, a, `select 1 from sequence where client_id = $1 and id = $2 and deleted_at = 0`, []any{t.id, sequence}, &one)
	if err := engine.FoundOr(found, err, puntuale.NoSequence); err != nil {
		return err
	}
	return puntuale.Conflict(otherwise)
}

// Replan reads the last replan of a sequence.
func (t tenant) Replan(ctx context.Context, sequence puntuale.SequenceID) (r puntuale.Replan, found bool, err error) {
	found, err = engine.QueryOne(ctx, t.s.CallReads, `select `+replanColumns+` where p.client_id = $1 and p.sequence_id = $2`, []any{t.id, sequence}, replanFields(&r)...)
	return r, found, engine.PublicError(err)
}

// MoveReplan pauses, resumes or ends a replan.
func (t tenant) MoveReplan(ctx context.Context, sequence puntuale.SequenceID, to puntuale.ReplanState, now time.Time, from ...puntuale.ReplanState) error {
	ended := int64(0)
	if to == puntuale.ReplanCancelled || to == puntuale.ReplanDone {
		ended = engine.Micros(now)
	}
	err := t.s.Write(ctx, int64(t.id), func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `update replan set state = $3, ended_at = $4 from $u(s smallint) where replan.client_id = $1 and replan.sequence_id = $2 and replan.state = u.s`,
			t.id, sequence, to, ended, engine.Columns{engine.Column(from, func(s *puntuale.ReplanState) int64 { return int64(*s) })})
		if err == nil && n == 0 {
			err = t.noReplan(ctx, a, sequence, faultReplanWrongState)
		}
		return err
	})
	return engine.PublicError(err)
}

// replanned says which bookings b an edited sequence may still concern.
const replanned = `b.erased_at = 0 and b.status <> 2 and (b.date_at > $3 or exists (select 1 from booking_step s join message m on m.client_id = s.client_id and m.id = s.message_id
 where s.client_id = b.client_id and s.booking_id = b.id and m.state = 0))`

// ReplanBookings reads at most limit bookings of the range, and leaves out those that are not concerned.
func (t tenant) ReplanBookings(ctx context.Context, r puntuale.ReplanFilter, limit int) (some []puntuale.Booking, last puntuale.BookingID, err error) {
	err = t.lists().Query(ctx, `select b.id, b.reference, case when `+replanned+` then 1 else 0 end from (select * from booking x
 where x.client_id = $1 and x.sequence_id = $2 and x.id > $4 and x.id <= $5 order by x.id limit $6) b order by b.id`,
		[]any{t.id, r.Sequence, engine.Micros(r.Since), r.After, lastOf(r), limit}, func(row engine.Row) error {
			var b puntuale.Booking
			concerned := false
			if err := row.Scan(&b.ID, &b.Reference, engine.ScanBool(&concerned)); err != nil {
				return err
			}
			if last = b.ID; concerned {
				some = append(some, b)
			}
			return nil
		})
	if err != nil {
		return nil, 0, engine.PublicError(fmt.Errorf("list the bookings of a sequence: %w", err))
	}
	return some, last, nil
}

func lastOf(r puntuale.ReplanFilter) puntuale.BookingID {
	if r.Last == 0 {
		return puntuale.BookingID(puntuale.MaxID)
	}
	return r.Last
}

// CountReplan counts the bookings of the range.
func (t tenant) CountReplan(ctx context.Context, r puntuale.ReplanFilter) (n int, err error) {
	err = t.lists().Query(ctx, `select count(*) from booking b where b.client_id = $1 and b.sequence_id = $2 and b.id > $4 and b.id <= $5 and `+replanned,
		[]any{t.id, r.Sequence, engine.Micros(r.Since), r.After, lastOf(r)}, func(row engine.Row) error { return row.Scan(&n) })
	if err != nil {
		return 0, engine.PublicError(fmt.Errorf("count the bookings of a sequence: %w", err))
	}
	return n, nil
}

// RunningReplans lists the replans that a node may work on: those that it owns, and those whose owner's time is over. A
// client that is held, suspended, expired or deleted is left out.
func (s *Store) RunningReplans(ctx context.Context, node puntuale.NodeID, now time.Time) ([]puntuale.Replan, error) {
	all, err := engine.QueryAll(ctx, s.DispatchReads, `select `+replanColumns+` where p.state = 0 and (p.owner = $1 or p.owned_until < $2) and k.held_at = 0 and k.suspended = 0 and k.deleted_at = 0 and (k.expires_at = 0 or k.expires_at > $2)
 order by p.started_at, p.client_id, p.sequence_id limit 100`, []any{node, engine.Micros(now)}, func(r engine.Row, p *puntuale.Replan) error { return r.Scan(replanFields(p)...) })
	return all, engine.PublicError(err)
}

// KeepReplan stores how far a node came, and makes it the owner until owned. It returns false if the replan is no longer
// as in was: another node works on it, or it was paused, cancelled or started again.
func (s *Store) KeepReplan(ctx context.Context, node puntuale.NodeID, was, is puntuale.Replan, now time.Time) (kept bool, err error) {
	err = s.FeedWriter.Do(ctx, engine.Single(s.kinds.feed, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `update replan set state = $6, edited_at = $7, cursor_id = $8, bookings = $9, done = $10, planned = $11, moved = $12, cancelled = $13, refused = $14, ended_at = $15, owner = $1, owned_until = $16, last_id = $18
 where client_id = $2 and sequence_id = $3 and state = 0 and cursor_id = $4 and started_at = $5 and (owner = $1 or owned_until < $17)`,
			node, is.Client, is.Sequence, was.Cursor, engine.Micros(was.Started), is.State, engine.Micros(is.Edited), is.Cursor, is.Bookings, is.Done, is.Planned, is.Moved, is.Cancelled, is.Refused,
			engine.Micros(is.Ended), engine.Micros(is.Owned), engine.Micros(now), is.Last)
		kept = n > 0
		return err
	}).ForOwner(int64(is.Client)), false)
	return kept, engine.PublicError(err)
}
