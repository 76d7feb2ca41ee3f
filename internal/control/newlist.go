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

// rowSource is a source of the rows of a new list.
type rowSource interface {
	Columns() []string
	Next() (roster.Row, error) // the error is io.EOF at the end
}

// readList stores the rows of a source as a new list, which no campaign uses yet. The fields of the campaign help to
// guess the mapping.
func (c *Client) readList(ctx context.Context, of puntuale.Campaign, from rowSource, mapping string) (puntuale.RecipientList, error) {
	x := &newList{client: c, campaign: of, from: from, l: puntuale.RecipientList{Columns: from.Columns()}}
	if err := x.read(ctx, mapping); err != nil {
		return x.l, err
	}
	columns := x.monthFirst()
	if err := x.faults.Err(); err != nil || len(columns) == 0 {
		return x.l, err
	}
	// The whole column shows that the month is first, so only now the rows can be stored as they are meant.
	again := &newList{client: c, campaign: of, from: &datedRows{&storedRows{ctx: ctx, tenant: c.tenant, list: x.l}, columns}, l: puntuale.RecipientList{Columns: x.l.Columns}}
	err := again.read(ctx, mapping)
	return again.l, err
}

// newList is the state while a list is written.
type newList struct {
	client   *Client
	campaign puntuale.Campaign
	from     rowSource
	l        puntuale.RecipientList

	columns map[string]int
	dates   map[string]*roster.DateColumn // the columns of fields that are dates
	rows    []puntuale.Recipient
	faults  request.Faults
	more    int // the number of further faults, which are not listed
}

// listChunk is how many rows one transaction stores. Calls wait for the transaction that runs, so it must be short.
const listChunk = 1000

func (x *newList) read(ctx context.Context, mapping string) error {
	first, err := x.guess(ctx, mapping)
	if err != nil {
		return err
	}
	text, err := json.Marshal(x.columns)
	if err != nil {
		return fmt.Errorf("keep a mapping: %w", err)
	}
	x.l.Mapping = string(text)
	if x.l.ID, err = x.client.tenant.NewList(ctx, x.l, x.client.control.clock.Now()); err != nil {
		return fmt.Errorf("begin a list of recipients: %w", err)
	}
	for _, row := range first {
		x.add(row)
	}
	for {
		row, err := x.from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if err := x.fault(err); err != nil {
				return err
			}
			continue
		}
		if x.add(row); len(x.rows) == listChunk {
			if err := x.flush(ctx); err != nil {
				return err
			}
		}
	}
	if x.more > 0 {
		x.faults.Add("body", FaultListMoreFaults, nil, strconv.Itoa(x.more))
	}
	if err := x.faults.Err(); err != nil {
		return err
	}
	return x.flush(ctx)
}

// guess reads the first rows, and finds out which column is which field.
func (x *newList) guess(ctx context.Context, mapping string) (first []roster.Row, err error) {
	var shown [][]string
	for len(first) < previewRows {
		row, err := x.from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if err := x.fault(err); err != nil {
				return nil, err
			}
			continue
		}
		first, shown = append(first, row), append(shown, row.Cells)
	}
	if len(first) == 0 && len(x.faults) == 0 {
		return nil, puntuale.Invalid(puntuale.Fault{Location: "body", Code: FaultListNoRows})
	}
	fields, err := x.client.fieldsOf(ctx, x.campaign)
	if err != nil {
		return nil, err
	}
	if mapping == "" {
		x.columns = roster.Guess(x.l.Columns, shown, fieldNames(fields))
	} else if x.columns, err = roster.ParseMapping(mapping, x.l.Columns); err != nil {
		return nil, upload.MappingFault(err, mapping)
	}
	x.dates = map[string]*roster.DateColumn{}
	for _, f := range fields {
		if _, filled := x.columns[f.Name]; filled && f.Kind == puntuale.FieldDate {
			x.dates[f.Name] = &roster.DateColumn{}
		}
	}
	if _, ok := x.columns[columnPhone]; !ok {
		return nil, puntuale.Invalid(puntuale.Fault{Location: "query.columns", Code: FaultListNoPhoneColumn, Args: []string{roster.Named(x.l.Columns)}})
	}
	return first, nil
}

// fault records a fault of one row. If err is a fault of the whole file, fault returns err.
func (x *newList) fault(err error) error {
	row, ok := errors.AsType[*roster.RowError](err)
	if !ok {
		return upload.FileFault(err)
	}
	x.file(row)
	return nil
}

func (x *newList) file(row *roster.RowError) {
	if len(x.faults) == maxRowFaults {
		x.more++
		return
	}
	x.faults.Because(fmt.Sprintf("body.line[%d]", row.Line), row.Reason(), nil)
}

func (x *newList) add(row roster.Row) {
	for _, at := range slices.Compact(slices.Sorted(maps.Values(x.columns))) {
		if at < len(row.Cells) {
			if p := roster.CellProblem(row.Cells[at]); p != "" {
				x.file(&roster.RowError{Line: row.Line, Column: at + 1, Problem: p})
			}
		}
	}
	if len(x.faults) > 0 {
		return // a file with faults changes nothing in the store
	}
	for name, column := range x.dates {
		if at := x.columns[name]; at < len(row.Cells) {
			column.Add(row.Line, row.Cells[at])
		}
	}
	r := puntuale.Recipient{Line: row.Line, Cells: row.Cells}
	if at := x.columns[columnPhone]; at < len(row.Cells) {
		r.Phone = x.client.Listed(row.Cells[at])
	}
	x.rows = append(x.rows, r)
}

func (x *newList) flush(ctx context.Context) error {
	if len(x.rows) == 0 {
		return nil
	}
	if err := x.client.tenant.AddRecipients(ctx, x.l, x.rows, x.client.control.clock.Now()); err != nil {
		return fmt.Errorf("add recipients to campaign %d: %w", x.campaign.ID, err)
	}
	x.l.Size += len(x.rows)
	x.rows = x.rows[:0]
	return nil
}

// UploadedList is a file that arrives.
type UploadedList struct {
	File   io.Reader
	Kind   string // its content type
	Header int    // the line of the header; 0: the reader looks for it
	Stores bool   // the call stores what is in the file, so its bytes count
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
	defer func() { spent.ended(err == nil && l.Stores) }()
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
