package event

import (
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
)

// WaitingWebhooks finds the webhooks that have waiting deliveries. It reads one row of each webhook.
const WaitingWebhooks = `
with recursive waiting(id) as (
 select min(d.webhook_id) from delivery d where d.state = 0
 union all select (select min(d.webhook_id) from delivery d where d.state = 0 and d.webhook_id > waiting.id) from waiting where waiting.id is not null)
select id from waiting where id is not null`

// Ownerless finds those of the given webhooks that a node may take: they are active, have due deliveries, and have no
// live owner. $1 is the present time, $2 the node.
const Ownerless = `
select w.id from $u(i bigint) cross join webhook w where w.id = u.i and w.active = 1 and w.owner <> $2
 and not exists (select 1 from node n where n.id = w.owner and n.lease_until > $clock)
 and exists (select 1 from delivery d where d.webhook_id = w.id and d.state = 0 and d.next_at <= $1)
order by w.id for update of w skip locked`

// OwnWebhooks first only reads. It writes only if there is a webhook to take. So a node may call it every second.
func (s *Events) OwnWebhooks(ctx context.Context, node puntuale.NodeID, now time.Time) ([]puntuale.WebhookTarget, error) {
	waiting, err := engine.QueryAll(ctx, s.db.DispatchReads, WaitingWebhooks, nil, engine.ScanOne[int64])
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for deliveries: %w", err))
	}
	free := []int64{}
	if len(waiting) > 0 {
		if free, err = s.ownerless(ctx, s.db.DispatchReads, node, now, waiting); err != nil {
			return nil, engine.PublicError(err)
		}
	}
	if len(free) > 0 {
		if err := s.db.FleetWriter.Do(ctx, engine.Single(s.end, func(ctx context.Context, a engine.Querier) error {
			if err := fleet.Fence(ctx, a, node); err != nil {
				return err
			}
			ownWebhooks, err := s.ownerless(ctx, a, node, now, free)
			if err != nil || len(ownWebhooks) == 0 {
				return err
			}
			_, err = a.Exec(ctx, `update webhook set owner = $1::bigint from $u(i bigint) where webhook.id = u.i`, node, engine.Columns{ownWebhooks})
			return err
		}), false); err != nil {
			return nil, err
		}
	}
	var alive int64
	found, err := engine.QueryOne(ctx, s.db.DispatchReads, `select n.id from node n where n.id = $1 and n.lease_until > $clock and n.timeline = $timeline`, []any{node}, &alive)
	switch {
	case err != nil:
		return nil, engine.PublicError(fmt.Errorf("look for the node's lease: %w", err))
	case !found:
		return nil, puntuale.ErrFenced
	}
	return s.targets(ctx, node)
}

func (s *Events) ownerless(ctx context.Context, a engine.Querier, node puntuale.NodeID, now time.Time, waiting []int64) ([]int64, error) {
	text := Ownerless
	if _, reads := a.(*engine.ReadPool); reads {
		text = text[:len(text)-len(" for update of w skip locked")]
	}
	free, err := engine.QueryAll(ctx, a, text, []any{engine.Micros(now), node, engine.Columns{waiting}}, engine.ScanOne[int64])
	if err != nil {
		return nil, fmt.Errorf("look for webhooks without an owner: %w", err)
	}
	return free, nil
}

