package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/control/upload"
	"puntuale/internal/roster"
)

// listMapping is what a list knows about its columns, each counted from 0.
type listMapping struct {
	columns map[string]int // the column of each field
	settled map[int]bool   // the columns that were judged as dates, and have the day first; none is judged or turned again
}

// A stored mapping is an object of whole numbers, because servers of an earlier version read it, too. Its settled columns are
// numbers that no row has as a column, under names that no field has. An earlier version ignores them.
const (
	settledName = "\x00"
	hasSettled  = roster.MaxColumns // the mapping says which columns are settled
	settledFrom = hasSettled + 1    // the number of the settled column 0
)

// faultCampaignDatesOpen says that the texts use columns as dates that were not judged as dates.
const faultCampaignDatesOpen puntuale.ReasonCode = "campaign.dates_open"

// mapped decodes a list's stored mapping. In a list of an earlier version, the columns of fields count as settled.
func mapped(l puntuale.RecipientList) (m listMapping, err error) {
	m = listMapping{map[string]int{}, map[int]bool{}}
	if l.Mapping == "" {
		return m, nil
	}
	if err := json.Unmarshal([]byte(l.Mapping), &m.columns); err != nil {
		return m, fmt.Errorf("read a list's mapping: %w", err)
	}
	_, known := m.columns[settledName]
	for name, at := range m.columns {
		switch {
		case at >= settledFrom:
			m.settled[at-settledFrom] = true
		case !known:
			m.settled[at] = true
		}
		if at >= hasSettled {
			delete(m.columns, name)
		}
	}
	return m, nil
}

// unsettled returns the names of the fields that are dates, and whose column was not judged as one: the text changed after
// the list was stored, and some dates may have the month first.
func (m listMapping) unsettled(fields []puntuale.Field) (names []string) {
	for _, f := range fields {
		if at, filled := m.columns[f.Name]; filled && f.Kind == puntuale.FieldDate && !m.settled[at] {
			names = append(names, f.Name)
		}
	}
	return names
}

// stored encodes the mapping.
func (m listMapping) stored() (string, error) {
	all := maps.Clone(m.columns)
	all[settledName] = hasSettled
	for at := range m.settled {
		all[settledName+strconv.Itoa(at)] = settledFrom + at
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("keep a mapping: %w", err)
	}
	return string(text), nil
}

// newList is the state while a list is written, which no campaign uses yet.
type newList struct {
	ImportReading
	campaign puntuale.Campaign
	wanted   []puntuale.Field // the fields of the campaign
	l        puntuale.RecipientList
	rows     []puntuale.Recipient
	faults   request.Faults
	more     int // the number of further faults, which are not listed
}

// listChunk is how many rows one transaction stores. Calls wait for the transaction that runs, so it must be short.
const listChunk = 1000

// newList begins a list. The fields of the campaign help to guess the columns. place is that of ask in the call.
func (c *Client) newList(ctx context.Context, of puntuale.Campaign, ask FileImport, place string) (*newList, error) {
	wanted, err := c.fieldsOf(ctx, of)
	x := &newList{campaign: of, wanted: wanted}
	x.ImportReading = ImportReading{Client: c, Ask: ask, Out: &ImportReport{}, Place: place, Guess: x.guess, Fields: x.checkMapping, AreDates: func(string) bool { return true }, Look: x.look, Faulty: x.file, Stored: c.Listed}
	return x, err
}

func (x *newList) guess() map[string]int {
	return roster.Guess(x.Out.Columns, x.Out.Preview, fieldNames(x.wanted))
}

// checkMapping checks the columns, and returns the fields that the campaign's texts use as dates.
func (x *newList) checkMapping(context.Context) (dates []string, err error) {
	if _, ok := x.Out.Mapping[columnPhone]; !ok {
		return nil, puntuale.Invalid(puntuale.Fault{Location: "query.columns", Code: FaultListNoPhoneColumn, Args: []string{roster.Named(x.Out.Columns)}})
	}
	for _, f := range x.wanted {
		if _, filled := x.Out.Mapping[f.Name]; filled && f.Kind == puntuale.FieldDate {
			dates = append(dates, f.Name)
		}
	}
	return dates, nil
}

func (x *newList) look(row roster.Row) {
	if bad := x.Problem(row); bad != nil {
		x.file(bad)
	}
}

func (x *newList) file(row *roster.RowError) {
	if len(x.faults) == maxRowFaults {
		x.more++
		return
	}
	x.faults.Because(fmt.Sprintf("body.line[%d]", row.Line), row.Reason(), nil)
}

// judge reads all rows and stores nothing. A file with a faulty row is refused as a whole.
func (x *newList) judge(ctx context.Context, from RowSource) error {
	if err := x.readAll(ctx, from); err != nil {
		return err
	}
	if x.more > 0 {
		x.faults.Add("body", FaultListMoreFaults, nil, strconv.Itoa(x.more))
	}
	if err := x.faults.Err(); err != nil {
		return err
	}
	return x.decide()
}

