package event

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

const (
	feedLook  = 10_000         // how many events one statement searches
	feedRenew = 24 * time.Hour // a read writes a new end of the feed only if it is at least this much later than the stored end
)

// FeedEvents reads a client's events after one event number, up to and including another.
const FeedEvents = `
select x.seq, x.type, x.at, x.subject, x.detail from (
 select e.seq, e.type, e.at, e.subject, e.detail from outbox_event e where e.client_id = $1 and e.seq > $2 and e.seq <= $3 order by e.client_id, e.seq limit $4) x
where $5::bigint & (1::bigint << x.type) <> 0 order by x.seq limit $6`

// Events returns events of these types, sorted by number. It begins with the first number that is larger than the
// argument after, and limit is how many it returns at most. The result next is the argument after of the next call.
// Each call turns the feed on for [puntuale.KeepEvents]. If the feed was off, it begins now, because no earlier events were
// stored for it.
//
// Events first reads the client's last number. All lower numbers are committed by then. So if a number is
// missing in the result, the caller does not want this event's type, or the event was old and was deleted.
func (s ClientEvents) Events(ctx context.Context, after int64, types puntuale.EventSet, limit int, now time.Time) (all []puntuale.Event, next int64, err error) {
	last, err := s.turnOn(ctx, now)
	if err != nil {
		return nil, after, err
	}
	for next = after; next < last && len(all) == 0; {
		end, err := s.lookTo(ctx, next, last)
		if err != nil {
			return nil, after, err
		}
		all, err = engine.QueryAll(ctx, s.db.CallReads, FeedEvents, []any{s.client, next, end, feedLook, int64(types), limit}, func(r engine.Row, e *puntuale.Event) error {
			e.Client = s.client
			return r.Scan(&e.Seq, &e.Type, engine.ScanTime(&e.At), &e.Subject, &e.Detail)
		})
		if err != nil {
			return nil, after, engine.PublicError(fmt.Errorf("read the feed: %w", err))
		}
		if next = end; limit > 0 && len(all) == limit {
			next = all[limit-1].Seq
		}
	}
	all, next, err = s.tell(ctx, all, next)
	return all, next, err
}

// LastEvent returns the number of the client's last event.
func (s ClientEvents) LastEvent(ctx context.Context) (last int64, err error) {
	if _, err = engine.QueryOne(ctx, s.db.CallReads, `select e.last_seq from event_stream e where e.client_id = $1`, []any{s.client}, &last); err != nil {
		return 0, engine.PublicError(fmt.Errorf("read the last event: %w", err))
	}
	return last, nil
}

// lookTo returns the last number that one statement searches.
func (s ClientEvents) lookTo(ctx context.Context, after, last int64) (end int64, err error) {
	found, err := engine.QueryOne(ctx, s.db.CallReads, `select e.seq from outbox_event e where e.client_id = $1 and e.seq > $2 and e.seq <= $3
 order by e.client_id, e.seq limit 1 offset $4`, []any{s.client, after, last, feedLook - 1}, &end)
	if err != nil {
		return 0, engine.PublicError(fmt.Errorf("read the feed: %w", err))
	}
	if !found {
		return last, nil
	}
	return end, nil
}

// turnOn turns the feed on, or prolongs it. It returns the client's last number.
func (s ClientEvents) turnOn(ctx context.Context, now time.Time) (last int64, err error) {
	var leaseEnd time.Time
	end := now.Add(puntuale.KeepEvents)
	if _, err := engine.QueryOne(ctx, s.db.CallReads, `select e.feed_until, e.last_seq from event_stream e where e.client_id = $1`, []any{s.client},
		engine.ScanTime(&leaseEnd), &last); err != nil {
		return 0, engine.PublicError(fmt.Errorf("read a stream of events: %w", err))
	}
	if end.Sub(leaseEnd) < feedRenew {
		return last, nil
	}
	err = s.db.Write(ctx, int64(s.client), func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `insert into event_stream (client_id) select k.id from client k where k.id = $1 and k.deleted_at = 0
 on conflict (client_id) do nothing`, s.client); err != nil {
			return fmt.Errorf("begin a stream of events: %w", err)
		}
		found, err := engine.QueryOne(ctx, a, `select e.feed_until, e.last_seq from event_stream e where e.client_id = $1 for update of e`, []any{s.client}, engine.ScanTime(&leaseEnd), &last)
		if err := engine.ThereOr(found, err, puntuale.NoClient); err != nil {
			return err
		}
		if _, err := a.Exec(ctx, `update event_stream set feed_until = $2 where client_id = $1`, s.client, engine.Micros(end)); err != nil {
			return fmt.Errorf("turn the feed on: %w", err)
		}
		if leaseEnd.After(now) {
			return nil
		}
		return outbox.Announce(ctx, s.db.Dialect, a)
	})
	return last, err
}
