package event

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

const (
	sqliteEnds   = 100 // how many results of attempts one transaction stores on SQLite
	postgresEnds = 500

	successEvery = time.Second // a further success within this time after a stored success does not write the webhook's row
)

// EndAttempts locks in the package's order: first the webhooks, then the streams of clients whose webhooks it disables,
// then the deliveries.
func (s *Events) EndAttempts(ctx context.Context, now time.Time, all []puntuale.DeliveryResult) error {
	size := sqliteEnds
	if s.db.Dialect.Postgres {
		size = postgresEnds
	}
	present := s.db.ClockAt(now)
	for part := range slices.Chunk(all, size) {
		if err := s.db.EventWriter.Do(ctx, engine.Single(s.end, func(ctx context.Context, a engine.Querier) error {
			b := &endedAttempts{s: s, a: a, now: present(), all: part}
			return b.run(ctx)
		}), false); err != nil {
			return fmt.Errorf("record deliveries: %w", err)
		}
	}
	return nil
}

// endedAttempts is the work of one transaction of EndAttempts.
type endedAttempts struct {
	s   *Events
	a   engine.Querier
	now time.Time
	all []puntuale.DeliveryResult

	kept map[int]bool // indexes of the results whose answers may be stored
}

// webhookState is the state of a webhook whose attempts ended.
type webhookState struct {
	puntuale.Webhook
	partner      puntuale.PartnerID
	receiverGone bool
	changed      bool
}

func (b *endedAttempts) run(ctx context.Context) error {
	webhooks, err := b.lock(ctx)
	if err != nil {
		return err
	}
	if err := b.judge(ctx, webhooks); err != nil {
		return err
	}
	order, err := b.lockDeliveries(ctx)
	if err != nil || len(order) == 0 {
		return err
	}
	if err := b.forgotten(ctx, order); err != nil {
		return err
	}
	return b.store(ctx, order)
}

func (b *endedAttempts) lock(ctx context.Context) ([]webhookState, error) {
	ids := sortedWebhooks(b.all)
	all, err := engine.QueryAll(ctx, b.a, `select w.id, w.client_id, w.partner_id, w.active, w.succeeded_at, w.failing_at from $u(i bigint) join webhook w on w.id = u.i
 order by w.id for no key update of w`, []any{engine.Columns{engine.Column(ids, func(id *puntuale.WebhookID) int64 { return int64(*id) })}}, func(r engine.Row, w *webhookState) error {
		return r.Scan(&w.ID, &w.Client, &w.partner, engine.ScanBool(&w.Active), engine.ScanTime(&w.LastSuccess), engine.ScanTime(&w.FailingFrom))
	})
	if err != nil {
		return nil, fmt.Errorf("lock webhooks: %w", err)
	}
	return all, nil
}

// judge stores each webhook's last success and the start of its failures. It disables webhooks for which hopeless
// returns a reason.
func (b *endedAttempts) judge(ctx context.Context, webhooks []webhookState) error {
	byTime := slices.Clone(b.all)
	engine.SortStable(byTime, func(x, y puntuale.DeliveryResult) int { return x.At.Compare(y.At) })
	for i := range webhooks {
		w := &webhooks[i]
		for _, d := range byTime {
			if d.Webhook == w.ID {
				w.took(d)
			}
		}
		if reason := w.hopeless(b.now); reason != "" {
			if err := b.disable(ctx, w, puntuale.Because(reason)); err != nil {
				return err
			}
		}
	}
	webhooks = slices.DeleteFunc(webhooks, func(w webhookState) bool { return !w.changed })
	if len(webhooks) == 0 {
		return nil
	}
	if _, err := b.a.Exec(ctx, `update webhook set succeeded_at = u.s, failing_at = u.f from $u(i bigint, s bigint, f bigint) where webhook.id = u.i`, engine.Columns{
		engine.Column(webhooks, func(w *webhookState) int64 { return int64(w.ID) }),
		engine.Column(webhooks, func(w *webhookState) int64 { return engine.Micros(w.LastSuccess) }),
		engine.Column(webhooks, func(w *webhookState) int64 { return engine.Micros(w.FailingFrom) }),
	}); err != nil {
		return fmt.Errorf("note how webhooks do: %w", err)
	}
	return nil
}

