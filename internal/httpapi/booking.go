package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
	"puntuale/internal/control"
)

func registerBookings(a *api) {
	const all, one = "/api/bookings", "/api/bookings/{reference}"
	put := operation{id: "putBooking", method: http.MethodPut, path: one, body: BookingBody{}, versioned: true,
		summary:  "Make or change a booking: its messages follow. Members left out keep their value; null empties a field",
		refusals: changes(http.StatusNotFound, http.StatusConflict)}
	client(a, put, putBooking)
	put.id, put.path, put.summary = "putBookingByQuery", all, "The same, for references with a slash"
	client(a, put, putBookingByQuery)
	client(a, operation{id: "getBooking", method: http.MethodGet, path: one, versioned: true,
		summary: "Get a booking, with its messages and its history", refusals: []int{http.StatusNotFound}}, getBooking)
	client(a, operation{id: "listBookings", method: http.MethodGet, path: all, strict: true,
		summary: "List bookings, by the date of their appointment; or the one with a reference"}, listBookings)
	cancel := operation{id: "cancelBooking", method: http.MethodDelete, path: one, prevents: true, versioned: true,
		summary: "Cancel a booking", refusals: changes(http.StatusNotFound, http.StatusConflict)}
	client(a, cancel, cancelBooking)
	cancel.id, cancel.path, cancel.summary = "cancelBookingByQuery", all, "The same, for references with a slash"
	client(a, cancel, cancelBookingByQuery)
}

// BookingBody documents the body of a booking.
type BookingBody struct {
	_        struct{}               `additionalProperties:"true"`
	Sequence string                 `json:"sequence,omitempty" read:"id" doc:"A sequence for bookings; needed for a new booking. All other members are fields"`
	Phone    string                 `json:"phone,omitempty" read:"phone" doc:"As in a start; needed for a new booking. A number is taken too"`
	Status   string                 `json:"status,omitempty" enum:"open,confirmed,cancelled,arrived,no_show" doc:"Without If-Match, open reopens only what the API itself cancelled"`
	AsOf     json.RawMessage        `json:"as_of,omitempty" read:"-" doc:"How new this is on your side: a date-time, or a whole number that grows. What is older than the last one changes nothing: 409"`
	Session  nullableMember[string] `json:"id_sessione,omitzero" read:"id" doc:"The session that sends; null: the sequence's"`
	Timezone nullableMember[string] `json:"timezone,omitzero" doc:"IANA name of the zone that days and dates are reckoned in; null: the client's"`
}

type bookingQuery struct {
	DryRun string `query:"dry_run" enum:"true,false" doc:"true: answer what would change, and change and count nothing"`
	Match  string `header:"If-Match" doc:"Entity tags, as ETag showed them: the change is made if what is stored has one of them, else the answer is 412"`
}

type bookingInput struct {
	Reference string `path:"reference" doc:"Your own name of the appointment"`
	bookingQuery
}

type bookingByQueryInput struct {
	Reference string `query:"reference" required:"true" maxLength:"255" doc:"Your own name of the appointment"`
	bookingQuery
}

type bookingOneInput struct {
	Reference string `path:"reference" doc:"Your own name of the appointment"`
}

type bookingCancelInput struct {
	Reference string `path:"reference" doc:"Your own name of the appointment"`
	Silent    string `query:"silent" enum:"true,false" doc:"true: no message tells the person"`
	bookingQuery
}

type bookingCancelByQueryInput struct {
	Reference string `query:"reference" required:"true" maxLength:"255" doc:"Your own name of the appointment"`
	Silent    string `query:"silent" enum:"true,false" doc:"true: no message tells the person"`
	bookingQuery
}

// BookingState is what every answer about a booking begins with.
type BookingState struct {
	Reference string       `json:"reference"`
	Revision  int64        `json:"revision" doc:"Grows with each change"`
	Status    string       `json:"status" enum:"open,confirmed,cancelled,arrived,no_show"`
	Answer    *givenAnswer `json:"answer" doc:"What the person answered about this date; null: nothing"`
	Date      string       `json:"date" format:"date-time" doc:"Of the appointment"`
	Phone     string       `json:"phone"`
	Sequence  string       `json:"sequence"`
}

