package httpapi

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

func registerContactList(a *api) {
	const all, one = "/api/contacts", "/api/contacts/{id}"
	client(a, operation{id: "listContacts", method: http.MethodGet, path: all, strict: true,
		summary:     "List contacts, by their order of addition",
		description: "With name by the name, and with the beginning of a number by the number. A page may be shorter than asked."}, listContacts)
	clientOnce(a, operation{id: "addContact", method: http.MethodPost, path: all, creates: createsAlways, body: contactBody{},
		summary:     "Add a contact, or merge it into the one of its number",
		description: "Given members and fields replace, tags are added.", refusals: []int{http.StatusConflict}}, withBody(addContact))
	client(a, operation{id: "getContact", method: http.MethodGet, path: one, summary: "Get a contact", refusals: []int{http.StatusNotFound}}, getContact)
	client(a, operation{id: "changeContact", method: http.MethodPatch, path: one, body: contactChangeBody{},
		summary:     "Change what the body names of a contact",
		description: "A field that is null or empty is removed.", refusals: []int{http.StatusNotFound}}, withBody(changeContact))
	client(a, operation{id: "deleteContact", method: http.MethodDelete, path: one,
		summary:     "Take a contact off the list",
		description: "Messages and consent stay.", refusals: []int{http.StatusNotFound}}, deleteContact)
	client(a, operation{id: "undoChange", method: http.MethodPost, path: one + "/undo-change", prevents: true,
		summary:     "Undo the latest change of a contact's number",
		description: "Within 30 days. What moved goes back; what came from the new number since stays with it.", refusals: []int{http.StatusNotFound, http.StatusConflict}}, undoChange)
	client(a, operation{id: "importContacts", method: http.MethodPut, path: all + "/import", upload: maxList, strict: true, creates: createsAlways,
		summary:     "Merge the contacts of a file",
		description: "CSV or XLSX with a header row, at most 100 MiB and 1,000,000 rows. A refused row changes nothing, and no other row."}, importContacts)
	documentUpload(a, all+"/import")
	export := operation{id: "exportContacts", method: http.MethodGet, path: all + "/export", strict: true,
		summary: "Download contacts as CSV, with a column for each field"}
	client(a, export, a.exportContacts)
	documentCSV(a, export)
}

// contactBody documents the body of a contact.
type contactBody struct {
	_        closedCheck
	Phone    string        `json:"phone" read:"phone" doc:"A number is taken too"`
	Name     string        `json:"name,omitempty" maxLength:"200" doc:"Also fills the field nome of texts"`
	Language string        `json:"language,omitempty" pattern:"^[a-z]{2}$" doc:"Two letters, such as it"`
	Source   string        `json:"source,omitempty" maxLength:"200" doc:"Where the contact came from"`
	Fields   contactFields `json:"fields,omitempty" doc:"Texts and numbers; a text such as 1990-02-28 or 1990-02-28T10:30 is a date. At most 50"`
	Tags     []string      `json:"tags,omitempty" maxItems:"50" doc:"Of at most 50 characters, without comma and semicolon. Their case counts"`
}

// contactChangeBody documents the body of the call that changes a contact.
type contactChangeBody struct {
	_          closedCheck
	Fields     contactFields          `json:"fields,omitempty" doc:"Only these change; null removes one"`
	AddTags    []string               `json:"add_tags,omitempty" maxItems:"50"`
	RemoveTags []string               `json:"remove_tags,omitempty" maxItems:"50"`
	Name       nullableMember[string] `json:"name,omitzero" maxLength:"200" doc:"Empty: none any more. So with language and source"`
	Language   nullableMember[string] `json:"language,omitzero"`
	Source     nullableMember[string] `json:"source,omitzero" maxLength:"200"`
	Tags       *[]string              `json:"tags,omitempty" maxItems:"50" doc:"Replaces all"`
}

// contactFields are the fields of a contact. It is nil if the body has no fields.
type contactFields map[string]control.ContactValue

// Schema describes the fields to huma.
func (contactFields) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[map[string]any](), true, "")
}

