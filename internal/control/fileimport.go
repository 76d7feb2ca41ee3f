package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/control/upload"
	"puntuale/internal/plan"
	"puntuale/internal/roster"
)

// FileImport is what a caller says about a file of contacts, recipients or bookings.
type FileImport struct {
	Columns string // which column is which field, such as "phone:Telefono,nome:Nome"; "": the import guesses
	Dates   string // the fields that are dates, such as "nascita:dmy,scade"; "none": none is, but a field that always is a date; "": the columns decide
	Header  int    // the line of the header; 0: the import looks for it
	Check   bool   // true: only report what an import would store, and store nothing
	Seen    string // the ImportReport.Seen of the check that a person saw; of other rows, the import only makes a check. "": none
	Faults  []puntuale.Fault
}

// ImportReport is what each import says about its file, before and after it stores anything.
type ImportReport struct {
	Rows           int
	Checked        bool   // nothing was stored
	Seen           string // a hash of the header and the first rows
	Header, Hidden int    // the line of the header, and the number of rows that the spreadsheet hides
	Columns        []string
	Mapping        map[string]int // the column of each field, counted from 0
	Preview        [][]string     // the first rows of the file
	Numbers        []ReadNumber   // the numbers of these rows
	Dates          []ImportedDates
	Refused        []puntuale.RefusedGroup
	Lines          []RefusedContact // the first 1,000 refused rows, by line
}

// ReadNumber is a number in a list, and what the server stores for it.
type ReadNumber struct {
	Written string // as the list has it
	Phone   string // in the form that messages use; "": the text is not a number
}

// ImportedDates describes a field of an import whose column has dates, or may have.
type ImportedDates struct {
	Field    string
	Order    roster.DateOrder // "": a person must decide
	Certain  bool             // the dates fit no other order
	Question puntuale.Reason  // why a person must decide; zero: nobody must
	Examples []ReadDate       // the first dates of the file
}

// ReadDate is a date in a list, and what the server reads in it.
type ReadDate struct {
	Written string // as the list has it
	Stored  string // "": it is no date
}

// RefusedContact is a row that an import refused.
type RefusedContact struct {
	Line   int
	Phone  string
	Reason string
	Value  puntuale.Reason // the value that was refused
}

// Reasons why an import refuses a row, in addition to the reasons that campaigns use.
const (
	RefusedRow   = "bad_row"
	RefusedQuota = "quota"
)

const (
	previewRows     = 5 // how many rows of a list the preview contains
	maxRefusedLines = 1000
)

// Codes of the faults that this file reports.
const (
	faultContactDate      puntuale.ReasonCode = "contact.not_date"
	FaultContactDates     puntuale.ReasonCode = "contact.dates"
	faultContactDateField puntuale.ReasonCode = "contact.dates_field"
	faultTooManyRows      puntuale.ReasonCode = "booking.too_many_rows"
)

// noDates is the value of FileImport.Dates if no column has dates, except those of fields that always are.
const noDates = "none"

// RowSource is a source of the rows of a list.
type RowSource interface {
	Columns() []string
	Next() (roster.Row, error) // the error is io.EOF at the end
}

// ImportReading reads the rows of one import, first to judge them and then to store them. Therefore, no row is stored
// before the whole file is understood. It is not safe for concurrent use.
type ImportReading struct {
	Client *Client
	Ask    FileImport
	Out    *ImportReport
	Place  string // of Ask's members in the call: query or body

	Guess     func() map[string]int                   // finds the columns by Out.Columns and Out.Preview, if Ask has none
	Fields    func(context.Context) ([]string, error) // checks Out.Mapping, and returns the fields that may be dates
	AreDates  func(field string) bool                 // a field has dates, even if most cells of its column are none
	DatesOnly bool                                    // a cell that is no date asks nothing, because its row will be refused
	Look      func(roster.Row)                        // looks at a row during the judgement; nil: nothing does
	Faulty    func(*roster.RowError)                  // gets a row that cannot be read, during the judgement; nil: it is ignored
	Stored    func(number string) string              // the form that messages use; "": it is no number
	Max       int                                     // the largest number of rows; 0: that of lists
	Settled   map[int]bool                            // columns whose dates already have the day first; none is judged or turned again

	zone    *time.Location
	today   puntuale.Date
	phones  roster.Phones
	fields  []string
	columns map[string]*roster.DateColumn // by field; nil: the columns are not known yet
	dates   map[string]roster.Dates
	turns   map[int]roster.Dates // how Dated turns a column, once for all its fields
	refused map[string]int
}

