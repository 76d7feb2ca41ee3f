package control

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/plan"
	"puntuale/internal/roster"
)

// ContactValue is a value of a contact in a request. If the text is an ISO 8601 date, the value is a date.
type ContactValue struct {
	Text   string // the text, or a number as written; blank: there is no value, and a change removes the stored value
	Number bool
	Cell   bool         // true: the value is a date only if Dates has an order
	Dates  roster.Dates // how the dates in the cell's column are written
}

// TypedValue returns the value of a field that a person or a program wrote without saying its kind. was is the field's
// kind before; "": there was no value. A text field stays one. In a new field, 28/02/1990 is a date, but 10.5.2026 is
// not, because codes and versions have this form, too.
func TypedValue(text string, was puntuale.FieldKind) ContactValue {
	v := ContactValue{Text: text, Cell: true}
	dotted := was == "" && strings.Contains(text, ".")
	if trimmed := puntuale.Trimmed(text); roster.IsDate(trimmed) && was != puntuale.FieldText && !dotted {
		if _, err := plan.ParseMoment(trimmed); err == nil {
			v.Dates.Order = roster.DayFirst
		}
	}
	return v
}

// NewContact is a request to add a contact. If a contact with the number exists, the new values are merged into this
// contact. Blank members have no effect.
type NewContact struct {
	Phone    string
	Name     string
	Language string
	Source   string
	Fields   map[string]ContactValue
	Tags     []string
	Faults   []puntuale.Fault // the faults that the calling package already found in the request
}

// ContactChange is a request to change a contact. A nil member changes nothing.
type ContactChange struct {
	Name, Language, Source *string
	Fields                 map[string]ContactValue
	Tags                   *[]string // replaces all tags
	AddTags, RemoveTags    []string
	Faults                 []puntuale.Fault
}

// ContactQuery is a search for contacts. A blank member excludes no contact.
type ContactQuery struct {
	Tag   string
	Phone string // a number, or the beginning of a number with "*" at its end
	Name  string // words; each must be the beginning of a word in the contact's name

	Newest bool // the newest contact comes first, if the query has no name and no number

	// IDs are contacts that somebody chose one by one, at most 200. Only [Client.TagContacts] uses them, and then it ignores the
	// rest of the query. nil: nobody chose.
	IDs []string
}

// Codes of the faults that this file reports.
const (
	faultContactFieldName     puntuale.ReasonCode = "contact.field_name"
	faultContactFieldReserved puntuale.ReasonCode = "contact.field_reserved"
	faultContactGroup         puntuale.ReasonCode = "contact.group"
	faultContactLanguage      puntuale.ReasonCode = "contact.language"
	faultContactNoneTagged    puntuale.ReasonCode = "contact.none_tagged"
	faultContactNotBeginning  puntuale.ReasonCode = "contact.not_beginning"
	faultContactTagSign       puntuale.ReasonCode = "contact.tag_sign"
)

// columnName is the field that contains the contact's name.
const columnName = "nome"

