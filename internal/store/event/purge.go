package event

import (
	"context"
	"errors"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Maintain deletes rows older than [puntuale.KeepEvents], and all rows of deleted webhooks and clients.
func (s *Events) Maintain(ctx context.Context, now time.Time) error {
	before := engine.Micros(now.Add(-puntuale.KeepEvents))
	return errors.Join(s.purgeDeliveries(ctx, before), s.purgeEvents(ctx, before), s.forgetClients(ctx), s.unlinkSessions(ctx))
}

// allWebhooks finds all webhooks that have deliveries, including deleted webhooks.
const allWebhooks = `
with recursive listed(id) as (
 select min(d.webhook_id) from delivery d
 union all select (select min(d.webhook_id) from delivery d where d.webhook_id > listed.id) from listed where listed.id is not null)
select g.id, case when w.id is null then 1 else 0 end from listed g left join webhook w on w.id = g.id where g.id is not null`

func (s *Events) purgeDeliveries(ctx context.Context, before int64) error {
	type listed struct {
		id      puntuale.WebhookID
		deleted bool
	}
	all, err := engine.QueryAll(ctx, s.db.MaintenanceReads, allWebhooks, nil, func(r engine.Row, w *listed) error { return r.Scan(&w.id, engine.ScanBool(&w.deleted)) })
	if err != nil {
		return engine.PublicError(fmt.Errorf("look for old deliveries: %w", err))
	}
	for _, w := range all {
		to := before
		if w.deleted {
			to = 1 << 62
		}
		if err := s.deleteDeliveries(ctx, w.id, to); err != nil {
			return err
		}
	}
	return nil
}

// forgetDeliveries deletes all deliveries of a deleted webhook.
func (s *Events) forgetDeliveries(ctx context.Context, id puntuale.WebhookID) error {
	return s.deleteDeliveries(ctx, id, 1<<62)
}

// OldDeliveries finds a webhook's oldest deliveries that are older than the time $2.
const OldDeliveries = `select d.at, d.client_id, d.seq from delivery d where d.webhook_id = $1 and d.at < $2 order by d.webhook_id, d.at, d.client_id, d.seq limit $3 for update of d`

func (s *Events) deleteDeliveries(ctx context.Context, id puntuale.WebhookID, before int64) error {
	return s.chunks(ctx, func(ctx context.Context, a engine.Querier) (int, error) {
		keys, err := engine.QueryAll(ctx, a, OldDeliveries, []any{id, before, engine.Chunk}, func(r engine.Row, k *deliveryKey) error { return r.Scan(&k.at, &k.client, &k.seq) })
		if err != nil || len(keys) == 0 {
			return 0, err
		}
		_, err = a.Exec(ctx, `delete from delivery where webhook_id = $1 and (at, client_id, seq) in (select u.t, u.c, u.s from $u(t bigint, c bigint, s bigint))`, id, engine.Columns{
			engine.Column(keys, func(k *deliveryKey) int64 { return k.at }),
			engine.Column(keys, func(k *deliveryKey) int64 { return k.client }),
			engine.Column(keys, func(k *deliveryKey) int64 { return k.seq }),
		})
		return len(keys), err
	})
}

// chunks runs transactions until one of them handles less than a full chunk. do returns how many rows it handled.
func (s *Events) chunks(ctx context.Context, do func(ctx context.Context, a engine.Querier) (int, error)) error {
	for n := engine.Chunk; n == engine.Chunk; {
		if err := s.db.EventWriter.Do(ctx, engine.Single(s.end, func(ctx context.Context, a engine.Querier) (err error) {
			n, err = do(ctx, a)
			return err
		}), false); err != nil {
			return fmt.Errorf("remove old events: %w", err)
		}
	}
	return nil
}

// OldEvents finds a client's first events that are older than the time $2. Later events have larger numbers, except for
// differences of a few seconds.
const OldEvents = `select x.seq from (select e.seq, e.at from outbox_event e where e.client_id = $1 order by e.client_id, e.seq limit $3) x where x.at < $2 order by x.seq`

func (s *Events) purgeEvents(ctx context.Context, before int64) error {
	clients, err := engine.QueryAll(ctx, s.db.MaintenanceReads, `select e.client_id from event_stream e where e.last_seq > 0 order by e.client_id`, nil, engine.ScanOne[puntuale.ClientID])
	if err != nil {
		return engine.PublicError(fmt.Errorf("look for old events: %w", err))
	}
	for _, c := range clients {
		var old int64
		found, err := engine.QueryOne(ctx, s.db.MaintenanceReads, OldEvents+` limit 1`, []any{c, before, engine.Chunk}, &old)
		if err != nil {
			return engine.PublicError(fmt.Errorf("look for old events: %w", err))
		}
		if !found {
			continue
		}
		if err := s.deleteEvents(ctx, c, before); err != nil {
			return err
		}
	}
	return nil
}

func (s *Events) deleteEvents(ctx context.Context, c puntuale.ClientID, before int64) error {
	return s.chunks(ctx, func(ctx context.Context, a engine.Querier) (int, error) {
		seqs, err := engine.QueryAll(ctx, a, OldEvents, []any{c, before, engine.Chunk}, engine.ScanOne[int64])
		if err != nil || len(seqs) == 0 {
			return 0, err
		}
		_, err = a.Exec(ctx, `delete from outbox_event where client_id = $1 and seq in (select u.s from $u(s bigint))`, c, engine.Columns{seqs})
		return len(seqs), err
	})
}

// forgetClients deletes the rows of deleted clients: first facts, then events with their deliveries, then the stream.
func (s *Events) forgetClients(ctx context.Context) error {
	clients, err := engine.QueryAll(ctx, s.db.MaintenanceReads, `select e.client_id from event_stream e join client c on c.id = e.client_id where c.deleted_at <> 0`, nil, engine.ScanOne[puntuale.ClientID])
	if err != nil {
		return engine.PublicError(fmt.Errorf("look for events of deleted clients: %w", err))
	}
	for _, c := range clients {
		if err := s.forgetClient(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// EventDeliveries deletes deliveries to the webhooks of a deleted client's partner. The parameters name the client's
// events. The client's own webhooks are already deleted.
const EventDeliveries = `
delete from delivery where (webhook_id, at, client_id, seq) in (select d.webhook_id, d.at, d.client_id, d.seq
 from $u(s bigint) cross join outbox_event e cross join client k cross join webhook w cross join delivery d
 where e.client_id = $1 and e.seq = u.s and k.id = e.client_id and w.client_id = 0 and w.partner_id = k.partner_id
 and d.webhook_id = w.id and d.at = e.at and d.client_id = e.client_id and d.seq = e.seq)`

func (s *Events) forgetClient(ctx context.Context, c puntuale.ClientID) error {
	if err := s.chunks(ctx, func(ctx context.Context, a engine.Querier) (int, error) {
		n, err := a.Exec(ctx, `delete from outbox_fact where client_id = $1 and id in (select f.id from outbox_fact f where f.client_id = $1 order by f.client_id, f.id limit $2)`, c, engine.Chunk)
		return int(n), err
	}); err != nil {
		return err
	}
	if err := s.chunks(ctx, func(ctx context.Context, a engine.Querier) (int, error) {
		seqs, err := engine.QueryAll(ctx, a, `select e.seq from outbox_event e where e.client_id = $1 order by e.client_id, e.seq limit $2`, []any{c, engine.Chunk}, engine.ScanOne[int64])
		if err != nil || len(seqs) == 0 {
			return 0, err
		}
		if _, err := a.Exec(ctx, EventDeliveries, c, engine.Columns{seqs}); err != nil {
			return 0, err
		}
		_, err = a.Exec(ctx, `delete from outbox_event where client_id = $1 and seq in (select u.s from $u(s bigint))`, c, engine.Columns{seqs})
		return len(seqs), err
	}); err != nil {
		return err
	}
	return s.db.EventWriter.Do(ctx, engine.Single(s.end, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `delete from event_stream where client_id = $1 and not exists (select 1 from outbox_fact f where f.client_id = $1)
 and not exists (select 1 from outbox_event e where e.client_id = $1)`, c)
		return err
	}), false)
}

// Deleted deletes a client's webhooks and ends its feed, in the transaction that deletes the client. Maintain later
// deletes their deliveries and events.
func Deleted(ctx context.Context, a engine.Querier, client puntuale.ClientID) error {
	for _, statement := range []string{
		`delete from chatwoot_conversation where client_id = $1`,
		`delete from chatwoot_link where client_id = $1`,
		`delete from webhook where client_id = $1 and client_id <> 0`,
		`update event_stream set wanted = 0, feed_until = 0 where client_id = $1`,
	} {
		if _, err := a.Exec(ctx, statement, client); err != nil {
			return fmt.Errorf("end a client's webhooks: %w", err)
		}
	}
	return nil
}

// Created begins the stream of a new client whose partner has webhooks, in the transaction that creates the client. The
// caller has locked the partner's row.
func Created(ctx context.Context, a engine.Querier, client puntuale.ClientID) error {
	_, err := subscribe(ctx, a, `k.id = $1`, int64(client)) // the client is new, so it has no facts yet
	return err
}
