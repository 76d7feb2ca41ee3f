package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
)

// errBookingMoved ends a transaction in which a rule changes a booking that is not as it was when the act was planned.
// The act must be planned again.
var errBookingMoved = errors.New("a booking changed after the act was planned")

// prepareBookings takes the identifiers that the changes of bookings may need.
func (x *actBatch) prepareBookings(ctx context.Context, w *engine.Writer) error {
	x.firsts = x.firsts[:0]
	for _, act := range x.Acts {
		for range act.Bookings {
			if err := w.Stock(ctx, puntuale.MaxSteps); err != nil {
				return fmt.Errorf("take identifiers: %w", err)
			}
			x.firsts = append(x.firsts, w.IDs.Take(puntuale.MaxSteps))
		}
	}
	return nil
}

// lockBookings locks the bookings that the acts change, read or stop, before the contacts. So they stay as they are until
// the transaction ends.
func (x *actBatch) lockBookings(ctx context.Context) error {
	x.booked = nil
	var references, phones []string
	var sequences []puntuale.SequenceID
	for _, act := range x.Live {
		if act.Wanted.Booking != "" {
			references = append(references, act.Wanted.Booking)
		}
		for _, b := range act.Bookings {
			references = append(references, b.Reference)
			if b.Former != "" {
				references = append(references, b.Former)
			}
		}
		if len(act.Stops) > 0 {
			phones, sequences = append(phones, act.Phone), append(sequences, act.Stops...)
		}
	}
	if len(references) > 0 {
		if _, err := engine.QueryAll(ctx, x.A, `select b.id from $u(r text) cross join booking b where b.client_id = $1 and b.reference = u.r order by b.id for update of b`,
			[]any{x.Client, engine.Columns{references}}, engine.ScanOne[int64]); err != nil {
			return fmt.Errorf("lock bookings: %w", err)
		}
	}
	if len(phones) == 0 {
		return nil
	}
	names, err := alias.Names(ctx, x.A, x.Client, phones...)
	if err != nil {
		return err
	}
	all, err := engine.QueryAll(ctx, x.A, `select `+strings.Replace(bookingColumns, "b.fields", "'{}'", 1)+` from $u(p text) cross join booking b
 where b.client_id = $1 and b.phone = u.p and b.status <> 2 order by b.id for update of b`, []any{x.Client, engine.Columns{names}},
		func(r engine.Row, b *puntuale.Booking) error { return r.Scan(bookingFields(b)...) })
	if err != nil {
		return fmt.Errorf("lock bookings to stop: %w", err)
	}
	x.booked = slices.DeleteFunc(all, func(b puntuale.Booking) bool {
		return !slices.Contains(sequences, 0) && !slices.Contains(sequences, b.Sequence)
	})
	return nil
}

// book changes the bookings of the acts, as calls do. It counts no call. If a booking was changed since the act was
// planned, the transaction stores nothing, and the act must be planned again.
func (x *actBatch) book(ctx context.Context) error {
	n := 0
	for _, act := range x.Acts {
		act.Booked = nil
		firsts := x.firsts[n : n+len(act.Bookings)]
		n += len(act.Bookings)
		if act.Reason != "" || !slices.Contains(x.Live, act) {
			continue
		}
		for i := range act.Bookings {
			if err := x.bookOne(ctx, act, act.Bookings[i], firsts[i], i+1 < len(act.Bookings)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *actBatch) bookOne(ctx context.Context, act *puntuale.AutomationAct, put puntuale.PutBooking, first int64, more bool) error {
	var refused error
	decide := put.Decide
	put.Decide = func(s puntuale.BookingState) (c puntuale.BookingChange, err error) {
		c, refused = decide(s)
		return c, refused
	}
	p := &bookingPut{tenant: x.s.tenant(x.Client, true), PutBooking: &put, a: x.A, first: first}
	err := p.run(ctx)
	act.Booked = append(act.Booked, p.result)
	if err == nil || puntuale.CodeOf(err) == puntuale.CodeStale {
		if err := p.keepFormer(ctx); err != nil {
			return err
		}
	}
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeStale:
		leftOut(act, puntuale.FiringStale, more)
		return nil
	case refused != nil, puntuale.CodeOf(err) == puntuale.CodeNotFound: // the sequence or the session is gone
		return fmt.Errorf("%w: %w", errBookingMoved, err)
	case err != nil:
		return err
	case len(p.result.Kept) > 0 && !p.result.Changed:
		leftOut(act, puntuale.FiringKept, more)
		return nil
	case !p.result.Changed:
		leftOut(act, puntuale.FiringUnchanged, more)
		return nil
	case len(p.result.Kept) > 0:
		leftOut(act, puntuale.FiringKept, true)
	}
	if len(p.result.IDs) > 0 {
		act.Message = append(act.Message, p.result.IDs[0])
	}
	return nil
}