// targets returns the active webhooks that a node owns. If the node's lease has ended, it returns none.
func (s *Events) targets(ctx context.Context, node puntuale.NodeID) ([]puntuale.WebhookTarget, error) {
	all, err := engine.QueryAll(ctx, s.db.DispatchReads, `select `+webhookColumns+`, `+secretColumns+`, coalesce(l.account_id, 0), coalesce(l.inbox_id, 0)
 from webhook w left join chatwoot_link l on l.webhook_id = w.id where w.owner = $1 and w.owner <> 0 and w.active = 1
 and exists (select 1 from node n where n.id = $1 and n.lease_until > $clock) order by w.id`, []any{node}, func(r engine.Row, t *puntuale.WebhookTarget) error {
		err := r.Scan(targetFields(t)...)
		if len(t.Secret.FormerSecret) == 0 {
			t.Secret.FormerSecret = nil
		}
		return err
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read webhooks to send for: %w", err))
	}
	return all, nil
}

func targetFields(t *puntuale.WebhookTarget) []any {
	return append(append(webhookFields(&t.Webhook), secretFields(&t.Secret)...), &t.Chatwoot.Account, &t.Chatwoot.Inbox)
}

// DueOfWebhook finds a webhook's due deliveries after a key, earliest first.
const DueOfWebhook = `
select d.next_at, d.client_id, d.seq, d.type, d.attempts, d.tried_at, e.at, e.subject, e.detail
from (select * from delivery x where x.webhook_id = $1 and x.state = 0 and x.next_at <= $2 and (x.next_at, x.client_id, x.seq) > ($3::bigint, $4::bigint, $5::bigint)
 order by x.webhook_id, x.next_at, x.client_id, x.seq limit $6) d
cross join outbox_event e where e.client_id = d.client_id and e.seq = d.seq order by d.next_at, d.client_id, d.seq`

// Each search for a webhook's due deliveries begins at the first delivery that the previous search found. A search from
// the start of the index would read the entries of all deliveries that ended since the database's last clean-up.
//
// A search begins a little earlier (dueSlack), because clocks of nodes may differ. Every five minutes (dueAnew), one
// search begins at the start of the index.
const (
	dueSlack  = time.Minute
	dueAnew   = 5 * time.Minute
	dueFloors = 10_000 // for how many webhooks a dueCursor is kept in memory
)

// dueCursor is the time at which the searches for a webhook's due deliveries begin.
type dueCursor struct {
	from time.Time
	anew time.Time // when the field from expires; the next search then begins at the start of the index
}

// DueWebhooks finds those of the given webhooks that have due deliveries. u.f is the time at which the search begins.
// It reads one row of each webhook.
const DueWebhooks = `
select u.i from $u(i bigint, f bigint) where exists (select 1 from delivery d where d.webhook_id = u.i and d.state = 0 and d.next_at >= u.f and d.next_at <= $1)`

// due returns the webhooks that have due deliveries. If a node owns many webhooks, most of them have none.
func (s *Events) due(ctx context.Context, webhooks []puntuale.WebhookID, now time.Time) ([]puntuale.WebhookID, error) {
	if len(webhooks) < 2 {
		return webhooks, nil
	}
	from := engine.Column(webhooks, func(id *puntuale.WebhookID) int64 { return engine.Micros(s.floor(*id, now)) })
	due, err := engine.QueryAll(ctx, s.db.DispatchReads, DueWebhooks,
		[]any{engine.Micros(now), engine.Columns{engine.Column(webhooks, func(id *puntuale.WebhookID) int64 { return int64(*id) }), from}}, engine.ScanOne[puntuale.WebhookID])
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for webhooks with due deliveries: %w", err))
	}
	isDue := make(map[puntuale.WebhookID]bool, len(due))
	for _, id := range due {
		isDue[id] = true
	}
	for _, id := range webhooks {
		if !isDue[id] {
			s.raise(id, now.Add(-dueSlack))
		}
	}
	return due, nil
}

func (s *Events) DueDeliveries(ctx context.Context, webhooks []puntuale.WebhookID, now time.Time, limit int, skip func(puntuale.Delivery) bool) ([]puntuale.DueDelivery, error) {
	webhooks, err := s.due(ctx, webhooks, now)
	if err != nil {
		return nil, err
	}
	var all []puntuale.DueDelivery
	for _, id := range webhooks {
		due, err := s.dueOf(ctx, id, now, limit, skip)
		if err != nil {
			return nil, engine.PublicError(fmt.Errorf("look for due deliveries: %w", err))
		}
		all = append(all, due...)
	}
	refs := make([]*puntuale.Event, len(all))
	for i := range refs {
		refs[i] = &all[i].Event
	}
	return all, engine.PublicError(s.fill(ctx, s.db.DispatchReads, refs))
}

