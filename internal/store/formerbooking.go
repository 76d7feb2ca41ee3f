package store

import (
	"context"
	"fmt"

	"puntuale"
	"puntuale/internal/store/engine"
)

// MovedBookingState reads a booking for a rule. See [puntuale.PutBooking].Follow.
func (t tenant) MovedBookingState(ctx context.Context, reference, former, phone string) (puntuale.BookingState, error) {
	s, err := t.readMoved(ctx, t.s.CallReads, reference, &puntuale.PutBooking{Follow: true, Former: former, Phone: phone}, false)
	return s, engine.PublicError(err)
}

// readMoved reads the booking that a put changes: the one with the reference, or else the one with the former reference.
func (t tenant) readMoved(ctx context.Context, a engine.Querier, reference string, put *puntuale.PutBooking, lock bool) (puntuale.BookingState, error) {
	s, err := t.readBooking(ctx, a, reference, put.Phone, lock)
	if err != nil || s.Revision != 0 || !put.Follow {
		return s, err
	}
	found, err := engine.QueryOne(ctx, a, `select f.booking_id from booking_former f where f.client_id = $1 and f.reference = $2`, []any{t.id, reference}, &s.MovedOn)
	if err != nil {
		return s, fmt.Errorf("look for a booking's former reference: %w", err)
	}
	if found || put.Former == "" {
		return s, nil
	}
	former, err := t.readBooking(ctx, a, put.Former, put.Phone, lock)
	if err != nil || former.Revision == 0 || former.Erased {
		return s, err
	}
	return former, nil
}

// rename gives a booking another reference, if the put says so.
func (p *bookingPut) rename(ctx context.Context) error {
	if p.state.Reference == p.result.Reference {
		return nil
	}
	if _, err := p.a.Exec(ctx, `update booking set reference = $4 where client_id = $1 and id = $2 and reference = $3`, p.id, p.state.ID, p.state.Reference, p.result.Reference); err != nil {
		return fmt.Errorf("write a booking's reference: %w", err)
	}
	return nil
}

// keepFormer notes that the put's former reference names no booking any more, so that a late call about it changes
// nothing. A put that is too old says so all the same.
func (p *bookingPut) keepFormer(ctx context.Context) error {
	id := p.state.ID
	if id == 0 {
		id = p.state.MovedOn
	}
	if id == 0 {
		id = p.result.ID
	}
	if p.Former == "" || id == 0 {
		return nil
	}
	if _, err := p.a.Exec(ctx, `insert into booking_former (client_id, reference, booking_id) select $1::bigint, $2::text, $3::bigint
 where not exists (select 1 from booking b where b.client_id = $1 and b.reference = $2) on conflict (client_id, reference) do nothing`, p.id, p.Former, id); err != nil {
		return fmt.Errorf("write a booking's former reference: %w", err)
	}
	return nil
}
