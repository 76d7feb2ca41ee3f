package control

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/campaign"
	"puntuale/internal/control/request"
	"puntuale/internal/roster"
)

// AddBlacklisted puts a number on the client's blacklist, and returns the stored entry. If an opt-out
// put it there, the entry becomes the client's own: START does not remove it any more. The client's own entry does not
// change. The call counts in the client's usage, but the daily cap never refuses it. found contains the faults that the
// calling package already found in the request. Codes: invalid.
func (c *Client) AddBlacklisted(ctx context.Context, phone, reason string, o Once[puntuale.BlacklistEntry], found ...puntuale.Fault) (puntuale.BlacklistEntry, error) {
	f := request.Faults(found)
	once, clash, err := o.Begin(ctx, c.tenant, &f)
	if err != nil {
		return puntuale.BlacklistEntry{}, err
	}
	phone = c.recipient(&f, "body.phone", phone)
	f.Text("body.reason", reason, puntuale.MaxName)
	if err := f.Err(); err != nil {
		return puntuale.BlacklistEntry{}, err
	}
	if clash != nil {
		return puntuale.BlacklistEntry{}, clash
	}
	now := c.control.clock.Now()
	day, err := c.today(now)
	if err != nil {
		return puntuale.BlacklistEntry{}, err
	}
	e := puntuale.BlacklistEntry{Phone: phone, Mark: c.mark(phone), Reason: reason, Added: now}
	if err := c.tenant.AddBlacklisted(ctx, e, day, once.Keep(func(any) puntuale.BlacklistEntry { return e })); err != nil {
		return puntuale.BlacklistEntry{}, fmt.Errorf("add to the blacklist: %w", err)
	}
	return e, nil
}

// RemoveBlacklisted removes a number from the client's blacklist and reports whether it was there. The call counts in the
// client's usage, but the daily cap never refuses it. found contains the faults that the calling package already found
// in the request. Codes: invalid.
func (c *Client) RemoveBlacklisted(ctx context.Context, phone string, found ...puntuale.Fault) (bool, error) {
	f := request.Faults(found)
	person := c.person(&f, "body.phone", phone)
	if err := f.Err(); err != nil {
		return false, err
	}
	now := c.control.clock.Now()
	day, err := c.today(now)
	if err != nil {
		return false, err
	}
	removed, err := c.tenant.RemoveBlacklisted(ctx, person, day, now)
	if err != nil {
		return false, fmt.Errorf("remove from the blacklist: %w", err)
	}
	return removed, nil
}

