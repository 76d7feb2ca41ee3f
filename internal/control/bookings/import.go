package bookings

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/plan"
	"puntuale/internal/roster"
)

// Import is a request to import a file of bookings.
type Import struct {
	control.FileImport
	Sequence string // of rows that have none
	Door     puntuale.BookingDoor
}

// ImportedBookings is the result of an import, or of a check before an import.
type ImportedBookings struct {
	control.ImportReport
	Made, Changed, Same int
}

// MaxImport is how many rows a file of bookings may have.
const MaxImport = 50_000

// rowsTogether is how many rows are read before they are stored.
const rowsTogether = 200

// Members of a booking that are not fields.
const (
	memberReference = puntuale.ReferenceField
	memberPhone     = "phone"
	memberSequence  = "sequence"
	memberStatus    = "status"
)

// headers maps a member to its usual headers, in small letters and without accents and punctuation.
var headers = map[string][]string{
	memberReference: {"reference", "riferimento", "rif", "codice", "idappuntamento", "appointmentid", "bookingid", "idprenotazione", "numero", "id"},
	memberSequence:  {"sequence", "sequenza"},
	memberStatus:    {"status", "stato"},
}

// dateHeaders are the usual headers of the main date.
var dateHeaders = []string{"appuntamento", "data", "dataeora", "dataora", "quando", "inizio", "start", "date", "datetime", "appointment"}

// faultNoReference is the fault of a file without a column of references.
const faultNoReference puntuale.ReasonCode = "booking.no_reference_column"

// ImportBookings makes or changes a booking for each row of a CSV or XLSX file, as a call for each would. A refused row
// changes no booking, and does not affect other rows. The import counts as one call. After a failure it may be repeated.
// Codes: invalid, too_large, overloaded, conflict (the client is held), cap_reached, forbidden.
func ImportBookings(ctx context.Context, client *control.Client, file io.Reader, kind string, ask Import) (ImportedBookings, error) {
	if err := client.MayCreate(); err != nil {
		return ImportedBookings{}, err
	}
	if err := request.Faults(ask.Faults).Err(); err != nil {
		return ImportedBookings{}, err
	}
	if err := client.Unheld(ctx); err != nil {
		return ImportedBookings{}, err
	}
	date, err := mainDate(ctx, client, ask.Sequence)
	if err != nil {
		return ImportedBookings{}, err
	}
	x := &bookingReading{part: client.Uncounted(), ask: ask, date: date, seen: map[string]bool{}}
	x.ImportReading = control.ImportReading{
		Client: client, Ask: ask.FileImport, Out: &x.out.ImportReport, Place: "query", Guess: x.guess, Fields: x.checkMapping,
		AreDates: func(field string) bool { return field == date }, DatesOnly: true, Stored: client.Listed, Max: MaxImport,
	}
	list := control.UploadedList{File: file, Kind: kind, Header: ask.Header, Stores: func() bool { return !x.Ask.Check }}
	err = client.ReadTwice(ctx, list, func(r *roster.Reader) error { return x.Judge(ctx, r) }, func(r *roster.Reader) error { return x.read(ctx, r) })
	return x.out, err
}

// bookingReading is the state of one import.
type bookingReading struct {
	control.ImportReading
	part *control.Client
	ask  Import
	date string          // the main date of the sequence of the whole file; "": it has none
	seen map[string]bool // references
	rows []bookingRow

	mu  sync.Mutex // protects the following, and Refuse, while rows are stored at the same time
	out ImportedBookings
}

type bookingRow struct {
	line int
	call control.BookingCall
}

// checkMapping checks the columns, and returns those that are fields.
func (x *bookingReading) checkMapping(context.Context) (fields []string, err error) {
	var f request.Faults
	for _, own := range []struct {
		name string
		code puntuale.ReasonCode
	}{{memberReference, faultNoReference}, {memberPhone, control.FaultListNoPhoneColumn}} {
		if _, ok := x.out.Mapping[own.name]; !ok {
			f.Add("query.columns", own.code, nil, roster.Named(x.out.Columns))
		}
	}
	if _, ok := x.out.Mapping[memberSequence]; !ok && x.ask.Sequence == "" {
		f.Add("query.sequence", puntuale.FaultRequired, nil)
	}
	for _, name := range slices.Sorted(maps.Keys(x.out.Mapping)) {
		if slices.Contains(plan.ReservedInBookings, name) && !isMember(name) {
			f.Add("query.columns", plan.FaultBookingReserved, nil, name)
		}
		if !isMember(name) {
			fields = append(fields, name)
		}
	}
	return fields, f.Err()
}

func isMember(name string) bool { _, own := headers[name]; return own || name == memberPhone }

// mainDate returns the name of the main date in a sequence; "": there is no sequence. Codes: invalid.
func mainDate(ctx context.Context, client *control.Client, sequence string) (string, error) {
	if sequence == "" {
		return "", nil
	}
	s, err := client.Sequence(ctx, sequence)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		return "", puntuale.Invalid(puntuale.Fault{Location: "query.sequence", Code: control.FaultNotOwnSequence})
	case err != nil:
		return "", err
	case s.Booking == "":
		return "", puntuale.Invalid(puntuale.Fault{Location: "query.sequence", Code: puntuale.FaultBookingNotForBookings, Value: sequence})
	}
	return s.Booking, nil
}

