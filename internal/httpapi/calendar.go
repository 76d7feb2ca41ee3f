package httpapi

import (
	"context"
	"net/http"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
	"puntuale/internal/control/calendar"
)

func registerCalendars(a *api) {
	const all, one = "/api/calendars", "/api/calendars/{id}"
	missing := []int{http.StatusNotFound}
	client(a, operation{id: "listCalendars", method: http.MethodGet, path: all, summary: "List calendars, by id"}, a.listCalendars)
	client(a, operation{id: "createCalendar", method: http.MethodPost, path: all, creates: createsAlways, body: calendarBody{}, idempotent: true,
		summary:     "Make a calendar: an iCalendar feed whose entries become bookings",
		description: "It is read within seconds. It plans nothing before it is started. Its address is never shown again.", refusals: []int{http.StatusConflict}}, withBody(a.createCalendar))
	client(a, operation{id: "getCalendar", method: http.MethodGet, path: one, summary: "Read a calendar", refusals: missing}, a.getCalendar)
	client(a, operation{id: "changeCalendar", method: http.MethodPatch, path: one, body: calendarPatchBody{},
		summary:     "Change some members of a calendar",
		description: "After another url, phone_from or all_day it must be started again.", refusals: missing}, withBody(a.changeCalendar))
	client(a, operation{id: "deleteCalendar", method: http.MethodDelete, path: one, prevents: true,
		summary:     "Delete a calendar",
		description: "Its bookings stay, with what is planned for them.", refusals: missing}, a.deleteCalendar)
	client(a, operation{id: "listCalendarEntries", method: http.MethodGet, path: one + "/entries", strict: true,
		summary: "List what was read in a calendar, by start: what was understood, and what not and why", refusals: missing}, a.listCalendarEntries)
	client(a, operation{id: "readCalendar", method: http.MethodPost, path: one + "/fetch",
		summary: "Read a calendar as soon as possible, but at most every ten seconds", refusals: missing}, a.readCalendar)
	client(a, operation{id: "startCalendar", method: http.MethodPost, path: one + "/start",
		summary:     "Start a calendar: from now on, its entries are bookings",
		description: "Look at its entries before.", refusals: []int{http.StatusNotFound, http.StatusConflict}}, a.startCalendar)
	client(a, operation{id: "cancelGone", method: http.MethodPost, path: one + "/cancel-gone", body: goneBody{}, prevents: true,
		summary: "Cancel the bookings of entries that are gone, if so many are gone at once that a person must decide", refusals: []int{http.StatusNotFound, http.StatusConflict}}, withBody(a.cancelGone))
}

// calendarBody documents the body of the call that makes a calendar.
type calendarBody struct {
	Name      *string  `json:"name" nullable:"false" minLength:"1" maxLength:"200"`
	URL       *string  `json:"url" nullable:"false" maxLength:"2048" doc:"Of the iCalendar feed: https, or webcal. It may contain a user name and a password"`
	Sequence  *string  `json:"sequence" nullable:"false" read:"id" doc:"A sequence for bookings"`
	PhoneFrom []string `json:"phone_from,omitempty" enum:"attendee,location,description,title" doc:"Where an entry has its phone number: the first of these parts that has a valid one. Without it, these four in this order"`
	AllDay    *bool    `json:"all_day,omitempty" default:"false" doc:"true: entries without a time of day are appointments, too"`
	_         closedCheck
}

// calendarPatchBody documents the body of the call that changes a calendar.
type calendarPatchBody struct {
	Name      *string  `json:"name,omitempty" minLength:"1" maxLength:"200"`
	URL       *string  `json:"url,omitempty" maxLength:"2048"`
	Sequence  *string  `json:"sequence,omitempty" read:"id" doc:"For bookings that are made from now on"`
	PhoneFrom []string `json:"phone_from,omitempty" enum:"attendee,location,description,title"`
	AllDay    *bool    `json:"all_day,omitempty"`
	_         closedCheck
}