// store stores the rows of a source after they were judged.
func (x *newList) store(ctx context.Context, from RowSource) error {
	m := listMapping{x.Out.Mapping, maps.Clone(x.Settled)}
	if m.settled == nil {
		m.settled = map[int]bool{}
	}
	for _, name := range x.fields {
		m.settled[m.columns[name]] = true
	}
	text, err := m.stored()
	if err != nil {
		return err
	}
	x.l.Columns, x.l.Mapping = x.Out.Columns, text
	if x.l.ID, err = x.Client.tenant.NewList(ctx, x.l, x.Client.control.clock.Now()); err != nil {
		return fmt.Errorf("begin a list of recipients: %w", err)
	}
	err = x.Each(ctx, from, func(row roster.Row) error {
		x.Dated(row.Cells)
		number, _ := cellAt(row.Cells, x.Out.Mapping, columnPhone)
		x.rows = append(x.rows, puntuale.Recipient{Line: row.Line, Cells: row.Cells, Phone: x.Client.Listed(number)})
		if len(x.rows) < listChunk {
			return nil
		}
		return x.flush(ctx)
	}, x.file)
	if err == nil {
		err = x.faults.Err() // the same rows were judged, so there is none
	}
	if err != nil {
		return err
	}
	return x.flush(ctx)
}

func (x *newList) flush(ctx context.Context) error {
	if len(x.rows) == 0 {
		return nil
	}
	if err := x.Client.tenant.AddRecipients(ctx, x.l, x.rows, x.Client.control.clock.Now()); err != nil {
		return fmt.Errorf("add recipients to campaign %d: %w", x.campaign.ID, err)
	}
	x.l.Size += len(x.rows)
	x.rows = x.rows[:0]
	return nil
}

// UploadedList is a file that arrives.
type UploadedList struct {
	File   io.Reader
	Kind   string      // its content type
	Header int         // the line of the header; 0: the reader looks for it
	Stores func() bool // the call stored what is in the file, so its bytes count
}

// ReadTwice reads the rows of a file twice, because all rows are judged before the first one is stored. Codes: invalid,
// too_large, overloaded (the server already reads too many lists), rate_limited (see [Client.Spend]), and those of judge
// and read.
func (c *Client) ReadTwice(ctx context.Context, l UploadedList, judge, read func(*roster.Reader) error) (err error) {
	u, err := c.beginUpload()
	if err != nil {
		return err
	}
	defer u.End()
	spent := &spentUpload{ctx: ctx, client: c, from: l.File}
	defer func() { spent.ended(err == nil && l.Stores()) }()
	spool, err := roster.Spool(c.control.lists.scratch)
	if err != nil {
		return fmt.Errorf("keep an import on disk: %w", err)
	}
	defer func() { _ = spool.Close() }()
	if err := c.readOnce(ctx, io.TeeReader(u.Reader(ctx, spent), spool), l, judge); err != nil {
		return err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read an import from disk: %w", err)
	}
	return c.readOnce(ctx, spool, l, read)
}

func (c *Client) readOnce(ctx context.Context, from io.Reader, l UploadedList, do func(*roster.Reader) error) error {
	r, err := roster.Open(ctx, from, l.Kind, c.control.lists.scratch, l.Header)
	if err != nil {
		return upload.FileFault(err)
	}
	defer func() { _ = r.Close() }()
	return do(r)
}

// contactRows presents contacts as the rows of a list.
type contactRows struct {
	ctx     context.Context //nolint:containedctx // it lives as long as one call
	tenant  puntuale.Tenant
	filter  puntuale.ContactFilter
	columns []string
	places  map[string]int

	rows   []puntuale.Contact
	cursor string
	begun  bool
	line   int
}

func (r *contactRows) Columns() []string { return r.columns }

// survey reads all contacts once, to find the columns of the list.
func (r *contactRows) survey() error {
	names := map[string]bool{}
	n := 0
	for {
		c, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		n++
		for name := range c.Fields {
			names[name] = true
		}
	}
	switch {
	case n == 0:
		return puntuale.Invalid(puntuale.Fault{Location: "body.from.tags", Code: faultContactNoneTagged})
	case len(names)+2 > roster.MaxColumns:
		return puntuale.Invalid(puntuale.Fault{Location: "body.from.tags", Code: faultCampaignTooManyFields, Args: []string{strconv.Itoa(roster.MaxColumns)}})
	}
	r.columns = append([]string{columnPhone, columnName}, slices.Sorted(maps.Keys(names))...)
	r.places = make(map[string]int, len(r.columns))
	for i, name := range r.columns {
		r.places[name] = i
	}
	r.cursor, r.begun = "", false
	return nil
}

func (r *contactRows) next() (puntuale.Contact, error) {
	for len(r.rows) == 0 {
		if r.begun && r.cursor == "" {
			return puntuale.Contact{}, io.EOF
		}
		var err error
		if r.rows, r.cursor, err = r.tenant.Contacts(r.ctx, r.filter, puntuale.Page{Limit: contactPage, Cursor: r.cursor}); err != nil {
			return puntuale.Contact{}, fmt.Errorf("read contacts: %w", err)
		}
		r.begun = true
	}
	c := r.rows[0]
	r.rows = r.rows[1:]
	return c, nil
}

// Next returns the next contact as a row. It omits fields that no contact had during the survey.
func (r *contactRows) Next() (roster.Row, error) {
	c, err := r.next()
	if err != nil {
		return roster.Row{}, err
	}
	r.line++
	row := roster.Row{Line: r.line, Cells: make([]string, len(r.columns))}
	row.Cells[0], row.Cells[1] = c.Phone, c.Name
	for name, field := range c.Fields {
		if at, ok := r.places[name]; ok {
			row.Cells[at] = field.Text()
		}
	}
	return row, nil
}
