package event

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

const (
	deliveryLook  = 10_000 // largest number of deliveries that are searched for one page, if the filter has a state
	maxDeliveries = 1000   // largest number of deliveries on one page
)

// deliveryKey is the key of a delivery among the deliveries of its webhook. It also defines their order.
type deliveryKey struct{ at, client, seq int64 }

const deliveryColumns = `d.at, d.client_id, d.seq, d.type, d.state, d.attempts, d.next_at, d.tried_at, d.status, d.took, d.answer`

func deliveryFields(d *puntuale.Delivery) []any {
	return []any{engine.ScanTime(&d.At), &d.Client, &d.Seq, &d.Type, &d.State, &d.Attempts, engine.ScanTime(&d.Next), engine.ScanTime(&d.Tried), &d.Status, durationColumn{&d.Took}, &d.Answer}
}

// durationColumn scans a column that contains a duration.
type durationColumn struct{ into *time.Duration }

func (s durationColumn) Scan(value any) error {
	n, ok := value.(int64)
	if !ok {
		return fmt.Errorf("a duration is kept as %T", value)
	}
	*s.into = time.Duration(n) * time.Microsecond
	return nil
}

// DeliveriesBefore finds a webhook's deliveries between two keys, newest first.
const DeliveriesBefore = `
select ` + deliveryColumns + ` from delivery d where d.webhook_id = $1 and (d.at, d.client_id, d.seq) < ($2::bigint, $3::bigint, $4::bigint)
 and (d.at, d.client_id, d.seq) >= ($5::bigint, $6::bigint, $7::bigint) and ($8::bigint < 0 or d.state = $8)
 order by d.webhook_id desc, d.at desc, d.client_id desc, d.seq desc limit $9`

// Deliveries searches at most 10,000 deliveries for one page if the filter has a state. So a page may be empty although
// a next page exists.
func (s Account) Deliveries(ctx context.Context, id puntuale.WebhookID, f puntuale.DeliveryFilter, p puntuale.Page) ([]puntuale.Delivery, string, error) {
	from, limit, err := readDeliveryCursor(p)
	if err != nil {
		return nil, "", err
	}
	if _, err := s.Webhook(ctx, id); err != nil {
		return nil, "", err
	}
	state, to, more := int64(-1), deliveryKey{at: -1}, false
	if f.State != nil {
		state = int64(*f.State)
		if to, more, err = s.lookBack(ctx, id, from); err != nil {
			return nil, "", err
		}
	}
	all, err := engine.QueryAll(ctx, s.lists(), DeliveriesBefore, []any{id, from.at, from.client, from.seq, to.at, to.client, to.seq, state, limit + 1}, func(r engine.Row, d *puntuale.Delivery) error {
		d.Webhook = id
		return r.Scan(deliveryFields(d)...)
	})
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list deliveries: %w", err))
	}
	next := ""
	switch {
	case len(all) > limit:
		all = all[:limit]
		last := all[limit-1]
		next = deliveryKey{engine.Micros(last.At), int64(last.Client), last.Seq}.cursor()
	case more:
		next = to.cursor()
	}
	sum := 0
	for i := range all {
		sum += len(all[i].Answer)
	}
	return all, next, engine.TakeMemory(ctx, len(all), sum)
}

// lookBack returns where the search for one page ends. It counts deliveryLook deliveries from the cursor, newest first, and
// returns the key of the last one. If there are fewer deliveries, more is false, and the search reads all of them.
func (s Account) lookBack(ctx context.Context, id puntuale.WebhookID, from deliveryKey) (to deliveryKey, more bool, err error) {
	to = deliveryKey{at: -1}
	more, err = engine.QueryOne(ctx, s.lists(), `select d.at, d.client_id, d.seq from delivery d where d.webhook_id = $1
 and (d.at, d.client_id, d.seq) < ($2::bigint, $3::bigint, $4::bigint) order by d.webhook_id desc, d.at desc, d.client_id desc, d.seq desc limit 1 offset $5`,
		[]any{id, from.at, from.client, from.seq, deliveryLook - 1}, &to.at, &to.client, &to.seq)
	if err != nil {
		return to, false, engine.PublicError(fmt.Errorf("list deliveries: %w", err))
	}
	return to, more, nil
}

// lists returns a Querier that reads lists under the account's list slot.
func (s Account) lists() engine.Querier { return s.db.Lists(s.owner()) }

func (k deliveryKey) cursor() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "delivery:%d:%d:%d", k.at, k.client, k.seq))
}

