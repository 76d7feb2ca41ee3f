package person

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/httpkit"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// contactFileRoutes import contacts from a file, and export contacts to a file.
var contactFileRoutes = []page.Route{
	page.Get("/c/{client}/contacts/import", page.ClientSide, puntuale.Staff, askForContacts),
	page.Post("/c/{client}/contacts/import", page.ClientSide, puntuale.Staff, "contact.import", importContacts),
	page.Get("/c/{client}/contacts/export", page.ClientSide, puntuale.Owner, exportContacts),
}

func askForContacts(v *page.Request) error {
	return v.Show(ImportContacts(ContactImportPage{Form: view.NewForm()}))
}

// importContacts reads a file while it arrives. A check shows what an import would store, but stores nothing. The
// browser still has the file, so the person can send the same file for the import.
func importContacts(v *page.Request) error {
	p := ContactImportPage{Form: view.NewForm(), Done: v.Query("do") == "import"}
	v.Quiet = !p.Done
	var found control.ImportedContacts
	err := v.UploadList(p.Form, func(ctx context.Context, file io.Reader, kind string) (err error) {
		found, err = v.Client.ImportContacts(ctx, file, kind, importAsked(p))
		return err
	})
	if err != nil {
		return importRefused(v, p, err)
	}
	return imported(v, p, found)
}

// importAsked returns what the form asks for. If the person chose another row for the header, the columns are guessed
// again.
func importAsked(p ContactImportPage) control.ContactImport {
	ask := control.ContactImport{FileImport: control.FileImport{Check: !p.Done}, Source: p.Form.Value("source")}
	ask.Header, _ = strconv.Atoi(p.Form.Value("header")) // without a number, the import looks for the header
	ask.Header = max(0, ask.Header)
	if p.Form.Value("header") == p.Form.Value("header_before") {
		ask.Columns, ask.Dates = columnsOf(p.Form)
	}
	return ask
}

// imported shows the result of an import or of a check.
func imported(v *page.Request, p ContactImportPage, found control.ImportedContacts) error {
	p.Checked = true
	p.Found = ImportedContacts{
		Rows: found.Rows, Added: found.Added, Changed: found.Changed, Consents: found.Consents,
		ImportedTable: view.ImportedTable{Header: found.Header, Hidden: found.Hidden, Columns: found.Columns, Preview: found.Preview, Refused: found.Refused},
	}
	for i, n := range found.Numbers {
		if at := found.Mapping["phone"]; at < len(p.Found.Preview[i]) {
			p.Found.Preview[i][at] = v.ReadAs(n.Written, n.Phone)
		}
	}
	for _, l := range found.Lines {
		p.Found.Lines = append(p.Found.Lines, view.RefusedRow{Line: l.Line, Reason: l.Reason, Value: l.Value})
	}
	for name, at := range found.Mapping {
		p.Form.Values.Set(view.ColumnName(at), name)
	}
	p.Form.Values.Set("header", strconv.Itoa(found.Header))
	for _, d := range found.Dates {
		at := found.Mapping[d.Field]
		p.Dated = append(p.Dated, at)
		p.showDates(v, d, at)
		if !d.Question.IsZero() {
			p.Open = true
			p.Form.Refuse(view.ColumnName(at), v.Frame.Language.Reason(d.Question))
		} else {
			p.Form.Values.Set(view.ColumnName(at), d.Field+dateMark+string(d.Order))
		}
	}
	if p.Done {
		v.SetAuditTarget(strconv.Itoa(p.Found.Added) + "+" + strconv.Itoa(p.Found.Changed))
		if len(p.Found.Refused) == 0 {
			v.Say("contact.imported", "", "N", p.Found.Added+p.Found.Changed)
			return v.Redirect(v.Frame.Place.Base + "/contacts")
		}
	}
	if p.Refused = refusedFile(v, found.Lines); v.Partial() {
		return v.Show(ContactImportResult(p))
	}
	return v.Show(ImportContacts(p))
}

// importRefused shows the page again, with the fault of the file as a whole.
func importRefused(v *page.Request, p ContactImportPage, err error) error {
	var e *puntuale.Error
	if errors.As(err, &e) && e.Code == puntuale.CodeTooLarge {
		shown := *e
		shown.Code, shown.Faults = puntuale.CodeInvalid, nil
		err = &shown
	}
	return v.ShowRefused(err, p.Form, ContactImportResult(p), ImportContacts(p), "source", "file")
}

