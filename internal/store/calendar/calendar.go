package calendar

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Feeds stores the calendars of all clients. It has what the reader of feeds needs. Its methods are safe for
// concurrent use.
type Feeds struct {
	db   *engine.DB
	work *engine.Kind
}

// New returns the calendars of a database.
func New(db *engine.DB) *Feeds {
	s := &Feeds{db: db, work: engine.NewSingle("calendar", engine.PriorityFeed)}
	s.work.Check, s.work.Background = engine.RunAgain, true // may run twice: every statement stores the same again
	return s
}

// OfClient gives access to one client's calendars.
func (s *Feeds) OfClient(id puntuale.ClientID) ClientCalendars { return ClientCalendars{s, id} }

// ClientCalendars gives access to one client's calendars.
type ClientCalendars struct {
	*Feeds
	client puntuale.ClientID
}

const columns = `c.id, c.client_id, c.name, c.host, c.address, c.sequence_id, c.sources, c.all_day, c.created_at, c.started_at, c.reading, c.next_at, c.tried_at, c.read_at,
 c.etag, c.modified, c.digest, c.failures, c.fault, c.told, c.asked, c.cancels, c.entries, c.understood`

func fields(c *puntuale.Calendar, fault *string) []any {
	return []any{&c.ID, &c.Client, &c.Name, &c.Host, &c.Sealed, &c.Sequence, engine.ScanJSON(&c.PhoneFrom), engine.ScanBool(&c.AllDay), engine.ScanTime(&c.Created),
		engine.ScanTime(&c.Started), &c.Reading, engine.ScanTime(&c.Next), engine.ScanTime(&c.Tried), engine.ScanTime(&c.Read),
		&c.ETag, &c.Modified, &c.Digest, &c.Failures, fault, engine.ScanBool(&c.Told), &c.Asked, &c.Cancels, &c.Entries, &c.Understood}
}

func scan(r engine.Row, c *puntuale.Calendar) error {
	var fault string
	err := r.Scan(fields(c, &fault)...)
	c.Fault = puntuale.ParseReason(fault)
	return err
}

func (s ClientCalendars) write(ctx context.Context, o *puntuale.Idempotency, do func(ctx context.Context, a engine.Querier) (any, error)) error {
	return s.db.Once(ctx, int64(s.client), o, do)
}

// lock locks the client's row, so that changes of the client's calendars run one after another. Codes: not_found.
func (s ClientCalendars) lock(ctx context.Context, a engine.Querier) error {
	var n int64
	found, err := engine.QueryOne(ctx, a, `select k.id from client k where k.id = $1 and k.deleted_at = 0 for no key update of k`, []any{s.client}, &n)
	return engine.ThereOr(found, err, puntuale.NoClient)
}

// CreateCalendar stores a calendar. Codes: quota_reached.
func (s ClientCalendars) CreateCalendar(ctx context.Context, c puntuale.Calendar, o *puntuale.Idempotency) (id puntuale.CalendarID, err error) {
	from, err := engine.ToJSON(c.PhoneFrom)
	if err != nil {
		return 0, err
	}
	err = s.write(ctx, o, func(ctx context.Context, a engine.Querier) (any, error) {
		if err := s.lock(ctx, a); err != nil {
			return nil, err
		}
		var count int
		if _, err := engine.QueryOne(ctx, a, `select count(*) from calendar c where c.client_id = $1`, []any{s.client}, &count); err != nil {
			return nil, fmt.Errorf("count calendars: %w", err)
		}
		if count >= puntuale.MaxCalendars {
			return nil, &puntuale.Error{Code: puntuale.CodeQuotaReached, Reason: puntuale.Because(puntuale.FaultCalendarTooMany, strconv.Itoa(puntuale.MaxCalendars))}
		}
		n, err := engine.NextNumber(ctx, a, "calendar")
		if err != nil {
			return nil, err
		}
		id = puntuale.CalendarID(n)
		if _, err := a.Exec(ctx, `insert into calendar (client_id, id, name, host, address, sequence_id, sources, all_day, created_at, next_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)`,
			s.client, id, c.Name, c.Host, c.Sealed, c.Sequence, from, engine.Bit(c.AllDay), engine.Micros(c.Created)); err != nil {
			return nil, fmt.Errorf("insert a calendar: %w", err)
		}
		return id, nil
	})
	return id, err
}

