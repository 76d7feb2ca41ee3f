package control

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/booking"
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
	Look     int // how many bookings a search by Text reads for one page; 0: 5,000
	Page     request.Page
}

// Bookings lists bookings by their main date. Codes: invalid.
func (c *Client) Bookings(ctx context.Context, q BookingQuery) ([]puntuale.Booking, string, error) {
	f := request.Faults(q.Page.Unknown)
	filter := puntuale.BookingFilter{Text: strings.TrimSpace(q.Text), Look: q.Look}
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
			f.Add("query.sequence", FaultNotSequenceID, q.Sequence)
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

// Uncounted returns the client for the parts of a call that counts as a whole: they do not count again.
func (c *Client) Uncounted() *Client {
	part := *c
	part.tenant = c.control.tenants.Uncounted(c.account.ID)
	return &part
}

// SpendCall counts a call that takes several transactions. Codes: cap_reached.
func (c *Client) SpendCall(ctx context.Context) (puntuale.Usage, error) {
	now := c.control.clock.Now()
	loc, err := c.zone()
	if err != nil {
		return puntuale.Usage{}, err
	}
	day := puntuale.DateOf(now.In(loc))
	usage, err := c.tenant.SpendCall(ctx, day)
	if err != nil {
		return usage, fmt.Errorf("count a call: %w", untilMidnight(err, request.Midnight(day, loc).Sub(now)))
	}
	return usage, nil
}

const faultBookingHeld puntuale.ReasonCode = "booking.held"

// Unheld refuses work that changes many bookings while the client is held after a restore. Codes: conflict.
func (c *Client) Unheld(ctx context.Context) error {
	r, err := c.Restored(ctx)
	if err == nil && !r.Held.IsZero() {
		err = puntuale.Conflict(faultBookingHeld)
	}
	return err
}

// NamedBookings returns the bookings that have these references, by reference. A reference without a booking is missing.
func (c *Client) NamedBookings(ctx context.Context, references []string) (map[string]puntuale.MadeBooking, error) {
	found, err := c.tenant.NamedBookings(ctx, references)
	if err != nil {
		return nil, fmt.Errorf("look for bookings: %w", err)
	}
	return found, nil
}

// ErasedReferences returns those of the references whose bookings were erased with their person.
func (c *Client) ErasedReferences(ctx context.Context, references []string) (map[string]bool, error) {
	marks := make([]string, 0, len(references))
	of := make(map[string]string, len(references))
	for _, reference := range references {
		if mark := c.mark(reference); mark != "" {
			marks = append(marks, mark)
			of[mark] = reference
		}
	}
	found, err := c.tenant.ErasedBookings(ctx, marks)
	if err != nil {
		return nil, fmt.Errorf("look for erased bookings: %w", err)
	}
	erased := make(map[string]bool, len(found))
	for mark := range found {
		erased[of[mark]] = true
	}
	return erased, nil
}

// KeepAsOf stores how new bookings are that have not changed otherwise.
func (c *Client) KeepAsOf(ctx context.Context, all []puntuale.Booking, as puntuale.AsOf) error {
	if err := c.tenant.KeepAsOf(ctx, all, as); err != nil {
		return fmt.Errorf("write how new bookings are: %w", err)
	}
	return nil
}

// AsOf reads how new a call is. Codes: invalid.
func (c *Client) AsOf(raw json.RawMessage) (puntuale.AsOf, error) {
	var f request.Faults
	p := bookingPut{client: c, call: BookingCall{AsOf: raw}}
	p.asOf(&f)
	if p.put.AsOf.Kind == puntuale.AsOfNone && len(f) == 0 {
		f.Add("body.as_of", puntuale.FaultRequired, nil)
	}
	return p.put.AsOf, f.Err()
}

// Unchanged reports whether a stored booking is already as a call says, apart from as_of. It reads nothing, so it can
// compare many bookings. If it is not sure, it returns false; [Client.PutBooking] then decides.
func (c *Client) Unchanged(call BookingCall, stored puntuale.Booking) bool {
	session := ""
	if stored.Session != 0 {
		session = stored.Session.String()
	}
	p := bookingPut{client: c, call: call, stored: puntuale.BookingState{Booking: stored}, put: booking.Put{Zone: call.Zone, Door: call.Door, Now: c.control.clock.Now()}}
	f := request.Faults(slices.Clone(call.Faults))
	f.Request(call.Body)
	if call.Phone != "" {
		p.put.Phone = c.recipient(&f, "body.phone", call.Phone)
	}
	p.status(&f)
	return len(f) == 0 && (call.Session == nil || *call.Session == session) && p.saysNothing()
}

// BookingsMade visits the bookings of a period that are open or confirmed and that a door made, by their main date, until
// visit returns false. Sequence 0: of all sequences. The period is that of [Client.Bookings]; its faults are at "query.start" and "query.end". Codes:
// invalid.
func (c *Client) BookingsMade(ctx context.Context, by puntuale.BookingDoor, period request.Period, sequence puntuale.SequenceID, visit func(puntuale.Booking) (more bool)) error {
	filter := puntuale.BookingFilter{Made: by, Sequence: sequence, Statuses: []puntuale.BookingStatus{puntuale.BookingOpen, puntuale.BookingConfirmed}}
	loc, err := c.zone()
	if err != nil {
		return err
	}
	var f request.Faults
	if filter.From, filter.To = period.Loose(&f, loc); len(f) > 0 {
		return f.Err()
	}
	page := puntuale.Page{Limit: request.MaxPageRows}
	for {
		rows, next, err := c.tenant.Bookings(ctx, filter, page)
		if err != nil {
			return fmt.Errorf("list bookings: %w", err)
		}
		for _, b := range rows {
			if !visit(b) {
				return nil
			}
		}
		if page.Cursor = next; next == "" {
			return nil
		}
	}
}

// Now returns the current time of the service's clock.
func (c *Client) Now() time.Time { return c.control.clock.Now() }

// CountReplan counts the bookings of a range.
func (c *Client) CountReplan(ctx context.Context, r puntuale.ReplanFilter) (int, error) {
	n, err := c.tenant.CountReplan(ctx, r)
	if err != nil {
		return 0, fmt.Errorf("count the bookings of sequence %d: %w", r.Sequence, err)
	}
	return n, nil
}

// ReplanBookings returns ids and references of a part of the bookings, and the last one that it looked at; 0: there are no more.
func (c *Client) ReplanBookings(ctx context.Context, r puntuale.ReplanFilter, limit int) ([]puntuale.Booking, puntuale.BookingID, error) {
	some, last, err := c.tenant.ReplanBookings(ctx, r, limit)
	if err != nil {
		return nil, 0, fmt.Errorf("list the bookings of sequence %d: %w", r.Sequence, err)
	}
	return some, last, nil
}

// StartReplan stores a replan, which then runs in the background. Codes: conflict.
func (c *Client) StartReplan(ctx context.Context, r puntuale.Replan) error {
	if err := c.tenant.StartReplan(ctx, r); err != nil {
		return fmt.Errorf("start a replan of sequence %d: %w", r.Sequence, err)
	}
	return nil
}

// Replan reads the last replan of a sequence.
func (c *Client) Replan(ctx context.Context, sequence puntuale.SequenceID) (puntuale.Replan, bool, error) {
	r, found, err := c.tenant.Replan(ctx, sequence)
	if err != nil {
		return r, false, fmt.Errorf("read the replan of sequence %d: %w", sequence, err)
	}
	return r, found, nil
}

// MoveReplan changes the state of a replan. Codes: conflict.
func (c *Client) MoveReplan(ctx context.Context, sequence puntuale.SequenceID, to puntuale.ReplanState, from ...puntuale.ReplanState) error {
	if err := c.tenant.MoveReplan(ctx, sequence, to, c.control.clock.Now(), from...); err != nil {
		return fmt.Errorf("change the replan of sequence %d: %w", sequence, err)
	}
	return nil
}