// givenAnswer is what a person answered.
type givenAnswer struct {
	Does    string `json:"does" enum:"confirm,cancel,answer"`
	Label   string `json:"label" doc:"Of the button"`
	Step    string `json:"step" doc:"Id of the step that asked; empty: the page of the confirmation"`
	At      string `json:"at" format:"date-time"`
	Matched string `json:"matched" enum:"payload,quote,latest,page,word" doc:"How the question was found: by the button's payload, because the person quoted it, on the page of the confirmation, or because it was the one open question and the text names its number or label, or is one of the client's words"`
	Stale   bool   `json:"stale" doc:"true: the question was about another date, so it changed nothing"`
}

// Schema describes the answer to huma: an object, or null.
func (givenAnswer) Schema(r huma.Registry) *huma.Schema {
	type personAnswer givenAnswer
	s := *r.Schema(reflect.TypeFor[personAnswer](), false, "")
	s.Nullable, s.AdditionalProperties = true, nil
	return &s
}

// putBookingAnswer answers a change of a booking.
type putBookingAnswer struct {
	BookingState
	Kept    []string `json:"kept" doc:"Members that kept their value, because another door set it"`
	Changed bool     `json:"changed"`

	ID        []string         `json:"id" doc:"IDs of the messages that are pending now, in the order in which they leave"`
	Planned   []string         `json:"planned" doc:"Of these, the new ones"`
	Moved     []movedMessage   `json:"moved" doc:"Messages that another one replaced"`
	Cancelled []string         `json:"cancelled" doc:"Messages taken back that no other one replaced"`
	InFlight  []string         `json:"in_flight" doc:"Messages that are being sent now, so that nothing could be changed any more"`
	Skipped   []skippedStep    `json:"skipped" doc:"Steps left out"`
	Preview   []previewMessage `json:"preview,omitempty" doc:"In a dry run, the messages that would be planned"`
	StartNotes
	Usage
}

type movedMessage struct {
	From    string  `json:"from"`
	To      *string `json:"to" doc:"null in a dry run"`
	Planned string  `json:"invio_previsto" format:"date-time" doc:"When the new message is to leave"`
}

type bookingAnswer struct {
	BookingState
	Session  *string           `json:"id_sessione" doc:"null: the sequence's"`
	Timezone *string           `json:"timezone" doc:"null: the client's"`
	Fields   map[string]any    `json:"fields"`
	By       string            `json:"status_by" doc:"Through what the status was set: api, page, calendar, rule, stop, person"`
	Created  string            `json:"created_at" format:"date-time"`
	Updated  string            `json:"updated_at" format:"date-time"`
	Messages []bookingMessage  `json:"messages,omitempty"`
	History  []bookingRevision `json:"history,omitempty"`
}

type bookingMessage struct {
	ID         string  `json:"id"`
	Step       string  `json:"step" doc:"The step's id"`
	Occurrence string  `json:"occurrence" doc:"For what the step stands: a date-time, a day, or the revision of a change"`
	State      string  `json:"stato" enum:"PENDING,COMPLETED,FAILED,CANCELLED,RESCHEDULED,BLACKLISTED,ARCHIVED"`
	Planned    *string `json:"invio_previsto" format:"date-time"`
	Left       *string `json:"invio_effettivo" format:"date-time"`
}

type bookingRevision struct {
	Revision int64    `json:"revision"`
	At       string   `json:"at" format:"date-time"`
	By       string   `json:"by"`
	What     []string `json:"what"`
}

type bookingsInput struct {
	ListInput
	Start     string `query:"start" doc:"First day, or moment, of the appointments, in the client's zone"`
	End       string `query:"end" doc:"Last day, or moment, inclusive"`
	Status    string `query:"status" doc:"One or several statuses, with commas between them"`
	Phone     string `query:"phone"`
	Sequence  string `query:"sequence" doc:"ID of a sequence"`
	Text      string `query:"text" maxLength:"200" doc:"Words of the reference or the fields, in any order and case"`
	Reference string `query:"reference" maxLength:"255" doc:"Only the booking with this reference"`
}

