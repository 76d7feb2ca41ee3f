package httpapi

import (
	"context"
	"strings"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
	"puntuale/internal/control/bookings"
)

type bookingImportInput struct {
	Columns  string `query:"columns" doc:"Members with their columns: reference:Codice,phone:Telefono,appuntamento:Data. Besides fields: reference, phone, sequence, status. Without it they are guessed by the header"`
	Sequence string `query:"sequence" doc:"ID of the sequence of rows without one"`
	Header   string `query:"header" doc:"The line of the header row. Without it the server looks for it, also below a title"`
	DryRun   string `query:"dry_run" enum:"true,false" doc:"true: store nothing, and answer what would be stored"`
}

type importedBookingsAnswer struct {
	Rows    int              `json:"rows"`
	Made    int              `json:"made" doc:"Bookings that are new"`
	Changed int              `json:"changed" doc:"Bookings that a row changed"`
	Same    int              `json:"same" doc:"Bookings that were already as their row says"`
	Header  int              `json:"header" doc:"The line of the header row"`
	Hidden  int              `json:"hidden" doc:"Rows that the spreadsheet hides. They are read like the others"`
	Columns []columnAnswer   `json:"columns"`
	Refused []refusedAnswer  `json:"refused" doc:"How many rows were refused, by reason"`
	Lines   []refusedContact `json:"lines" doc:"The first 1,000 refused rows"`
}

func importBookings(ctx context.Context, c *control.Client, in *call, p *bookingImportInput) (importedBookingsAnswer, error) {
	header, faults := headerLine(p.Header)
	dry, more := wantsDry(in.query)
	faults = append(append(in.unknown, faults...), more...)
	done, err := bookings.ImportBookings(ctx, c, in.file, in.kind, bookings.Import{
		Columns: p.Columns, Sequence: strings.TrimSpace(p.Sequence), Header: header, Check: dry, Door: puntuale.DoorAPI, Faults: faults,
	})
	if err != nil {
		return importedBookingsAnswer{}, err
	}
	return importedBookingsAnswer{
		Rows: done.Rows, Made: done.Made, Changed: done.Changed, Same: done.Same, Header: done.Header, Hidden: done.Hidden, Columns: columnsOf(done.Columns, done.Mapping),
		Refused: append([]refusedAnswer{}, each(done.Refused, func(g puntuale.RefusedGroup) refusedAnswer { return refusedAnswer(g) })...),
		Lines: append([]refusedContact{}, each(done.Lines, func(l control.RefusedContact) refusedContact {
			return refusedContact{l.Line, textOrNull(l.Phone), l.Reason, catalogue.Message(l.Value)}
		})...),
	}, nil
}