// readDeliveryCursor reads a cursor: the key of the last delivery on the previous page.
func readDeliveryCursor(p puntuale.Page) (k deliveryKey, limit int, err error) {
	if limit = min(p.Limit, maxDeliveries); limit <= 0 {
		limit = engine.DefaultLimit
	}
	if p.Cursor == "" {
		return deliveryKey{at: 1 << 62}, limit, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	parts := strings.Split(string(text), ":")
	if err != nil || len(parts) != 4 || parts[0] != "delivery" {
		return k, 0, engine.BadCursor(p)
	}
	for i, target := range []*int64{&k.at, &k.client, &k.seq} {
		if *target, err = strconv.ParseInt(parts[i+1], 10, 64); err != nil {
			return k, 0, engine.BadCursor(p)
		}
	}
	return k, limit, nil
}

func (s Account) Delivery(ctx context.Context, id puntuale.WebhookID, client puntuale.ClientID, seq int64) (d puntuale.Delivery, e puntuale.Event, err error) {
	d.Webhook = id
	found, err := engine.QueryOne(ctx, s.db.CallReads, `select e.client_id, e.seq, e.type, e.at, e.subject, e.detail, `+deliveryColumns+` from webhook w cross join outbox_event e
 cross join delivery d`+s.ownerCondition()+` and w.id = $2 and e.client_id = $3 and e.seq = $4 and d.webhook_id = w.id and d.at = e.at and d.client_id = e.client_id and d.seq = e.seq`,
		[]any{s.id(), id, client, seq}, append([]any{&e.Client, &e.Seq, &e.Type, engine.ScanTime(&e.At), &e.Subject, &e.Detail}, deliveryFields(&d)...)...)
	if err := engine.FoundOr(found, err, puntuale.NoWebhook); err != nil {
		return d, e, err
	}
	return d, e, engine.PublicError(s.fill(ctx, s.db.CallReads, []*puntuale.Event{&e}))
}

const (
	// ReplayRange locks a chunk of deliveries: those after a key and not later than the time $5.
	ReplayRange = `select d.at, d.client_id, d.seq, d.state from delivery d where d.webhook_id = $1 and (d.at, d.client_id, d.seq) > ($2::bigint, $3::bigint, $4::bigint)
 and d.at <= $5 order by d.webhook_id, d.at, d.client_id, d.seq limit $6 for update of d`

	replaySeqs = `select d.at, d.client_id, d.seq, d.state from $u(s bigint) cross join outbox_event e cross join delivery d
 where e.client_id = $2 and e.seq = u.s and e.at >= $3 and e.at <= $4 and d.webhook_id = $1 and d.at = e.at and d.client_id = e.client_id and d.seq = e.seq
 order by d.webhook_id, d.at, d.client_id, d.seq for update of d`

	waitAgain = `update delivery set state = 0, attempts = 0, next_at = $2::bigint from $u(t bigint, c bigint, s bigint)
 where delivery.webhook_id = $1 and delivery.at = u.t and delivery.client_id = u.c and delivery.seq = u.s`
)

// replayed is a delivery that a replay has locked and read.
type replayed struct {
	deliveryKey
	state puntuale.DeliveryState
}

func (s Account) Replay(ctx context.Context, id puntuale.WebhookID, r puntuale.Replay, now time.Time) (all int, err error) {
	if _, err := s.Webhook(ctx, id); err != nil {
		return 0, err
	}
	from, to := deliveryKey{at: engine.Micros(r.From) - 1, client: 1 << 62}, int64(1<<62)
	if !r.To.IsZero() {
		to = engine.Micros(r.To)
	}
	for more := true; more; {
		text, args := ReplayRange, []any{id, from.at, from.client, from.seq, to, engine.Chunk}
		if r.Seqs != nil {
			part := r.Seqs[:min(engine.Chunk, len(r.Seqs))]
			r.Seqs = r.Seqs[len(part):]
			text, args = replaySeqs, []any{id, r.Client, engine.Micros(r.From), to, engine.Columns{part}}
		}
		var n int
		if err := s.db.Write(ctx, s.owner(), func(ctx context.Context, a engine.Querier) error {
			found, err := engine.QueryAll(ctx, a, text, args, func(r engine.Row, d *replayed) error { return r.Scan(&d.at, &d.client, &d.seq, &d.state) })
			if err != nil {
				return fmt.Errorf("look for deliveries: %w", err)
			}
			if more = len(found) == engine.Chunk; r.Seqs != nil {
				more = len(r.Seqs) > 0
			}
			if len(found) > 0 {
				from = found[len(found)-1].deliveryKey
			}
			n, err = s.waitAgain(ctx, a, id, found, r.Failed, now)
			return err
		}); err != nil {
			return all, err
		}
		all += n
	}
	return all, nil
}

func (s Account) waitAgain(ctx context.Context, a engine.Querier, id puntuale.WebhookID, found []replayed, failed bool, now time.Time) (int, error) {
	var keys []deliveryKey
	for _, d := range found {
		if !failed || d.state == puntuale.DeliveryFailed {
			keys = append(keys, d.deliveryKey)
		}
	}
	if len(keys) == 0 {
		return 0, nil
	}
	n, err := a.Exec(ctx, waitAgain, id, engine.Micros(now), engine.Columns{
		engine.Column(keys, func(k *deliveryKey) int64 { return k.at }),
		engine.Column(keys, func(k *deliveryKey) int64 { return k.client }),
		engine.Column(keys, func(k *deliveryKey) int64 { return k.seq }),
	})
	if err != nil {
		return 0, fmt.Errorf("let deliveries wait again: %w", err)
	}
	return int(n), nil
}
