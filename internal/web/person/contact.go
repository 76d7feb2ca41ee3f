package person

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// contactRoutes are the pages of a client's contacts.
var contactRoutes = []page.Route{
	page.Get("/c/{client}/contacts", page.ClientSide, puntuale.Reader, contacts),
	page.Get("/c/{client}/contacts/new", page.ClientSide, puntuale.Staff, newContact),
	page.Post("/c/{client}/contacts", page.ClientSide, puntuale.Staff, "contact.create", addContact),
	page.Get("/c/{client}/contacts/all", page.ClientSide, puntuale.Staff, askTag),
	page.Post("/c/{client}/contacts/all", page.ClientSide, puntuale.Staff, "contact.all", tagAll),
	page.Get("/c/{client}/contacts/{id}/edit", page.ClientSide, puntuale.Staff, editContact),
	page.Post("/c/{client}/contacts/{id}/edit", page.ClientSide, puntuale.Staff, "contact.change", changeContact),
	page.Get("/c/{client}/contacts/{id}/delete", page.ClientSide, puntuale.Staff, askToDelete),
	page.Post("/c/{client}/contacts/{id}/delete", page.ClientSide, puntuale.Staff, "contact.delete", deleteContact),
}

const contactRows = "50"

// dialled matches a phone number, or the beginning of a number, in a search field that also accepts names.
var dialled = regexp.MustCompile(`^\+?[0-9][0-9 ()./-]*$`)

// countContacts counts what the filters find; see [page.Total].
func countContacts(v *page.Request, q control.ContactQuery) (int, error) {
	return page.Total(v.Client.CountContacts(v.Ctx(), q, puntuale.MaxCounted))
}

// newest is the value of the parameter "sort" if the newest contact comes first.
const newest = "newest"

// contactQuery reads the filters in an address or a form.
func contactQuery(value func(string) string) (q control.ContactQuery) {
	q.Tag, q.Newest = value("tag"), value("sort") == newest
	switch text := strings.TrimSpace(value("q")); {
	case dialled.MatchString(text):
		q.Phone = text + "*"
	default:
		q.Name = text
	}
	return q
}

func contacts(v *page.Request) (err error) {
	p := ContactList{Query: strings.TrimSpace(v.Query("q")), Tag: v.Query("tag"), Newest: v.Query("sort") == newest, Cursor: v.Query("cursor"), Form: &view.Form{Values: v.HTTP.URL.Query()}}
	tags, err := v.Client.ContactTags(v.Ctx())
	if err != nil {
		return err
	}
	p.Tags, p.Tagged = slices.Sorted(maps.Keys(tags)), tags
	p.Rows, p.Next, err = v.Client.Contacts(v.Ctx(), contactQuery(v.Query), request.Page{Limit: contactRows, Cursor: p.Cursor})
	if e, status := page.Refusal(err); e != nil {
		p.Form.Take(v.Frame.Language, e)
		return v.ShowAs(status, Contacts(p))
	}
	if err != nil {
		return err
	}
	if p.Count, err = countContacts(v, contactQuery(v.Query)); err != nil {
		return err
	}
	return v.Show(Contacts(p))
}

func newContact(v *page.Request) error {
	return v.Show(ContactPage(ContactEditor{Form: view.NewForm("phone", v.Query("phone"))}))
}

// contactFields returns the fields of the form, in the order of the page.
func contactFields() []string {
	all := []string{"phone", "name", "tags", "language", "source"}
	for i := range puntuale.MaxContactFields + spareRows {
		all = append(all, fieldName(i))
	}
	return append(all, "field")
}

func addContact(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	fields, faults := readFields(f, nil)
	made, err := v.Client.AddContact(v.Ctx(), control.NewContact{
		Phone: f.Value("phone"), Name: f.Value("name"), Language: f.Value("language"), Source: f.Value("source"), Tags: readTags(f), Fields: fields, Faults: faults,
	}, control.Once[puntuale.Contact]{})
	if err != nil {
		e := ContactEditor{Form: f}
		return v.ShowRefused(atField(err), f, ContactForm(e), ContactPage(e), contactFields()...)
	}
	v.SetAuditTarget(made.ID.String())
	v.Say("contact.added", "")
	return v.Redirect(personAddress(v, made.Phone))
}

