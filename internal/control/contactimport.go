package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"puntuale"
	"puntuale/internal/campaign"
	"puntuale/internal/control/request"
	"puntuale/internal/roster"
)

// ContactImport is a request to import a file of contacts.
type ContactImport struct {
	FileImport
	Source string // the source of contacts and consents in rows that have none
}

// ImportedContacts is the result of an import, or of a check before an import.
type ImportedContacts struct {
	ImportReport
	Added, Changed int
	Consents       int // the number of rows whose consent was recorded
}

// Codes of the faults that this file reports.
const (
	faultContactConsentCell   puntuale.ReasonCode = "contact.consent_cell"
	faultContactConsentSource puntuale.ReasonCode = "contact.consent_source"
	FaultContactValue         puntuale.ReasonCode = "contact.value_fault"
)

// Names of the columns that are not ordinary fields.
const (
	columnTags     = "tags"
	columnConsent  = "consent"
	columnLanguage = "language"
	columnSource   = "source"
)

// contactHeaders maps the name of a column to its usual headers, in small letters and without accents and punctuation.
var contactHeaders = map[string][]string{
	columnName:     {columnName}, // [roster.Guess] knows its other headers
	columnTags:     {"tags", "tag", "etichette", "etichetta", "gruppi", "gruppo", "labels", "groupmembership", "categories", "categorie"},
	columnConsent:  {"consent", "consenso", "consensomarketing", "marketing", "marketingconsent"},
	columnLanguage: {"language", "lingua"},
	columnSource:   {"source", "fonte", "provenienza"},
}

// consentWords maps the text of a consent cell, without case and without signs at its end, to whether it means consent.
// A cell with another text is a fault, because the import must neither invent a consent nor lose one.
var consentWords = map[string]bool{
	"1": true, "si": true, "sì": true, "s": true, "yes": true, "y": true, "true": true, "vero": true, "x": true, "ok": true, "on": true,
	"accetto": true, "accettato": true, "acconsento": true, "sì, accetto": true, "si, accetto": true, "✓": true, "✔": true,
	"": false, "0": false, "no": false, "n": false, "false": false, "falso": false, "off": false, "none": false, "nessuno": false,
	"rifiuto": false, "rifiutato": false, "non accetto": false, "non acconsento": false, "no, non accetto": false, "✗": false,
}

// consentOf reads a consent cell. words is the composed text of a consent, and "" if the cell contains none.
func consentOf(cell string) (words string, known bool) {
	text := norm.NFC.String(strings.TrimSpace(cell))
	said, known := consentWords[strings.TrimRight(strings.ToLower(text), "'’‘`´.!-–— \u00a0\ufe0f")]
	if !said {
		return "", known
	}
	return text, true
}

// importBytes is how many bytes of cells one transaction stores.
const importBytes = 4 << 20

