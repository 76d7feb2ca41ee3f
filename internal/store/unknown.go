package store

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// amongUncertain is a condition on the reason of uncertain outcomes. It includes the reason that an earlier version
// wrote.
const amongUncertain = `in ('` + puntuale.StoredUncertain + `', '` + puntuale.FormerUncertain + `')`

// unknownStill selects the messages about which a person must still decide. If a receipt decided the outcome of a
// message, the condition excludes the message. It also excludes messages of erased persons, because these messages
// cannot be sent again.
const unknownStill = ` and (m.state = 0 and m.intent > 0 or m.state = 2 and m.reason ` + amongUncertain + `) and m.phone <> ''`

func (t tenant) Restored(ctx context.Context) (puntuale.RestoreResult, error) {
	var r puntuale.RestoreResult
	_, err := engine.QueryOne(ctx, t.s.CallReads, `select k.held_at, coalesce(x.since, 0), coalesce(x.at, 0), coalesce(x.n, 0) from client k left join (
 select max(x.since) as since, max(x.at) as at, count(*) as n from unknown_message x join message m on m.client_id = x.client_id and m.id = x.message_id
 where x.client_id = $1`+unknownStill+`) x on true where k.id = $1`, []any{t.id}, engine.ScanTime(&r.Held), engine.ScanTime(&r.Since), engine.ScanTime(&r.At), &r.Unknown)
	if err != nil {
		return r, engine.PublicError(fmt.Errorf("look for what a restore left: %w", err))
	}
	return r, nil
}

// UnknownMessages lists the messages that may have left before the restore, sorted by id. They are PENDING, or
// FAILED because nobody decided in time. Codes: invalid (the cursor).
func (t tenant) UnknownMessages(ctx context.Context, p puntuale.Page) ([]puntuale.MessageDetail, string, error) {
	last, limit, err := engine.ReadCursor(p, "unknown")
	if err != nil {
		return nil, "", err
	}
	var d details
	if err := t.lists().Query(ctx, `select `+detailColumns+` from unknown_message x join message m on m.client_id = x.client_id and m.id = x.message_id
 join run r on r.client_id = m.client_id and r.id = m.run_id`+detailReceipts+`
 where x.client_id = $1 and x.message_id > $2`+unknownStill+` order by x.message_id limit $3`, []any{t.id, last, limit + 1}, d.scan); err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list unknown messages: %w", err))
	}
	fit, bytes := d.fit()
	if err := engine.TakeMemory(ctx, min(limit, fit), bytes); err != nil {
		return nil, "", err
	}
	all, next := engine.CutPage(d.all, min(limit, fit), "unknown", func(d *puntuale.MessageDetail) int64 { return int64(d.ID) })
	return all, next, t.fill(ctx, all)
}

// unknownRow is a message in the list of unknown messages. The caller has locked its row.
type unknownRow struct {
	puntuale.MessageRef
	intent int64
	state  puntuale.State
}

// lockUnknown locks those of the given messages about which a person must still decide, and returns them. refs must be
// sorted.
func lockUnknown(ctx context.Context, a engine.Querier, refs []puntuale.MessageRef) ([]unknownRow, error) {
	rows, err := engine.QueryAll(ctx, a, `select m.client_id, m.id, m.intent, m.state from $u(c bigint, i bigint)
 join unknown_message x on x.client_id = u.c and x.message_id = u.i join message m on m.client_id = x.client_id and m.id = x.message_id
 where true`+unknownStill+` order by m.client_id, m.id for update of m`, []any{queue.RefColumns(refs)}, func(rows engine.Row, m *unknownRow) error {
		return rows.Scan(&m.Client, &m.ID, &m.intent, &m.state)
	})
	if err != nil {
		return nil, fmt.Errorf("look for unknown messages: %w", err)
	}
	return rows, nil
}

// decide makes unknown messages FAILED if they are still PENDING, and removes them from the list.
func decide(ctx context.Context, a engine.Querier, now time.Time, rows []unknownRow) error {
	var open []puntuale.Settlement
	for _, m := range rows {
		if m.state == puntuale.Pending {
			open = append(open, puntuale.Settlement{MessageRef: m.MessageRef, Intent: m.intent, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonUncertain)})
		}
	}
	if err := queue.Settle(ctx, a, 0, now, open); err != nil {
		return err
	}
	refs := engine.Column(rows, func(m *unknownRow) puntuale.MessageRef { return m.MessageRef })
	if _, err := a.Exec(ctx, `delete from unknown_message where (client_id, message_id) in (select u.c, u.i from $u(c bigint, i bigint))`,
		queue.RefColumns(refs)); err != nil {
		return fmt.Errorf("take messages out of the list: %w", err)
	}
	return nil
}

// CloseUnknown removes at most 1,000 messages from the list of UnknownMessages. The messages become or stay FAILED
// with an uncertain outcome. The call counts once, and the cap never refuses it. The result has the ids that were
// in the list.
func (t tenant) CloseUnknown(ctx context.Context, ids []puntuale.MessageID, day puntuale.Date, now time.Time) (closed []puntuale.MessageID, err error) {
	present := t.s.ClockAt(now)
	err = t.writeTimestamped(ctx, func(ctx context.Context, a engine.Querier) error {
		if _, err := queue.CountAlways(ctx, a, queue.UsageDay{Client: t.id, Day: day}, t.calls()); err != nil {
			return err
		}
		rows, err := lockUnknown(ctx, a, sortedRefs(t.id, ids))
		if err != nil {
			return err
		}
		closed = engine.Column(rows, func(m *unknownRow) puntuale.MessageID { return m.ID })
		return decide(ctx, a, present(), rows)
	})
	return closed, err
}

// Release ends the hold, so that the client's messages leave again. The call counts once, and the cap never
// refuses it.
func (t tenant) Release(ctx context.Context, day puntuale.Date) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if _, err := queue.CountAlways(ctx, a, queue.UsageDay{Client: t.id, Day: day}, t.calls()); err != nil {
			return err
		}
		_, err := a.Exec(ctx, `update client set held_at = 0 where id = $1`, t.id)
		return err
	})
}

// RestoredClients returns the clients for which a person must still do something after a restore: release the client, or
// decide about unknown messages.
func (s *Store) RestoredClients(ctx context.Context) ([]puntuale.RestoredClient, error) {
	all, err := engine.QueryAll(ctx, s.ListReads, `select k.id, k.partner_id, k.name, k.held_at, coalesce(x.since, 0), coalesce(x.at, 0), coalesce(x.n, 0) from client k left join (
 select x.client_id, max(x.since) as since, max(x.at) as at, count(*) as n from unknown_message x join message m on m.client_id = x.client_id and m.id = x.message_id
 where true`+unknownStill+` group by x.client_id) x on x.client_id = k.id
 where k.deleted_at = 0 and (k.held_at <> 0 or x.n > 0) order by k.id`, nil, func(rows engine.Row, c *puntuale.RestoredClient) error {
		return rows.Scan(&c.Client, &c.Partner, &c.Name, engine.ScanTime(&c.Held), engine.ScanTime(&c.Since), engine.ScanTime(&c.At), &c.Unknown)
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for what a restore left: %w", err))
	}
	return all, nil
}
