package control

import (
	"context"
	"fmt"
	"strings"

	"puntuale"
	"puntuale/internal/control/request"
)

// BookingView is a booking with all that happened to it.
type BookingView struct {
	puntuale.BookingState
	History []puntuale.BookingEntry
}

// Booking returns a booking. Codes: not_found.
func (c *Client) Booking(ctx context.Context, reference string) (BookingView, error) {
	state, err := c.bookingState(ctx, reference)
	if err != nil {
		return BookingView{}, err
	}
	history, err := c.tenant.BookingHistory(ctx, state.ID)
	if err != nil {
		return BookingView{}, fmt.Errorf("read a booking's history: %w", err)
	}
	return BookingView{state, history}, nil
}

// BookingQuery is a search for bookings. A member that is "" or empty excludes none.
type BookingQuery struct {
	Period   request.Period // of the main dates, in the client's zone
	Statuses []string
	Phone    string
	Sequence string
	Text     string
	Page     request.Page
}

// Bookings lists bookings by their main date. Codes: invalid.
func (c *Client) Bookings(ctx context.Context, q BookingQuery) ([]puntuale.Booking, string, error) {
	f := request.Faults(q.Page.Unknown)
	filter := puntuale.BookingFilter{Text: strings.TrimSpace(q.Text)}
	f.Text("query.text", q.Text, puntuale.MaxName)
	for _, word := range q.Statuses {
		status, err := puntuale.ParseBookingStatus(word)
		if err != nil {
			f.Add("query.status", puntuale.FaultNotOneOf, word, strings.Join(puntuale.BookingStatuses(), ", "))
		}
		filter.Statuses = append(filter.Statuses, status)
	}
	var err error
	if q.Sequence != "" {
		if filter.Sequence, err = puntuale.ParseID[puntuale.SequenceID](q.Sequence); err != nil {
			f.Add("query.sequence", faultNotSequenceID, q.Sequence)
		}
	}
	if q.Phone != "" {
		filter.Names = c.person(&f, "query.phone", q.Phone).Names
	}
	loc, err := c.zone()
	if err != nil {
		return nil, "", err
	}
	filter.From, filter.To = q.Period.Loose(&f, loc)
	q.Page.Unknown = f
	rows, next, err := request.List(q.Page, func(p puntuale.Page) ([]puntuale.Booking, string, error) {
		return c.tenant.Bookings(ctx, filter, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list bookings: %w", err)
	}
	return rows, next, nil
}
