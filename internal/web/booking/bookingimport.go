package booking

import (
	"context"
	"io"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control/bookings"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// importRoutes import bookings from a file.
var importRoutes = []page.Route{
	page.Get("/c/{client}/bookings/import", page.ClientSide, puntuale.Staff, askForFile),
	page.Post("/c/{client}/bookings/import", page.ClientSide, puntuale.Staff, "booking.import", importFile),
}

// BookingImport is the page that imports a file of bookings: first a check, and then the import.
type BookingImport struct {
	Form      *view.Form
	Sequences []view.Option // those for bookings; empty: there is none
	Found     ImportedFile
	Checked   bool // Found is set
	Done      bool // the result of the import; false: of the check
}

// ImportedFile is what an import did, or would do.
type ImportedFile struct {
	view.ImportedTable
	Rows, Made, Changed, Same int
}

func askForFile(v *page.Request) error {
	p := BookingImport{Form: view.NewForm("sequence", v.Query("sequence"))}
	_, all, err := page.BookingChoices(v)
	if p.Sequences = all; err != nil {
		return err
	}
	return v.Show(Import(p))
}

// importFile reads a file while it arrives. The browser still has the file after a check, so the person can send it again
// for the import.
func importFile(v *page.Request) error {
	p := BookingImport{Form: view.NewForm()}
	_, all, err := page.BookingChoices(v)
	if p.Sequences = all; err != nil {
		return err
	}
	var found bookings.ImportedBookings
	err = v.UploadList(p.Form, func(ctx context.Context, file io.Reader, kind string) (err error) {
		ask := p.asked(v)
		found, err = bookings.ImportBookings(ctx, v.Client, file, kind, ask)
		return err
	})
	if err != nil {
		return v.ShowRefused(err, p.Form, ImportResult(p), Import(p), "sequence", "file")
	}
	p.Checked, p.Done = true, !found.Checked
	p.Found = ImportedFile{Rows: found.Rows, Made: found.Made, Changed: found.Changed, Same: found.Same, ImportedTable: v.ShowImport(p.Form, found.ImportReport)}
	if p.Done {
		v.SetAuditTarget(strconv.Itoa(found.Made) + "+" + strconv.Itoa(found.Changed))
	}
	if v.Partial() {
		return v.Show(ImportResult(p))
	}
	return v.Show(Import(p))
}

// asked returns what the form asks for. If the person chose another sequence, the columns are guessed again.
func (p *BookingImport) asked(v *page.Request) bookings.Import {
	sequence := p.Form.Value("sequence")
	return bookings.Import{FileImport: v.FileImport(p.Form, sequence != p.Form.Value("sequence_before")), Sequence: sequence, Door: puntuale.DoorPage}
}

// ownColumns are the members of a booking that are not fields.
var ownColumns = []string{"reference", "phone", "status", "sequence"}

// columnOptions returns the options for the meaning of a column.
func (p *BookingImport) columnOptions(ctx context.Context, at int) []view.Option {
	all := []view.Option{{Text: view.T(ctx, "contact.column_none")}}
	for _, own := range ownColumns {
		all = append(all, view.Option{Value: own, Text: view.T(ctx, "booking.import_column."+own)})
	}
	names := []string{view.ColumnField(p.Found.Columns[at], ownColumns)}
	for name := range p.Form.Values {
		if field, _, _ := strings.Cut(p.Form.Value(name), view.DateMark); strings.HasPrefix(name, "column.") && !slices.Contains(ownColumns, field) {
			names = append(names, field)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name != "" {
			all = append(all, p.Found.FieldOptions(ctx, p.Form, at, name)...)
		}
	}
	return all
}

// action returns the words of the button that imports; "": nothing can be imported.
func (p *BookingImport) action(ctx context.Context) string {
	if p.Found.Open || p.Found.Made+p.Found.Changed == 0 {
		return ""
	}
	return view.T(ctx, "booking.import_do", "N", p.Found.Made+p.Found.Changed)
}

func whyRefused(ctx context.Context, reason string) string {
	return view.T(ctx, "booking.import_refused."+reason)
}