// showDates puts the stored form of a column's first dates beside what the file has.
func (p *ContactImportPage) showDates(v *page.Request, d control.ImportedDates, at int) {
	next := 0
	for _, cells := range p.Found.Preview {
		if at < len(cells) && cells[at] != "" && next < len(d.Examples) {
			if read := d.Examples[next]; read.Stored != "" && read.Stored != read.Written {
				cells[at] = read.Written + " → " + dateWords(v.Frame.Language.Day, read.Stored)
			}
			next++
		}
	}
}

// dateMark is between a field and the order of its dates, in the value of a column's choice.
const dateMark = "="

// columnsOf returns the columns and the dates that the person chose, written as in the API's parameters. "" means that the
// server guesses them.
func columnsOf(f *view.Form) (columns, dates string) {
	var pairs, dated []string
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		at, err := strconv.Atoi(strings.TrimPrefix(name, "column."))
		to, order, isDate := strings.Cut(f.Value(name), dateMark)
		if err != nil || to == "" {
			continue
		}
		pairs = append(pairs, to+":"+strconv.Itoa(at+1))
		if isDate {
			dated = append(dated, to+":"+order)
		}
	}
	if len(pairs) == 0 {
		return "", ""
	}
	return strings.Join(pairs, ","), cmp.Or(strings.Join(dated, ","), "none")
}

// refusedFile returns a data URL with the refused rows as CSV, or "" if no row was refused.
func refusedFile(v *page.Request, lines []control.RefusedContact) string {
	if len(lines) == 0 {
		return ""
	}
	var b strings.Builder
	w := v.CSV().Writer(&b)
	_ = w.Write([]string{v.T("blacklist.line"), v.T("contact.phone"), v.T("contact.why"), v.T("contact.value")})
	for _, l := range lines {
		_ = w.Write([]string{strconv.Itoa(l.Line), httpkit.InertCell(l.Phone), v.T("contact.refused." + l.Reason), httpkit.InertCell(v.Frame.Language.Reason(l.Value))})
	}
	w.Flush() // writing to memory cannot fail
	return "data:text/csv;charset=utf-8," + url.PathEscape(b.String())
}

// exportRows is the number of contacts that an export reads at a time.
const exportRows = "1000"

// exportContacts writes all contacts, or those that the filters find, in a form that an import accepts. It reads the contacts
// twice: first to find the names of all fields, then to write the rows.
func exportContacts(v *page.Request) error {
	q := contactQuery(v.Query)
	names := map[string]bool{}
	cursor := ""
	for {
		rows, next, err := v.Client.Contacts(v.Ctx(), q, request.Page{Limit: exportRows, Cursor: cursor})
		if err != nil {
			return err
		}
		for _, c := range rows {
			for name := range c.Fields {
				names[name] = true
			}
		}
		if len(names) > maxExportFields {
			return puntuale.Invalid(puntuale.Fault{Location: "query.tag", Code: faultContactTooManyColumns, Args: []string{strconv.Itoa(maxExportFields)}})
		}
		if cursor = next; cursor == "" {
			break
		}
		if err := v.ReadOn(); err != nil {
			return err
		}
	}
	fields := slices.Sorted(maps.Keys(names))
	header := append([]string{"phone", "nome", "language", "source", "tags"}, fields...)
	return v.SendCSV(v.T("contact.file")+"-"+v.Today(), header, func(cursor string) (rows [][]string, next string, err error) {
		all, next, err := v.Client.Contacts(v.Ctx(), q, request.Page{Limit: exportRows, Cursor: cursor})
		for _, c := range all {
			rows = append(rows, exportedContact(c, fields))
		}
		return rows, next, err
	})
}

const (
	maxExportFields            = 1000
	faultContactTooManyColumns = puntuale.ReasonCode("contact.too_many_columns")
)

func exportedContact(c puntuale.Contact, fields []string) []string {
	cells := []string{httpkit.InertCell(c.Phone), httpkit.InertCell(c.Name), c.Language, httpkit.InertCell(c.Source), httpkit.InertCell(strings.Join(c.Tags, ", "))}
	for _, name := range fields {
		cells = append(cells, httpkit.InertCell(c.Fields[name].Value))
	}
	return cells
}
