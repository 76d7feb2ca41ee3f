package storetest

import (
	"context"
	"maps"
	"slices"

	"puntuale"
)

// ofBookings contains the methods of a tenant about bookings.
var ofBookings = map[string]foreign{
	"PutBooking": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		r := other.Booking("altrui")
		_, err := tenant.PutBooking(context.Background(), r)
		return nil, err
	},
	"BookingState": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		if _, err := other.PutBooking(context.Background(), other.Booking("sua")); err != nil {
			return []string{err.Error()}, nil
		}
		found, err := tenant.BookingState(context.Background(), "sua", "")
		if found.Revision == 0 {
			return []any{}, err
		}
		return []any{found}, err
	},
	"BookingHistory": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		result, err := other.PutBooking(context.Background(), other.Booking("storia"))
		if err != nil {
			return []string{err.Error()}, nil
		}
		return tenant.BookingHistory(context.Background(), result.ID)
	},
	"Bookings": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		if _, err := other.PutBooking(context.Background(), other.Booking("elenco")); err != nil {
			return []string{err.Error()}, nil
		}
		all, _, err := tenant.Bookings(context.Background(), puntuale.BookingFilter{Names: []string{phone}}, puntuale.Page{})
		return all, err
	},
	"CountBookings": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		if _, err := other.PutBooking(context.Background(), other.Booking("conto")); err != nil {
			return []string{err.Error()}, nil
		}
		counts, err := tenant.CountBookings(context.Background(), Begin.AddDate(-1, 0, 0), Begin.AddDate(1, 0, 0))
		if counts.Total() == 0 {
			return []any{}, err
		}
		return []any{counts}, err
	},
	"NextMessages": func(tenant puntuale.Tenant, other *Client, _ puntuale.MessageID) (any, error) {
		result, err := other.PutBooking(context.Background(), other.Booking("prossimo"))
		if err != nil {
			return []string{err.Error()}, nil
		}
		next, err := tenant.NextMessages(context.Background(), []puntuale.BookingID{result.ID})
		return slices.Collect(maps.Keys(next)), err
	},
}