var (
	contactFieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	contactLanguage  = regexp.MustCompile(`^[a-z]{2}$`)
	contactDate      = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.,]+(Z|[+-][0-9:]+)?)?$`)
	reservedFields   = []string{columnPhone, "timezone", columnName}
)

// contactCheck parses and checks contacts in requests.
type contactCheck struct {
	c      *Client
	zone   *time.Location
	faults request.Faults
}

func (c *Client) checkContacts(found []puntuale.Fault) (*contactCheck, error) {
	zone, err := c.zone()
	return &contactCheck{c, zone, found}, err
}

// phone parses a person's number. A group cannot be a contact.
func (k *contactCheck) phone(location, text string) string {
	phone := k.c.recipient(&k.faults, location, text)
	if phone != "" && !isPerson(phone) {
		k.faults.Add(location, faultContactGroup, text)
	}
	return phone
}

// isPerson reports whether a recipient is a person and not a group. A person is a number, or an id of a person who
// hides the number.
func isPerson(recipient string) bool {
	return strings.HasPrefix(recipient, "+") || puntuale.IsPersonID(recipient) || strings.HasSuffix(recipient, "@lid")
}

func (k *contactCheck) text(location, text string) string {
	text = norm.NFC.String(puntuale.Trimmed(text))
	k.faults.Text(location, text, puntuale.MaxName)
	return text
}

func (k *contactCheck) language(location, text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	if text != "" && !contactLanguage.MatchString(text) {
		k.faults.Add(location, faultContactLanguage, text)
	}
	return text
}

// tags parses tags. It removes spaces around them and composes their letters (Unicode NFC). It does not change their
// case.
func (k *contactCheck) tags(location string, texts []string) []string {
	if !k.faults.Entries(location, len(texts), puntuale.MaxContactTags) {
		return nil
	}
	tags := make([]string, len(texts))
	for i, text := range texts {
		tags[i] = norm.NFC.String(puntuale.Trimmed(text))
		at := request.At(location, i)
		k.faults.Required(at, tags[i], puntuale.MaxTag)
		if strings.ContainsAny(tags[i], ",;") {
			k.faults.Add(at, faultContactTagSign, tags[i])
		}
	}
	return tags
}

// fields parses values. A blank value becomes nil.
func (k *contactCheck) fields(location string, values map[string]ContactValue) map[string]*puntuale.ContactField {
	k.faults.Entries(location, len(values), puntuale.MaxContactFields)
	fields := make(map[string]*puntuale.ContactField, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if code := fieldNameFault(name); code != "" {
			k.faults.Add(location, code, nil, name)
			continue
		}
		k.faults.Text(location+"."+name, values[name].Text, puntuale.MaxField)
		fields[name] = k.field(values[name])
		if f := fields[name]; values[name].Dates.Order != "" && f != nil && f.Kind != puntuale.FieldDate {
			k.faults.Add(location+"."+name, faultContactDate, values[name].Text)
		}
	}
	return fields
}

func fieldNameFault(name string) puntuale.ReasonCode {
	switch {
	case !contactFieldName.MatchString(name):
		return faultContactFieldName
	case slices.Contains(reservedFields, name):
		return faultContactFieldReserved
	}
	return ""
}

// field converts a value into its stored form. It returns nil for a blank value.
func (k *contactCheck) field(v ContactValue) *puntuale.ContactField {
	text := puntuale.Trimmed(v.Text)
	switch {
	case text == "":
		return nil
	case v.Number:
		return &puntuale.ContactField{Kind: puntuale.FieldNumber, Value: text}
	case v.Cell && v.Dates.Order != "", !v.Cell && contactDate.MatchString(text):
		text = v.Dates.DayFirst(text)
		if moment, err := plan.ParseMoment(text); err == nil {
			return &puntuale.ContactField{Kind: puntuale.FieldDate, Value: storedDate(moment, k.zone)}
		}
	}
	return &puntuale.ContactField{Kind: puntuale.FieldText, Value: v.Text}
}

// storedDate formats a date in the stored form: a day, or a minute in the client's zone.
func storedDate(m plan.Moment, zone *time.Location) string {
	at := m.At(0, time.UTC)
	switch {
	case !m.HasTime:
		return at.Format(time.DateOnly)
	case m.Zone != nil:
		at = at.In(zone)
	}
	return at.Format("2006-01-02T15:04")
}

// contact parses a new contact. location is the place of the contact's members in the request.
func (k *contactCheck) contact(location string, n NewContact) puntuale.Contact {
	made := puntuale.Contact{
		Phone: k.phone(location+".phone", n.Phone), Name: k.text(location+".name", n.Name), Language: k.language(location+".language", n.Language),
		Source: k.text(location+".source", n.Source), Tags: k.tags(location+".tags", n.Tags),
	}
	for name, field := range k.fields(location+".fields", n.Fields) {
		if field != nil {
			if made.Fields == nil {
				made.Fields = map[string]puntuale.ContactField{}
			}
			made.Fields[name] = *field
		}
	}
	return made
}

// AddContact adds a contact. If a contact with the number exists, AddContact merges the new values into this contact.
// The call counts in the client's usage. Codes: invalid, quota_reached, forbidden.
func (c *Client) AddContact(ctx context.Context, n NewContact, o Once[puntuale.Contact]) (puntuale.Contact, error) {
	if err := c.MayCreate(); err != nil {
		return puntuale.Contact{}, err
	}
	k, err := c.checkContacts(n.Faults)
	if err != nil {
		return puntuale.Contact{}, err
	}
	once, clash, err := o.Begin(ctx, c.tenant, &k.faults)
	if err != nil {
		return puntuale.Contact{}, err
	}
	made := k.contact("body", n)
	if err := k.faults.Err(); err != nil {
		return puntuale.Contact{}, err
	}
	if clash != nil {
		return puntuale.Contact{}, clash
	}
	now := c.control.clock.Now().Truncate(time.Microsecond)
	day, err := c.today(now)
	if err != nil {
		return puntuale.Contact{}, err
	}
	merged, err := c.tenant.MergeContacts(ctx, puntuale.ContactBatch{All: []puntuale.Contact{made}, Now: now, Day: day, Key: once.Keep(func(stored any) puntuale.Contact {
		merged, _ := stored.(puntuale.MergedContacts)
		return merged.All[0]
	})})
	if err != nil {
		return puntuale.Contact{}, fmt.Errorf("add a contact: %w", err)
	}
	return merged.All[0], nil
}

func contactID(id string) (puntuale.ContactID, error) {
	wanted, err := puntuale.ParseID[puntuale.ContactID](id)
	if err != nil {
		return 0, puntuale.NotFound(puntuale.NoContact)
	}
	return wanted, nil
}

// Contact returns one contact. Codes: not_found.
func (c *Client) Contact(ctx context.Context, id string) (puntuale.Contact, error) {
	wanted, err := contactID(id)
	if err != nil {
		return puntuale.Contact{}, err
	}
	found, err := c.tenant.Contact(ctx, wanted)
	if err != nil {
		return found, fmt.Errorf("read contact %d: %w", wanted, err)
	}
	return found, nil
}

// ContactsOf returns contacts by number. The numbers must have the form that messages use. The result does not contain
// numbers without a contact. ContactsOf looks for at most 1,000 numbers.
func (c *Client) ContactsOf(ctx context.Context, phones ...string) (map[string]puntuale.Contact, error) {
	phones = slices.DeleteFunc(slices.Clone(phones), func(phone string) bool { return !possible(phone) })
	found, err := c.tenant.ContactsOf(ctx, phones[:min(len(phones), contactPage)])
	if err != nil {
		return nil, fmt.Errorf("read contacts by their numbers: %w", err)
	}
	return found, nil
}

// NamesOf returns the names of people by number: the contact's name, or the name in the latest call that named the person.
// The numbers must have the form that messages use. NamesOf looks for at most 1,000 numbers.
func (c *Client) NamesOf(ctx context.Context, phones ...string) (map[string]string, error) {
	phones = slices.DeleteFunc(slices.Clone(phones), func(phone string) bool { return !possible(phone) })
	found, err := c.tenant.NamesOf(ctx, phones[:min(len(phones), contactPage)])
	if err != nil {
		return nil, fmt.Errorf("read names by numbers: %w", err)
	}
	return found, nil
}

// UpdateContact changes a contact. The call counts in the client's usage. Codes: not_found, invalid.
func (c *Client) UpdateContact(ctx context.Context, id string, change ContactChange) (puntuale.Contact, error) {
	found, err := c.Contact(ctx, id)
	if err != nil {
		return found, err
	}
	k, err := c.checkContacts(change.Faults)
	if err != nil {
		return found, err
	}
	p := puntuale.ContactPatch{Fields: k.fields("body.fields", change.Fields), AddTags: k.tags("body.add_tags", change.AddTags), RemoveTags: k.tags("body.remove_tags", change.RemoveTags)}
	if change.Name != nil {
		p.Name = new(k.text("body.name", *change.Name))
	}
	if change.Source != nil {
		p.Source = new(k.text("body.source", *change.Source))
	}
	if change.Language != nil {
		p.Language = new(k.language("body.language", *change.Language))
	}
	if change.Tags != nil {
		p.Tags = new(k.tags("body.tags", *change.Tags))
	}
	if err := k.faults.Err(); err != nil {
		return found, err
	}
	now := c.control.clock.Now().Truncate(time.Microsecond)
	day, err := c.today(now)
	if err != nil {
		return found, err
	}
	changed, err := c.tenant.UpdateContact(ctx, found.ID, p, day, now)
	if err != nil {
		return changed, fmt.Errorf("change contact %d: %w", found.ID, err)
	}
	return changed, nil
}

// DeleteContact removes a contact from the client's list. The call counts in the client's usage. The contact's messages
// and consent remain. Codes: not_found.
func (c *Client) DeleteContact(ctx context.Context, id string) error {
	wanted, err := contactID(id)
	if err != nil {
		return err
	}
	day, err := c.today(c.control.clock.Now())
	if err != nil {
		return err
	}
	if err := c.tenant.DeleteContact(ctx, wanted, day); err != nil {
		return fmt.Errorf("delete contact %d: %w", wanted, err)
	}
	return nil
}

// UndoContactChange undoes the latest change of a contact's number, as long as [puntuale.UndoChangeTime] has not passed.
// The call counts in the client's usage. Codes: not_found (also if there is no change); conflict (the change is too old).
func (c *Client) UndoContactChange(ctx context.Context, id string) (puntuale.NotedChange, error) {
	wanted, err := contactID(id)
	if err != nil {
		return puntuale.NotedChange{}, err
	}
	found, err := c.tenant.Contact(ctx, wanted)
	if err != nil {
		return puntuale.NotedChange{}, fmt.Errorf("read contact %d: %w", wanted, err)
	}
	return c.UndoChange(ctx, found.Phone)
}

// UndoChange does the same for a person who need not be a contact.
func (c *Client) UndoChange(ctx context.Context, phone string) (puntuale.NotedChange, error) {
	now := c.control.clock.Now()
	day, err := c.today(now)
	if err != nil {
		return puntuale.NotedChange{}, err
	}
	undone, err := c.tenant.UndoChange(ctx, phone, day, now)
	if err != nil {
		return undone, fmt.Errorf("undo a change of number: %w", err)
	}
	return undone, nil
}

// NumberChanges returns the changes to and from the numbers of a person, newest first.
func (c *Client) NumberChanges(ctx context.Context, phone string) ([]puntuale.NotedChange, error) {
	all, err := c.tenant.NumberChanges(ctx, phone)
	if err != nil {
		return nil, fmt.Errorf("list changes of a number: %w", err)
	}
	return all, nil
}

// contactFilter parses and checks a query.
func (c *Client) contactFilter(q ContactQuery) (puntuale.ContactFilter, []puntuale.Fault) {
	var f request.Faults
	f.Text("query.name", q.Name, puntuale.MaxName)
	f.Text("query.tag", q.Tag, puntuale.MaxTag)
	filter := puntuale.ContactFilter{Tag: norm.NFC.String(strings.TrimSpace(q.Tag)), Name: q.Name, Newest: q.Newest}
	phone := strings.TrimSpace(q.Phone)
	if beginning, ok := strings.CutSuffix(phone, "*"); ok {
		if phone, ok = request.ParseBeginning(beginning, c.account.Region); !ok {
			f.Add("query.phone", faultContactNotBeginning, q.Phone)
		}
		filter.Phone = phone + "*"
	} else if phone != "" {
		filter.Phone = c.person(&f, "query.phone", phone).Names[0]
	}
	return filter, f
}

// Contacts lists contacts in the order of their ids. If the query contains a name or a number, they are sorted by name
// or number. A page may have fewer rows than the caller asked for. Codes: invalid.
func (c *Client) Contacts(ctx context.Context, q ContactQuery, p request.Page) ([]puntuale.Contact, string, error) {
	filter, faults := c.contactFilter(q)
	p.Unknown = append(slices.Clone(p.Unknown), faults...)
	rows, next, err := request.List(p, func(p puntuale.Page) ([]puntuale.Contact, string, error) { return c.tenant.Contacts(ctx, filter, p) })
	if err != nil {
		return nil, "", fmt.Errorf("list contacts: %w", err)
	}
	return rows, next, nil
}

// CountContacts counts contacts, up to limit. all is true if n is the complete count. Codes: invalid.
func (c *Client) CountContacts(ctx context.Context, q ContactQuery, limit int) (n int, all bool, err error) {
	filter, faults := c.contactFilter(q)
	if len(faults) > 0 {
		return 0, false, puntuale.Invalid(faults...)
	}
	if n, all, err = c.tenant.CountContacts(ctx, filter, limit); err != nil {
		return 0, false, fmt.Errorf("count contacts: %w", err)
	}
	return n, all, nil
}

// taggedAtOnce is how many contacts one call of TagContacts reads and changes.
const taggedAtOnce = 200

// TaggedContacts is what one call of [Client.TagContacts] did.
type TaggedContacts struct {
	Tag     string // as it is stored
	Changed int
	Left    int    // contacts that stayed as they were: they had the tag already or not at all, or have too many tags
	Next    string // the cursor of the next call; "": all are done
}

// TagContacts adds a tag to the next contacts that a query finds, at most 200, or removes it from them. The caller repeats
// the call with the cursor Next. Codes: invalid; not_found if a chosen id is none.
func (c *Client) TagContacts(ctx context.Context, q ContactQuery, cursor, tag string, remove bool) (done TaggedContacts, err error) {
	k, err := c.checkContacts(nil)
	if err != nil {
		return done, err
	}
	tags := k.tags("body.tag", []string{tag})
	_, faults := c.contactFilter(q)
	k.faults = append(k.faults, faults...)
	k.faults.Entries("body.ids", len(q.IDs), taggedAtOnce)
	if err := k.faults.Err(); err != nil {
		return done, err
	}
	ids, err := chosenContacts(q.IDs)
	if err != nil {
		return done, err
	}
	done.Tag = tags[0]
	if q.IDs == nil {
		rows, next, err := c.Contacts(ctx, q, request.Page{Limit: strconv.Itoa(taggedAtOnce), Cursor: cursor})
		if err != nil {
			return done, err
		}
		for i := range rows {
			ids = append(ids, rows[i].ID)
		}
		done.Next = next
	}
	add, drop := tags, []string(nil)
	if remove {
		add, drop = nil, tags
	}
	if len(ids) > 0 {
		if done.Changed, err = c.tenant.TagContacts(ctx, ids, add, drop, c.control.clock.Now().Truncate(time.Microsecond)); err != nil {
			return done, fmt.Errorf("tag contacts: %w", err)
		}
	}
	done.Left = len(ids) - done.Changed
	return done, nil
}

// chosenContacts parses the ids of contacts, each once. Codes: not_found.
func chosenContacts(texts []string) (ids []puntuale.ContactID, err error) {
	for _, text := range texts {
		id, err := contactID(text)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// ContactTags returns the number of contacts of each tag. It returns at most 1,000 tags.
func (c *Client) ContactTags(ctx context.Context) (map[string]int, error) {
	tags, err := c.tenant.ContactTags(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tags: %w", err)
	}
	return tags, nil
}

// contactPage is how many contacts one query reads.
const contactPage = 1000

// RecipientsFrom replaces a campaign's recipients by the contacts that have at least one of the tags. Each recipient
// gets the contact's number, the name as the field "nome", and the contact's fields. A failure changes nothing. found
// contains the faults that the calling package already found in the request. Codes: not_found, invalid, conflict (the
// campaign started), overloaded (the server already reads too many lists).
func (c *Client) RecipientsFrom(ctx context.Context, id string, tags []string, found ...puntuale.Fault) (Recipients, error) {
	stored, err := c.storedCampaign(ctx, id)
	if err != nil {
		return Recipients{}, err
	}
	f := request.Faults(found)
	tags = append([]string{}, tags...) // nil becomes an empty list, which checkFrom refuses
	c.checkFrom(&f, tags, 0)
	if err := f.Err(); err != nil {
		return Recipients{}, err
	}
	if !stored.State.Editable() {
		return Recipients{}, puntuale.Conflict(puntuale.FaultCampaignWrongState, stored.State.String())
	}
	l, err := c.listFrom(ctx, stored, tags)
	if err != nil {
		return Recipients{}, err
	}
	if err := c.useList(ctx, stored, l); err != nil {
		return Recipients{}, err
	}
	return c.RecipientsOf(ctx, id)
}

// listFrom stores the contacts that have at least one of the tags as a new list, which no campaign uses yet.
func (c *Client) listFrom(ctx context.Context, of puntuale.Campaign, tags []string) (puntuale.RecipientList, error) {
	u, err := c.beginUpload()
	if err != nil {
		return puntuale.RecipientList{}, err
	}
	defer u.End()
	rows := &contactRows{ctx: ctx, tenant: c.tenant, filter: puntuale.ContactFilter{Any: tags}}
	if err := rows.survey(); err != nil {
		return puntuale.RecipientList{}, err
	}
	x, err := c.newList(ctx, of, FileImport{}, "body")
	if err != nil {
		return puntuale.RecipientList{}, err
	}
	x.Out.Columns, x.Out.Mapping, x.Settled = rows.columns, rows.places, map[int]bool{}
	for _, at := range rows.places {
		x.Settled[at] = true // the dates of contacts have one form, so nothing is judged
	}
	err = x.store(ctx, rows)
	return x.l, err
}

// checkFrom checks the tags that choose contacts as recipients. nil means that the call chooses no contacts. beside is
// the number of recipients that the call itself lists. A call must not have both tags and listed recipients.
func (c *Client) checkFrom(f *request.Faults, tags []string, beside int) {
	if tags == nil {
		return
	}
	if beside > 0 {
		f.Add("body.from", puntuale.FaultGoesWithout, nil, "recipients")
	}
	const location = "body.from.tags"
	f.Entries(location, len(tags), puntuale.MaxContactTags)
	if len(tags) == 0 {
		f.Add(location, puntuale.FaultRequired, nil)
	}
	for i, tag := range tags {
		tags[i] = norm.NFC.String(strings.TrimSpace(tag))
		f.Required(request.At(location, i), tags[i], puntuale.MaxTag)
	}
	slices.Sort(tags)
}