// Blacklist lists the client's blacklist, ordered by id. Codes: invalid.
func (c *Client) Blacklist(ctx context.Context, p request.Page) ([]puntuale.BlacklistEntry, string, error) {
	rows, next, err := request.List(p, func(p puntuale.Page) ([]puntuale.BlacklistEntry, string, error) {
		return c.tenant.Blacklist(ctx, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list the blacklist: %w", err)
	}
	return rows, next, nil
}

// FindBlacklisted lists the entries whose number or reason contains the text, newest first. An empty text finds all
// entries. With a text, a page looks through 20,000 entries, so it may be short, or empty, although a next page exists. The
// entry of a whole number comes first. Codes: invalid.
func (c *Client) FindBlacklisted(ctx context.Context, text string, p request.Page) ([]puntuale.BlacklistEntry, string, error) {
	filter, faults := c.blacklistFilter(text)
	p.Unknown = append(p.Unknown, faults...)
	rows, next, err := request.List(p, func(p puntuale.Page) ([]puntuale.BlacklistEntry, string, error) {
		return c.tenant.FindBlacklisted(ctx, filter, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("look into the blacklist: %w", err)
	}
	return rows, next, nil
}

// CountBlacklisted counts the entries that FindBlacklisted lists, up to [puntuale.MaxCounted]. all is true if n is the
// complete count. Codes: invalid.
func (c *Client) CountBlacklisted(ctx context.Context, text string) (n int, all bool, err error) {
	filter, faults := c.blacklistFilter(text)
	if err := faults.Err(); err != nil {
		return 0, false, err
	}
	if n, all, err = c.tenant.CountBlacklisted(ctx, filter, puntuale.MaxCounted); err != nil {
		return 0, false, fmt.Errorf("count the blacklist: %w", err)
	}
	return n, all, nil
}

func (c *Client) blacklistFilter(text string) (filter puntuale.BlacklistFilter, f request.Faults) {
	text = strings.TrimSpace(text)
	f.Text("query.q", text, puntuale.MaxName)
	filter.Text = text
	if strings.Trim(text, "+0123456789 ()./-") == "" {
		filter.Digits = strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, text)
	}
	if names, err := request.Readings(text, c.account.Region); err == nil {
		filter.Phone, filter.Mark = names[0], c.mark(names[0])
		if names[0][0] == '+' {
			filter.Digits = names[0][1:]
		}
	}
	return filter, f
}

// BlacklistEntry returns one entry. Codes: not_found.
func (c *Client) BlacklistEntry(ctx context.Context, id string) (puntuale.BlacklistEntry, error) {
	wanted, err := puntuale.ParseID[int64](id)
	if err != nil {
		return puntuale.BlacklistEntry{}, puntuale.NotFound(puntuale.NoBlacklist)
	}
	e, err := c.tenant.BlacklistEntry(ctx, wanted)
	if err != nil {
		return puntuale.BlacklistEntry{}, fmt.Errorf("read an entry of the blacklist: %w", err)
	}
	return e, nil
}

// RemoveBlacklistEntry removes one entry from the blacklist, and returns it. The entry may belong to an erased person.
// Codes: not_found.
func (c *Client) RemoveBlacklistEntry(ctx context.Context, id string) (puntuale.BlacklistEntry, error) {
	e, err := c.BlacklistEntry(ctx, id)
	if err != nil {
		return puntuale.BlacklistEntry{}, err
	}
	if err := c.tenant.RemoveBlacklistEntry(ctx, e.ID, c.control.clock.Now()); err != nil {
		return puntuale.BlacklistEntry{}, fmt.Errorf("remove an entry of the blacklist: %w", err)
	}
	return e, nil
}

// MaxBlacklistImport is how many rows an imported list of numbers may have, and how many numbers.
const MaxBlacklistImport = 100_000

// ImportedBlacklist is the result of an import, or of a check before an import.
type ImportedBlacklist struct {
	ImportReport
	Found int // different numbers in the file
	Added int // numbers of these that were not on the blacklist
}

// Members of a row of an imported blacklist. A row may have several numbers: columnPhone, and any with this beginning.
const columnReason = "reason"

// reasonHeaders are the usual headers of the reason, in small letters and without accents and punctuation.
var reasonHeaders = []string{columnReason, "motivo", "motivazione", "note", "nota"}

// The faults of a member that a row of the blacklist does not have, and of a file with too many numbers.
const (
	faultBlacklistColumn puntuale.ReasonCode = "blacklist.column"
	faultTooManyNumbers  puntuale.ReasonCode = "blacklist.too_many_numbers"
)

// ImportBlacklist adds the numbers of a CSV or XLSX file, which needs no header if its first row has a number. An opt-out
// holds for the person: of each row, ImportBlacklist adds every number in every column of numbers, and in a list without a
// header also those among the reasons. It judges the columns by all rows. A cell that is no number is reported with its
// row, and the row's other numbers are added. Numbers that are already there are treated as [Client.AddBlacklisted] does. The call counts in the client's usage, but the daily cap never refuses it, and a client
// that may not send may make it. After a failure it may be repeated. Codes: invalid, too_large, overloaded, rate_limited.
func (c *Client) ImportBlacklist(ctx context.Context, file io.Reader, kind string, ask FileImport) (ImportedBlacklist, error) {
	if err := request.Faults(ask.Faults).Err(); err != nil {
		return ImportedBlacklist{}, err
	}
	x := &blacklistReading{now: c.control.clock.Now(), seen: campaign.NewSeenPhones()}
	x.ImportReading = ImportReading{
		Client: c, Ask: ask, Out: &x.out.ImportReport, Place: "query", Guess: x.guess, Fields: x.checkMapping,
		AreDates: func(string) bool { return false }, Stored: x.read, Look: x.count, Max: MaxBlacklistImport,
	}
	list := UploadedList{File: file, Kind: kind, Header: cmp.Or(ask.Header, roster.MaybeHeader), Stores: x.stores}
	err := c.ReadTwice(ctx, list, func(r *roster.Reader) error { return x.judge(ctx, r) }, func(r *roster.Reader) error { return x.store(ctx, r) })
	if err != nil {
		return ImportedBlacklist{}, err
	}
	if x.stores() {
		day, err := c.today(x.now)
		if err != nil {
			return ImportedBlacklist{}, err
		}
		if err := c.tenant.CountCall(ctx, day); err != nil {
			return ImportedBlacklist{}, fmt.Errorf("count an import: %w", err)
		}
	}
	return x.out, nil
}

// NumbersIn returns the numbers in a cell of a list, in the form that messages use. A date is no number, although its digits
// may be one. other is the first value in the cell that is no number; "": there is none.
func (c *Client) NumbersIn(cell string) (numbers []string, other string) {
	for _, value := range roster.Values(cell) {
		switch phone := c.listedNumber(value); {
		case phone != "":
			numbers = append(numbers, phone)
		case value != "":
			other = cmp.Or(other, value)
		}
	}
	return numbers, other
}

// listedNumber returns the number in a value of a list; "": it is none.
func (c *Client) listedNumber(value string) string {
	if roster.MayBeDate(value) {
		return ""
	}
	return c.Listed(value)
}

// blacklistReading is the state of one import.
type blacklistReading struct {
	ImportReading
	now     time.Time
	cells   []roster.PhoneCells // of each column
	numbers []int               // how many numbers each column has; above MaxBlacklistImport, some are not counted
	seen    *campaign.SeenPhones
	entries []puntuale.BlacklistEntry
	out     ImportedBlacklist
}

// isNumberColumn reports whether a member is one of a row's numbers, such as phone or phone2.
func isNumberColumn(name string) bool {
	rest, ok := strings.CutPrefix(name, columnPhone)
	return ok && strings.Trim(rest, "0123456789") == ""
}

// guess finds a column of numbers, and that of the reason. In a list without a header, the reason follows the numbers.
// judge finds the other columns.
func (x *blacklistReading) guess() map[string]int {
	mapping := map[string]int{}
	named := roster.Guess(x.out.Columns, x.out.Preview, reasonHeaders)
	if first, found := named[columnPhone]; found {
		mapping[columnPhone] = first
	}
	if x.unnamed() {
		x.guessUnnamed(mapping)
		return mapping
	}
	for _, header := range reasonHeaders {
		if at, ok := named[header]; ok {
			mapping[columnReason] = at
			break
		}
	}
	return mapping
}

// guessUnnamed finds the first column of numbers in a list without a header, and that of the reason.
func (x *blacklistReading) guessUnnamed(mapping map[string]int) {
	var with []int // the columns with a number
	for _, cells := range x.out.Preview {
		for at, cell := range cells {
			if numbers, _ := x.Client.NumbersIn(cell); len(numbers) > 0 {
				with = append(with, at)
			}
		}
	}
	if len(with) == 0 {
		return
	}
	mapping[columnPhone] = slices.Min(with)
	if after := slices.Max(with) + 1; after < len(x.out.Columns) {
		mapping[columnReason] = after
	}
}

// unnamed reports whether the list has no header.
func (x *blacklistReading) unnamed() bool {
	return !slices.ContainsFunc(x.out.Columns, func(c string) bool { return c != "" })
}

// reads reports whether the import reads a column: each, unless the caller chose others.
func (x *blacklistReading) reads(at int) bool {
	return x.Ask.Columns == "" || slices.Contains(slices.Collect(maps.Values(x.out.Mapping)), at)
}

// count looks how many numbers each column of a row has.
func (x *blacklistReading) count(row roster.Row) {
	if x.cells == nil {
		x.cells, x.numbers = make([]roster.PhoneCells, len(row.Cells)), make([]int, len(row.Cells))
	}
	for at, cell := range row.Cells {
		if cell == "" || roster.CellProblem(cell) != "" || x.numbers[at] > MaxBlacklistImport || !x.reads(at) {
			continue
		}
		numbers, _ := x.Client.NumbersIn(cell)
		x.numbers[at] += len(numbers)
		c := &x.cells[at]
		switch c.Filled++; {
		case len(numbers) > 0:
			c.Phones++
		case slices.ContainsFunc(roster.Values(cell), roster.LooksLikePhone):
			c.Wrong++
		}
	}
}

// judge judges all rows. Unless the caller chose the columns, it then takes every column of numbers, also one whose first
// cells are empty or no numbers: the import must not leave out a number in silence. Codes: invalid, too_large.
func (x *blacklistReading) judge(ctx context.Context, from *roster.Reader) error {
	if err := x.Judge(ctx, from); err != nil {
		return err
	}
	taken := slices.Collect(maps.Values(x.out.Mapping))
	for at, c := range x.cells {
		if x.Ask.Columns == "" && !slices.Contains(taken, at) && c.OfPhones(x.out.Columns[at]) {
			x.out.Mapping[columnPhone+strconv.Itoa(at+1)] = at
		}
	}
	all := 0
	for at, n := range x.numbers {
		if x.unnamed() || slices.ContainsFunc(x.numberColumns(), func(name string) bool { return x.out.Mapping[name] == at }) {
			all += n
		}
	}
	if all > MaxBlacklistImport {
		return puntuale.Invalid(puntuale.Fault{Location: "body", Code: faultTooManyNumbers, Args: []string{strconv.Itoa(MaxBlacklistImport)}})
	}
	return nil
}

// checkMapping checks the columns. None of them is an ordinary field.
func (x *blacklistReading) checkMapping(context.Context) ([]string, error) {
	var f request.Faults
	var numbers []string
	for _, name := range slices.Sorted(maps.Keys(x.out.Mapping)) {
		switch {
		case isNumberColumn(name):
			numbers = append(numbers, name)
		case name != columnReason:
			f.Add("query.columns", faultBlacklistColumn, nil, name)
		}
	}
	if len(numbers) == 0 {
		f.Add("query.columns", FaultListNoPhoneColumn, nil, roster.Named(x.out.Columns))
	} else if first := numbers[0]; first != columnPhone { // the caller chose only others
		x.out.Mapping[columnPhone] = x.out.Mapping[first]
		delete(x.out.Mapping, first)
	}
	return nil, f.Err()
}

// read returns all numbers of a cell, as the report shows them.
func (x *blacklistReading) read(cell string) string {
	numbers, _ := x.Client.NumbersIn(cell)
	return strings.Join(numbers, ", ")
}

func (x *blacklistReading) store(ctx context.Context, from *roster.Reader) error {
	err := x.Each(ctx, from, func(row roster.Row) error {
		if x.add(row); len(x.entries) >= listChunk {
			return x.flush(ctx)
		}
		return nil
	}, x.RefuseRow)
	if err == nil {
		err = x.flush(ctx)
	}
	x.Finish(RefusedRow, puntuale.RefusedPhone, puntuale.RefusedField)
	return err
}

// numberColumns returns the members of a row that are numbers, sorted.
func (x *blacklistReading) numberColumns() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(x.out.Mapping)), func(name string) bool { return !isNumberColumn(name) })
}