func (f *contactFields) readJSON(o *object, name string, raw json.RawMessage) {
	fields := o.inner(name, raw)
	*f = make(contactFields, len(fields.members))
	for _, name := range slices.Sorted(maps.Keys(fields.members)) {
		var value control.ContactValue
		fields.read(name, "id", &value.Text)
		value.Number = isNumber(fields.members[name])
		(*f)[name] = value
	}
}

type contactsInput struct {
	ListInput
	Tag   string `query:"tag" doc:"A tag, with its case"`
	Phone string `query:"phone" doc:"A number; with * at its end, the beginning of one"`
	Name  string `query:"name" doc:"Words, each the beginning of a word of the name. Case and accents do not matter"`
}

type contactImportInput struct {
	Columns string `query:"columns" doc:"Fields with their columns: phone:Telefono,nome:Nome. Besides fields: phone, nome, tags, consent, language, source. Without it they are guessed by the header"`
	Source  string `query:"source" doc:"Where the contacts come from; needed with a column consent"`
	Dates   string `query:"dates" doc:"Fields that are dates, with the order of their numbers: nascita:dmy,scade:mdy. none: no field is. Without it, each column decides as a whole"`
	Header  string `query:"header" doc:"The line of the header row. Without it the server looks for it, also below a title"`
	Check   string `query:"check" enum:"true,false" doc:"true: store nothing, and answer what would be stored"`
}

type contactExportInput struct {
	Tag string `query:"tag" doc:"Only contacts with this tag"`
}

// ContactAnswer is a contact as callers see it.
type ContactAnswer struct {
	ID       string         `json:"id"`
	Phone    string         `json:"phone"`
	Name     *string        `json:"name"`
	Language *string        `json:"language"`
	Source   *string        `json:"source"`
	Fields   map[string]any `json:"fields" doc:"Texts, numbers, and dates such as 1990-02-28 or 1990-02-28T10:30"`
	Tags     []string       `json:"tags"`
	Created  string         `json:"created_at" format:"date-time"`
	Changed  string         `json:"changed_at" format:"date-time"`
}

type contactsAnswer struct {
	Contacts []ContactAnswer `json:"contacts"`
	Next     *string         `json:"next_cursor"`
}

type importedAnswer struct {
	Rows     int              `json:"rows"`
	Added    int              `json:"added"`
	Changed  int              `json:"changed" doc:"Contacts that were there, and are different now"`
	Consents int              `json:"consents" doc:"Rows whose consent was entered"`
	Header   int              `json:"header" doc:"The line of the header row"`
	Hidden   int              `json:"hidden" doc:"Rows that the spreadsheet hides, for example by a filter. They are read like the others"`
	Columns  []columnAnswer   `json:"columns" doc:"The header, with the field that each column fills"`
	Dates    []datesAnswer    `json:"dates" doc:"The fields that are dates, or may be"`
	Numbers  []numberAnswer   `json:"numbers" doc:"The first numbers of the file"`
	Refused  []refusedAnswer  `json:"refused"`
	Lines    []refusedContact `json:"lines" doc:"The first 1,000 refused rows"`
}

type datesAnswer struct {
	Field    string       `json:"field"`
	Order    *string      `json:"order" doc:"dmy: the day is first; mdy: the month. null: you must say it with dates"`
	Certain  bool         `json:"certain" doc:"false: the dates fit the other order, too"`
	Question *string      `json:"question" doc:"Why you must say it: the column has dates of both orders, cells that are no dates, or years of two digits"`
	Examples []dateAnswer `json:"examples" doc:"The first dates of the file"`
}

type dateAnswer struct {
	Written string  `json:"written" doc:"As the list has it"`
	Stored  *string `json:"stored" doc:"As the server reads it; null: it is no date"`
}

func datesOf(all []control.ImportedDates) []datesAnswer {
	return each(all, func(d control.ImportedDates) datesAnswer {
		out := datesAnswer{Field: d.Field, Order: textOrNull(string(d.Order)), Certain: d.Certain}
		if !d.Question.IsZero() {
			out.Question = textOrNull(catalogue.Message(d.Question))
		}
		out.Examples = each(d.Examples, func(r control.ReadDate) dateAnswer { return dateAnswer{r.Written, textOrNull(r.Stored)} })
		return out
	})
}

