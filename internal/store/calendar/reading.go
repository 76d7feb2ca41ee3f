package calendar

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
	"puntuale/internal/store/notice"
)

// dueCalendars finds the calendars that must be read: those whose time has come, and those whose reading was not ended by
// a node that has no lease any more. skip leaves out those that this node reads now. Nothing is read for clients that are held after a restore, or that
// may not plan messages.
const dueCalendars = `
select ` + columns + ` from calendar c join client k on k.id = c.client_id
where (c.next_at <= $1 and c.owner = 0 or c.owner <> 0 and (c.owner = $3 or not exists (select 1 from node n where n.id = c.owner and n.lease_until > $clock))) and k.deleted_at = 0 and k.held_at = 0 and k.suspended = 0 and (k.expires_at = 0 or k.expires_at > $1)
order by c.next_at, c.id limit $2`

// dueAtOnce is how many due calendars are looked at in one round.
const dueAtOnce = 64

// TakeCalendars begins the reading of at most limit calendars, at most one of each client. skip reports whether the
// caller already reads a calendar of a client.
func (s *Feeds) TakeCalendars(ctx context.Context, node puntuale.NodeID, now time.Time, limit int, skip func(puntuale.ClientID) bool) (taken []puntuale.Calendar, err error) {
	due, err := engine.QueryAll(ctx, s.db.DispatchReads, dueCalendars, []any{engine.Micros(now), dueAtOnce, node}, scan)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for calendars to read: %w", err))
	}
	clients := map[puntuale.ClientID]bool{}
	for i := range due {
		c := &due[i]
		if len(taken) >= limit {
			break
		}
		if clients[c.Client] || skip(c.Client) {
			continue
		}
		clients[c.Client] = true
		got := false
		if err := s.write(ctx, node, func(ctx context.Context, a engine.Querier) error {
			n, err := engine.NextNumber(ctx, a, "calendar_reading")
			if err != nil {
				return err
			}
			next := now.Add(puntuale.CalendarEvery) // if a person wants it sooner meanwhile, EndReading sees that
			rows, err := a.Exec(ctx, `update calendar set reading = $4, owner = $5, next_at = $6 where client_id = $1 and id = $2 and reading = $3`, c.Client, c.ID, c.Reading, n, node, engine.Micros(next))
			if got = rows > 0; got {
				c.Reading, c.Taken = n, next
			}
			return err
		}); err != nil {
			return taken, err
		}
		if got {
			taken = append(taken, *c)
		}
	}
	return taken, nil
}

// write runs a transaction of a node, while the node has its lease.
func (s *Feeds) write(ctx context.Context, node puntuale.NodeID, do func(ctx context.Context, a engine.Querier) error) error {
	return engine.PublicError(s.db.FeedWriter.Do(ctx, engine.Single(s.work, func(ctx context.Context, a engine.Querier) error {
		if err := fleet.Fence(ctx, a, node); err != nil {
			return err
		}
		return do(ctx, a)
	}), true))
}

// onReading runs a transaction of a reading. It returns false if the reading is over, because
// another one began or because a person changed the calendar.
func (s *Feeds) onReading(ctx context.Context, node puntuale.NodeID, c *puntuale.Calendar, do func(ctx context.Context, a engine.Querier) error) (still bool, err error) {
	err = s.write(ctx, node, func(ctx context.Context, a engine.Querier) error {
		var id puntuale.CalendarID
		if still, err = engine.QueryOne(ctx, a, `select c.id from calendar c where c.client_id = $1 and c.id = $2 and c.reading = $3 for update of c`, []any{c.Client, c.ID, c.Reading}, &id); err != nil || !still {
			return err
		}
		return do(ctx, a)
	})
	return still, err
}

// EntriesOf reads all entries of a calendar.
func (s *Feeds) EntriesOf(ctx context.Context, c *puntuale.Calendar) ([]puntuale.CalendarEntry, error) {
	all, err := engine.QueryAll(ctx, s.db.DispatchReads, `select `+entryColumns+` from calendar_entry e where e.client_id = $1 and e.calendar_id = $2 order by e.start_at, e.reference`,
		[]any{c.Client, c.ID}, scanEntry)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read the entries of a calendar: %w", err))
	}
	return all, nil
}

// Elsewhere returns which of these references are also live entries of another calendar of the client.
func (s *Feeds) Elsewhere(ctx context.Context, c *puntuale.Calendar, references []string) (map[string]bool, error) {
	found := map[string]bool{}
	err := s.db.DispatchReads.Query(ctx, `select e.reference from $u(r text) cross join calendar_entry e join calendar o on o.client_id = e.client_id and o.id = e.calendar_id
 where e.client_id = $1 and e.reference = u.r and e.calendar_id <> $2 and e.applied <> '' and e.withdrawn = 0 and e.missing = 0 and o.started_at <> 0`,
		[]any{c.Client, c.ID, engine.Columns{references}}, func(r engine.Row) error {
			var reference string
			err := r.Scan(&reference)
			found[reference] = true
			return err
		})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for entries in other calendars: %w", err))
	}
	return found, nil
}

