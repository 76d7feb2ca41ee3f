package control

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/plan"
	"puntuale/internal/roster"
)

// ImportedDates describes a field of an import whose column has dates, or may have.
type ImportedDates struct {
	Field    string
	Order    roster.DateOrder // "": a person must decide
	Certain  bool             // the dates fit no other order
	Question puntuale.Reason  // why a person must decide; zero: nobody must
	Examples []ReadDate       // the first dates of the file
}

// ReadDate is a date in a list, and what the server stores for it.
type ReadDate struct {
	Written string // as the list has it
	Stored  string // "": it is no date
}

// Codes of the faults that this file reports.
const (
	faultContactDate      puntuale.ReasonCode = "contact.not_date"
	faultContactDates     puntuale.ReasonCode = "contact.dates"
	faultContactDateField puntuale.ReasonCode = "contact.dates_field"
)

// noDates is the value of ContactImport.Dates if no column has dates.
const noDates = "none"

// parseDates reads the fields that have dates. The map has "" for a field whose column decides the order. given is false
// if the columns decide which fields are dates.
func (x *contactReading) parseDates() (orders map[string]roster.DateOrder, given bool, err error) {
	orders = map[string]roster.DateOrder{}
	if x.ask.Dates == "" || x.ask.Dates == noDates {
		return orders, x.ask.Dates != "", nil
	}
	var f request.Faults
	for part := range strings.SplitSeq(x.ask.Dates, ",") {
		field, order, _ := strings.Cut(strings.TrimSpace(part), ":")
		switch {
		case !slices.Contains(x.fields, field):
			f.Add("query.dates", faultContactDateField, nil, field)
		case !slices.Contains([]string{"", string(roster.DayFirst), string(roster.MonthFirst)}, order):
			f.Add("query.dates", puntuale.FaultNotOneOf, order, string(roster.DayFirst)+", "+string(roster.MonthFirst))
		}
		orders[field] = roster.DateOrder(order)
	}
	return orders, true, f.Err()
}

// judge reads all rows, and decides which fields are dates. It judges each column as a whole, so it must run before the
// first row is stored. first are the rows that were read already.
func (x *contactReading) judge(ctx context.Context, first []roster.Row) error {
	orders, given, err := x.parseDates()
	if err != nil {
		return err
	}
	columns := map[string]*roster.DateColumn{}
	for _, name := range x.fields {
		if order, is := orders[name]; is && order != "" || given && !is {
			continue // the caller has decided
		}
		columns[name] = &roster.DateColumn{}
	}
	if len(columns) > 0 {
		err = x.readColumns(ctx, first, columns)
	}
	if err != nil {
		return err
	}
	x.orders = map[string]roster.DateOrder{}
	var f request.Faults
	for _, name := range x.fields {
		d := ImportedDates{Field: name, Order: orders[name], Certain: true}
		if column := columns[name]; column != nil {
			d.Order, d.Question = column.Order()
			d.Certain = column.Certain()
		}
		if d.Order == "" && d.Question.IsZero() {
			if _, is := orders[name]; !is {
				continue
			}
			d.Order = roster.DayFirst // the caller says that it has dates, but most cells are none
		}
		x.orders[name] = d.Order
		d.Examples = x.dateExamples(name, d.Order)
		x.out.Dates = append(x.out.Dates, d)
		if !d.Question.IsZero() && !x.ask.Check {
			f.Add("query.dates", faultContactDates, nil, name, d.Question.Stored())
		}
	}
	return f.Err()
}

// readColumns reads the rest of the file, and shows the cells of some fields to their columns.
func (x *contactReading) readColumns(ctx context.Context, first []roster.Row, columns map[string]*roster.DateColumn) error {
	for {
		for _, row := range first {
			for name, column := range columns {
				if at := x.out.Mapping[name]; at < len(row.Cells) && roster.CellProblem(row.Cells[at]) == "" {
					column.Add(row.Line, row.Cells[at])
				}
			}
		}
		row, err := x.from.Next()
		switch _, faulty := errors.AsType[*roster.RowError](err); {
		case errors.Is(err, io.EOF):
			return nil
		case faulty:
			first = nil
		case err != nil:
			return x.fault(err)
		default:
			first = []roster.Row{row}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// dateExamples returns the dates of a field in the first rows.
func (x *contactReading) dateExamples(name string, order roster.DateOrder) (all []ReadDate) {
	for _, cells := range x.out.Preview {
		if at := x.out.Mapping[name]; at < len(cells) && cells[at] != "" && roster.CellProblem(cells[at]) == "" {
			read := ReadDate{Written: shortened(cells[at])}
			if moment, err := plan.ParseMoment(roster.DayFirstOf(cells[at], order)); err == nil && order != "" {
				read.Stored = x.check.date(moment)
			}
			all = append(all, read)
		}
	}
	return all
}

// datedRows are the rows of a list whose dates in some columns have the month first. It returns them with the day first.
type datedRows struct {
	rowSource
	columns []int
}

func (d *datedRows) Next() (roster.Row, error) {
	row, err := d.rowSource.Next()
	if err != nil {
		return row, err //nolint:wrapcheck // the source's own error
	}
	for _, at := range d.columns {
		if at < len(row.Cells) {
			row.Cells[at] = roster.DayFirstOf(row.Cells[at], roster.MonthFirst)
		}
	}
	return row, nil
}

// monthFirst returns the columns of a new list whose dates have the month first. A column in which some dates have the
// day first is a fault of the list.
func (x *newList) monthFirst() (columns []int) {
	for _, name := range slices.Sorted(maps.Keys(x.dates)) {
		order, question := x.dates[name].Order()
		switch {
		case question.Code == roster.QuestionDatesMixed:
			x.faults.Add("body", faultContactDates, nil, name, question.Stored())
		case order == roster.MonthFirst:
			columns = append(columns, x.columns[name])
		}
	}
	return columns
}