type refusedContact struct {
	Line   int     `json:"line"`
	Phone  *string `json:"phone"`
	Reason string  `json:"reason" enum:"bad_row,invalid_phone,duplicate,bad_field,quota"`
	Value  string  `json:"value" doc:"What was refused"`
}

func listContacts(ctx context.Context, c *control.Client, in *call, p *contactsInput) (contactsAnswer, error) {
	rows, next, err := c.Contacts(ctx, control.ContactQuery{Tag: p.Tag, Phone: p.Phone, Name: p.Name}, p.page(in))
	if err != nil {
		return contactsAnswer{}, err
	}
	return contactsAnswer{each(rows, contactOf), textOrNull(next)}, nil
}

func addContact(ctx context.Context, c *control.Client, in *call, p *OnceInput, body *contactBody) (ContactAnswer, error) {
	requested := control.NewContact{Phone: body.Phone, Name: body.Name, Language: body.Language, Source: body.Source, Fields: body.Fields, Tags: body.Tags, Faults: in.refused}
	added, err := c.AddContact(ctx, requested, once(in, p, contactOf))
	if err != nil {
		return ContactAnswer{}, err
	}
	return contactOf(added), nil
}

func getContact(ctx context.Context, c *control.Client, _ *call, p *oneInput) (ContactAnswer, error) {
	found, err := c.Contact(ctx, p.ID)
	if err != nil {
		return ContactAnswer{}, err
	}
	return contactOf(found), nil
}

func changeContact(ctx context.Context, c *control.Client, in *call, p *oneInput, body *contactChangeBody) (ContactAnswer, error) {
	change := control.ContactChange{
		Name: body.Name.orEmpty(), Language: body.Language.orEmpty(), Source: body.Source.orEmpty(),
		Fields: body.Fields, Tags: body.Tags, AddTags: body.AddTags, RemoveTags: body.RemoveTags, Faults: in.refused,
	}
	changed, err := c.UpdateContact(ctx, p.ID, change)
	if err != nil {
		return ContactAnswer{}, err
	}
	return contactOf(changed), nil
}

const saysContactDeleted = "Contatto eliminato"

func deleteContact(ctx context.Context, c *control.Client, _ *call, p *oneInput) (messageAnswer, error) {
	if err := c.DeleteContact(ctx, p.ID); err != nil {
		return messageAnswer{}, err
	}
	return messageAnswer{saysContactDeleted}, nil
}

// undoneAnswer has the members of the event contact.changed_number, which tells the same.
type undoneAnswer struct {
	Phone    string `json:"phone" doc:"The number that the person has again"`
	OldPhone string `json:"old_phone" doc:"The number of the change that was undone"`
}

func undoChange(ctx context.Context, c *control.Client, _ *call, p *oneInput) (undoneAnswer, error) {
	undone, err := c.UndoContactChange(ctx, p.ID)
	if err != nil {
		return undoneAnswer{}, err
	}
	return undoneAnswer{undone.Old, undone.New}, nil
}

func importContacts(ctx context.Context, c *control.Client, in *call, p *contactImportInput) (importedAnswer, error) {
	requested := control.ContactImport{FileImport: fileImport(p.Columns, p.Dates, p.Header, p.Check, in.unknown), Source: p.Source}
	done, err := c.ImportContacts(ctx, in.file, in.kind, requested)
	if err != nil {
		return importedAnswer{}, err
	}
	return importedAnswer{
		Rows: done.Rows, Added: done.Added, Changed: done.Changed, Consents: done.Consents,
		Header: done.Header, Hidden: done.Hidden, Dates: datesOf(done.Dates), Columns: columnsOf(done.Columns, done.Mapping), Numbers: numbersOf(done.Numbers),
		Refused: each(done.Refused, func(g puntuale.RefusedGroup) refusedAnswer { return refusedAnswer(g) }), Lines: linesOf(done.Lines),
	}, nil
}

func linesOf(all []control.RefusedContact) []refusedContact {
	return each(all, func(l control.RefusedContact) refusedContact {
		return refusedContact{l.Line, textOrNull(l.Phone), l.Reason, catalogue.Message(l.Value)}
	})
}

