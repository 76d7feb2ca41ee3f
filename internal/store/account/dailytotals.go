package account

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

// A background task counts outcomes by day. A page adds the outcomes that came after the last count. A corrected
// outcome counts twice: at the time of the first outcome and at the time of the correction. This is rare, because it
// happens only if a late receipt corrects an outcome that was already counted.

// tallyLag is how old an outcome must be before it is counted. By then, all rows with the same timestamp are committed.
const tallyLag = time.Minute

// Quarter is a quarter of an hour, in microseconds. In every time zone, a day begins at a multiple of a quarter of an
// hour.
const Quarter = int64(15 * time.Minute / time.Microsecond)

// tallyRounds is the largest number of days that one call counts for one client.
const tallyRounds = 60

// uncountedClient is a client that has outcomes that are not counted yet.
type uncountedClient struct {
	id    puntuale.ClientID
	zone  string
	mark  int64 // all outcomes before this time were counted (µs)
	first int64 // done_at of the first outcome that was not counted (µs)
}

const findUntallied = `
select x.id, x.zone, x.mark, x.first from (
 select c.id, c.zone, coalesce(t.at, 0) as mark, (select min(m.done_at) from message m
  where m.client_id = c.id and m.done_at >= coalesce(t.at, 0) and m.done_at < $1 and m.outcome <> 0) as first
 from client c left join total_mark t on t.client_id = c.id) x
where x.first is not null order by x.id`

// Tally counts the outcomes of all clients by day. The work of one call is limited. Several nodes may call it at the
// same time.
func (s *Accounts) Tally(ctx context.Context, now time.Time) error {
	before := engine.Micros(now.Add(-tallyLag))
	all, err := engine.QueryAll(ctx, s.MaintenanceReads, findUntallied, []any{before}, func(rows engine.Row, u *uncountedClient) error {
		return rows.Scan(&u.id, &u.zone, &u.mark, &u.first)
	})
	if err != nil {
		return engine.PublicError(fmt.Errorf("look for outcomes to count: %w", err))
	}
	var problems []error
	for _, u := range all {
		if err := s.tallyClient(ctx, u, before); err != nil {
			problems = append(problems, fmt.Errorf("count outcomes of client %d: %w", u.id, err))
		}
	}
	return errors.Join(problems...)
}

func (s *Accounts) tallyClient(ctx context.Context, u uncountedClient, before int64) error {
	zone := zoneOf(u.zone)
	for range tallyRounds {
		day := puntuale.DateOf(engine.Instant(u.first).In(zone))
		end := min(before, engine.Micros(day.AddDays(1).At(0, zone)))
		var t puntuale.DayTotal
		if err := countDone(ctx, s.MaintenanceReads, u.id, u.mark, end, &t); err != nil {
			return engine.PublicError(err)
		}
		if err := s.addTotal(ctx, u, end, day, t); err != nil {
			return err
		}
		u.mark = end
		found, err := engine.QueryOne(ctx, s.MaintenanceReads, `select coalesce(min(done_at), 0) from message where client_id = $1 and done_at >= $2 and done_at < $3 and outcome <> 0`,
			[]any{u.id, u.mark, before}, &u.first)
		if err != nil {
			return engine.PublicError(err)
		}
		if !found || u.first == 0 {
			return nil
		}
	}
	return nil
}

// countDone counts the client's outcomes whose done_at is at least from and less than to, both in microseconds.
func countDone(ctx context.Context, a engine.Querier, id puntuale.ClientID, from, to int64, t *puntuale.DayTotal) error {
	return a.Query(ctx, `select outcome, count(*) from message where client_id = $1 and done_at >= $2 and done_at < $3 and outcome <> 0 group by outcome`,
		[]any{id, from, to}, func(rows engine.Row) error {
			var outcome, n int64
			err := rows.Scan(&outcome, &n)
			if outcome == 1 {
				t.Sent += n
			} else {
				t.Failed += n
			}
			return err
		})
}

// addTotal adds the counts to the total of a day, unless another node has already added them.
func (s *Accounts) addTotal(ctx context.Context, u uncountedClient, end int64, day puntuale.Date, t puntuale.DayTotal) error {
	return s.WriteWithoutTenant(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `insert into total_mark (client_id, at) values ($1, $2) on conflict (client_id) do update set at = excluded.at
 where total_mark.at = $3`, u.id, end, u.mark)
		if err != nil || n == 0 {
			return err
		}
		_, err = a.Exec(ctx, `insert into day_total (client_id, day, sent, failed) values ($1, $2, $3, $4)
 on conflict (client_id, day) do update set sent = day_total.sent + excluded.sent, failed = day_total.failed + excluded.failed`,
			u.id, dayNumber(day), t.Sent, t.Failed)
		return err
	})
}

func zoneOf(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC // cannot happen, because the zone was checked when it was set
	}
	return zone
}

// zonesOf returns each client's time zone. It loads each zone only once, because loading a zone reads a file.
func zonesOf(clients []clientZone) map[puntuale.ClientID]*time.Location {
	loaded, zones := map[string]*time.Location{}, make(map[puntuale.ClientID]*time.Location, len(clients))
	for _, c := range clients {
		if loaded[c.zone] == nil {
			loaded[c.zone] = zoneOf(c.zone)
		}
		zones[c.id] = loaded[c.zone]
	}
	return zones
}

// dayTotals contains the totals of each day of a period.
type dayTotals struct {
	from, to puntuale.Date
	days     map[puntuale.Date]*puntuale.DayTotal
}

