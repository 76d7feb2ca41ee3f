package booking

import (
	"context"
	"encoding/json"
	"net/url"
	"puntuale/internal/web/view"
	"strings"
	"time"

	"puntuale"
)

// Views of the list.
const (
	oneDay  = "day"
	oneWeek = "week" // seven days from the requested day
)

// List is the bookings of a day or a week, or those that a search finds from a day on.
type List struct {
	Day      puntuale.Date
	Today    puntuale.Date
	View     string
	End      puntuale.Date // last day of another period, as results have it; zero: the view's
	Open     bool          // only those that nobody has confirmed
	Status   string        // only those with this status; "": all
	Sequence string        // id of their sequence; "": all
	Text     string
	Rows     []Row
	Counts   puntuale.BookingCounts // of the whole period; zero unless the list is counted
	Unwanted map[puntuale.MessageID]puntuale.ReasonCode
	Cursor   string
	Next     string
	Version  string // of the client's bookings when the list was read
	Form     *view.Form
}

// Row is one booking of a list.
type Row struct {
	puntuale.Booking
	Name     string                  // the person's name; "": not known
	Sequence string                  // the sequence's name; "": the sequence was deleted
	Next     *puntuale.MessageDetail // the message that leaves next; nil: none
}

// Page is the page of one booking.
type Page struct {
	Row
	Fields   []Field
	Messages []Message
	History  []puntuale.BookingEntry // newest first
	Unwanted map[puntuale.MessageID]puntuale.ReasonCode
}

// Field is a value of a booking.
type Field struct{ Name, Value string }

// Message is what one step of the sequence got.
type Message struct {
	puntuale.BookingStep
	Detail *puntuale.MessageDetail // nil: the message was archived
}

// live reports whether the list reloads itself. A search does not, nor does a long period, because each reload would read many
// bookings.
func (l List) live() bool {
	return l.Cursor == "" && l.Text == "" && l.End == puntuale.Date{} && !l.Form.HasFaults()
}

// counted reports whether the page says how many bookings the whole period has.
func (l List) counted() bool { return l.Text == "" && l.Sequence == "" }

// days returns how many days the list has.
func (l List) days() int {
	switch {
	case l.End != puntuale.Date{}:
		return int(l.End.At(0, time.UTC).Sub(l.Day.At(0, time.UTC))/(24*time.Hour)) + 1
	case l.View == oneWeek:
		return 7
	}
	return 1
}

// query returns the address of the list with its filters.
func (l List) query() url.Values {
	q := url.Values{"day": {l.Day.String()}}
	if l.View == oneWeek {
		q.Set("view", oneWeek)
	}
	if l.Open {
		q.Set("open", "yes")
	}
	for name, value := range map[string]string{"text": l.Text, "status": l.Status, "sequence": l.Sequence} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if l.End != (puntuale.Date{}) {
		q.Set("end", l.End.String())
	}
	return q
}

func (l List) url(ctx context.Context) string {
	return view.Base(ctx) + "/bookings?" + l.query().Encode()
}

// on returns the address of the same list for another day.
func (l List) on(ctx context.Context, day puntuale.Date) string {
	if l.End != (puntuale.Date{}) {
		l.End = day.AddDays(l.days() - 1)
	}
	l.Day, l.Text = day, ""
	return l.url(ctx)
}

func (l List) as(ctx context.Context, span string) string {
	l.View, l.Text, l.End = span, "", puntuale.Date{}
	return l.url(ctx)
}

func (l List) filtered(ctx context.Context, open bool) string {
	l.Open, l.Status = open, ""
	return l.url(ctx)
}

func (l List) liveURL(ctx context.Context) string {
	q := l.query()
	q.Set("version", l.Version)
	return view.Base(ctx) + "/bookings/live?" + q.Encode()
}

// span names the days of the list.
func (l List) span(ctx context.Context) string {
	if l.days() > 1 {
		language := view.FrameOf(ctx).Language
		return language.ShortDay(l.Day) + " – " + language.Day(l.Day.AddDays(l.days()-1))
	}
	return view.NamedDay(ctx, l.Day)
}

