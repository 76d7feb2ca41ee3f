package queue

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"puntuale"
	"puntuale/internal/store/engine"
)

// DayOf names the row that counts a client's calls of one day. The transaction with that row's lock decides alone for
// the client.
type DayOf struct {
	Client puntuale.ClientID
	Day    puntuale.Date
}

func (d DayOf) Compare(o DayOf) int {
	return cmp.Or(cmp.Compare(d.Client, o.Client), cmp.Compare(d.Day.Int(), o.Day.Int()))
}

// Counted is what a client's calls of one statement came to: prev calls before them, used after.
type Counted struct {
	cap        sql.NullInt64
	Prev, Used int64
}

// Usage is the position of the client after its ith passed call, i from 1.
func (c Counted) Usage(i int64) puntuale.Usage {
	u := puntuale.Usage{Cap: puntuale.UncountedCap, Used: c.Prev + i}
	if c.cap.Valid {
		u.Cap = c.cap.Int64
	}
	return u
}

// For many calls at once: used - prev of each client's calls pass, call i of them answers prev + i. A client without a
// cap is counted and never refused. The batch is sorted, so rows are locked in order.
const CountCalls = `
insert into api_usage as g (client_id, day, cap, asked, prev, used)
select k.id, u.d, k.cap, u.n, 0, case when k.cap is null or k.cap > u.n then u.n else k.cap end
from $u(c bigint, d integer, n bigint) join client k on k.id = u.c where k.deleted_at = 0
on conflict (client_id, day) do update set prev = g.used, asked = excluded.asked, cap = excluded.cap,
 used = case when excluded.cap is null or g.used + excluded.asked <= excluded.cap then g.used + excluded.asked
  when g.used > excluded.cap then g.used else excluded.cap end
returning client_id, day, cap, prev, used`

// Count counts calls[i] calls of days[i], which are sorted and without repetition. Days of clients that are gone are
// missing in the answer. ask is an asker's each or later, and with later the answer comes as late.
func Count(ctx context.Context, ask func(context.Context, string, []any, func(engine.Row) error) error, days []DayOf, calls []int64) (map[DayOf]Counted, error) {
	result := make(map[DayOf]Counted, len(days))
	err := ask(ctx, CountCalls, []any{engine.Columns{
		engine.Column(days, func(d *DayOf) int64 { return int64(d.Client) }),
		engine.Column(days, func(d *DayOf) int64 { return int64(d.Day.Int()) }),
		calls,
	}}, func(r engine.Row) error {
		var client puntuale.ClientID
		var day int
		var c Counted
		if err := r.Scan(&client, &day, &c.cap, &c.Prev, &c.Used); err != nil {
			return err
		}
		result[DayOf{client, puntuale.DateFromInt(day)}] = c
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count calls: %w", err)
	}
	return result, nil
}

// Uncount takes back calls that were counted in this transaction and then refused.
func Uncount(ctx context.Context, a engine.Querier, days []DayOf, calls []int64) error {
	if len(days) == 0 {
		return nil
	}
	_, err := a.Exec(ctx, `update api_usage set used = used - u.n from $u(c bigint, d integer, n bigint)
 where api_usage.client_id = u.c and api_usage.day = u.d`, engine.Columns{
		engine.Column(days, func(d *DayOf) int64 { return int64(d.Client) }),
		engine.Column(days, func(d *DayOf) int64 { return int64(d.Day.Int()) }),
		calls,
	})
	if err != nil {
		return fmt.Errorf("take calls back: %w", err)
	}
	return nil
}

// CountAlways counts calls that are never refused, or none, and locks the client's day.
func CountAlways(ctx context.Context, a engine.Querier, d DayOf, n int64) (puntuale.Usage, error) {
	var c Counted
	found, err := engine.QueryOne(ctx, a, `
insert into api_usage as g (client_id, day, cap, asked, prev, used)
select k.id, $2::integer, k.cap, $3::bigint, 0, $3::bigint from client k where k.id = $1 and k.deleted_at = 0
on conflict (client_id, day) do update set prev = g.used, asked = excluded.asked, cap = excluded.cap,
 used = g.used + excluded.asked
returning cap, prev, used`, []any{d.Client, d.Day.Int(), n}, &c.cap, &c.Prev, &c.Used)
	switch {
	case err != nil:
		return puntuale.Usage{}, fmt.Errorf("count a call: %w", err)
	case !found:
		return puntuale.Usage{}, puntuale.NotFound(puntuale.NoClient)
	}
	return c.Usage(n), nil
}