// Judge reads all rows and stores nothing. It finds out which column is which field, and which fields are dates. It
// judges each column of dates as a whole. Codes: invalid, too_large, and those of Fields.
func (x *ImportReading) Judge(ctx context.Context, from RowSource) error {
	if err := x.readAll(ctx, from); err != nil {
		return err
	}
	return x.decide()
}

func (x *ImportReading) readAll(ctx context.Context, from RowSource) (err error) {
	if x.zone, err = x.Client.zone(); err != nil {
		return err
	}
	if x.today, err = x.Client.today(x.Client.control.clock.Now()); err != nil {
		return err
	}
	x.Out.Columns = from.Columns()
	var first []roster.Row
	err = x.Each(ctx, from, func(row roster.Row) error {
		if x.columns != nil {
			x.look(row)
			return nil
		}
		first, x.Out.Preview = append(first, row), append(x.Out.Preview, readable(row.Cells))
		if len(first) < previewRows {
			return nil
		}
		return x.known(ctx, first)
	}, func(bad *roster.RowError) {
		if x.Faulty != nil {
			x.Faulty(bad)
		}
	})
	if err == nil && x.Out.Rows == 0 {
		return puntuale.Invalid(puntuale.Fault{Location: "body", Code: FaultListNoRows})
	}
	if err == nil && x.columns == nil {
		err = x.known(ctx, first)
	}
	if file, ok := from.(*roster.Reader); ok {
		x.Out.Header, x.Out.Hidden = file.Header(), file.Hidden()
	}
	return err
}