// guess finds the columns of members. Each other column that has a header becomes a field.
func (x *bookingReading) guess() map[string]int {
	wanted := slices.Clone(dateHeaders)
	for _, words := range headers {
		wanted = append(wanted, words...)
	}
	named := roster.Guess(x.out.Columns, x.out.Preview, append(wanted, x.date))
	mapping := map[string]int{}
	taken := map[int]bool{}
	take := func(member string, words ...string) {
		for _, word := range words {
			at, ok := named[word]
			if _, has := mapping[member]; ok && !has && !taken[at] && member != "" {
				mapping[member], taken[at] = at, true
			}
		}
	}
	take(memberPhone, memberPhone)
	for _, member := range []string{memberSequence, memberStatus, memberReference} {
		take(member, headers[member]...)
	}
	take(x.date, append([]string{x.date}, dateHeaders...)...)
	for i, column := range x.out.Columns {
		name := control.FieldNameOf(column)
		if _, twice := mapping[name]; !taken[i] && !twice && plan.IsFieldName(name) && !slices.Contains(plan.ReservedInBookings, name) {
			mapping[name] = i
		}
	}
	return mapping
}

// read stores the rows.
func (x *bookingReading) read(ctx context.Context, r *roster.Reader) error {
	if !x.Ask.Check {
		if _, err := x.Client.SpendCall(ctx); err != nil {
			return err
		}
	}
	err := x.Each(ctx, r, func(row roster.Row) error {
		if x.add(row); len(x.rows) == rowsTogether {
			return x.store(ctx)
		}
		return nil
	}, x.RefuseRow)
	if err == nil {
		err = x.store(ctx)
	}
	x.Finish(control.RefusedRow, puntuale.RefusedDuplicate, puntuale.RefusedPhone, puntuale.RefusedField)
	return err
}

// add makes a row's call, or refuses the row. An empty cell leaves a booking's value as it is.
func (x *bookingReading) add(row roster.Row) {
	call := control.BookingCall{Sequence: x.ask.Sequence, DryRun: x.Ask.Check, Door: x.ask.Door, Unseen: true, Fields: map[string]json.RawMessage{}}
	if bad := x.Problem(row); bad != nil {
		x.RefuseRow(bad)
		return
	}
	x.Dated(row.Cells)
	for name, at := range x.out.Mapping {
		if at >= len(row.Cells) || strings.TrimSpace(row.Cells[at]) == "" {
			continue
		}
		cell := strings.TrimSpace(row.Cells[at])
		switch name {
		case memberReference:
			call.Reference = cell
		case memberPhone:
			call.Phone = cmp.Or(x.Client.Listed(cell), cell)
		case memberSequence:
			call.Sequence = cell
		case memberStatus:
			call.Status = cmp.Or(statusWords[strings.ToLower(cell)], strings.ToLower(cell))
		default:
			text, err := json.Marshal(cell)
			if err != nil {
				continue // encoding a text cannot fail
			}
			call.Fields[name] = text
		}
	}
	if x.seen[call.Reference] && call.Reference != "" {
		x.Refuse(control.RefusedContact{Line: row.Line, Phone: call.Phone, Reason: puntuale.RefusedDuplicate, Value: puntuale.Quoted(call.Reference)})
		return
	}
	x.seen[call.Reference] = true
	x.rows = append(x.rows, bookingRow{row.Line, call})
}

// statusWords maps what people write to a status.
var statusWords = map[string]string{
	"aperto": "open", "aperta": "open", "da confermare": "open", "confermato": "confirmed", "confermata": "confirmed", "annullato": "cancelled", "annullata": "cancelled",
	"canceled": "cancelled", "venuto": "arrived", "venuta": "arrived", "arrivato": "arrived", "arrivata": "arrived", "assente": "no_show", "no show": "no_show",
}

// store makes the calls of the collected rows, each in a transaction of its own.
func (x *bookingReading) store(ctx context.Context) error {
	defer func() { x.rows = x.rows[:0] }()
	return each(ctx, x.rows, func(ctx context.Context, row bookingRow) error {
		answer, err := x.part.PutBooking(ctx, row.call)
		x.mu.Lock()
		defer x.mu.Unlock()
		switch puntuale.CodeOf(err) {
		case puntuale.CodeInvalid, puntuale.CodeNotFound, puntuale.CodeConflict, puntuale.CodeStale:
			x.Refuse(refusedRow(row, request.FaultsOf(err)[0]))
			return nil
		}
		switch {
		case err != nil:
			return err
		case !answer.Changed:
			x.out.Same++
		case answer.Revision == 1:
			x.out.Made++
		default:
			x.out.Changed++
		}
		return nil
	})
}

func refusedRow(row bookingRow, f puntuale.Fault) control.RefusedContact {
	reason := puntuale.Because(f.Code, f.Args...)
	_, member, _ := strings.Cut(f.Location, ".")
	if member == memberPhone && row.call.Phone != "" {
		return control.RefusedContact{Line: row.line, Reason: puntuale.RefusedPhone, Value: puntuale.Quoted(row.call.Phone)}
	}
	if member != "" {
		reason = puntuale.Because(control.FaultContactValue, member, reason.Stored())
	}
	return control.RefusedContact{Line: row.line, Phone: row.call.Phone, Reason: puntuale.RefusedField, Value: reason}
}
