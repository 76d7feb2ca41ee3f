package store

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// listedBookings finds bookings by their main dates.
const listedBookings = ` from booking b where b.client_id = $1 and (b.date_at, b.id) > ($2, $3) and b.date_at < $4 and b.erased_at = 0`

// searchedBookings is how many bookings one page of a search by text reads.
const searchedBookings = 5000

// Bookings lists bookings by main date. A page may be shorter than asked, even empty, if a text is searched. Codes:
// invalid (the cursor).
func (t tenant) Bookings(ctx context.Context, f puntuale.BookingFilter, p puntuale.Page) ([]puntuale.Booking, string, error) {
	limit := p.Limit
	if limit <= 0 {
		limit = engine.DefaultLimit
	}
	date, id, err := bookingCursor(p)
	if err != nil {
		return nil, "", err
	}
	if p.Cursor == "" {
		date = engine.Micros(f.From) - 1
	}
	names, err := t.names(ctx, f.Names...)
	if err != nil {
		return nil, "", err
	}
	needle, reads := needleOf(f.Text), limit+1
	if f.Text != "" {
		reads = cmp.Or(f.Look, searchedBookings)
	}
	until := int64(math.MaxInt64)
	if !f.To.IsZero() {
		until = engine.Micros(f.To)
	}
	more, args := narrowed(f, names, []any{t.id, date, id, until, reads})
	var found []puntuale.Booking
	read, size := 0, 0
	var last puntuale.Booking
	err = t.lists().Query(ctx, `select `+bookingColumns+listedBookings+more+` order by b.date_at, b.id limit $5`, args, func(r engine.Row) error {
		var b puntuale.Booking
		if err := r.Scan(bookingFields(&b)...); err != nil {
			return err
		}
		if read++; len(found) > limit || size > engine.PageBytes {
			return nil
		}
		last = b
		if f.Text == "" || needle.matches(b.Reference+" "+b.Phone+" "+fieldTexts(b)) {
			found = append(found, b)
			for name, raw := range b.Fields {
				size += len(name) + len(raw)
			}
		}
		return nil
	})
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list bookings: %w", err))
	}
	if err := engine.TakeMemory(ctx, 0, size); err != nil {
		return nil, "", err
	}
	switch {
	case len(found) > limit:
		found = found[:limit]
		return found, bookingCursorAt(found[limit-1]), nil
	case read == reads || size > engine.PageBytes:
		return found, bookingCursorAt(last), nil
	}
	return found, "", nil
}

// narrowed returns the conditions of a filter besides the period and the text, and the arguments with theirs. names are of
// the filter's person.
func narrowed(f puntuale.BookingFilter, names []string, args []any) (string, []any) {
	text := ""
	if len(f.Statuses) > 0 { // the index also has the status and the sequence, so other bookings' rows are not read
		var words []string
		for _, s := range f.Statuses {
			words = append(words, strconv.Itoa(int(s)))
		}
		text += ` and b.status in (` + strings.Join(words, ", ") + `)`
	}
	bind := func(value any) string {
		args = append(args, value)
		return "$" + strconv.Itoa(len(args))
	}
	if f.Sequence != 0 {
		text += ` and b.sequence_id = ` + bind(f.Sequence)
	}
	if f.ID != 0 {
		text += ` and b.id = ` + bind(f.ID)
	}
	if f.Message != 0 {
		message := bind(f.Message)
		text += ` and b.id in (select s.booking_id from booking_step s where s.client_id = $1 and s.message_id = ` + message +
			` union all select s.booking_id from booking_step s where s.client_id = $1 and s.previous_id = ` + message + ` and s.previous_id <> 0)`
	}
	if f.Made != 0 {
		text += ` and exists (select 1 from booking_change d where d.client_id = $1 and d.booking_id = b.id and d.revision = 1 and d.door = ` + bind(f.Made) + `)`
	}
	if len(names) > 0 {
		args = append(args, engine.Columns{names})
		text += ` and b.phone in (select u.p from $u(p text))`
	}
	return text, args
}

// CountBookings counts the bookings of a period by status. from is inclusive, and to is exclusive.
func (t tenant) CountBookings(ctx context.Context, from, to time.Time) (counts puntuale.BookingCounts, err error) {
	err = t.lists().Query(ctx, `select b.status, count(*) from booking b where b.client_id = $1 and b.date_at >= $2 and b.date_at < $3 and b.erased_at = 0 group by b.status`,
		[]any{t.id, engine.Micros(from), engine.Micros(to)}, func(r engine.Row) error {
			var status puntuale.BookingStatus
			var n int
			if err := r.Scan(&status, &n); err != nil {
				return err
			}
			counts[status] = n
			return nil
		})
	if err != nil {
		return counts, engine.PublicError(fmt.Errorf("count bookings: %w", err))
	}
	return counts, nil
}

// NextMessages returns the message that leaves next of each of these bookings. A booking without one is missing.
func (t tenant) NextMessages(ctx context.Context, bookings []puntuale.BookingID) (map[puntuale.BookingID]puntuale.MessageID, error) {
	next := make(map[puntuale.BookingID]puntuale.MessageID, len(bookings))
	ids := engine.Column(bookings, func(id *puntuale.BookingID) int64 { return int64(*id) })
	err := t.lists().Query(ctx, `
select s.booking_id, s.message_id from $u(i bigint) cross join booking_step s join message m on m.client_id = s.client_id and m.id = s.message_id
where s.client_id = $1 and s.booking_id = u.i and m.state = 0 and m.valid_until >= 0 order by m.next_at desc, m.id desc`, []any{t.id, engine.Columns{ids}}, func(r engine.Row) error {
		var booking puntuale.BookingID
		var message puntuale.MessageID
		if err := r.Scan(&booking, &message); err != nil {
			return err
		}
		next[booking] = message // the soonest comes last
		return nil
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list the next messages of bookings: %w", err))
	}
	return next, nil
}

// fieldTexts returns the values of a booking's fields as one text.
func fieldTexts(b puntuale.Booking) string {
	var all strings.Builder
	for _, raw := range b.Fields {
		all.Write(raw)
		all.WriteByte(' ')
	}
	return all.String()
}

// bookingCursorAt returns the cursor of a page that begins after a booking.
func bookingCursorAt(b puntuale.Booking) string {
	return base64.RawURLEncoding.EncodeToString([]byte("booking:" + strconv.FormatInt(engine.Micros(b.Date), 10) + ":" + b.ID.String()))
}

func bookingCursor(p puntuale.Page) (date, id int64, err error) {
	if p.Cursor == "" {
		return 0, 0, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	parts := strings.Split(string(text), ":")
	if err != nil || len(parts) != 3 || parts[0] != "booking" {
		return 0, 0, engine.BadCursor(p)
	}
	date, err = strconv.ParseInt(parts[1], 10, 64)
	if err == nil {
		id, err = strconv.ParseInt(parts[2], 10, 64)
	}
	if err != nil {
		return 0, 0, engine.BadCursor(p)
	}
	return date, id, nil
}