// Each calls row for each row of a source, and faulty for each row that cannot be read. It counts the rows in Out.
func (x *ImportReading) Each(ctx context.Context, from RowSource, row func(roster.Row) error, faulty func(*roster.RowError)) error {
	for x.Out.Rows = 0; ; {
		read, err := from.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if x.Out.Rows++; x.Max > 0 && x.Out.Rows > x.Max {
			return puntuale.Invalid(puntuale.Fault{Location: "body", Code: faultTooManyRows, Args: []string{strconv.Itoa(x.Max)}})
		}
		if bad, ok := errors.AsType[*roster.RowError](err); ok {
			faulty(bad)
			continue
		}
		if err != nil {
			return upload.FileFault(err)
		}
		x.phones.First(read.Cells)
		if err := row(read); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// compare looks whether the rows are those that a person saw in a check. If they are not, what the person chose is about
// another file, and the import becomes a check.
func (x *ImportReading) compare() error {
	text, err := json.Marshal([]any{x.Out.Columns, x.Out.Preview})
	if err != nil {
		return fmt.Errorf("hash the first rows: %w", err)
	}
	sum := sha256.Sum256(text)
	x.Out.Seen = hex.EncodeToString(sum[:16])
	if x.Ask.Seen != "" && x.Ask.Seen != x.Out.Seen {
		x.Ask.Columns, x.Ask.Dates, x.Ask.Check = "", "", true
	}
	x.Out.Checked = x.Ask.Check
	return nil
}

// known finds out which column is which field, from the first rows.
func (x *ImportReading) known(ctx context.Context, first []roster.Row) (err error) {
	if err := x.compare(); err != nil {
		return err
	}
	if x.Ask.Columns == "" {
		x.Out.Mapping = x.Guess()
	} else if x.Out.Mapping, err = roster.ParseMapping(x.Ask.Columns, x.Out.Columns); err != nil {
		return upload.MappingFault(err, x.Ask.Columns)
	}
	if at, ok := x.Out.Mapping[columnPhone]; ok {
		x.phones = roster.PhonesOf(x.Out.Columns, at)
	}
	if x.fields, err = x.Fields(ctx); err != nil {
		return err
	}
	if x.dates, err = x.asked(); err != nil {
		return err
	}
	x.columns = map[string]*roster.DateColumn{}
	for _, name := range x.fields {
		if x.settled(name) {
			continue
		}
		dates, is := x.dates[name]
		unsaid := x.Ask.Dates == "" || x.AreDates(name)
		if is && dates.Order == "" || !is && unsaid {
			x.columns[name] = &roster.DateColumn{DatesOnly: x.DatesOnly}
		}
	}
	for i, row := range first {
		x.phones.First(row.Cells)
		x.phones.First(x.Out.Preview[i])
		x.look(row)
		n := ReadNumber{Written: phoneCell(row.Cells, x.Out.Mapping)}
		n.Phone = x.Stored(n.Written)
		x.Out.Numbers = append(x.Out.Numbers, n)
	}
	return nil
}

// asked reads which fields are dates. A field without an order is one whose column decides the order.
func (x *ImportReading) asked() (map[string]roster.Dates, error) {
	dates := map[string]roster.Dates{}
	if x.Ask.Dates == "" || x.Ask.Dates == noDates {
		return dates, nil
	}
	var f request.Faults
	for part := range strings.SplitSeq(x.Ask.Dates, ",") {
		field, order, _ := strings.Cut(strings.TrimSpace(part), ":")
		switch {
		case !slices.Contains(x.fields, field):
			f.Add(x.Place+".dates", faultContactDateField, nil, field)
		case !slices.Contains([]string{"", string(roster.DayFirst), string(roster.MonthFirst)}, order):
			f.Add(x.Place+".dates", puntuale.FaultNotOneOf, order, string(roster.DayFirst)+", "+string(roster.MonthFirst))
		}
		if !x.settled(field) {
			dates[field] = roster.DatesOf(field, roster.DateOrder(order), x.today)
		}
	}
	x.share(&f, dates)
	return dates, f.Err()
}

// share gives the order that the caller says for a field to the other fields of its column. Two orders of one column are a
// fault.
func (x *ImportReading) share(f *request.Faults, dates map[string]roster.Dates) {
	orders := map[int]roster.DateOrder{}
	for _, name := range x.fields {
		at, said := x.Out.Mapping[name], dates[name].Order
		if before := orders[at]; said != "" && before != "" && said != before {
			f.Add(x.Place+".dates", puntuale.FaultNotOneOf, string(said), string(before))
		}
		orders[at] = cmp.Or(orders[at], said)
	}
	for _, name := range x.fields {
		if order := orders[x.Out.Mapping[name]]; order != "" {
			dates[name] = roster.DatesOf(name, order, x.today)
		}
	}
}

// settled reports whether the dates of a field already have the day first, so that a second turn would change them.
func (x *ImportReading) settled(field string) bool {
	at, ok := x.Out.Mapping[field]
	return ok && x.Settled[at]
}

func (x *ImportReading) look(row roster.Row) {
	for name, column := range x.columns {
		if cell, ok := cellAt(row.Cells, x.Out.Mapping, name); ok {
			column.Add(row.Line, cell)
		}
	}
	if x.Look != nil {
		x.Look(row)
	}
}

// decide decides the order of each column of dates. It is a fault if a person must decide, unless the call only checks.
func (x *ImportReading) decide() error {
	var f request.Faults
	x.turns = map[int]roster.Dates{}
	for _, name := range x.fields {
		if x.settled(name) {
			continue
		}
		dates, asked := x.dates[name]
		d := ImportedDates{Field: name, Order: dates.Order, Certain: true}
		if column := x.columns[name]; column != nil {
			d.Order, d.Question = column.Order(x.AreDates(name))
			d.Certain = column.Certain()
		}
		if d.Order == "" && d.Question.IsZero() {
			if !asked {
				continue
			}
			d.Order = roster.DayFirst // the caller says that it has dates, but most cells are none
		}
		x.dates[name] = roster.DatesOf(name, d.Order, x.today)
		if at := x.Out.Mapping[name]; x.turns[at].Order == "" {
			x.turns[at] = x.dates[name]
		}
		d.Examples = x.examples(name)
		x.Out.Dates = append(x.Out.Dates, d)
		if !d.Question.IsZero() && !x.Ask.Check {
			f.Add(x.Place+".dates", FaultContactDates, nil, name, d.Question.Stored())
		}
	}
	return f.Err()
}

// examples returns the dates of a field in the first rows.
func (x *ImportReading) examples(name string) (all []ReadDate) {
	for _, cells := range x.Out.Preview {
		cell, ok := cellAt(cells, x.Out.Mapping, name)
		if !ok || cell == "" {
			continue
		}
		read := ReadDate{Written: shortened(cell)}
		if moment, err := plan.ParseMoment(x.dates[name].DayFirst(cell)); err == nil && x.dates[name].Order != "" {
			read.Stored = storedDate(moment, x.zone)
		}
		all = append(all, read)
	}
	return all
}

// Dated replaces the dates in a row by dates with the day first and a whole year.
func (x *ImportReading) Dated(cells []string) {
	for at, dates := range x.turns {
		if at < len(cells) && roster.CellProblem(cells[at]) == "" {
			cells[at] = dates.DayFirst(cells[at])
		}
	}
}

// Problem returns the fault of the first cell of a field that was not read; nil: there is none.
func (x *ImportReading) Problem(row roster.Row) *roster.RowError {
	for _, at := range slices.Sorted(maps.Values(x.Out.Mapping)) {
		if at < len(row.Cells) {
			if p := roster.CellProblem(row.Cells[at]); p != "" {
				return &roster.RowError{Line: row.Line, Column: at + 1, Problem: p}
			}
		}
	}
	return nil
}

// Refuse counts a refused row.
func (x *ImportReading) Refuse(r RefusedContact) {
	if x.refused == nil {
		x.refused = map[string]int{}
	}
	x.refused[r.Reason]++
	if len(x.Out.Lines) < maxRefusedLines {
		x.Out.Lines = append(x.Out.Lines, r)
	}
}

// RefuseRow counts a row that cannot be read.
func (x *ImportReading) RefuseRow(bad *roster.RowError) {
	x.Refuse(RefusedContact{Line: bad.Line, Reason: RefusedRow, Value: bad.Reason()})
}

// Finish completes the report after all rows were read. reasons lists the reasons in the order of the answer.
func (x *ImportReading) Finish(reasons ...string) {
	for _, reason := range reasons {
		if n := x.refused[reason]; n > 0 {
			x.Out.Refused = append(x.Out.Refused, puntuale.RefusedGroup{Reason: reason, Count: n})
		}
	}
	slices.SortFunc(x.Out.Lines, func(a, b RefusedContact) int { return a.Line - b.Line })
}

func (x *ImportReading) stores() bool { return !x.Ask.Check }

// readable returns the cells of a row. Those that were not read are blank.
func readable(cells []string) []string {
	cells = slices.Clone(cells)
	for i, cell := range cells {
		if roster.CellProblem(cell) != "" {
			cells[i] = ""
		}
	}
	return cells
}

// shortened returns at most the first 100 characters of a cell's text.
func shortened(cell string) string {
	const limit = 100
	if runes := []rune(cell); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return cell
}

// cellAt returns the text of a field in a row. ok is false if the row has no such cell, or if the cell was not read.
func cellAt(cells []string, mapping map[string]int, name string) (text string, ok bool) {
	at, ok := mapping[name]
	if !ok || at >= len(cells) || roster.CellProblem(cells[at]) != "" {
		return "", false
	}
	return cells[at], true
}

// phoneCell returns the text of a row's number, or "" if the row has none.
func phoneCell(cells []string, mapping map[string]int) string {
	text, _ := cellAt(cells, mapping, columnPhone)
	return shortened(text)
}