// took updates the webhook's state with the result of one attempt.
func (w *webhookState) took(d puntuale.DeliveryResult) {
	w.receiverGone = d.ReceiverGone
	switch {
	case d.NoCall:
	case d.State == puntuale.DeliveryDone:
		w.changed = w.changed || !w.FailingFrom.IsZero() || d.At.Sub(w.LastSuccess) >= successEvery
		w.FailingFrom = time.Time{}
		if d.At.After(w.LastSuccess) && w.changed {
			w.LastSuccess = d.At
		}
	case w.FailingFrom.IsZero():
		w.FailingFrom, w.changed = d.At, true
	}
}

// hopeless returns the reason to disable the webhook, or "" if it stays active.
func (w *webhookState) hopeless(now time.Time) puntuale.ReasonCode {
	switch {
	case !w.Active:
		return ""
	case w.receiverGone:
		return puntuale.ReasonWebhookGone
	case !w.FailingFrom.IsZero() && now.Sub(w.FailingFrom) >= puntuale.DisableWebhookAfter:
		return puntuale.ReasonWebhookFailing
	}
	return ""
}

// disable disables a webhook, and writes an event for the client's other webhooks and its feed. A partner's webhook
// belongs to no client, so it has no such event.
func (b *endedAttempts) disable(ctx context.Context, w *webhookState, reason puntuale.Reason) error {
	if _, err := b.a.Exec(ctx, `update webhook set active = 0, disabled_at = $2, reason = $3 where id = $1`, w.ID, engine.Micros(b.now), reason.Stored()); err != nil {
		return fmt.Errorf("disable a webhook: %w", err)
	}
	account := Account{Events: b.s, client: w.Client, partner: w.partner}
	if err := account.subscribe(ctx, b.a); err != nil {
		return err
	}
	detail, err := engine.ToJSON(map[string]string{"reason": reason.Stored()})
	if err != nil {
		return err
	}
	return outbox.Tell(ctx, b.a, b.now, outbox.Fact{Client: w.Client, Type: puntuale.EventWebhookDisabled, Subject: int64(w.ID), Detail: detail})
}

// endedDelivery is a delivery whose attempt ended, but whose row still says that it waits. n is the index of its
// result.
type endedDelivery struct {
	deliveryKey
	webhook int64
	n       int
	kind    puntuale.EventType
	subject int64
}

// LockAttempts locks waiting deliveries in the order of their keys.
const LockAttempts = `
select d.webhook_id, d.at, d.client_id, d.seq, u.n, e.type, e.subject from $u(n bigint, w bigint, c bigint, s bigint) cross join outbox_event e cross join delivery d
where e.client_id = u.c and e.seq = u.s and d.webhook_id = u.w and d.at = e.at and d.client_id = e.client_id and d.seq = e.seq and d.state = 0
order by d.webhook_id, d.at, d.client_id, d.seq for update of d`

func (b *endedAttempts) lockDeliveries(ctx context.Context) ([]endedDelivery, error) {
	places := make([]int64, len(b.all))
	for i := range places {
		places[i] = int64(i)
	}
	type R = *puntuale.DeliveryResult
	order, err := engine.QueryAll(ctx, b.a, LockAttempts, []any{engine.Columns{
		places,
		engine.Column(b.all, func(d R) int64 { return int64(d.Webhook) }),
		engine.Column(b.all, func(d R) int64 { return int64(d.Client) }),
		engine.Column(b.all, func(d R) int64 { return d.Seq }),
	}}, func(r engine.Row, d *endedDelivery) error {
		return r.Scan(&d.webhook, &d.at, &d.client, &d.seq, &d.n, &d.kind, &d.subject)
	})
	if err != nil {
		return nil, fmt.Errorf("lock deliveries: %w", err)
	}
	engine.Sort(order, func(x, y endedDelivery) int { return cmp.Compare(x.n, y.n) })
	return order, nil
}