func (t dayTotals) at(d puntuale.Date) *puntuale.DayTotal {
	if d.Int() < t.from.Int() || d.Int() > t.to.Int() {
		return &puntuale.DayTotal{} // the day is outside the period, so this total is dropped
	}
	if t.days[d] == nil {
		t.days[d] = &puntuale.DayTotal{Day: d}
	}
	return t.days[d]
}

// clientZone is a client with its time zone.
type clientZone struct {
	id   puntuale.ClientID
	zone string
	mark int64
}

// Totals returns for each day how many messages were sent, failed or are still to be sent, oldest day first. Days
// are in the client's zone. Client 0 means all clients of the partner. Days without messages are left out.
func (p Partner) Totals(ctx context.Context, client puntuale.ClientID, from, to puntuale.Date, now time.Time) ([]puntuale.DayTotal, error) {
	if err := p.ofClient(ctx, client); err != nil {
		return nil, err
	}
	clients, err := engine.QueryAll(ctx, p.s.ListReads, `select c.id, c.zone, coalesce(t.at, 0) from client c left join total_mark t on t.client_id = c.id
 where c.partner_id = $1 and c.deleted_at = 0 and ($2 = 0 or c.id = $2) order by c.id`, []any{p.id, client}, func(rows engine.Row, c *clientZone) error {
		return rows.Scan(&c.id, &c.zone, &c.mark)
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read clients: %w", err))
	}
	t := dayTotals{from, to, map[puntuale.Date]*puntuale.DayTotal{}}
	for _, add := range []func(context.Context, []clientZone, time.Time, dayTotals) error{p.addKept, p.addSince, p.addPending} {
		if err := add(ctx, clients, now, t); err != nil {
			return nil, engine.PublicError(fmt.Errorf("count messages by day: %w", err))
		}
	}
	all := make([]puntuale.DayTotal, 0, len(t.days))
	for _, d := range t.days {
		all = append(all, *d)
	}
	engine.Sort(all, func(a, b puntuale.DayTotal) int { return cmp.Compare(a.Day.Int(), b.Day.Int()) })
	return all, nil
}

// ofDays returns two columns: each client's id, and the value that bound returns for the client.
func ofDays(clients []clientZone, bound func(*clientZone) int64) engine.Columns {
	return engine.Columns{engine.Column(clients, func(c *clientZone) int64 { return int64(c.id) }), engine.Column(clients, bound)}
}

// addKept adds the totals that Tally has stored.
func (p Partner) addKept(ctx context.Context, clients []clientZone, _ time.Time, t dayTotals) error {
	if len(clients) == 0 {
		return nil
	}
	return p.s.ListReads.Query(ctx, `select d.day, cast(sum(d.sent) as bigint), cast(sum(d.failed) as bigint) from $u(c bigint, n bigint) join day_total d on d.client_id = u.c
 where d.day >= $1 and d.day <= $2 group by d.day`, []any{dayNumber(t.from), dayNumber(t.to), ofDays(clients, func(*clientZone) int64 { return 0 })},
		func(rows engine.Row) error {
			var day puntuale.Date
			var sent, failed int64
			err := rows.Scan(date{&day}, &sent, &failed)
			d := t.at(day)
			d.Sent, d.Failed = d.Sent+sent, d.Failed+failed
			return err
		})
}

// addSince adds the outcomes after the last count. Usually these are today's outcomes. If Tally is late, there are also
// outcomes of earlier days.
func (p Partner) addSince(ctx context.Context, clients []clientZone, now time.Time, t dayTotals) error {
	if len(clients) == 0 {
		return nil
	}
	zones := zonesOf(clients)
	return p.s.ListReads.Query(ctx, `select m.client_id, m.done_at / $1, m.outcome, count(*) from $u(c bigint, n bigint) cross join message m
 where m.client_id = u.c and m.done_at >= u.n and m.outcome <> 0 group by 1, 2, 3`,
		[]any{Quarter, ofDays(clients, func(c *clientZone) int64 { return c.mark })}, func(rows engine.Row) error {
			var id puntuale.ClientID
			var at, outcome, n int64
			err := rows.Scan(&id, &at, &outcome, &n)
			d := t.at(puntuale.DateOf(engine.Instant(at * Quarter).In(zones[id])))
			if outcome == 1 {
				d.Sent += n
			} else {
				d.Failed += n
			}
			return err
		})
}

// addPending adds the messages that are due until the end of the period. Overdue messages are added to today. It reads
// only the index of open messages, session by session.
func (p Partner) addPending(ctx context.Context, clients []clientZone, now time.Time, t dayTotals) error {
	if len(clients) == 0 {
		return nil
	}
	zones := zonesOf(clients)
	bound := func(c *clientZone) int64 { return engine.Micros(t.to.AddDays(1).At(0, zones[c.id])) }
	return p.s.ListReads.Query(ctx, `select s.client_id, m.next_at / $1, count(*) from $u(c bigint, n bigint) cross join session s cross join message m
 where s.client_id = u.c and s.deleted_at = 0 and m.session_id = s.id and `+queue.BothQueues+` and m.state = 0 and m.next_at < u.n group by 1, 2`,
		[]any{Quarter, ofDays(clients, bound)}, func(rows engine.Row) error {
			var id puntuale.ClientID
			var at, n int64
			err := rows.Scan(&id, &at, &n)
			zone := zones[id]
			day, today := puntuale.DateOf(engine.Instant(at*Quarter).In(zone)), puntuale.DateOf(now.In(zone))
			if day.Int() < today.Int() {
				day = today
			}
			t.at(day).Pending += n
			return err
		})
}