// below says which days are shown, with the date even if the day has a name of its own.
func (l List) below(ctx context.Context) string {
	if l.days() > 1 {
		return l.span(ctx)
	}
	return view.FrameOf(ctx).Language.LongDay(l.Day.At(12*time.Hour, time.UTC))
}

// day is the bookings of one day.
type day struct {
	puntuale.Date
	rows []Row
}

// byDay groups the rows by day.
func (l List) byDay(ctx context.Context) (all []day) {
	for _, r := range l.Rows {
		on := puntuale.DateOf(r.Date.In(view.FrameOf(ctx).Zone))
		if len(all) == 0 || all[len(all)-1].Date != on {
			all = append(all, day{Date: on})
		}
		all[len(all)-1].rows = append(all[len(all)-1].rows, r)
	}
	return all
}

// who returns the person's name, or the phone if the name is not known.
func (r Row) who(ctx context.Context) string { return view.Or(r.Name, view.ShownPhone(ctx, r.Phone)) }

// begun reports whether the day of the appointment has come, so that the person may have arrived, or not.
func (r Row) begun(ctx context.Context) bool {
	zone := view.FrameOf(ctx).Zone
	return !puntuale.DateOf(view.FrameOf(ctx).Now.In(zone)).Before(puntuale.DateOf(r.Date.In(zone)))
}

// offers returns the statuses that one tap sets, in the order of the buttons.
func (r Row) offers(ctx context.Context) (all []puntuale.BookingStatus) {
	add := func(s puntuale.BookingStatus, offered bool) {
		if offered && r.Status != s && r.Sequence != "" {
			all = append(all, s)
		}
	}
	if r.Status == puntuale.BookingCancelled {
		return nil
	}
	add(puntuale.BookingConfirmed, r.changeable() && r.Date.After(view.FrameOf(ctx).Now))
	add(puntuale.BookingArrived, r.begun(ctx))
	add(puntuale.BookingNoShow, r.begun(ctx))
	return all
}

// changeable reports whether the booking can be moved or cancelled.
func (r Row) changeable() bool {
	return r.Status == puntuale.BookingOpen || r.Status == puntuale.BookingConfirmed
}

// verbOf returns the end of the address of the action that sets a status.
func verbOf(s puntuale.BookingStatus) string {
	switch s {
	case puntuale.BookingConfirmed:
		return "/confirm"
	case puntuale.BookingArrived:
		return "/arrived"
	case puntuale.BookingNoShow:
		return "/no-show"
	case puntuale.BookingCancelled:
		return "/cancel"
	case puntuale.BookingOpen:
	}
	return "/reopen"
}

func iconOf(s puntuale.BookingStatus) string {
	switch s {
	case puntuale.BookingConfirmed:
		return "check"
	case puntuale.BookingArrived:
		return "door-enter"
	case puntuale.BookingNoShow:
		return "user"
	case puntuale.BookingCancelled:
		return "ban"
	case puntuale.BookingOpen:
	}
	return "arrow-back-up"
}

func clockOf(ctx context.Context, t time.Time) string {
	return view.FrameOf(ctx).Language.Clock(t.In(view.FrameOf(ctx).Zone))
}

// nameIn returns the name in a booking's fields, or "".
func nameIn(b puntuale.Booking) string {
	values := map[string]string{}
	for name, raw := range b.Fields {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			values[strings.ToLower(name)] = strings.Join(strings.Fields(text), " ")
		}
	}
	first, last := view.Or(values["nome"], values["name"]), view.Or(values["cognome"], values["surname"])
	return strings.TrimSpace(first + " " + last)
}

// by says through what something was done.
func by(ctx context.Context, door puntuale.BookingDoor) string {
	return view.T(ctx, "booking.by."+door.String())
}

// whatWords says what one change of the history was.
func whatWords(ctx context.Context, what []string) string {
	words := make([]string, len(what))
	for i, word := range what {
		if words[i] = word; view.FrameOf(ctx).Language.Has("booking.what." + word) {
			words[i] = view.T(ctx, "booking.what."+word)
		}
	}
	return strings.Join(words, ", ")
}