// notErased contains statements that find the subjects whose data were not erased or blanked after the receiver got the
// event.
var notErased = []struct {
	text  string
	types puntuale.EventSet
}{
	{`select u.n from $u(n bigint, c bigint, s bigint) cross join message m cross join run r where m.client_id = u.c and m.id = u.s and m.phone <> ''
 and r.client_id = m.client_id and r.id = m.run_id and r.blanked_at = 0`, messageEvents},
	{`select u.n from $u(n bigint, c bigint, s bigint) cross join reply y where y.client_id = u.c and y.id = u.s and y.blanked_at = 0`, replyEvents},
	{`select u.n from $u(n bigint, c bigint, s bigint) cross join consent c where c.client_id = u.c and c.id = u.s and c.phone not like '` + puntuale.MarkPrefix + `%'`,
		puntuale.EventsOf(puntuale.EventConsentChanged)},
	{`select u.n from $u(n bigint, c bigint, s bigint) cross join booking b where b.client_id = u.c and b.id = u.s and b.erased_at = 0`, bookingEvents},
	{`select u.n from $u(n bigint, c bigint, s bigint) cross join outbox_event e where e.client_id = u.c and e.subject = u.s and u.s <> 0`, blacklistEvents}, // an erasure empties the subject
}

// forgotten finds out which answers may be stored. An answer may repeat what the event said about a person. So it must
// not be stored after an erasure of that person. This transaction has locked the deliveries. An erasure locks the same
// deliveries (package outbox), so it cannot commit in between.
func (b *endedAttempts) forgotten(ctx context.Context, order []endedDelivery) error {
	b.kept = map[int]bool{}
	for _, s := range notErased {
		var places, clients, subjects []int64
		for _, d := range order {
			r := &b.all[d.n]
			switch {
			case r.Answer == "":
			case s.types.Has(d.kind) && r.Status != 0:
				places, clients, subjects = append(places, int64(d.n)), append(clients, d.client), append(subjects, d.subject)
			case r.Status == 0 || !personal.Has(d.kind):
				b.kept[d.n] = true
			}
		}
		if len(places) == 0 {
			continue
		}
		if err := b.a.Query(ctx, s.text, []any{engine.Columns{places, clients, subjects}}, func(r engine.Row) error {
			var n int
			err := r.Scan(&n)
			b.kept[n] = true
			return err
		}); err != nil {
			return fmt.Errorf("look for what was forgotten: %w", err)
		}
	}
	return nil
}

// personal contains the types of events that are about a person.
var personal = messageEvents | replyEvents | bookingEvents | blacklistEvents | puntuale.EventsOf(puntuale.EventConsentChanged, puntuale.EventAutomationFired)

func (b *endedAttempts) store(ctx context.Context, order []endedDelivery) error {
	type D = *endedDelivery
	number := func(f func(r *puntuale.DeliveryResult) int64) []int64 {
		return engine.Column(order, func(d D) int64 { return f(&b.all[d.n]) })
	}
	if _, err := b.a.Exec(ctx, `update delivery set state = u.e, attempts = delivery.attempts + 1, next_at = u.x, tried_at = u.m, status = u.h, took = u.d, answer = u.b
 from $u(w bigint, t bigint, c bigint, s bigint, e smallint, x bigint, m bigint, h integer, d bigint, b text)
 where delivery.webhook_id = u.w and delivery.at = u.t and delivery.client_id = u.c and delivery.seq = u.s and delivery.state = 0`, engine.Columns{
		engine.Column(order, func(d D) int64 { return d.webhook }),
		engine.Column(order, func(d D) int64 { return d.at }),
		engine.Column(order, func(d D) int64 { return d.client }),
		engine.Column(order, func(d D) int64 { return d.seq }),
		number(func(r *puntuale.DeliveryResult) int64 { return int64(r.State) }),
		number(func(r *puntuale.DeliveryResult) int64 { return engine.Micros(r.Next) }),
		number(func(r *puntuale.DeliveryResult) int64 { return engine.Micros(r.At) }),
		number(func(r *puntuale.DeliveryResult) int64 { return int64(r.Status) }),
		number(func(r *puntuale.DeliveryResult) int64 { return r.Took.Microseconds() }),
		engine.Column(order, func(d D) string {
			if !b.kept[d.n] {
				return ""
			}
			return puntuale.StorableAnswer(b.all[d.n].Answer)
		}),
	}); err != nil {
		return fmt.Errorf("store attempts: %w", err)
	}
	return nil
}
