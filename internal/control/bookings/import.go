package bookings

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/control/upload"
	"puntuale/internal/plan"
	"puntuale/internal/roster"
)

// Import is a request to import a file of bookings.
type Import struct {
	Columns  string // which column is which member, as for contacts; "": the import guesses
	Sequence string // of rows that have none
	Header   int    // the line of the header; 0: the import looks for it
	Check    bool   // only report what an import would do
	Door     puntuale.BookingDoor
	Faults   []puntuale.Fault
}

// ImportedBookings is the result of an import, or of a check before an import.
type ImportedBookings struct {
	Rows, Made, Changed, Same int
	Header, Hidden            int
	Columns                   []string
	Mapping                   map[string]int // the column of reference, phone, sequence, status and each field, counted from 0
	Preview                   [][]string     // the first rows of the file
	Refused                   []puntuale.RefusedGroup
	Lines                     []control.RefusedContact // the first 1,000 refused rows, by line
}

// MaxImport is how many rows a file of bookings may have.
const MaxImport = 50_000

const (
	shownRows    = 5
	shownLines   = 1000
	rowsTogether = 200 // how many rows are read before they are stored
)

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

// Codes of the faults in this file.
const (
	faultNoReference puntuale.ReasonCode = "booking.no_reference_column"
	faultTooManyRows puntuale.ReasonCode = "booking.too_many_rows"
)

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
	x := &bookingReading{client: client, part: client.Uncounted(), ask: ask, seen: map[string]bool{}, refused: map[string]int{}}
	list := control.UploadedList{File: file, Kind: kind, Header: ask.Header, Stores: !ask.Check}
	err := client.ReadTwice(ctx, list, func(r *roster.Reader) error { return x.judge(ctx, r) }, func(r *roster.Reader) error { return x.read(ctx, r) })
	return x.out, err
}

// bookingReading is the state of one import.
type bookingReading struct {
	client, part *control.Client
	ask          Import
	orders       map[string]roster.DateOrder // of the columns whose dates have the month first
	seen         map[string]bool             // references
	rows         []bookingRow

	mu      sync.Mutex // protects the following while rows are stored at the same time
	refused map[string]int
	out     ImportedBookings
}

type bookingRow struct {
	line int
	call control.BookingCall
}

// judge reads the whole file, and stores nothing. It finds out which column is which member, and how dates are written.
func (x *bookingReading) judge(ctx context.Context, r *roster.Reader) error {
	x.out.Columns, x.out.Header = r.Columns(), r.Header()
	columns := map[string]*roster.DateColumn{}
	rows := 0
	for {
		row, err := r.Next()
		_, faulty := errors.AsType[*roster.RowError](err)
		switch rows++; {
		case errors.Is(err, io.EOF):
			return x.judged(ctx, rows-1, columns)
		case rows > MaxImport:
			return puntuale.Invalid(puntuale.Fault{Location: "body", Code: faultTooManyRows, Args: []string{strconv.Itoa(MaxImport)}})
		case faulty:
			continue
		case err != nil:
			return upload.FileFault(err)
		}
		if len(x.out.Preview) < shownRows {
			x.out.Preview = append(x.out.Preview, row.Cells)
		}
		for i, cell := range row.Cells {
			if !roster.IsDate(cell) { // the main date's row is refused, and the column's order is that of its dates
				continue
			}
			name := strconv.Itoa(i)
			if columns[name] == nil {
				columns[name] = &roster.DateColumn{}
			}
			columns[name].Add(row.Line, cell)
		}
	}
}

func (x *bookingReading) judged(ctx context.Context, rows int, columns map[string]*roster.DateColumn) error {
	if rows == 0 {
		return puntuale.Invalid(puntuale.Fault{Location: "body", Code: control.FaultListNoRows})
	}
	date, err := x.mainDate(ctx)
	if err != nil {
		return err
	}
	if x.ask.Columns == "" {
		x.guess(date)
	} else if x.out.Mapping, err = roster.ParseMapping(x.ask.Columns, x.out.Columns); err != nil {
		return upload.MappingFault(err, x.ask.Columns)
	}
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
	x.orders = map[string]roster.DateOrder{}
	for _, name := range slices.Sorted(maps.Keys(x.out.Mapping)) {
		if isMember(name) {
			continue
		}
		if slices.Contains(plan.ReservedInBookings, name) {
			f.Add("query.columns", plan.FaultBookingReserved, nil, name)
		}
		if column := columns[strconv.Itoa(x.out.Mapping[name])]; column != nil {
			order, question := column.Order()
			if x.orders[name] = order; name == date && !question.IsZero() {
				f.Because("query.columns", question, nil)
			}
		}
	}
	return f.Err()
}

func isMember(name string) bool { _, own := headers[name]; return own || name == memberPhone }