type goneBody struct {
	Count int `json:"count" minimum:"1" doc:"How many are gone, as gone says"`
	_     closedCheck
}

// calendarAnswer is a calendar.
type calendarAnswer struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Host       string   `json:"host" doc:"Of its address, which may contain a secret"`
	Sequence   string   `json:"sequence"`
	PhoneFrom  []string `json:"phone_from" enum:"attendee,location,description,title"`
	AllDay     bool     `json:"all_day"`
	Created    string   `json:"created_at" format:"date-time"`
	Started    *string  `json:"started_at" format:"date-time" doc:"null: it plans nothing yet"`
	Next       string   `json:"next_read_at" format:"date-time"`
	Tried      *string  `json:"last_try_at" format:"date-time"`
	Read       *string  `json:"last_read_at" format:"date-time" doc:"The latest reading that was good; null: none since its last change"`
	Error      *string  `json:"error" doc:"Why the latest reading was bad; then nothing changes"`
	Failures   int      `json:"failures" doc:"Bad readings since the latest good one"`
	Entries    int      `json:"total" doc:"Entries that are yet to come"`
	Understood int      `json:"understood" doc:"Of these"`
	Gone       int      `json:"gone" doc:"So many entries are gone at once that a person must decide; 0: none"`
}

func calendarOf(c puntuale.Calendar) calendarAnswer {
	return calendarAnswer{
		ID: c.ID.String(), Name: c.Name, Host: c.Host, Sequence: c.Sequence.String(), PhoneFrom: c.PhoneFrom, AllDay: c.AllDay, Created: stamp(c.Created),
		Started: stampOrNull(c.Started), Next: stamp(c.Next), Tried: stampOrNull(c.Tried), Read: stampOrNull(c.Read), Error: textOrNull(catalogue.Italian.Sentence(c.Fault)),
		Failures: c.Failures, Entries: c.Entries, Understood: c.Understood, Gone: c.Asked,
	}
}

type calendarsAnswer struct {
	Calendars []calendarAnswer `json:"calendars"`
}

func (a *api) listCalendars(ctx context.Context, c *control.Client, _ *call, _ *struct{}) (calendarsAnswer, error) {
	all, err := a.calendars.OfClient(c).List(ctx)
	if err != nil {
		return calendarsAnswer{}, err
	}
	return calendarsAnswer{each(all, calendarOf)}, nil
}

func (b *calendarBody) requested(faults []puntuale.Fault) calendar.NewCalendar {
	return calendar.NewCalendar{Name: b.Name, Address: b.URL, Sequence: b.Sequence, PhoneFrom: b.PhoneFrom, AllDay: b.AllDay, Faults: faults}
}

func (a *api) createCalendar(ctx context.Context, c *control.Client, in *call, p *OnceInput, body *calendarBody) (onceAnswer[calendarAnswer], error) {
	made, err := a.calendars.OfClient(c).Create(ctx, body.requested(in.refused), once(in, p, calendarOf))
	return onceAnswerOf(in, calendarOf(made), err)
}

func calendarOrError(c puntuale.Calendar, err error) (calendarAnswer, error) {
	if err != nil {
		return calendarAnswer{}, err
	}
	return calendarOf(c), nil
}

func (a *api) getCalendar(ctx context.Context, c *control.Client, _ *call, p *oneInput) (calendarAnswer, error) {
	return calendarOrError(a.calendars.OfClient(c).Calendar(ctx, p.ID))
}

func (a *api) changeCalendar(ctx context.Context, c *control.Client, in *call, p *oneInput, body *calendarPatchBody) (calendarAnswer, error) {
	return calendarOrError(a.calendars.OfClient(c).Update(ctx, p.ID, (*calendarBody)(body).requested(in.refused)))
}