// fileImport reads the parameters of a call with a file. found are the faults that the call has already.
func fileImport(columns, dates, header, check string, found []puntuale.Fault) control.FileImport {
	line, faults := headerLine(header)
	if found = append(found, faults...); !slices.Contains([]string{"", "true", "false"}, check) {
		found = append(found, puntuale.Fault{Location: "query.check", Code: puntuale.FaultNotOneOf, Args: []string{"true, false"}, Value: check})
	}
	return control.FileImport{Columns: columns, Dates: dates, Header: line, Check: check == "true", Faults: found}
}

// maxExportFields is the largest number of columns for fields in an exported table.
const maxExportFields = 1000

const faultListHeader puntuale.ReasonCode = "list.header"

// headerLine reads the line of a list's header. "" is 0: the server looks for the header.
func headerLine(text string) (line int, faults []puntuale.Fault) {
	if text == "" {
		return 0, nil
	}
	line, err := strconv.Atoi(text)
	if err != nil || line < 1 {
		return 0, []puntuale.Fault{{Location: "query.header", Code: faultListHeader, Value: text}}
	}
	return line, nil
}

const faultContactTooManyColumns puntuale.ReasonCode = "contact.too_many_columns"

// exportContacts reads all contacts twice: first to find the columns, then to write the rows page by page. There may be
// a million contacts. While exportContacts writes, the call has no seat, because the caller may read slowly.
func (a *api) exportContacts(ctx context.Context, c *control.Client, in *call, p *contactExportInput) (writtenBytes, error) {
	q := control.ContactQuery{Tag: p.Tag}
	names := map[string]bool{}
	rows, next, err := contactPage(ctx, c, q, "", in.unknown)
	for err == nil {
		for _, r := range rows {
			for name := range r.Fields {
				names[name] = true
			}
		}
		if next == "" || len(names) > maxExportFields {
			break
		}
		in.pass.LeaveSeat()
		if ctx, err = in.pass.Return(ctx); err == nil {
			rows, next, err = contactPage(ctx, c, q, next, nil)
		}
	}
	if err == nil && len(names) > maxExportFields {
		err = puntuale.Invalid(puntuale.Fault{Location: "query.tag", Code: faultContactTooManyColumns, Args: []string{strconv.Itoa(maxExportFields)}})
	}
	if err != nil {
		return nil, err
	}
	fields := slices.Sorted(maps.Keys(names))
	return a.sendCSV(ctx, in, "contacts", append([]string{"phone", "nome", "language", "source", "tags"}, fields...), func(ctx context.Context, cursor string) (all [][]string, next string, err error) {
		rows, next, err := contactPage(ctx, c, q, cursor, nil)
		return each(rows, func(r puntuale.Contact) []string { return contactCells(r, fields) }), next, err
	})
}

func contactPage(ctx context.Context, c *control.Client, q control.ContactQuery, cursor string, unknown []puntuale.Fault) ([]puntuale.Contact, string, error) {
	return c.Contacts(ctx, q, request.Page{Limit: strconv.Itoa(maxRows), Cursor: cursor, Unknown: unknown})
}

// contactCells returns a contact as a row of a table, in the form that an import accepts.
func contactCells(c puntuale.Contact, fields []string) []string {
	cells := []string{inert(c.Phone), inert(c.Name), c.Language, inert(c.Source), inert(strings.Join(c.Tags, ","))}
	for _, name := range fields {
		f := c.Fields[name]
		if f.Kind == puntuale.FieldNumber {
			cells = append(cells, f.Value)
			continue
		}
		cells = append(cells, inert(f.Value))
	}
	return cells
}

func contactOf(c puntuale.Contact) ContactAnswer {
	out := ContactAnswer{ID: c.ID.String(), Phone: c.Phone, Name: textOrNull(c.Name), Language: textOrNull(c.Language), Source: textOrNull(c.Source),
		Fields: make(map[string]any, len(c.Fields)), Tags: append([]string{}, c.Tags...), Created: stamp(c.Created), Changed: stamp(c.Changed)}
	for name, f := range c.Fields {
		out.Fields[name] = f.Value
		if f.Kind == puntuale.FieldNumber {
			out.Fields[name] = json.Number(f.Value)
		}
	}
	return out
}
