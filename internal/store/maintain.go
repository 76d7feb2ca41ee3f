package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// These limits say how long the store keeps old data, and how much one call of sweep does.
const (
	keepKeys   = 48 * time.Hour    // how long idempotency records are kept; the API promises callers half of this time
	keepDays   = 400               // for how many days a client's daily usage is kept
	keepIntent = 48 * time.Hour    // how long an attempt on a deleted session may have no outcome; after that, sweep ends it
	sweepBound = 10 * engine.Chunk // how many messages one call of sweep handles at most
)

// strayMessages finds open messages of deleted sessions. Some were left by a deletion that failed half way. Others have
// an attempt without an outcome. The statement searches the index of open messages for each session.
const (
	strayMessages = `
select m.client_id, m.id, m.intent from session s cross join message m
where s.deleted_at <> 0 and m.session_id = s.id and m.state = 0 and m.client_id + 0 = s.client_id and (m.intent = 0 or m.intent_at < $1) limit $2`
	strayMessagesLateral = `
select m.client_id, m.id, m.intent from session s cross join lateral (
 select * from message o where o.session_id = s.id and o.state = 0 and o.client_id + 0 = s.client_id and (o.intent = 0 or o.intent_at < $1) limit $2) m
where s.deleted_at <> 0 limit $2`

	// oldDays uses the primary key, because there is no index by day. The primary key sorts a client's rows by day, so
	// the oldest days come first.
	oldDays = `
select g.client_id, g.day from client c cross join api_usage g where g.client_id = c.id and g.day < $1 limit $2`
	oldDaysLateral = `
select g.client_id, g.day from client c cross join lateral (
 select * from api_usage o where o.client_id = c.id and o.day < $1 order by o.day limit $2) g limit $2`
)

func (s *Store) Maintain(ctx context.Context, now, blank time.Time) error {
	return errors.Join(s.sweep(ctx, now), s.purgeKeys(ctx, now), s.purgeDays(ctx, now), s.PurgeCommands(ctx, now), s.purgeUploads(ctx, now), s.purgeNetworkIDs(ctx, now), s.purgeHolds(ctx, now),
		s.PurgeSignIns(ctx, now), s.TellExpiries(ctx, now), s.Tally(ctx, now), s.Blank(ctx, now, blank), s.blankRecipients(ctx, blank), s.Replies.Maintain(ctx, now, blank), s.forgetLists(ctx, now), s.ForgetContacts(ctx), s.Events.Maintain(ctx, now), s.Rules.Maintain(ctx, now, blank), s.Feeds.Maintain(ctx, now), s.Notices.Maintain(ctx, now), s.Health.Maintain(ctx, now), s.Persons.Maintain(ctx, now), s.MaintainFiles(ctx, now, blank), s.MaintainStatements(ctx, now))
}

// sweep ends the open messages that deletions left behind.
func (s *Store) sweep(ctx context.Context, now time.Time) error {
	text := strayMessages
	if s.Dialect.Postgres {
		text = strayMessagesLateral
	}
	stray, err := engine.QueryAll(ctx, s.MaintenanceReads, text, []any{engine.Micros(now.Add(-keepIntent)), sweepBound}, func(rows engine.Row, m *runningMessage) error {
		return rows.Scan(&m.Client, &m.ID, &m.intent)
	})
	if err != nil {
		return engine.PublicError(fmt.Errorf("look for messages of deleted sessions: %w", err))
	}
	var free []puntuale.MessageRef
	var lost []puntuale.Settlement
	for _, m := range stray {
		if m.intent == 0 {
			free = append(free, m.MessageRef)
		} else {
			lost = append(lost, puntuale.Settlement{MessageRef: m.MessageRef, Intent: m.intent, State: puntuale.Failed, Reason: puntuale.Because(puntuale.ReasonUncertain)})
		}
	}
	if err := s.Settle(ctx, 0, now, lost); err != nil {
		return fmt.Errorf("give up messages of deleted sessions: %w", err)
	}
	if _, err := s.cancelAll(ctx, free, now); err != nil {
		return fmt.Errorf("cancel messages of deleted sessions: %w", err)
	}
	return nil
}

// ownedKey is the primary key of an idempotency record.
type ownedKey struct {
	owner      int64
	scope, key string
}

func (s *Store) purgeKeys(ctx context.Context, now time.Time) error {
	before := engine.Micros(now.Add(-keepKeys))
	return engine.Purge(ctx, s.DB, "idempotency records", `select client_id, scope, key from idempotency where at < $1 order by at limit $2`, before,
		func(rows engine.Row, k *ownedKey) error { return rows.Scan(&k.owner, &k.scope, &k.key) },
		func(a, b ownedKey) int {
			return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.scope, b.scope), cmp.Compare(a.key, b.key))
		},
		func(ctx context.Context, a engine.Querier, part []ownedKey) error {
			columns := engine.Columns{
				engine.Column(part, func(k *ownedKey) int64 { return k.owner }),
				engine.Column(part, func(k *ownedKey) string { return k.scope }),
				engine.Column(part, func(k *ownedKey) string { return k.key }),
			}
			if _, err := engine.QueryAll(ctx, a, `select i.client_id from $u(c bigint, s text, k text) join idempotency i
 on i.client_id = u.c and i.scope = u.s and i.key = u.k order by i.client_id, i.scope, i.key for update of i`, []any{columns}, engine.ScanOne[int64]); err != nil {
				return err
			}
			// Another call may have taken the key after the key was read. The condition on the column at excludes such
			// a key.
			_, err := a.Exec(ctx, `delete from idempotency where at < $1 and (client_id, scope, key) in
 (select u.c, u.s, u.k from $u(c bigint, s text, k text))`, before, columns)
			return err
		})
}

func (s *Store) purgeDays(ctx context.Context, now time.Time) error {
	text := oldDays
	if s.Dialect.Postgres {
		text = oldDaysLateral
	}
	return engine.Purge(ctx, s.DB, "counted days", text, int64(puntuale.DateOf(now.UTC()).AddDays(-keepDays).Int()),
		func(rows engine.Row, d *queue.UsageDay) error {
			var day int
			err := rows.Scan(&d.Client, &day)
			d.Day = puntuale.DateFromInt(day)
			return err
		}, queue.UsageDay.Compare,
		func(ctx context.Context, a engine.Querier, part []queue.UsageDay) error {
			columns := engine.Columns{
				engine.Column(part, func(d *queue.UsageDay) int64 { return int64(d.Client) }),
				engine.Column(part, func(d *queue.UsageDay) int64 { return int64(d.Day.Int()) }),
			}
			if _, err := engine.QueryAll(ctx, a, `select g.client_id from $u(c bigint, d integer) join api_usage g
 on g.client_id = u.c and g.day = u.d order by g.client_id, g.day for update of g`, []any{columns}, engine.ScanOne[int64]); err != nil {
				return err
			}
			_, err := a.Exec(ctx, `delete from api_usage where (client_id, day) in (select u.c, u.d from $u(c bigint, d integer))`, columns)
			return err
		})
}