// editedContact returns the contact in the path, with its form.
func editedContact(v *page.Request) (ContactEditor, error) {
	c, err := v.Client.Contact(v.Ctx(), v.Path("id"))
	if err != nil {
		return ContactEditor{}, err
	}
	f := view.NewForm("phone", c.Phone, "name", c.Name, "language", c.Language, "source", c.Source, "tags", strings.Join(c.Tags, ", "))
	for i, name := range slices.Sorted(maps.Keys(c.Fields)) {
		f.Values.Set(fieldName(i), name)
		f.Values.Set(fieldValue(i), c.Fields[name].Text())
	}
	return ContactEditor{Contact: c, Form: f}, nil
}

func editContact(v *page.Request) error {
	e, err := editedContact(v)
	if err != nil {
		return err
	}
	return v.Show(ContactPage(e))
}

func changeContact(v *page.Request) error {
	e, err := editedContact(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	e.Form = f
	fields, faults := readFields(f, e.Contact.Fields)
	change := control.ContactChange{Name: new(f.Value("name")), Language: new(f.Value("language")), Source: new(f.Value("source")), Tags: new(readTags(f)), Fields: fields, Faults: faults}
	changed, err := v.Client.UpdateContact(v.Ctx(), v.Path("id"), change)
	if err != nil {
		return v.ShowRefused(atField(err), f, ContactForm(e), ContactPage(e), contactFields()...)
	}
	v.SetAuditTarget(changed.ID.String())
	v.Say("contact.saved", "")
	return v.Redirect(personAddress(v, changed.Phone))
}

// readTags reads tags that are separated by commas, semicolons or line breaks.
func readTags(f *view.Form) []string {
	tags := []string{}
	for _, text := range strings.FieldsFunc(f.Value("tags"), func(r rune) bool { return r == ',' || r == ';' || r == '\n' }) {
		if text = strings.TrimSpace(text); text != "" {
			tags = append(tags, text)
		}
	}
	return tags
}

func fieldName(i int) string  { return "field." + strconv.Itoa(i) + ".name" }
func fieldValue(i int) string { return "field." + strconv.Itoa(i) + ".value" }

const faultContactFieldTwice puntuale.ReasonCode = "contact.field_twice"

var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?$`)

// readFields reads the form's rows of names and values. For a stored contact it returns only the changes. If a stored
// field has no row, or a blank value, it is removed.
func readFields(f *view.Form, stored map[string]puntuale.ContactField) (map[string]control.ContactValue, []puntuale.Fault) {
	fields, seen := map[string]control.ContactValue{}, map[string]bool{}
	var faults []puntuale.Fault
	for i := range puntuale.MaxContactFields + spareRows {
		name, value := strings.TrimSpace(f.Value(fieldName(i))), strings.TrimSpace(f.Value(fieldValue(i)))
		if name == "" {
			if value != "" {
				faults = append(faults, puntuale.Fault{Location: "body." + fieldName(i), Code: puntuale.FaultRequired})
			}
			continue
		}
		if seen[name] {
			faults = append(faults, puntuale.Fault{Location: "body." + fieldName(i), Code: faultContactFieldTwice})
			continue
		}
		seen[name] = true
		before, known := stored[name]
		if known && before.Text() == value || !known && value == "" && stored != nil {
			continue
		}
		typed := control.TypedValue(value, before.Kind)
		typed.Number = before.Kind == puntuale.FieldNumber && plainNumber.MatchString(value)
		fields[name] = typed
	}
	for name := range stored {
		if !seen[name] {
			fields[name] = control.ContactValue{}
		}
	}
	return fields, faults
}

// atField changes the locations of faults in fields and tags into the names of the form's fields.
func atField(err error) error {
	e, _ := page.Refusal(err)
	if e == nil {
		return err
	}
	named := *e
	named.Faults = slices.Clone(e.Faults)
	for i, fault := range named.Faults {
		if strings.HasPrefix(fault.Location, "body.tags[") {
			named.Faults[i].Location = "body.tags"
		}
		if strings.HasPrefix(fault.Location, "body.fields") {
			named.Faults[i].Location = "body.field"
		}
	}
	return &named
}

func askToDelete(v *page.Request) error {
	c, err := v.Client.Contact(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	return v.Show(DeleteContact(c))
}

func deleteContact(v *page.Request) error {
	if err := v.Client.DeleteContact(v.Ctx(), v.Path("id")); err != nil {
		return err
	}
	v.SetAuditTarget(v.Path("id"))
	v.Say("contact.deleted", "")
	return v.Redirect(v.Frame.Place.Base + "/contacts")
}

func contactsURL(base, query, tag string) string {
	q := url.Values{}
	if query != "" {
		q.Set("q", query)
	}
	if tag != "" {
		q.Set("tag", tag)
	}
	if len(q) == 0 {
		return base + "/contacts"
	}
	return base + "/contacts?" + q.Encode()
}