// mainDate returns the name of the main date in the sequence of the whole file; "": it has none. Codes: invalid.
func (x *bookingReading) mainDate(ctx context.Context) (string, error) {
	if x.ask.Sequence == "" {
		return "", nil
	}
	s, err := x.client.Sequence(ctx, x.ask.Sequence)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		return "", puntuale.Invalid(puntuale.Fault{Location: "query.sequence", Code: control.FaultNotOwnSequence})
	case err != nil:
		return "", err
	case s.Booking == "":
		return "", puntuale.Invalid(puntuale.Fault{Location: "query.sequence", Code: puntuale.FaultBookingNotForBookings, Value: x.ask.Sequence})
	}
	return s.Booking, nil
}

// guess finds the columns of members. Each other column that has a header becomes a field.
func (x *bookingReading) guess(date string) {
	wanted := slices.Clone(dateHeaders)
	for _, words := range headers {
		wanted = append(wanted, words...)
	}
	named := roster.Guess(x.out.Columns, x.out.Preview, append(wanted, date))
	x.out.Mapping = map[string]int{}
	taken := map[int]bool{}
	take := func(member string, words ...string) {
		for _, word := range words {
			at, ok := named[word]
			if _, has := x.out.Mapping[member]; ok && !has && !taken[at] && member != "" {
				x.out.Mapping[member], taken[at] = at, true
			}
		}
	}
	take(memberPhone, memberPhone)
	for _, member := range []string{memberSequence, memberStatus, memberReference} {
		take(member, headers[member]...)
	}
	take(date, append([]string{date}, dateHeaders...)...)
	for i, column := range x.out.Columns {
		name := control.FieldNameOf(column)
		if _, twice := x.out.Mapping[name]; !taken[i] && !twice && plan.IsFieldName(name) && !slices.Contains(plan.ReservedInBookings, name) {
			x.out.Mapping[name] = i
		}
	}
}

// read stores the rows.
func (x *bookingReading) read(ctx context.Context, r *roster.Reader) error {
	if !x.ask.Check {
		if _, err := x.client.SpendCall(ctx); err != nil {
			return err
		}
	}
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		x.out.Rows++
		if faulty, ok := errors.AsType[*roster.RowError](err); ok {
			x.refuse(control.RefusedContact{Line: faulty.Line, Reason: control.RefusedRow, Value: faulty.Reason()})
			continue
		}
		if err != nil {
			return upload.FileFault(err)
		}
		if x.add(row); len(x.rows) == rowsTogether {
			if err := x.store(ctx); err != nil {
				return err
			}
		}
	}
	if err := x.store(ctx); err != nil {
		return err
	}
	for _, reason := range []string{control.RefusedRow, puntuale.RefusedDuplicate, puntuale.RefusedPhone, puntuale.RefusedField} {
		if n := x.refused[reason]; n > 0 {
			x.out.Refused = append(x.out.Refused, puntuale.RefusedGroup{Reason: reason, Count: n})
		}
	}
	slices.SortFunc(x.out.Lines, func(a, b control.RefusedContact) int { return a.Line - b.Line })
	x.out.Hidden = r.Hidden()
	return nil
}

func (x *bookingReading) refuse(r control.RefusedContact) {
	x.refused[r.Reason]++
	if len(x.out.Lines) < shownLines {
		x.out.Lines = append(x.out.Lines, r)
	}
}

// add makes a row's call, or refuses the row. An empty cell leaves a booking's value as it is.
func (x *bookingReading) add(row roster.Row) {
	call := control.BookingCall{Sequence: x.ask.Sequence, DryRun: x.ask.Check, Door: x.ask.Door, Unseen: true, Fields: map[string]json.RawMessage{}}
	for name, at := range x.out.Mapping {
		if at >= len(row.Cells) || strings.TrimSpace(row.Cells[at]) == "" {
			continue
		}
		if p := roster.CellProblem(row.Cells[at]); p != "" {
			x.refuse(control.RefusedContact{Line: row.Line, Reason: control.RefusedRow, Value: (&roster.RowError{Line: row.Line, Column: at + 1, Problem: p}).Reason()})
			return
		}
		cell := strings.TrimSpace(row.Cells[at])
		switch name {
		case memberReference:
			call.Reference = cell
		case memberPhone:
			call.Phone = cmp.Or(x.client.Listed(cell), cell)
		case memberSequence:
			call.Sequence = cell
		case memberStatus:
			call.Status = cmp.Or(statusWords[strings.ToLower(cell)], strings.ToLower(cell))
		default:
			text, err := json.Marshal(roster.DayFirstOf(cell, x.orders[name]))
			if err != nil {
				continue // encoding a text cannot fail
			}
			call.Fields[name] = text
		}
	}
	if x.seen[call.Reference] && call.Reference != "" {
		x.refuse(control.RefusedContact{Line: row.Line, Phone: call.Phone, Reason: puntuale.RefusedDuplicate, Value: puntuale.Quoted(call.Reference)})
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
			x.refuse(refusedRow(row, request.FaultsOf(err)[0]))
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