// contactNumber matches a number as a spreadsheet writes it. Digits that begin with 0 are a code, such as a postal
// code, and do not match.
var contactNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?$`)

// ImportContacts reads contacts from a CSV or XLSX file, and merges each row into the client's list. A refused row
// changes no contact, and does not affect other rows. The call counts in the client's usage. After a failure the call
// may be repeated. Codes: invalid, too_large, overloaded (the server already reads too many lists), forbidden.
func (c *Client) ImportContacts(ctx context.Context, file io.Reader, contentType string, ask ContactImport) (out ImportedContacts, err error) {
	if err := c.MayCreate(); err != nil {
		return ImportedContacts{}, err
	}
	k, err := c.checkContacts(ask.Faults)
	if err != nil {
		return ImportedContacts{}, err
	}
	ask.Source = k.text("query.source", ask.Source)
	if err := k.faults.Err(); err != nil {
		return ImportedContacts{}, err
	}
	now := c.control.clock.Now().Truncate(time.Microsecond)
	x := &contactReading{check: k, source: ask.Source, now: now, seen: campaign.NewSeenPhones()}
	x.ImportReading = ImportReading{Client: c, Ask: ask.FileImport, Out: &x.out.ImportReport, Place: "query", Guess: x.guess, Fields: x.checkMapping, AreDates: func(string) bool { return false }, Stored: c.listedPerson}
	err = c.ReadTwice(ctx, UploadedList{File: file, Kind: contentType, Header: ask.Header, Stores: x.stores},
		func(r *roster.Reader) error { return x.Judge(ctx, r) }, func(r *roster.Reader) error { return x.read(ctx, r) })
	if err != nil {
		return ImportedContacts{}, err
	}
	if x.stores() {
		day, err := c.today(now)
		if err != nil {
			return ImportedContacts{}, err
		}
		if err := c.tenant.CountCall(ctx, day); err != nil {
			return ImportedContacts{}, fmt.Errorf("count an import: %w", err)
		}
	}
	return x.out, nil
}

// contactReading is the state of one running import.
type contactReading struct {
	ImportReading
	check  *contactCheck
	source string
	now    time.Time

	seen   *campaign.SeenPhones
	rows   []contactRow
	bytes  int
	people int // only in a check: how many contacts the client would have
	out    ImportedContacts
}

// contactRow is a row that passed all checks.
type contactRow struct {
	line    int
	contact puntuale.Contact
	consent string // the text of the consent cell; "": the cell is empty
}

// listedPerson returns the number of a person in a list, or "" if the text is none.
func (c *Client) listedPerson(text string) string {
	if phone := c.Listed(text); isPerson(phone) {
		return phone
	}
	return ""
}

func (x *contactReading) read(ctx context.Context, from *roster.Reader) (err error) {
	if x.Ask.Check {
		if x.people, _, err = x.Client.tenant.CountContacts(ctx, puntuale.ContactFilter{}, puntuale.MaxContacts); err != nil {
			return fmt.Errorf("count contacts: %w", err)
		}
	}
	err = x.Each(ctx, from, func(row roster.Row) error {
		if x.add(row); len(x.rows) == listChunk || x.bytes > importBytes {
			return x.flush(ctx)
		}
		return nil
	}, x.RefuseRow)
	if err == nil {
		err = x.flush(ctx)
	}
	x.Finish(RefusedRow, puntuale.RefusedPhone, puntuale.RefusedDuplicate, puntuale.RefusedField, RefusedQuota)
	return err
}

// checkMapping checks the columns, and returns those that are ordinary fields, sorted by name.
func (x *contactReading) checkMapping(context.Context) (fields []string, err error) {
	var f request.Faults
	if at, ok := x.out.Mapping["name"]; ok {
		delete(x.out.Mapping, "name")
		if _, twice := x.out.Mapping[columnName]; !twice {
			x.out.Mapping[columnName] = at
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.out.Mapping)) {
		if _, own := contactHeaders[name]; own || name == columnPhone {
			continue
		}
		if code := fieldNameFault(name); code != "" {
			f.Add("query.columns", code, nil, name)
		}
		fields = append(fields, name)
	}
	f.Entries("query.columns", len(fields), puntuale.MaxContactFields)
	if _, ok := x.out.Mapping[columnPhone]; !ok {
		f.Add("query.columns", FaultListNoPhoneColumn, nil, roster.Named(x.out.Columns))
	}
	_, consent := x.out.Mapping[columnConsent]
	if _, source := x.out.Mapping[columnSource]; consent && !source && x.source == "" {
		f.Add("query.source", faultContactConsentSource, nil)
	}
	return fields, f.Err()
}

// guess finds the columns that are not ordinary fields. Each other column that has a header becomes a field.
func (x *contactReading) guess() map[string]int {
	words := []string{}
	for _, headers := range contactHeaders {
		words = append(words, headers...)
	}
	mapping := map[string]int{}
	named := roster.Guess(x.out.Columns, x.out.Preview, words)
	taken := map[int]bool{}
	if at, ok := named[columnPhone]; ok {
		mapping[columnPhone], taken[at] = at, true
	}
	for own, headers := range contactHeaders {
		for _, header := range headers {
			if at, ok := named[header]; ok && !taken[at] {
				mapping[own], taken[at] = at, true
				break
			}
		}
	}
	fields := 0
	for i, column := range x.out.Columns {
		name := FieldNameOf(column)
		if _, twice := mapping[name]; taken[i] || twice || fieldNameFault(name) != "" || fields == puntuale.MaxContactFields {
			continue
		}
		mapping[name] = i
		fields++
	}
	return mapping
}

// FieldNameOf converts a header into a field's name. For example, "Data di nascita" becomes data_di_nascita.
func FieldNameOf(header string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(strings.ToLower(header)) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case r < 0x300 || r > 0x36f: // combining accents are dropped, and any other character becomes "_"
			b.WriteByte('_')
		}
	}
	name := strings.Trim(b.String(), "_")
	return name[:min(len(name), 64)]
}

// add checks a row. It refuses the row, or adds it to the rows for the next transaction.
func (x *contactReading) add(row roster.Row) {
	if bad := x.Problem(row); bad != nil {
		x.RefuseRow(bad)
		return
	}
	cell := func(name string) string {
		text, _ := cellAt(row.Cells, x.out.Mapping, name)
		return text
	}
	phone := x.Stored(cell(columnPhone))
	if phone == "" {
		x.Refuse(RefusedContact{Line: row.Line, Reason: puntuale.RefusedPhone, Value: puntuale.Quoted(shortened(cell(columnPhone)))})
		return
	}
	if x.seen.Add(phone) {
		x.Refuse(RefusedContact{Line: row.Line, Phone: phone, Reason: puntuale.RefusedDuplicate, Value: puntuale.Quoted(phone)})
		return
	}
	n := NewContact{Phone: phone, Name: cell(columnName), Language: cell(columnLanguage), Source: cell(columnSource), Fields: make(map[string]ContactValue, len(x.fields))}
	if n.Source == "" {
		n.Source = x.source
	}
	n.Tags = x.tags(cell(columnTags))
	for _, name := range x.fields {
		text := cell(name)
		n.Fields[name] = ContactValue{Text: text, Number: contactNumber.MatchString(text), Cell: true, Dates: x.dates[name]}
		x.bytes += len(text)
	}
	x.check.faults = nil
	made := x.check.contact("row", n)
	if len(x.check.faults) > 0 {
		f := x.check.faults[0]
		reason := puntuale.Because(FaultContactValue, strings.TrimPrefix(strings.TrimPrefix(f.Location, "row."), "fields."), puntuale.Because(f.Code, f.Args...).Stored())
		x.Refuse(RefusedContact{Line: row.Line, Phone: phone, Reason: puntuale.RefusedField, Value: reason})
		return
	}
	r := contactRow{line: row.Line, contact: made}
	var known bool
	r.consent, known = consentOf(cell(columnConsent))
	switch {
	case !known:
		reason := puntuale.Because(faultContactConsentCell, strconv.Quote(shortened(cell(columnConsent))))
		x.Refuse(RefusedContact{Line: row.Line, Phone: phone, Reason: puntuale.RefusedField, Value: puntuale.Because(FaultContactValue, columnConsent, reason.Stored())})
	case r.consent != "" && made.Source == "":
		x.Refuse(RefusedContact{Line: row.Line, Phone: phone, Reason: puntuale.RefusedField, Value: puntuale.Because(FaultContactValue, columnSource, puntuale.Because(puntuale.FaultRequired).Stored())})
	default:
		x.rows = append(x.rows, r)
	}
}

// allContacts is the tag that an export of Google gives to each contact.
const allContacts = "* myContacts"

// tags splits a cell into tags. In the product's own export, a tag may contain the signs that separate tags elsewhere.
func (x *contactReading) tags(cell string) (tags []string) {
	signs := ",;"
	if !roster.IsExport(x.out.Columns) {
		cell, signs = strings.Join(roster.Values(cell), ";"), ",;|"
	}
	for tag := range strings.FieldsFuncSeq(cell, func(r rune) bool { return strings.ContainsRune(signs, r) }) {
		if tag = strings.TrimSpace(tag); tag != "" && tag != allContacts {
			tags = append(tags, tag)
		}
	}
	return tags
}

// flush merges the collected rows into the contacts, and then records their consents.
func (x *contactReading) flush(ctx context.Context) error {
	if len(x.rows) == 0 {
		return nil
	}
	slices.SortFunc(x.rows, func(a, b contactRow) int { return strings.Compare(a.contact.Phone, b.contact.Phone) })
	all := make([]puntuale.Contact, len(x.rows))
	for i := range x.rows {
		all[i] = x.rows[i].contact
	}
	merge := x.merge
	if x.Ask.Check {
		merge = x.compare
	}
	merged, err := merge(ctx, all)
	if err != nil {
		return err
	}
	x.out.Added, x.out.Changed = x.out.Added+merged.Added, x.out.Changed+merged.Changed
	var consents []puntuale.ConsentEntry
	for i, r := range x.rows {
		code, refused := merged.Refused[i]
		switch {
		case code == puntuale.FaultContactQuota:
			x.Refuse(RefusedContact{Line: r.line, Phone: r.contact.Phone, Reason: RefusedQuota, Value: puntuale.Because(code, strconv.Itoa(puntuale.MaxContacts))})
		case refused:
			x.Refuse(RefusedContact{Line: r.line, Phone: r.contact.Phone, Reason: puntuale.RefusedField, Value: puntuale.Because(code, strconv.Itoa(puntuale.MaxContactFields))})
		case r.consent != "":
			consents = append(consents, x.consent(r))
		}
	}
	x.out.Consents += len(consents)
	x.rows, x.bytes = x.rows[:0], 0
	if x.Ask.Check || len(consents) == 0 {
		return nil
	}
	if err := x.Client.tenant.AddConsents(ctx, consents); err != nil {
		return fmt.Errorf("enter the consents of a list: %w", err)
	}
	return nil
}

func (x *contactReading) merge(ctx context.Context, all []puntuale.Contact) (puntuale.MergedContacts, error) {
	merged, err := x.Client.tenant.MergeContacts(ctx, puntuale.ContactBatch{All: all, Now: x.now})
	if err != nil {
		return merged, fmt.Errorf("import contacts: %w", err)
	}
	return merged, nil
}

// compare counts the changes that a merge would make, and stores nothing.
func (x *contactReading) compare(ctx context.Context, all []puntuale.Contact) (puntuale.MergedContacts, error) {
	phones := make([]string, len(all))
	for i := range all {
		phones[i] = all[i].Phone
	}
	stored, err := x.Client.tenant.ContactsOf(ctx, phones)
	if err != nil {
		return puntuale.MergedContacts{}, fmt.Errorf("look for contacts: %w", err)
	}
	merged := puntuale.MergedContacts{Refused: map[int]puntuale.ReasonCode{}}
	for i, given := range all {
		old, known := stored[given.Phone]
		now, changed := old.Merge(given)
		code := now.Refusal()
		if !known && code == "" && x.people+merged.Added >= puntuale.MaxContacts {
			code = puntuale.FaultContactQuota
		}
		switch {
		case code != "":
			merged.Refused[i] = code
		case !known:
			merged.Added++
		case changed:
			merged.Changed++
		}
	}
	x.people += merged.Added
	return merged, nil
}

// consent returns a row's entry for the ledger of consent. The entry's ReplyMark is a hash of the source and the words.
// Therefore, a second upload of the same list adds no entry, and does not undo a later withdrawal.
func (x *contactReading) consent(r contactRow) puntuale.ConsentEntry {
	phone, source := r.contact.Phone, r.contact.Source
	sum := sha256.Sum256([]byte("import\x00" + source + "\x00" + r.consent))
	return puntuale.ConsentEntry{
		Client: x.Client.account.ID, Mark: x.Client.mark, ReplyMark: puntuale.ImportMark + hex.EncodeToString(sum[:16]),
		Consent: puntuale.Consent{Phone: phone, Purpose: puntuale.PurposeMarketing, Change: puntuale.ConsentGrant, Source: source, Words: shortened(r.consent), EnteredBy: x.Client.actor.Who, At: x.now, Entered: x.now},
	}
}
