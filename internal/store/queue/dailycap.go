package queue

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

// UsageDay is the primary key of the row that counts a client's calls on one day. While a transaction locks this row,
// no other transaction can accept or refuse calls of this client and day.
type UsageDay struct {
	Client puntuale.ClientID
	Day    puntuale.Date
}

func (d UsageDay) Compare(o UsageDay) int {
	return cmp.Or(cmp.Compare(d.Client, o.Client), cmp.Compare(d.Day.Int(), o.Day.Int()))
}

// UsageCount contains the number of a client's calls on one day: before a statement counted further calls (Prev), and
// after it (Used).
type UsageCount struct {
	cap        sql.NullInt64
	Prev, Used int64
	reported   int8 // bits of the column api_usage.told
}

// Usage returns the client's usage after accepted call number i of this statement. The first accepted call has number 1.
func (c UsageCount) Usage(i int64) puntuale.Usage {
	u := puntuale.Usage{Cap: puntuale.UncountedCap, Used: c.Prev + i}
	if c.cap.Valid {
		u.Cap = c.cap.Int64
	}
	return u
}

// CountCalls counts the calls of many clients with one statement. It accepts as many calls of a client as the result of
// used - prev (two columns of its result). Accepted call number i gets the answer prev + i. Calls of a client without a
// cap are counted and always accepted. The batch is sorted, so rows are locked in order.
const CountCalls = `
insert into api_usage as g (client_id, day, cap, asked, prev, used)
select k.id, u.d, k.cap, u.n, 0, case when k.cap is null or k.cap > u.n then u.n else k.cap end
from $u(c bigint, d integer, n bigint) join client k on k.id = u.c where k.deleted_at = 0
on conflict (client_id, day) do update set prev = g.used, asked = excluded.asked, cap = excluded.cap,
 used = case when excluded.cap is null or g.used + excluded.asked <= excluded.cap then g.used + excluded.asked
  when g.used > excluded.cap then g.used else excluded.cap end
returning client_id, day, cap, prev, used, told`

// Count counts calls[i] calls on days[i]. days must be sorted and contain each day once. The result leaves out deleted
// clients. ask is the method Query or Queue of a querier. With Queue, the result is filled before the next statement
// returns.
func Count(ctx context.Context, ask func(context.Context, string, []any, func(engine.Row) error) error, days []UsageDay, calls []int64) (map[UsageDay]UsageCount, error) {
	result := make(map[UsageDay]UsageCount, len(days))
	err := ask(ctx, CountCalls, []any{engine.Columns{
		engine.Column(days, func(d *UsageDay) int64 { return int64(d.Client) }),
		engine.Column(days, func(d *UsageDay) int64 { return int64(d.Day.Int()) }),
		calls,
	}}, func(r engine.Row) error {
		var client puntuale.ClientID
		var day int
		var c UsageCount
		if err := r.Scan(&client, &day, &c.cap, &c.Prev, &c.Used, &c.reported); err != nil {
			return err
		}
		result[UsageDay{client, puntuale.DateFromInt(day)}] = c
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count calls: %w", err)
	}
	return result, nil
}

// AddBytes adds n to the bytes that the client's calls have stored on the day. If the sum would exceed most, it adds
// nothing and returns false. It returns false for a deleted client, too.
func AddBytes(ctx context.Context, a engine.Querier, d UsageDay, n, most int64) (added bool, err error) {
	var sum int64
	added, err = engine.QueryOne(ctx, a, `
insert into api_usage as g (client_id, day, asked, prev, used, bytes)
select k.id, $2::integer, 0, 0, 0, $3::bigint from client k where k.id = $1 and k.deleted_at = 0 and $3::bigint <= $4::bigint
on conflict (client_id, day) do update set bytes = g.bytes + excluded.bytes where g.bytes + excluded.bytes <= $4::bigint
returning bytes`, []any{d.Client, d.Day.Int(), n, most}, &sum)
	if err != nil {
		return false, fmt.Errorf("count stored bytes: %w", err)
	}
	return added, nil
}

// Uncount subtracts calls that this transaction counted and then refused.
func Uncount(ctx context.Context, a engine.Querier, days []UsageDay, calls []int64) error {
	if len(days) == 0 {
		return nil
	}
	_, err := a.Exec(ctx, `update api_usage set used = used - u.n from $u(c bigint, d integer, n bigint)
 where api_usage.client_id = u.c and api_usage.day = u.d`, engine.Columns{
		engine.Column(days, func(d *UsageDay) int64 { return int64(d.Client) }),
		engine.Column(days, func(d *UsageDay) int64 { return int64(d.Day.Int()) }),
		calls,
	})
	if err != nil {
		return fmt.Errorf("take calls back: %w", err)
	}
	return nil
}

// CountAlways counts n calls that are never refused, and locks the client's row of the day. n may be 0.
func CountAlways(ctx context.Context, a engine.Querier, d UsageDay, n int64) (puntuale.Usage, error) {
	var c UsageCount
	found, err := engine.QueryOne(ctx, a, `
insert into api_usage as g (client_id, day, cap, asked, prev, used)
select k.id, $2::integer, k.cap, $3::bigint, 0, $3::bigint from client k where k.id = $1 and k.deleted_at = 0
on conflict (client_id, day) do update set prev = g.used, asked = excluded.asked, cap = excluded.cap,
 used = g.used + excluded.asked
returning cap, prev, used, told`, []any{d.Client, d.Day.Int(), n}, &c.cap, &c.Prev, &c.Used, &c.reported)
	switch {
	case err != nil:
		return puntuale.Usage{}, fmt.Errorf("count a call: %w", err)
	case !found:
		return puntuale.Usage{}, puntuale.NotFound(puntuale.NoClient)
	}
	return c.Usage(n), c.Report(ctx, a, d, c.Used)
}

// Bits of the columns api_usage.told and client.credits_told. A set bit means that the event was written.
const (
	toldSoon = 1 // 80 percent of the cap are used, or credits are low
	toldOver = 2 // the whole cap or all credits are used
)

// Report writes the events of a client's daily cap. It writes one event when the day's calls reach 80 percent of the
// cap, and another event when the calls reach the cap. Each event is written once a day. used is the number of calls
// that count today. The caller's transaction has locked the day's row.
func (c UsageCount) Report(ctx context.Context, a engine.Querier, d UsageDay, used int64) error {
	if !c.cap.Valid {
		return nil
	}
	var types []puntuale.EventType
	counted := c.reported
	if counted&toldSoon == 0 && c.cap.Int64 > 0 && used*5 >= c.cap.Int64*4 {
		types, counted = append(types, puntuale.EventCap80), counted|toldSoon
	}
	if counted&toldOver == 0 && used >= c.cap.Int64 {
		types, counted = append(types, puntuale.EventCapReached), counted|toldOver
	}
	if len(types) == 0 {
		return nil
	}
	var at time.Time
	if _, err := engine.QueryOne(ctx, a, `update api_usage set told = $3 where client_id = $1 and day = $2 returning $clock`,
		[]any{d.Client, d.Day.Int(), counted}, engine.ScanTime(&at)); err != nil {
		return fmt.Errorf("note what a client was told of its calls: %w", err)
	}
	detail, err := engine.ToJSON(struct {
		Cap  int64 `json:"daily_api_cap"`
		Used int64 `json:"daily_api_used"`
	}{c.cap.Int64, used})
	if err != nil {
		return err
	}
	return outbox.Tell(ctx, a, at, engine.Column(types, func(t *puntuale.EventType) outbox.Fact {
		return outbox.Fact{Client: d.Client, Type: *t, Detail: detail}
	})...)
}