// split returns the numbers of a row, the reason, and the first value that should be a number and is none.
func (x *blacklistReading) split(row roster.Row) (phones []string, reason, other string) {
	if x.unnamed() {
		return x.splitUnnamed(row)
	}
	for _, name := range x.numberColumns() {
		cell, _ := cellAt(row.Cells, x.out.Mapping, name)
		numbers, wrong := x.Client.NumbersIn(cell)
		phones, other = append(phones, numbers...), cmp.Or(other, wrong)
	}
	reason, _ = cellAt(row.Cells, x.out.Mapping, columnReason)
	return phones, reason, other
}

// splitUnnamed splits a row of a list without a header, whose rows need not be alike: each number in it is one, and the
// other values after the first number are the reason. A caller that chose the column of a reason means all these values.
func (x *blacklistReading) splitUnnamed(row roster.Row) (phones []string, reason, other string) {
	var words []string
	first := ""
	_, all := x.out.Mapping[columnReason]
	for at, cell := range row.Cells {
		if roster.CellProblem(cell) != "" || !all && !x.reads(at) {
			continue
		}
		for _, value := range roster.Values(cell) {
			first = cmp.Or(first, value)
			switch phone := x.Client.listedNumber(value); {
			case phone != "":
				phones = append(phones, phone)
			case value == "":
			default:
				if roster.MistypedPhone(value) {
					other = cmp.Or(other, value)
				}
				if len(phones) > 0 {
					words = append(words, strings.TrimPrefix(value, "'"))
				}
			}
		}
	}
	if len(phones) == 0 {
		other = cmp.Or(other, first)
	}
	return phones, strings.Join(words, ", "), other
}