// Maintain deletes entries whose start is long past. Calendars that can be read delete theirs themselves.
func (s *Feeds) Maintain(ctx context.Context, now time.Time) error {
	return engine.PublicError(s.db.FeedWriter.Do(ctx, engine.Single(s.work, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `delete from calendar_entry where (client_id, calendar_id, reference) in (
 select e.client_id, e.calendar_id, e.reference from calendar_entry e where e.start_at > 0 and e.start_at < $1 order by e.start_at limit $2)`,
			engine.Micros(now.Add(-keepEntries)), engine.Chunk); err != nil {
			return fmt.Errorf("delete old entries of calendars: %w", err)
		}
		return nil
	}), false))
}

const keepEntries = 10 * 24 * time.Hour

// SaveEntries stores entries of a reading, and deletes those with the references in gone. What the latest good reading
// said is forgotten until EndReading, so that no later reading takes the entries for those of that reading.
func (s *Feeds) SaveEntries(ctx context.Context, node puntuale.NodeID, c *puntuale.Calendar, entries []puntuale.CalendarEntry, gone []string) (still bool, err error) {
	return s.onReading(ctx, node, c, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `update calendar set etag = '', modified = '', digest = '' where client_id = $1 and id = $2`, c.Client, c.ID); err != nil {
			return fmt.Errorf("begin to store a reading: %w", err)
		}
		if len(gone) > 0 {
			if _, err := a.Exec(ctx, `delete from calendar_entry where client_id = $1 and calendar_id = $2 and reference in (select u.r from $u(r text))`, c.Client, c.ID, engine.Columns{gone}); err != nil {
				return fmt.Errorf("delete entries of a calendar: %w", err)
			}
		}
		if len(entries) == 0 {
			return nil
		}
		type E = puntuale.CalendarEntry
		text := func(f func(*E) string) []string { return engine.Column(entries, f) }
		number := func(f func(*E) int64) []int64 { return engine.Column(entries, f) }
		if _, err := a.Exec(ctx, `
insert into calendar_entry as x (client_id, calendar_id, reference, start_at, all_day, title, place, phone, name, cancelled, problem, warning, digest, applied, withdrawn, missing, refused)
select $1::bigint, $2::bigint, u.r, u.s, u.a, u.t, u.l, u.p, u.n, u.c, u.q, u.w, u.d, u.x, u.y, u.m, u.z
 from $u(r text, s bigint, a smallint, t text, l text, p text, n text, c smallint, q text, w text, d text, x text, y smallint, m bigint, z text) where true
on conflict (client_id, calendar_id, reference) do update set start_at = excluded.start_at, all_day = excluded.all_day, title = excluded.title, place = excluded.place,
 phone = excluded.phone, name = excluded.name, cancelled = excluded.cancelled, problem = excluded.problem, warning = excluded.warning, digest = excluded.digest,
 applied = excluded.applied, withdrawn = excluded.withdrawn, missing = excluded.missing, refused = excluded.refused`, c.Client, c.ID, engine.Columns{
			text(func(e *E) string { return e.Reference }),
			number(func(e *E) int64 { return engine.Micros(e.Start) }),
			number(func(e *E) int64 { return engine.Bit(e.AllDay) }),
			text(func(e *E) string { return e.Title }),
			text(func(e *E) string { return e.Place }),
			text(func(e *E) string { return e.Phone }),
			text(func(e *E) string { return e.Name }),
			number(func(e *E) int64 { return engine.Bit(e.Cancelled) }),
			text(func(e *E) string { return string(e.Problem) }),
			text(func(e *E) string { return string(e.Warning) }),
			text(func(e *E) string { return e.Digest }),
			text(func(e *E) string { return e.Applied }),
			number(func(e *E) int64 { return engine.Bit(e.Withdrawn) }),
			number(func(e *E) int64 { return int64(e.Missing) }),
			text(func(e *E) string { return e.Refused }),
		}); err != nil {
			return fmt.Errorf("write entries of a calendar: %w", err)
		}
		return nil
	})
}

// EndReading stores how a reading ended, and when the next one is. The calendar has no owner then. tell is the reason of a
// notice for the client's users; its code is "": none.
func (s *Feeds) EndReading(ctx context.Context, node puntuale.NodeID, c *puntuale.Calendar, tell puntuale.Reason, now time.Time) (still bool, err error) {
	return s.onReading(ctx, node, c, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `update calendar set owner = 0, next_at = case when next_at < $16 then next_at else $4 end, told = $17, tried_at = $5, read_at = $6, etag = $7, modified = $8, digest = $9, failures = $10, fault = $11,
 asked = $12, cancels = $13, entries = $14, understood = $15 where client_id = $1 and id = $2 and reading = $3`,
			c.Client, c.ID, c.Reading, engine.Micros(c.Next), engine.Micros(c.Tried), engine.Micros(c.Read), c.ETag, c.Modified, c.Digest, c.Failures, c.Fault.Stored(),
			c.Asked, c.Cancels, c.Entries, c.Understood, engine.Micros(c.Taken), engine.Bit(c.Told)); err != nil {
			return fmt.Errorf("end the reading of a calendar: %w", err)
		}
		if tell.Code == "" {
			return nil
		}
		if err := notice.Add(ctx, a, puntuale.Notice{Client: c.Client, Kind: puntuale.NoticeCalendar, Subject: int64(c.ID), At: now, Detail: puntuale.NoticeDetail{Reason: tell.Stored()}}); err != nil {
			return fmt.Errorf("tell people of a calendar: %w", err)
		}
		return nil
	})
}