// change runs a change of one calendar by a person, and returns the calendar as it is then. If anew, the present reading
// must store nothing more.
func (s ClientCalendars) change(ctx context.Context, id puntuale.CalendarID, anew bool, do func(ctx context.Context, a engine.Querier, c *puntuale.Calendar) error) (c puntuale.Calendar, err error) {
	err = s.write(ctx, nil, func(ctx context.Context, a engine.Querier) (any, error) {
		var fault string
		c = puntuale.Calendar{}
		found, err := engine.QueryOne(ctx, a, `select `+columns+` from calendar c where c.client_id = $1 and c.id = $2 for update of c`, []any{s.client, id}, fields(&c, &fault)...)
		if err := engine.ThereOr(found, err, puntuale.NoCalendar); err != nil {
			return nil, err
		}
		if c.Fault = puntuale.ParseReason(fault); anew {
			if c.Reading, err = engine.NextNumber(ctx, a, "calendar_reading"); err != nil {
				return nil, err
			}
			if _, err := a.Exec(ctx, `update calendar set reading = $3, owner = 0 where client_id = $1 and id = $2`, s.client, id, c.Reading); err != nil {
				return nil, fmt.Errorf("end a reading: %w", err)
			}
		}
		return nil, do(ctx, a, &c)
	})
	return c, err
}

// UpdateCalendar changes a calendar. Codes: not_found.
func (s ClientCalendars) UpdateCalendar(ctx context.Context, id puntuale.CalendarID, p puntuale.CalendarPatch, now time.Time) (puntuale.Calendar, error) {
	return s.change(ctx, id, true, func(ctx context.Context, a engine.Querier, c *puntuale.Calendar) error {
		*c = c.Apply(p, now)
		from, err := engine.ToJSON(c.PhoneFrom)
		if err != nil {
			return err
		}
		if _, err := a.Exec(ctx, `update calendar set name = $3, host = $4, address = $5, sequence_id = $6, sources = $7, all_day = $8, started_at = $9, next_at = $10, read_at = $11,
 etag = $12, modified = $13, digest = $14, asked = $15, cancels = $16 where client_id = $1 and id = $2`,
			s.client, id, c.Name, c.Host, c.Sealed, c.Sequence, from, engine.Bit(c.AllDay), engine.Micros(c.Started), engine.Micros(c.Next), engine.Micros(c.Read),
			c.ETag, c.Modified, c.Digest, c.Asked, c.Cancels); err != nil {
			return fmt.Errorf("update a calendar: %w", err)
		}
		return nil
	})
}

// DeleteCalendar deletes a calendar and its entries. Their bookings stay. Codes: not_found.
func (s ClientCalendars) DeleteCalendar(ctx context.Context, id puntuale.CalendarID) error {
	return s.write(ctx, nil, func(ctx context.Context, a engine.Querier) (any, error) {
		n, err := a.Exec(ctx, `delete from calendar where client_id = $1 and id = $2`, s.client, id)
		if err := engine.ThereOr(n > 0, err, puntuale.NoCalendar); err != nil {
			return nil, err
		}
		if _, err := a.Exec(ctx, `delete from calendar_entry where client_id = $1 and calendar_id = $2`, s.client, id); err != nil {
			return nil, fmt.Errorf("delete the entries of a calendar: %w", err)
		}
		return nil, nil
	})
}

