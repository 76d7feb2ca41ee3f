package retention

import (
	"context"
	"fmt"

	"puntuale"
	"puntuale/internal/store/automation"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/queue"
	"puntuale/internal/store/result"
)

// bookings cancels the person's bookings that are to come, empties all of them, and removes the entries of calendars from which they came. It runs before the cancellation, and locks the client's usage like
// every change of a booking, so that no change can plan messages after the cancellation. A keyed hash of the reference
// stays, and so does the ledger, under the person's mark.
func (x *erasureTransaction) bookings(ctx context.Context) error {
	return x.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if _, err := queue.CountAlways(ctx, a, queue.UsageDay{Client: x.id, Day: x.Day}, 0); err != nil {
			return err
		}
		type booking struct {
			id        puntuale.BookingID
			reference string
			revision  int64
		}
		all, err := engine.QueryAll(ctx, a, `select b.id, b.reference, b.revision from booking b where b.client_id = $1 and b.phone in `+ofNames+` order by b.id + 0 for update of b`,
			[]any{x.id, x.batch()}, func(r engine.Row, b *booking) error { return r.Scan(&b.id, &b.reference, &b.revision) })
		if err != nil {
			return fmt.Errorf("look for bookings: %w", err)
		}
		if err := outbox.ForgetAnswers(ctx, a, outbox.Subjects(x.id, engine.Column(all, func(b *booking) int64 { return int64(b.id) }))); err != nil {
			return err
		}
		if err := automation.DisarmBookings(ctx, a, x.id, engine.Column(all, func(b *booking) puntuale.BookingID { return b.id })); err != nil {
			return err
		}
		type B = booking
		columns := engine.Columns{
			engine.Column(all, func(b *B) int64 { return int64(b.id) }),
			engine.Column(all, func(b *B) string { return x.markOf(b.reference) + "." + b.id.String() }),
		}
		if err := x.calendarEntries(ctx, a, engine.Column(all, func(b *booking) string { return b.reference })); err != nil {
			return err
		}
		if _, err := a.Exec(ctx, `delete from booking_former where client_id = $1 and booking_id in (select u.i from $u(i bigint))`, x.id, engine.Columns{columns[0]}); err != nil {
			return fmt.Errorf("erase former references: %w", err)
		}
		// What became of the bookings is counted by month, so past ones keep their status.
		const ahead = `booking.status in (0, 1) and booking.date_at > $2::bigint`
		for _, statement := range []string{
			`insert into booking_change (client_id, booking_id, revision, at, door, what)
 select booking.client_id, booking.id, booking.revision + 1, $2::bigint, $3::smallint, case when ` + ahead + ` then '["cancelled","erased"]' else '["erased"]' end
 from $u(i bigint, r text) cross join booking where booking.client_id = $1 and booking.id = u.i`,
			`update booking set status = case when ` + ahead + ` then 2 else booking.status end, status_by = case when ` + ahead + ` then $3::smallint else booking.status_by end, revision = booking.revision + 1, changed_at = $2::bigint, erased_at = $2::bigint, phone = '', fields = '{}', moments = '{}', reference = u.r, answer = '', page_token = ''
 from $u(i bigint, r text) where booking.client_id = $1 and booking.id = u.i`,
		} {
			if _, err := a.Exec(ctx, statement, x.id, engine.Micros(x.Now), puntuale.DoorErasure, columns); err != nil {
				return fmt.Errorf("erase bookings: %w", err)
			}
		}
		if err := result.NoteBookings(ctx, a, x.Now, x.id, engine.Column(all, func(b *booking) puntuale.BookingID { return b.id })...); err != nil {
			return err
		}
		if _, err := a.Exec(ctx, `delete from booking_step where client_id = $1 and exists (select 1 from $u(p text, e text) cross join booking_step o
 where u.p = booking_step.phone and o.client_id = booking_step.client_id and o.booking_id = booking_step.booking_id and o.sequence_id = booking_step.sequence_id
 and o.step = booking_step.step and o.occurrence = booking_step.occurrence and o.phone = u.e)`, x.id, x.batch()); err != nil {
			return fmt.Errorf("erase bookings: %w", err)
		}
		if _, err := a.Exec(ctx, `update booking_step set phone = u.e from $u(p text, e text) where booking_step.client_id = $1 and booking_step.phone = u.p`, x.id, x.batch()); err != nil {
			return fmt.Errorf("erase bookings: %w", err)
		}
		return nil
	})
}

// calendarEntries removes the entries of calendars that name the person or belong to these bookings. It also ends the
// readings of the client's calendars, so that none stores the entries again.
func (x *erasureTransaction) calendarEntries(ctx context.Context, a engine.Querier, references []string) error {
	for _, names := range []engine.Columns{{x.names}, {references}} {
		if _, err := a.Exec(ctx, `delete from calendar_entry where client_id = $1 and (phone in (select u.p from $u(p text)) or reference in (select u.p from $u(p text)))`, x.id, names); err != nil {
			return fmt.Errorf("erase entries of calendars: %w", err)
		}
	}
	var calendars int
	if _, err := engine.QueryOne(ctx, a, `select count(*) from calendar where client_id = $1`, []any{x.id}, &calendars); err != nil || calendars == 0 {
		return err
	}
	n, err := engine.NextNumber(ctx, a, "calendar_reading")
	if err != nil {
		return err
	}
	if _, err := a.Exec(ctx, `update calendar set reading = $2, owner = 0 where client_id = $1`, x.id, n); err != nil {
		return fmt.Errorf("end the readings of calendars: %w", err)
	}
	return nil
}