type bookingsAnswer struct {
	Bookings []bookingAnswer `json:"bookings"`
	Next     *string         `json:"next_cursor"`
}

func putBooking(ctx context.Context, c *control.Client, in *call, p *bookingInput) (putBookingAnswer, error) {
	return in.putBooking(ctx, c, p.Reference)
}

func putBookingByQuery(ctx context.Context, c *control.Client, in *call, p *bookingByQueryInput) (putBookingAnswer, error) {
	return in.putBooking(ctx, c, p.Reference)
}

func (c *call) putBooking(ctx context.Context, client *control.Client, reference string) (putBookingAnswer, error) {
	o, err := c.object()
	if err != nil {
		return putBookingAnswer{}, err
	}
	var body BookingBody
	o.into(&body)
	if err := o.err(); err != nil {
		return putBookingAnswer{}, err
	}
	known, faults := c.knownVersions()
	dry, more := wantsDry(c.query)
	return c.bookingChanged(dry)(client.PutBooking(ctx, control.BookingCall{
		Noted:     true,
		Reference: reference, Sequence: body.Sequence, Phone: body.Phone, Status: body.Status, AsOf: o.members["as_of"], Fields: o.members,
		Session: body.Session.orEmpty(), Zone: body.Timezone.orEmpty(), DryRun: dry, Known: known, Door: puntuale.DoorAPI, Body: c.body,
		Faults: slices.Concat(*o.refused, faults, more, c.repeated("reference")),
	}))
}

func cancelBooking(ctx context.Context, c *control.Client, in *call, p *bookingCancelInput) (putBookingAnswer, error) {
	return in.cancelBooking(ctx, c, p.Reference, p.Silent)
}

func cancelBookingByQuery(ctx context.Context, c *control.Client, in *call, p *bookingCancelByQueryInput) (putBookingAnswer, error) {
	return in.cancelBooking(ctx, c, p.Reference, p.Silent)
}

func (c *call) cancelBooking(ctx context.Context, client *control.Client, reference, silent string) (putBookingAnswer, error) {
	known, faults := c.knownVersions()
	dry, more := wantsDry(c.query)
	quiet, err := strconv.ParseBool(silent)
	if silent != "" && err != nil {
		faults = append(faults, puntuale.Fault{Location: "query.silent", Code: faultCallNotBool, Value: silent})
	}
	return c.bookingChanged(dry)(client.CancelBooking(ctx, control.BookingCall{
		Noted: true, Reference: reference, Silent: quiet, DryRun: dry, Known: known, Door: puntuale.DoorAPI, Faults: slices.Concat(faults, more, c.repeated("reference", "silent")),
	}))
}

// bookingChanged returns a function that makes the answer to a change of a booking. A dry run has no version.
func (c *call) bookingChanged(dry bool) func(b control.BookingAnswer, err error) (putBookingAnswer, error) {
	return func(b control.BookingAnswer, err error) (putBookingAnswer, error) {
		if err != nil {
			return putBookingAnswer{}, err
		}
		if !dry {
			c.tagged(b.Version())
		}
		return bookingChangeOf(b), nil
	}
}

func bookingChangeOf(b control.BookingAnswer) putBookingAnswer {
	out := putBookingAnswer{
		BookingState: bookingStateOf(b.Booking), Kept: append([]string{}, b.Kept...), Changed: b.Changed, ID: idTexts(b.Pending()), Planned: []string{},
		Moved: []movedMessage{}, Cancelled: []string{}, InFlight: []string{}, Skipped: append([]skippedStep{}, skippedOf(b.Skipped)...), StartNotes: notesOf(b.Notes), Usage: usageOf(b.Usage),
	}
	replaced := map[int]bool{}
	for i, n := range b.New {
		var id *string
		if i < len(b.IDs) {
			id = new(b.IDs[i].String())
			out.Planned = append(out.Planned, *id)
		} else {
			out.Preview = append(out.Preview, previewMessageOf(n.PlannedMessage))
		}
		if n.Before >= 0 {
			replaced[n.Before] = true
			out.Moved = append(out.Moved, movedMessage{b.Before[n.Before].Message.String(), id, stamp(n.Due)})
		}
	}
	for _, w := range b.Withdraw {
		if !replaced[w.Step] {
			out.Cancelled = append(out.Cancelled, b.Before[w.Step].Message.String())
		}
	}
	for _, i := range b.InFlight {
		out.InFlight = append(out.InFlight, b.Before[i].Message.String())
	}
	return out
}