// Calendars lists all calendars, by id.
func (s ClientCalendars) Calendars(ctx context.Context) ([]puntuale.Calendar, error) {
	all, err := engine.QueryAll(ctx, s.db.CallReads, `select `+columns+` from calendar c where c.client_id = $1 order by c.id`, []any{s.client}, scan)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list calendars: %w", err))
	}
	return all, nil
}

// Calendar reads one calendar. Codes: not_found.
func (s ClientCalendars) Calendar(ctx context.Context, id puntuale.CalendarID) (c puntuale.Calendar, err error) {
	var fault string
	found, err := engine.QueryOne(ctx, s.db.CallReads, `select `+columns+` from calendar c where c.client_id = $1 and c.id = $2`, []any{s.client, id}, fields(&c, &fault)...)
	c.Fault = puntuale.ParseReason(fault)
	return c, engine.FoundOr(found, err, puntuale.NoCalendar)
}

// ReadCalendarNow lets a calendar be read as soon as possible. Codes: not_found.
func (s ClientCalendars) ReadCalendarNow(ctx context.Context, id puntuale.CalendarID, now time.Time) (at time.Time, err error) {
	_, err = s.change(ctx, id, false, func(ctx context.Context, a engine.Querier, c *puntuale.Calendar) error {
		at = now
		if again := c.Tried.Add(puntuale.CalendarAgain); !c.Tried.IsZero() && again.After(now) {
			at = again
		}
		if c.Next.Before(at) {
			at = c.Next
		}
		return s.readAt(ctx, a, c, at)
	})
	return at, err
}

// readAt sets when a calendar is read next.
func (s ClientCalendars) readAt(ctx context.Context, a engine.Querier, c *puntuale.Calendar, at time.Time) error {
	c.Next = at
	if _, err := a.Exec(ctx, `update calendar set next_at = $3 where client_id = $1 and id = $2`, s.client, c.ID, engine.Micros(at)); err != nil {
		return fmt.Errorf("set when a calendar is read: %w", err)
	}
	return nil
}

// StartCalendar starts a calendar. A calendar that was started stays as it is. Codes: not_found; conflict, if there was no
// good reading since its last change.
func (s ClientCalendars) StartCalendar(ctx context.Context, id puntuale.CalendarID, now time.Time) (puntuale.Calendar, error) {
	return s.change(ctx, id, true, func(ctx context.Context, a engine.Querier, c *puntuale.Calendar) error {
		if !c.Started.IsZero() {
			return nil
		}
		if c.Read.IsZero() {
			return puntuale.Conflict(puntuale.FaultCalendarUnread)
		}
		c.Started = now
		if _, err := a.Exec(ctx, `update calendar set started_at = $3 where client_id = $1 and id = $2`, s.client, id, engine.Micros(now)); err != nil {
			return fmt.Errorf("start a calendar: %w", err)
		}
		if _, err := a.Exec(ctx, `update calendar_entry set missing = 0 where client_id = $1 and calendar_id = $2`, s.client, id); err != nil { // what is gone counts from now on
			return fmt.Errorf("start a calendar: %w", err)
		}
		return s.readAt(ctx, a, c, now)
	})
}

// CancelGone lets the next reading cancel up to n bookings whose entries are gone. Codes: not_found; conflict, if another
// number is gone.
func (s ClientCalendars) CancelGone(ctx context.Context, id puntuale.CalendarID, n int, now time.Time) (puntuale.Calendar, error) {
	return s.change(ctx, id, true, func(ctx context.Context, a engine.Querier, c *puntuale.Calendar) error {
		if c.Asked == 0 || c.Asked != n {
			return puntuale.Conflict(puntuale.FaultCalendarGone, strconv.Itoa(c.Asked))
		}
		c.Cancels, c.Asked = n, 0
		if _, err := a.Exec(ctx, `update calendar set cancels = $3, asked = 0 where client_id = $1 and id = $2`, s.client, id, n); err != nil {
			return fmt.Errorf("let a calendar cancel: %w", err)
		}
		return s.readAt(ctx, a, c, now)
	})
}