func (a *api) deleteCalendar(ctx context.Context, c *control.Client, _ *call, p *oneInput) (messageAnswer, error) {
	if err := a.calendars.OfClient(c).Delete(ctx, p.ID); err != nil {
		return messageAnswer{}, err
	}
	return messageAnswer{"Calendario eliminato"}, nil
}

type calendarEntriesInput struct {
	ListInput
	ID       string `path:"id" doc:"ID of the calendar"`
	Problems string `query:"problems" enum:"true,false" doc:"true: only what was not understood, or could not be booked"`
}

type calendarEntryAnswer struct {
	Reference  string  `json:"reference" doc:"Of its booking: the entry's UID, and its recurrence"`
	Start      *string `json:"start" format:"date-time" doc:"null: it could not be read"`
	AllDay     bool    `json:"all_day"`
	Title      string  `json:"title"`
	Phone      *string `json:"phone" doc:"null: none was understood"`
	Name       *string `json:"nome"`
	Cancelled  bool    `json:"cancelled"`
	Understood bool    `json:"understood"`
	Problem    *string `json:"problem" doc:"Why it was not understood"`
	Warning    *string `json:"warning" doc:"What was guessed, such as a time zone"`
	Booked     bool    `json:"booked" doc:"It has a booking that the calendar has not cancelled"`
	Gone       bool    `json:"gone" doc:"It is not in the calendar any more: its booking is cancelled after two readings that agree"`
	Refused    *string `json:"error" doc:"Why its booking could not be changed"`
}

type calendarEntriesAnswer struct {
	Entries []calendarEntryAnswer `json:"calendar_entries"`
	Next    *string               `json:"next_cursor"`
}

func calendarEntryOf(e puntuale.CalendarEntry) calendarEntryAnswer {
	sentence := func(r puntuale.Reason) *string { return textOrNull(catalogue.Italian.Sentence(r)) }
	return calendarEntryAnswer{
		Reference: e.Reference, Start: stampOrNull(e.Start), AllDay: e.AllDay, Title: e.Title, Phone: textOrNull(e.Phone), Name: textOrNull(e.Name), Cancelled: e.Cancelled,
		Understood: e.Problem == "", Problem: sentence(puntuale.Because(e.Problem)), Warning: sentence(puntuale.Because(e.Warning)), Booked: e.Live(), Gone: e.Missing > 0 && e.Problem == "",
		Refused: sentence(puntuale.ParseReason(e.Refused)),
	}
}

func (a *api) listCalendarEntries(ctx context.Context, c *control.Client, in *call, p *calendarEntriesInput) (calendarEntriesAnswer, error) {
	rows, next, err := a.calendars.OfClient(c).Entries(ctx, p.ID, p.Problems == "true", p.page(in))
	if err != nil {
		return calendarEntriesAnswer{}, err
	}
	return calendarEntriesAnswer{each(rows, calendarEntryOf), textOrNull(next)}, nil
}

type readCalendarAnswer struct {
	At string `json:"read_at" format:"date-time" doc:"When it is read"`
}

func (a *api) readCalendar(ctx context.Context, c *control.Client, _ *call, p *oneInput) (readCalendarAnswer, error) {
	at, err := a.calendars.OfClient(c).ReadNow(ctx, p.ID)
	if err != nil {
		return readCalendarAnswer{}, err
	}
	return readCalendarAnswer{stamp(at)}, nil
}

func (a *api) startCalendar(ctx context.Context, c *control.Client, _ *call, p *oneInput) (calendarAnswer, error) {
	return calendarOrError(a.calendars.OfClient(c).Start(ctx, p.ID))
}

func (a *api) cancelGone(ctx context.Context, c *control.Client, in *call, p *oneInput, body *goneBody) (calendarAnswer, error) {
	if len(in.refused) > 0 {
		return calendarAnswer{}, puntuale.Invalid(in.refused...)
	}
	return calendarOrError(a.calendars.OfClient(c).CancelGone(ctx, p.ID, body.Count))
}
