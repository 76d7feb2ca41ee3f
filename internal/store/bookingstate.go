package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

const bookingColumns = `b.id, b.reference, b.sequence_id, b.session_id, b.phone, b.zone, b.fields, b.date_at, b.status, b.status_by, b.revision,
 b.as_of, b.as_of_kind, b.told_at, b.moments, b.created_at, b.changed_at, b.erased_at <> 0, b.answer, b.page_token`

func bookingFields(b *puntuale.Booking) []any {
	return []any{&b.ID, &b.Reference, &b.Sequence, &b.Session, &b.Phone, &b.Zone, engine.ScanJSON(&b.Fields), engine.ScanTime(&b.Date), &b.Status, &b.StatusBy, &b.Revision,
		&b.AsOf.Value, &b.AsOf.Kind, engine.ScanTime(&b.Told), engine.ScanJSON(&b.Moments), engine.ScanTime(&b.Created), engine.ScanTime(&b.Updated), &b.Erased,
		engine.ScanOptionalJSON(&b.Answer), &b.Page}
}

// bookingLedger reads what each occurrence of a booking's steps got. A message that is not in the table was archived.
const bookingLedger = `
select s.sequence_id, s.step, s.occurrence, s.phone, s.message_id, s.previous_id, s.timing, s.digest, s.fate, m.id is not null, coalesce(m.state, 0),
 coalesce(m.intent, 0), coalesce(m.session_id, 0), coalesce(m.attempt, 0), coalesce(m.desired_at, 0), coalesce(m.due_at, 0), coalesce(m.next_at, 0),
 case when m.state = 1 then m.intent_at else 0 end, coalesce(abs(m.valid_until), 0), coalesce(m.valid_until, 0) < 0
from booking_step s left join message m on m.client_id = s.client_id and m.id = s.message_id
where s.client_id = $1 and s.booking_id = $2`

func scanBookingStep(r engine.Row, s *puntuale.BookingStep) error {
	return r.Scan(&s.Key.Sequence, &s.Key.Step, &s.Key.Occurrence, &s.Phone, &s.Message, &s.Previous, &s.Timing, &s.Digest, &s.Fate, &s.There, &s.State,
		&s.Intent, &s.Session, &s.Attempt, engine.ScanTime(&s.Desired), engine.ScanTime(&s.Due), engine.ScanTime(&s.Next),
		engine.ScanTime(&s.Left), engine.ScanTime(&s.ValidUntil), &s.Stopped)
}

// lockBookingMessages locks the messages that a change of a booking may take back, in the order of their ids. Afterwards
// no claim can begin an attempt of them before the transaction ends.
const lockBookingMessages = `
select message.id from booking_step s join message on message.client_id = s.client_id and message.id = s.message_id
where s.client_id = $1 and s.booking_id = $2 and message.state = 0 order by message.id for update of message`

// readBooking reads the state of a booking. phone is the person of its new state; "": the booking's own person. With
// lock, the booking and its pending messages stay as they are until the transaction ends.
func (t tenant) readBooking(ctx context.Context, a engine.Querier, reference, phone string, lock bool) (s puntuale.BookingState, err error) {
	text := `select ` + bookingColumns + ` from booking b where b.client_id = $1 and b.reference = $2`
	if lock {
		text += ` for update of b`
	}
	found, err := engine.QueryOne(ctx, a, text, []any{t.id, reference}, bookingFields(&s.Booking)...)
	if err != nil {
		return s, fmt.Errorf("read a booking: %w", err)
	}
	if phone == "" {
		phone = s.Phone
	}
	if phone != "" {
		if s.Names, err = alias.Names(ctx, a, t.id, phone); err != nil {
			return s, err
		}
	}
	if !found {
		return s, nil
	}
	if phone != s.Phone && slices.Contains(s.Names, s.Phone) {
		former, err := alias.FormerOf(ctx, a, t.id, []string{phone, s.Phone})
		if err != nil {
			return s, err
		}
		_, left := former[phone]
		_, both := former[s.Phone]
		s.Left = left && !both
	}
	if lock {
		if _, err := engine.QueryAll(ctx, a, lockBookingMessages, []any{t.id, s.ID}, engine.ScanOne[int64]); err != nil {
			return s, fmt.Errorf("lock a booking's messages: %w", err)
		}
	}
	s.Steps, err = engine.QueryAll(ctx, a, bookingLedger, []any{t.id, s.ID}, scanBookingStep)
	if err != nil {
		return s, fmt.Errorf("read a booking's messages: %w", err)
	}
	// The statement does not sort: SQLite would then read all that the client's bookings got, in the order of the messages.
	engine.Sort(s.Steps, func(a, b puntuale.BookingStep) int { return cmp.Compare(a.Message, b.Message) })
	return s, nil
}

// BookingState reads a booking with its messages. If there is none with the reference, the revision is 0. phone has the
// same meaning as in [puntuale.PutBooking].
func (t tenant) BookingState(ctx context.Context, reference, phone string) (puntuale.BookingState, error) {
	s, err := t.readBooking(ctx, t.s.CallReads, reference, phone, false)
	return s, engine.PublicError(err)
}