// add adds the numbers of a row to the entries, and reports the row's first fault.
func (x *blacklistReading) add(row roster.Row) {
	phones, reason, other := x.split(row)
	reason = strings.TrimPrefix(reason, "'") // spreadsheets and exports put it before texts
	var f request.Faults
	if f.Text(columnReason, reason, puntuale.MaxName); len(f) > 0 {
		reason = ""
	}
	first := ""
	for _, phone := range phones {
		if first = cmp.Or(first, phone); !x.seen.Add(phone) {
			x.entries = append(x.entries, puntuale.BlacklistEntry{Phone: phone, Mark: x.Client.mark(phone), Reason: reason, Added: x.now})
		}
	}
	switch bad := x.Problem(row); {
	case bad != nil:
		x.RefuseRow(bad)
	case first == "" || other != "":
		x.Refuse(RefusedContact{Line: row.Line, Phone: first, Reason: puntuale.RefusedPhone, Value: puntuale.Quoted(shortened(other))})
	case len(f) > 0:
		x.Refuse(RefusedContact{Line: row.Line, Phone: first, Reason: puntuale.RefusedField, Value: puntuale.Because(FaultContactValue, columnReason, f[0].Reason().Stored())})
	}
}

// flush adds the collected entries to the blacklist, or only counts the new ones.
func (x *blacklistReading) flush(ctx context.Context) error {
	all := x.entries
	x.entries = nil
	x.out.Found += len(all)
	if x.Ask.Check {
		phones := make([]string, len(all))
		for i, e := range all {
			phones[i] = e.Phone
		}
		there, err := x.Client.tenant.AmongBlacklisted(ctx, phones, x.Client.mark)
		if err != nil {
			return fmt.Errorf("look into the blacklist: %w", err)
		}
		x.out.Added += len(all) - len(there)
		return nil
	}
	slices.SortFunc(all, func(a, b puntuale.BlacklistEntry) int { return strings.Compare(a.Phone, b.Phone) })
	added, err := x.Client.tenant.AddAllBlacklisted(ctx, all)
	x.out.Added += added
	if err != nil {
		return fmt.Errorf("add to the blacklist: %w", err)
	}
	return nil
}