func getBooking(ctx context.Context, c *control.Client, in *call, p *bookingOneInput) (bookingAnswer, error) {
	found, err := c.Booking(ctx, p.Reference)
	if err != nil {
		return bookingAnswer{}, err
	}
	in.tagged(found.Version())
	return bookingViewOf(found), nil
}

func bookingViewOf(v control.BookingView) bookingAnswer {
	out := bookingAnswerOf(v.Booking)
	out.Messages = each(v.Steps, bookingMessageOf)
	out.History = each(v.History, func(e puntuale.BookingEntry) bookingRevision {
		return bookingRevision{e.Revision, stamp(e.At), e.By.String(), append([]string{}, e.What...)}
	})
	return out
}

func listBookings(ctx context.Context, c *control.Client, in *call, p *bookingsInput) (bookingsAnswer, error) {
	if p.Reference != "" {
		found, err := c.Booking(ctx, p.Reference)
		switch {
		case puntuale.CodeOf(err) == puntuale.CodeNotFound:
			return bookingsAnswer{Bookings: []bookingAnswer{}}, nil
		case err != nil:
			return bookingsAnswer{}, err
		}
		return bookingsAnswer{Bookings: []bookingAnswer{bookingViewOf(found)}}, nil
	}
	var statuses []string
	for word := range strings.SplitSeq(p.Status, ",") {
		if word = strings.TrimSpace(word); word != "" {
			statuses = append(statuses, word)
		}
	}
	rows, next, err := c.Bookings(ctx, control.BookingQuery{
		Period: in.period(), Statuses: statuses, Phone: p.Phone, Sequence: p.Sequence, Text: p.Text, Page: p.page(in),
	})
	if err != nil {
		return bookingsAnswer{}, err
	}
	return bookingsAnswer{each(rows, bookingAnswerOf), textOrNull(next)}, nil
}

func bookingStateOf(b puntuale.Booking) BookingState {
	var answer *givenAnswer
	if a := b.Answer; a != nil {
		answer = &givenAnswer{string(a.Does), a.Label, a.Step, stamp(a.At), string(a.Matched), a.Stale}
	}
	return BookingState{b.Reference, b.Revision, b.Status.String(), answer, stamp(b.Date), b.Phone, b.Sequence.String()}
}

func bookingAnswerOf(b puntuale.Booking) bookingAnswer {
	fields := make(map[string]any, len(b.Fields))
	for name, raw := range b.Fields {
		fields[name] = raw
	}
	out := bookingAnswer{BookingState: bookingStateOf(b), Timezone: textOrNull(b.Zone), Fields: fields, By: b.StatusBy.String(), Created: stamp(b.Created), Updated: stamp(b.Updated)}
	if b.Session != 0 {
		out.Session = new(b.Session.String())
	}
	return out
}

func bookingMessageOf(s puntuale.BookingStep) bookingMessage {
	m := bookingMessage{ID: s.Message.String(), Step: s.Key.Step, Occurrence: occurrence(s.Key.Occurrence), State: "ARCHIVED"}
	if s.There {
		m.State, m.Planned, m.Left = s.State.String(), stampOrNull(s.Planned()), stampOrNull(s.Left)
	}
	return m
}

// occurrence shows an occurrence ([puntuale.BookingKey]): revisions are smaller than days, and days than moments.
func occurrence(n int64) string {
	const firstDay, lastDay = 100_01_01, 9999_12_31
	switch {
	case n > lastDay:
		return stamp(time.UnixMicro(n))
	case n >= firstDay:
		return puntuale.DateFromInt(int(n)).String()
	}
	return strconv.FormatInt(n, 10)
}
