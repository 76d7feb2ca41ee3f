package person

import (
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
	p := ContactImportPage{Form: view.NewForm()}
	var found control.ImportedContacts
	err := v.UploadList(p.Form, func(ctx context.Context, file io.Reader, kind string) (err error) {
		ask := v.FileImport(p.Form, false)
		found, err = v.Client.ImportContacts(ctx, file, kind, control.ContactImport{FileImport: ask, Source: p.Form.Value("source")})
		return err
	})
	if err != nil {
		return importRefused(v, p, err)
	}
	return imported(v, p, found)
}

// imported shows the result of an import or of a check.
func imported(v *page.Request, p ContactImportPage, found control.ImportedContacts) error {
	p.Checked, p.Done = true, !found.Checked
	p.Found = ImportedContacts{Rows: found.Rows, Added: found.Added, Changed: found.Changed, Consents: found.Consents, ImportedTable: v.ShowImport(p.Form, found.ImportReport)}
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