func (s *Events) dueOf(ctx context.Context, id puntuale.WebhookID, now time.Time, limit int, skip func(puntuale.Delivery) bool) (all []puntuale.DueDelivery, err error) {
	last := deliveryKey{at: engine.Micros(s.floor(id, now)) - 1}
	first := now
	for len(all) < limit {
		n := 0
		if err := s.db.DispatchReads.Query(ctx, DueOfWebhook, []any{id, engine.Micros(now), last.at, last.client, last.seq, limit}, func(r engine.Row) error {
			d := puntuale.DueDelivery{Delivery: puntuale.Delivery{Webhook: id}}
			if err := r.Scan(engine.ScanTime(&d.Next), &d.Client, &d.Seq, &d.Type, &d.Attempts, engine.ScanTime(&d.Tried), engine.ScanTime(&d.Event.At), &d.Event.Subject, &d.Event.Detail); err != nil {
				return err
			}
			n++
			last = deliveryKey{engine.Micros(d.Next), int64(d.Client), d.Seq}
			if d.Next.Before(first) {
				first = d.Next
			}
			d.At, d.Event.Client, d.Event.Seq, d.Event.Type = d.Event.At, d.Client, d.Seq, d.Type
			if len(all) < limit && (skip == nil || !skip(d.Delivery)) {
				all = append(all, d)
			}
			return nil
		}); err != nil {
			return nil, err
		}
		if n < limit {
			break
		}
	}
	s.raise(id, first.Add(-dueSlack))
	return all, nil
}

func (s *Events) floor(id puntuale.WebhookID, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.floors[id]
	if !ok || !now.Before(f.anew) {
		if len(s.floors) >= dueFloors || s.floors == nil {
			s.floors = map[puntuale.WebhookID]dueCursor{}
		}
		s.floors[id] = dueCursor{anew: now.Add(dueAnew)}
		return time.Time{}
	}
	return f.from
}

func (s *Events) raise(id puntuale.WebhookID, from time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.floors[id]; ok {
		f.from = from
		s.floors[id] = f
	}
}

// mostDelayed is how many deliveries of a webhook are compared to find the oldest event. They are those whose next
// attempt is the furthest, because the waits grow: these have failed most often.
const mostDelayed = 20

func (s *Events) OutboxBacklog(ctx context.Context, now time.Time) (b puntuale.OutboxBacklog, err error) {
	var oldest, event time.Time
	waiting, err := engine.QueryAll(ctx, s.db.MaintenanceReads, WaitingWebhooks, nil, engine.ScanOne[int64])
	if err == nil && len(waiting) > 0 {
		_, err = engine.QueryOne(ctx, s.db.MaintenanceReads, `select coalesce(min(x.next_at), 0), coalesce(min(x.at), 0) from (
 select (select min(d.next_at) from delivery d where d.webhook_id = w.id and d.state = 0) as next_at,
  (select min(f.at) from (select d.at from delivery d where d.webhook_id = w.id and d.state = 0 order by d.next_at desc limit $1) f) as at
 from $u(i bigint) cross join webhook w where w.id = u.i and w.active = 1) x`,
			[]any{mostDelayed, engine.Columns{waiting}}, engine.ScanTime(&oldest), engine.ScanTime(&event))
	}
	if err == nil {
		_, err = engine.QueryOne(ctx, s.db.MaintenanceReads, `select (select coalesce(sum(1 + length(f.more) - length(replace(f.more, ',', ''))), 0) from (select more from outbox_fact limit $1) f),
 (select count(*) from (select 1 from delivery where state = 0 limit $1) d), (select count(*) from webhook where active = 0 and disabled_at <> 0)`,
			[]any{puntuale.MaxBacklog}, &b.Unnumbered, &b.Waiting, &b.Disabled)
		b.Unnumbered = min(b.Unnumbered, puntuale.MaxBacklog)
	}
	if err != nil {
		return b, engine.PublicError(fmt.Errorf("measure the backlog of events: %w", err))
	}
	if !oldest.IsZero() {
		b.Oldest = max(0, now.Sub(oldest))
	}
	if !event.IsZero() {
		b.Event = max(0, now.Sub(event))
	}
	return b, nil
}

// sortedWebhooks returns the webhooks of the results, in the order of locks.
func sortedWebhooks(all []puntuale.DeliveryResult) []puntuale.WebhookID {
	ids := engine.Column(all, func(d *puntuale.DeliveryResult) puntuale.WebhookID { return d.Webhook })
	slices.Sort(ids)
	return slices.Compact(ids)
}
