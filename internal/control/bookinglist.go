package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
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

// BookingWith returns the booking with an id. Codes: not_found.
func (c *Client) BookingWith(ctx context.Context, id string) (BookingView, error) {
	wanted, err := puntuale.ParseID[puntuale.BookingID](id)
	if err != nil {
		return BookingView{}, puntuale.NotFound(puntuale.NoBooking)
	}
	found, ok, err := c.oneBooking(ctx, puntuale.BookingFilter{ID: wanted})
	if err != nil {
		return BookingView{}, err
	}
	if !ok {
		return BookingView{}, puntuale.NotFound(puntuale.NoBooking)
	}
	return c.Booking(ctx, found.Reference)
}

// BookingOf returns the booking to which a message belongs. ok is false if it belongs to none.
func (c *Client) BookingOf(ctx context.Context, message puntuale.MessageID) (b puntuale.Booking, ok bool, err error) {
	return c.oneBooking(ctx, puntuale.BookingFilter{Message: message})
}

func (c *Client) oneBooking(ctx context.Context, f puntuale.BookingFilter) (puntuale.Booking, bool, error) {
	found, _, err := c.tenant.Bookings(ctx, f, puntuale.Page{Limit: 1})
	if err != nil {
		return puntuale.Booking{}, false, fmt.Errorf("look for a booking: %w", err)
	}
	if len(found) == 0 {
		return puntuale.Booking{}, false, nil
	}
	return found[0], true, nil
}

// CountBookings counts the bookings of some days by status, beginning with a day in the client's zone.
func (c *Client) CountBookings(ctx context.Context, day puntuale.Date, days int) (puntuale.BookingCounts, error) {
	loc, err := c.zone()
	if err != nil {
		return puntuale.BookingCounts{}, err
	}
	counts, err := c.tenant.CountBookings(ctx, day.At(0, loc), day.AddDays(days).At(0, loc))
	if err != nil {
		return counts, fmt.Errorf("count bookings: %w", err)
	}
	return counts, nil
}

// NextMessages returns the message that leaves next of each of these bookings, at most 1,000. A booking without one is
// missing.
func (c *Client) NextMessages(ctx context.Context, bookings []puntuale.Booking) (map[puntuale.BookingID]puntuale.MessageDetail, error) {
	ids := make([]puntuale.BookingID, 0, len(bookings))
	for i := range bookings[:min(len(bookings), request.MaxPageRows)] {
		ids = append(ids, bookings[i].ID)
	}
	next := map[puntuale.BookingID]puntuale.MessageDetail{}
	if len(ids) == 0 {
		return next, nil
	}
	messages, err := c.tenant.NextMessages(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("look for the next messages of bookings: %w", err)
	}
	if len(messages) == 0 {
		return next, nil
	}
	found, err := c.tenant.Details(ctx, slices.Sorted(maps.Values(messages)))
	if err != nil {
		return nil, fmt.Errorf("read the next messages of bookings: %w", err)
	}
	byID := make(map[puntuale.MessageID]puntuale.MessageDetail, len(found))
	for _, m := range found {
		byID[m.ID] = m
	}
	for booking, id := range messages {
		if m, ok := byID[id]; ok { // otherwise it has just been archived
			next[booking] = m
		}
	}
	return next, nil
}
