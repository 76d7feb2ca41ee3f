package booking

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// bookingRoutes show bookings. A booking's reference is never in a path, because references are the caller's own and paths
// are logged.
var bookingRoutes = []page.Route{
	page.Get("/c/{client}/bookings", page.ClientSide, puntuale.Reader, showBookings),
	page.Get("/c/{client}/bookings/live", page.ClientSide, puntuale.Reader, liveBookings),
	page.Get("/c/{client}/bookings/{id}", page.ClientSide, puntuale.Reader, booking),
}

// How many bookings one page has: of a day or a week, and of a search.
const (
	listRows   = "200"
	searchRows = "50"
)

// dialled matches a whole phone number, in a search field that also accepts names.
var dialled = regexp.MustCompile(`^\+?([ ()./-]*[0-9]){9,15}$`)

// readList reads the list that the address asks for, without its rows.
func readList(v *page.Request) List {
	today := puntuale.DateOf(v.Now().In(v.Frame.Zone))
	day, err := puntuale.ParseDate(v.Query("day"))
	if err != nil || day.Before(today.AddDays(-366*puntuale.HorizonYears)) || today.AddDays(366*(puntuale.HorizonYears+1)).Before(day) {
		day = today
	}
	l := List{Day: day, Today: today, View: oneDay, Open: v.Query("open") != "", Text: strings.TrimSpace(v.Query("text")), Cursor: v.Query("cursor"), Form: view.NewForm("text", v.Query("text"))}
	if v.Query("view") == oneWeek {
		l.View = oneWeek
	}
	if end, err := puntuale.ParseDate(v.Query("end")); err == nil && !end.Before(day) && !day.AddDays(366).Before(end) {
		l.End = end
	}
	if status := v.Query("status"); slices.Contains(puntuale.BookingStatuses(), status) {
		l.Status = status
	}
	if id, err := puntuale.ParseID[puntuale.SequenceID](v.Query("sequence")); err == nil {
		l.Sequence = id.String()
	}
	return l
}

// bookingList reads the list that the address asks for. A search has no end: it finds what is to come.
func bookingList(v *page.Request) (l List, err error) {
	l = readList(v)
	if l.Version, err = v.Client.Version(v.Ctx()); err != nil { // read before the rows, so that no change between the two reads is missed
		return l, err
	}
	q := control.BookingQuery{
		Text: l.Text, Sequence: l.Sequence, Page: request.Page{Limit: listRows, Cursor: l.Cursor},
		Period: request.Period{Start: []request.Bound{{Name: "day", Text: l.Day.String()}}, End: []request.Bound{{Name: "day", Text: l.Day.AddDays(l.days() - 1).String()}}},
	}
	if l.Text != "" {
		q.Period.End, q.Page.Limit = nil, searchRows
	}
	if dialled.MatchString(l.Text) {
		q.Phone, q.Text = l.Text, ""
	}
	if l.Open {
		q.Statuses = []string{puntuale.BookingOpen.String()}
	} else if l.Status != "" {
		q.Statuses = []string{l.Status}
	}
	found, next, err := v.Client.Bookings(v.Ctx(), q)
	if e, _ := page.Refusal(err); e != nil && e.Code == puntuale.CodeInvalid {
		l.Form.Take(v.Frame.Language, e, "text")
		return l, nil
	}
	if err != nil {
		return l, err
	}
	l.Next = next
	if l.counted() {
		if l.Counts, err = v.Client.CountBookings(v.Ctx(), l.Day, l.days()); err != nil {
			return l, err
		}
	}
	l.Rows, l.Unwanted, err = rowsOf(v, found)
	return l, err
}

// rowsOf reads what a list shows about bookings besides themselves.
func rowsOf(v *page.Request, found []puntuale.Booking) ([]Row, map[puntuale.MessageID]puntuale.ReasonCode, error) {
	next, err := v.Client.NextMessages(v.Ctx(), found)
	if err != nil {
		return nil, nil, err
	}
	unwanted, err := v.Client.Unwanted(v.Ctx(), slices.Collect(maps.Values(next)))
	if err != nil {
		return nil, nil, err
	}
	phones := make([]string, len(found))
	for i := range found {
		phones[i] = found[i].Phone
	}
	if err := v.NamePeople(phones...); err != nil {
		return nil, nil, err
	}
	names := page.BookingSequences(v, found)
	ctx, rows := view.With(v.Ctx(), v.Frame), make([]Row, len(found))
	for i, b := range found {
		rows[i] = Row{Booking: b, Name: cmp.Or(nameIn(b), view.NameOf(ctx, b.Phone)), Sequence: names[b.Sequence]}
		if m, ok := next[b.ID]; ok {
			rows[i].Next = &m
		}
	}
	return rows, unwanted, nil
}

func showBookings(v *page.Request) error {
	l, err := bookingList(v)
	if err != nil {
		return err
	}
	if l.Form.HasFaults() {
		return v.ShowAs(http.StatusUnprocessableEntity, Bookings(l))
	}
	return v.Show(Bookings(l))
}

// liveBookings sends the list again each time that a booking or a message has changed. No page asks for other lists than
// those that reload themselves.
func liveBookings(v *page.Request) error {
	if !readList(v).live() {
		return page.ErrNoPage
	}
	return v.Stream(func() (string, error) {
		l, err := bookingList(v)
		if err != nil {
			return "", err
		}
		return v.Rendered(BookingsNow(l))
	})
}

func booking(v *page.Request) error {
	p, err := bookingPage(v)
	if err != nil {
		return err
	}
	return v.Show(Booking(p))
}

// bookingPage reads the page of the booking in the path.
func bookingPage(v *page.Request) (p Page, err error) {
	found, err := v.Client.BookingWith(v.Ctx(), v.Path("id"))
	if err != nil {
		return p, err
	}
	rows, _, err := rowsOf(v, []puntuale.Booking{found.Booking})
	if err != nil {
		return p, err
	}
	p.Row, p.History = rows[0], slices.Clone(found.History)
	slices.Reverse(p.History)
	for _, name := range slices.Sorted(maps.Keys(found.Fields)) {
		p.Fields = append(p.Fields, Field{Name: name, Value: fieldText(found.Fields[name])})
	}
	details, err := detailsOf(v, found.Steps)
	if err != nil {
		return p, err
	}
	for _, s := range found.Steps {
		p.Messages = append(p.Messages, Message{BookingStep: s, Detail: details[s.Message]})
	}
	var shown []puntuale.MessageDetail
	for _, m := range details {
		shown = append(shown, *m)
	}
	p.Unwanted, err = v.Client.Unwanted(v.Ctx(), shown)
	return p, err
}

// detailsOf returns the messages of rows of a ledger that are not archived.
func detailsOf(v *page.Request, steps []puntuale.BookingStep) (map[puntuale.MessageID]*puntuale.MessageDetail, error) {
	var ids []string
	for _, s := range steps[max(0, len(steps)-puntuale.MaxRequestIDs):] {
		ids = append(ids, s.Message.String())
	}
	all := map[puntuale.MessageID]*puntuale.MessageDetail{}
	if len(ids) == 0 {
		return all, nil
	}
	found, err := v.Client.Details(v.Ctx(), ids)
	for i := range found {
		all[found[i].ID] = &found[i]
	}
	return all, err
}

// fieldText returns a field's value as text.
func fieldText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return string(raw) // a number
	}
	return text
}