// Usage reads the client's usage of a day, without counting a call. Codes: not_found.
func (t tenant) Usage(ctx context.Context, day puntuale.Date) (puntuale.Usage, error) {
	u := puntuale.Usage{}
	found, err := engine.QueryOne(ctx, t.s.CallReads, `
select coalesce(k.cap, $3::bigint), coalesce((select g.used from api_usage g where g.client_id = k.id and g.day = $2), 0)
from client k where k.id = $1 and k.deleted_at = 0`, []any{t.id, day.Int(), puntuale.UncountedCap}, &u.Cap, &u.Used)
	return u, engine.FoundOr(found, err, puntuale.NoClient)
}

// namedAtOnce is how many bookings one statement looks up or changes.
const namedAtOnce = 1000

// NamedBookings reads the bookings with these references, and what made each.
func (t tenant) NamedBookings(ctx context.Context, references []string) (map[string]puntuale.MadeBooking, error) {
	found := make(map[string]puntuale.MadeBooking, len(references))
	for some := range slices.Chunk(references, namedAtOnce) {
		err := t.lists().Query(ctx, `select coalesce(d.door, 0), `+bookingColumns+` from $u(r text) cross join booking b
 left join booking_change d on d.client_id = b.client_id and d.booking_id = b.id and d.revision = 1 where b.client_id = $1 and b.reference = u.r`,
			[]any{t.id, engine.Columns{some}}, func(r engine.Row) error {
				var b puntuale.MadeBooking
				err := r.Scan(append([]any{&b.Made}, bookingFields(&b.Booking)...)...)
				found[b.Reference] = b
				return err
			})
		if err != nil {
			return nil, engine.PublicError(fmt.Errorf("look for bookings: %w", err))
		}
	}
	return found, nil
}

// ErasedBookings looks for erased bookings. Such a booking has as its reference the mark, a dot and its id; these sort
// between the mark and the mark with a letter, whatever the database's collation.
func (t tenant) ErasedBookings(ctx context.Context, marks []string) (map[string]bool, error) {
	found := map[string]bool{}
	for some := range slices.Chunk(marks, namedAtOnce) {
		all, err := engine.QueryAll(ctx, t.s.CallReads, `select u.m from $u(m text) cross join booking b
 where b.client_id = $1 and b.reference >= u.m and b.reference < u.m || 'z' and b.erased_at <> 0`, []any{t.id, engine.Columns{some}}, engine.ScanOne[string])
		if err != nil {
			return nil, engine.PublicError(fmt.Errorf("look for erased bookings: %w", err))
		}
		for _, mark := range all {
			found[mark] = true
		}
	}
	return found, nil
}

// KeepAsOf stores how new bookings are, of which nothing else is new.
func (t tenant) KeepAsOf(ctx context.Context, all []puntuale.Booking, as puntuale.AsOf) error {
	type B = puntuale.Booking
	for some := range slices.Chunk(all, namedAtOnce) {
		columns := engine.Columns{
			engine.Column(some, func(b *B) int64 { return int64(b.ID) }),
			engine.Column(some, func(b *B) int64 { return b.Revision }),
			engine.Column(some, func(b *B) int64 { return b.AsOf.Value }),
		}
		err := t.s.Write(ctx, int64(t.id), func(ctx context.Context, a engine.Querier) error {
			_, err := a.Exec(ctx, `update booking set as_of = $2, as_of_kind = $3 from $u(i bigint, r bigint, v bigint)
 where booking.client_id = $1 and booking.id = u.i and booking.revision = u.r and booking.as_of = u.v and booking.as_of_kind in (0, $3::smallint)`, t.id, as.Value, as.Kind, columns)
			return err
		})
		if err != nil {
			return engine.PublicError(fmt.Errorf("write how new bookings are: %w", err))
		}
	}
	return nil
}

// SpendCall counts one call that takes several transactions. Codes: cap_reached.
func (t tenant) SpendCall(ctx context.Context, day puntuale.Date) (u puntuale.Usage, err error) {
	err = t.s.Write(ctx, int64(t.id), func(ctx context.Context, a engine.Querier) error {
		counted, exhausted, err := t.countOne(ctx, a, queue.UsageDay{Client: t.id, Day: day})
		if u = counted; err == nil && exhausted {
			err = t.capReached(u)
		}
		return err
	})
	return u, err
}

// BookingHistory reads the changes of a booking, oldest first, at most the last 1,000.
func (t tenant) BookingHistory(ctx context.Context, id puntuale.BookingID) ([]puntuale.BookingEntry, error) {
	all, err := engine.QueryAll(ctx, t.s.CallReads, `
select c.revision, c.at, c.door, c.what from (select * from booking_change x where x.client_id = $1 and x.booking_id = $2 order by x.revision desc limit 1000) c order by c.revision`,
		[]any{t.id, id}, func(r engine.Row, e *puntuale.BookingEntry) error {
			return r.Scan(&e.Revision, engine.ScanTime(&e.At), &e.By, engine.ScanJSON(&e.What))
		})
	return all, engine.PublicError(err)
}

// BookingPage finds the booking whose page of the confirmation has this name. Codes: not_found.
func (s *Store) BookingPage(ctx context.Context, name string) (client puntuale.ClientID, reference string, err error) {
	found, err := engine.QueryOne(ctx, s.CallReads, `select b.client_id, b.reference from booking b where b.page_token = $1 and b.page_token <> ''`, []any{name}, &client, &reference)
	return client, reference, engine.FoundOr(found, err, puntuale.NoBooking)
}
