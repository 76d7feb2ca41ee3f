package statement

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/price"
	"puntuale/internal/store/engine"
)

// Statements count messages, so a message must keep what counts until the last statement has counted it. The months from the
// last closed one on are needed: those after it are not closed, and its own corrections are counted with the next one. A month
// that no server closed, between closed ones, is needed for ever, because it is counted whenever somebody asks. One before the first
// closed one is needed for beforeFirst: where statements came later than the messages there are many, and they must leave some time.

// beforeFirst is how many months before the present one are needed although the client's first closed month comes after them.
const beforeFirst = 12

// NeededMonths are the times whose outcomes statements of a client still count, in µs.
type NeededMonths struct {
	From   int64 // all outcomes from then on
	missed []period
}

// period is the time from from to before to.
type period struct{ from, to int64 }

// Missed reports whether a month that no server closed has a part between two times, both inclusive.
func (n NeededMonths) Missed(from, to int64) bool {
	for _, p := range n.missed {
		if from < p.to && to >= p.from {
			return true
		}
	}
	return false
}

// Has reports whether statements still count an outcome of this time.
func (n NeededMonths) Has(at int64) bool { return at >= n.From || n.Missed(at, at) }

// First returns the first of the times.
func (n NeededMonths) First() int64 {
	if len(n.missed) > 0 {
		return n.missed[0].from
	}
	return n.From
}

// zones is more than any zone differs from UTC. Months are read as if they began so much earlier and ended so much later, because
// clients move to other zones.
const zones = 14 * time.Hour

func beginOf(month puntuale.Month) int64 { return engine.Micros(month.Begin(time.UTC).Add(-zones)) }

// NeededMonthsOf returns what statements of clients still need.
func NeededMonthsOf(ctx context.Context, a engine.Querier, clients []puntuale.ClientID, now time.Time) (map[puntuale.ClientID]NeededMonths, error) {
	type row struct {
		client  puntuale.ClientID
		created time.Time
		deleted bool
		month   puntuale.Month // 0: the client has no closed month
	}
	closed, err := engine.QueryAll(ctx, a, `select k.id, k.created_at, k.deleted_at <> 0, coalesce(t.month, 0)
 from $u(c bigint) join client k on k.id = u.c left join statement t on t.client_id = k.id and t.frozen_at <> 0 order by k.id, t.month`,
		[]any{engine.Columns{engine.Column(clients, func(id *puntuale.ClientID) int64 { return int64(*id) })}},
		func(r engine.Row, x *row) error {
			return r.Scan(&x.client, engine.ScanTime(&x.created), &x.deleted, &x.month)
		})
	if err != nil {
		return nil, fmt.Errorf("look for closed months: %w", err)
	}
	all := make(map[puntuale.ClientID]NeededMonths, len(clients))
	// The next month is closed in its first days.
	next, oldest := puntuale.MonthOf(now.UTC().AddDate(0, 0, -4)).Add(-1), puntuale.MonthOf(now.UTC()).Add(-beforeFirst)
	for i, x := range closed {
		n, open := all[x.client], max(puntuale.MonthOf(x.created.UTC()), oldest) // the months from open to x.month are not closed
		if i > 0 && closed[i-1].client == x.client {
			open = closed[i-1].month.Add(1)
		}
		if open < x.month {
			n.missed = append(n.missed, period{beginOf(open), beginOf(x.month) + 2*zones.Microseconds()})
		}
		switch {
		case x.month == 0:
			n.From = beginOf(min(open, next))
		case x.deleted: // its last month has no corrections
			n.From = beginOf(next)
		default:
			n.From = beginOf(min(x.month, next))
		}
		all[x.client] = n
	}
	return all, nil
}

// KeepKinds keeps what messages of a client count as, before their contents are removed, and if they are erased also their numbers:
// the category of the template, and the country. Neither says anything about a person. It keeps them for messages that statements
// still count, as far as the network did not tell them itself when it told what it bills. Locks: receipts.
func (n NeededMonths) KeepKinds(ctx context.Context, a engine.Querier, client puntuale.ClientID, messages []puntuale.MessageRef, erased bool) error {
	all, err := (ClientStatements{client: client}).readBilled(ctx, a, billedOf+` and m.outcome <> 0 and m.done_at >= $2 and s.sandbox = 0 order by m.id`,
		[]any{client, n.First(), engine.Columns{engine.Column(messages, func(m *puntuale.MessageRef) int64 { return int64(m.ID) })}})
	if err != nil {
		return fmt.Errorf("read what messages count as: %w", err)
	}
	var ids []int64
	var categories, countries []string
	for _, m := range all {
		category, country := m.Template, ""
		if !m.ChargedAt.IsZero() {
			category = ""
		}
		if erased && m.Charge.Country == "" {
			country = price.Country(m.Phone)
		}
		if n.Has(engine.Micros(m.Done)) && (category != "" || country != "") {
			ids, categories, countries = append(ids, int64(m.ID)), append(categories, category), append(countries, country)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if _, err := a.Exec(ctx, `insert into receipt as g (client_id, message_id, category, country)
 select $1::bigint, u.i, u.k, u.o from $u(i bigint, k text, o text) where true
 on conflict (client_id, message_id) do update set category = case when excluded.category = '' or g.charged_at <> 0 then g.category else excluded.category end,
 country = case when g.country = '' then excluded.country else g.country end`,
		client, engine.Columns{ids, categories, countries}); err != nil {
		return fmt.Errorf("keep what messages count as: %w", err)
	}
	return nil
}
