package store

import (
	"context"
	"fmt"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
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
where s.client_id = $1 and s.booking_id = $2 order by s.message_id`

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
	if lock {
		if _, err := engine.QueryAll(ctx, a, lockBookingMessages, []any{t.id, s.ID}, engine.ScanOne[int64]); err != nil {
			return s, fmt.Errorf("lock a booking's messages: %w", err)
		}
	}
	s.Steps, err = engine.QueryAll(ctx, a, bookingLedger, []any{t.id, s.ID}, scanBookingStep)
	if err != nil {
		return s, fmt.Errorf("read a booking's messages: %w", err)
	}
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
