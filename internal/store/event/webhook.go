package event

import (
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

// write runs a transaction that changes the account's webhooks. do must lock the account first, so that such changes
// run one after another.
func (s Account) write(ctx context.Context, o *puntuale.Idempotency, do func(ctx context.Context, a engine.Querier) (any, error)) error {
	return s.db.Once(ctx, s.owner(), o, do)
}

// lock locks the account's row and returns its partner. Codes: not_found.
func (s Account) lock(ctx context.Context, a engine.Querier) (partner puntuale.PartnerID, err error) {
	text, missing := `select k.id from partner k where k.id = $1 for update of k`, puntuale.NoPartner
	if s.client != 0 {
		text, missing = `select k.partner_id from client k where k.id = $1 and k.deleted_at = 0 for no key update of k`, puntuale.NoClient
	}
	found, err := engine.QueryOne(ctx, a, text, []any{s.id()}, &partner)
	return partner, engine.ThereOr(found, err, missing)
}

// lockSession locks the session of a webhook, so that nobody deletes the session before this transaction commits. In
// the order of locks, the session comes before the account. Session 0 means all sessions and needs no lock.
func (s Account) lockSession(ctx context.Context, a engine.Querier, id puntuale.SessionID) error {
	if id == 0 {
		return nil
	}
	text := `select s.id from session s where s.client_id = $1 and s.id = $2 and s.deleted_at = 0 for share of s`
	if s.client == 0 {
		text = `select s.id from session s join client k on k.id = s.client_id where k.partner_id = $1 and s.id = $2 and s.deleted_at = 0 and k.deleted_at = 0 for share of s`
	}
	var n int64
	found, err := engine.QueryOne(ctx, a, text, []any{s.id(), id}, &n)
	return engine.ThereOr(found, err, puntuale.NoSession)
}

func (s Account) CreateWebhook(ctx context.Context, w puntuale.Webhook, secret []byte, now time.Time, o *puntuale.Idempotency) (id puntuale.WebhookID, err error) {
	err = s.write(ctx, o, func(ctx context.Context, a engine.Querier) (any, error) {
		if err := s.lockSession(ctx, a, w.Session); err != nil {
			return nil, err
		}
		partner, err := s.lock(ctx, a)
		if err != nil {
			return nil, err
		}
		var count int
		if _, err := engine.QueryOne(ctx, a, `select count(*) from webhook w`+s.ownerCondition(), []any{s.id()}, &count); err != nil {
			return nil, fmt.Errorf("count webhooks: %w", err)
		}
		if count >= puntuale.MaxWebhooks {
			return nil, tooMany()
		}
		n, err := engine.NextNumber(ctx, a, "webhook")
		if err != nil {
			return nil, err
		}
		id = puntuale.WebhookID(n)
		if _, err := a.Exec(ctx, `insert into webhook (id, partner_id, client_id, url, types, session_id, description, active, created_at, secret, secret_before)
 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`, id, partner, s.client, w.URL, int64(w.Types), w.Session, w.Description, engine.Bit(w.Active),
			engine.Micros(now), secret, []byte{}); err != nil {
			return nil, fmt.Errorf("insert a webhook: %w", err)
		}
		return id, s.subscribe(ctx, a)
	})
	return id, err
}

func (s Account) UpdateWebhook(ctx context.Context, id puntuale.WebhookID, p puntuale.WebhookPatch, _ time.Time) (w puntuale.Webhook, err error) {
	err = s.write(ctx, nil, func(ctx context.Context, a engine.Querier) (any, error) {
		if p.Session != nil {
			if err := s.lockSession(ctx, a, *p.Session); err != nil {
				return nil, err
			}
		}
		if _, err := s.lock(ctx, a); err != nil {
			return nil, err
		}
		w = puntuale.Webhook{}
		found, err := engine.QueryOne(ctx, a, `select `+webhookColumns+` from webhook w`+s.ownerCondition()+` and w.id = $2 for update of w`, []any{s.id(), id}, webhookFields(&w)...)
		if err := engine.ThereOr(found, err, puntuale.NoWebhook); err != nil {
			return nil, err
		}
		w = w.Apply(p)
		if _, err := a.Exec(ctx, `update webhook set url = $2, types = $3, session_id = $4, description = $5, active = $6, disabled_at = $7, reason = $8, failing_at = $9
 where id = $1`, id, w.URL, int64(w.Types), w.Session, w.Description, engine.Bit(w.Active), engine.Micros(w.Disabled), w.Reason.Stored(), engine.Micros(w.FailingFrom)); err != nil {
			return nil, fmt.Errorf("update a webhook: %w", err)
		}
		return nil, s.subscribe(ctx, a)
	})
	return w, err
}

// DeleteWebhook first deletes the webhook, and then its deliveries, one chunk in each transaction. If a later
// transaction fails, Maintain deletes the remaining deliveries.
func (s Account) DeleteWebhook(ctx context.Context, id puntuale.WebhookID) error {
	if err := s.write(ctx, nil, func(ctx context.Context, a engine.Querier) (any, error) {
		if _, err := s.lock(ctx, a); err != nil {
			return nil, err
		}
		n, err := a.Exec(ctx, `delete from webhook where id in (select w.id from webhook w`+s.ownerCondition()+` and w.id = $2)`, s.id(), id)
		if err := engine.ThereOr(n > 0, err, puntuale.NoWebhook); err != nil {
			return nil, err
		}
		return nil, s.subscribe(ctx, a)
	}); err != nil {
		return err
	}
	return s.forgetDeliveries(ctx, id)
}

// WebhookOwner returns the owner of a webhook; client 0: the partner itself. It is for the operator, who may act for every
// owner. Codes: not_found.
func (s *Events) WebhookOwner(ctx context.Context, id puntuale.WebhookID) (partner puntuale.PartnerID, client puntuale.ClientID, err error) {
	found, err := engine.QueryOne(ctx, s.db.CallReads, `select partner_id, client_id from webhook where id = $1`, []any{id}, &partner, &client)
	if err := engine.ThereOr(found, err, puntuale.NoWebhook); err != nil {
		return 0, 0, engine.PublicError(fmt.Errorf("read webhook %d: %w", id, err))
	}
	return partner, client, nil
}

func (s Account) RotateWebhook(ctx context.Context, id puntuale.WebhookID, next []byte, oldValidUntil time.Time) error {
	return s.write(ctx, nil, func(ctx context.Context, a engine.Querier) (any, error) {
		n, err := a.Exec(ctx, `update webhook set secret_before = secret, secret_until = $3, secret = $4 where id in (select w.id from webhook w`+s.ownerCondition()+` and w.id = $2)`,
			s.id(), id, engine.Micros(oldValidUntil), next)
		return nil, engine.ThereOr(n > 0, err, puntuale.NoWebhook)
	})
}

// subscribe updates the subscriptions in the streams, in the transaction that changed the account's webhooks.
func (s Account) subscribe(ctx context.Context, a engine.Querier) error {
	clients := `k.id = $1`
	if s.client == 0 {
		clients = `k.partner_id = $1`
	}
	more, err := subscribe(ctx, a, clients, s.id())
	if err != nil || !more {
		return err
	}
	return outbox.Announce(ctx, s.db.Dialect, a)
}

// subscription contains the types of events that the webhooks of a client and of its partner want: before this
// transaction, and now.
type subscription struct {
	client        puntuale.ClientID
	before, types puntuale.EventSet
}

// subscribe stores which events the webhooks want from clients. clients is a condition on the table client, named k.
// subscribe locks the streams before it reads the webhooks. So if two transactions change webhooks of one client, the
// later transaction sees both changes. more reports whether the webhooks now want a type of event that they did not
// want before this transaction.
func subscribe(ctx context.Context, a engine.Querier, clients string, id int64) (more bool, err error) {
	if _, err := a.Exec(ctx, `insert into event_stream (client_id) select k.id from client k where `+clients+` and k.deleted_at = 0
 and exists (select 1 from webhook w where w.partner_id = k.partner_id and w.client_id in (0, k.id))
 order by k.id on conflict (client_id) do nothing`, id); err != nil {
		return false, fmt.Errorf("begin streams of events: %w", err)
	}
	all, err := engine.QueryAll(ctx, a, `select e.client_id, e.wanted from event_stream e join client k on k.id = e.client_id where `+clients+`
 order by e.client_id for update of e`, []any{id}, func(r engine.Row, w *subscription) error { return r.Scan(&w.client, &w.before) })
	if err != nil || len(all) == 0 {
		return false, err
	}
	types := map[puntuale.ClientID]puntuale.EventSet{}
	if err := a.Query(ctx, `select k.id, w.types from client k join webhook w on w.partner_id = k.partner_id and w.client_id in (0, k.id)
 where `+clients+` and k.deleted_at = 0 and w.active = 1`, []any{id}, func(r engine.Row) error {
		var c puntuale.ClientID
		var t puntuale.EventSet
		err := r.Scan(&c, &t)
		types[c] |= t
		return err
	}); err != nil {
		return false, fmt.Errorf("read what webhooks want: %w", err)
	}
	for i := range all {
		w := &all[i]
		w.types = types[w.client]
		more = more || w.types&^w.before != 0
	}
	all = slices.DeleteFunc(all, func(w subscription) bool { return w.types == w.before })
	if len(all) == 0 {
		return false, nil
	}
	if _, err := a.Exec(ctx, `update event_stream set wanted = u.w from $u(c bigint, w bigint) where event_stream.client_id = u.c`, engine.Columns{
		engine.Column(all, func(w *subscription) int64 { return int64(w.client) }),
		engine.Column(all, func(w *subscription) int64 { return int64(w.types) }),
	}); err != nil {
		return false, fmt.Errorf("store what webhooks want: %w", err)
	}
	return more, nil
}
