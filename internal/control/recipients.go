package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/plan"
	"puntuale/internal/roster"
)

// Recipients describes a campaign's list of recipients. After an upload, or a check before one, it has the whole report.
type Recipients struct {
	ImportReport
	Size    int
	Fields  []puntuale.Field // the fields that the texts contain
	Missing []string         // required fields that neither the list nor the campaign fills
	Unread  []string         // dates of the texts whose column was stored as a text; MapRecipients judges it
}

// AddRecipients appends recipients to a campaign's list. Each recipient maps field names to values. AddRecipients does
// not check the phones, because the campaign's check does. If another call changes the list at the same time,
// AddRecipients appends to the changed list. Codes: not_found, invalid, conflict (the campaign started).
func (c *Client) AddRecipients(ctx context.Context, id string, all []Recipient) (Recipients, error) {
	stored, err := c.storedCampaign(ctx, id)
	if err != nil {
		return Recipients{}, err
	}
	var f request.Faults
	f.Entries("body.recipients", len(all), puntuale.MaxInline)
	if len(all) == 0 {
		f.Add("body.recipients", puntuale.FaultRequired, nil)
	}
	c.checkRecipients(&f, all)
	if err := f.Err(); err != nil {
		return Recipients{}, err
	}
	for {
		err := c.appendTo(ctx, stored, all)
		if err == nil {
			return c.RecipientsOf(ctx, id)
		}
		if e, ok := errors.AsType[*puntuale.Error](err); !ok || e.Reason.Code != puntuale.FaultListChanged {
			return Recipients{}, err
		}
		if stored, err = c.storedCampaign(ctx, id); err != nil { // another call changed the list, so each round has its progress
			return Recipients{}, err
		}
	}
}

// checkRecipients checks each recipient of a call. It lists a limited number of faults, and counts the others.
func (c *Client) checkRecipients(f *request.Faults, all []Recipient) {
	more := 0
	for i, r := range all[:min(len(all), puntuale.MaxInline)] {
		var row request.Faults
		c.checkRecipient(&row, request.At("body.recipients", i), r)
		kept := min(len(row), max(0, maxRowFaults-len(*f)))
		*f, more = append(*f, row[:kept]...), more+len(row)-kept
	}
	if more > 0 {
		f.Add("body", FaultListMoreFaults, nil, strconv.Itoa(more))
	}
}

// appendTo appends recipients to the list that a campaign had when it was read. Codes: conflict (it has another list,
// or the list has grown).
func (c *Client) appendTo(ctx context.Context, stored puntuale.Campaign, all []Recipient) error {
	if !stored.State.Editable() {
		return puntuale.Conflict(puntuale.FaultCampaignWrongState, stored.State.String())
	}
	if stored.List == 0 {
		l, err := c.storeList(ctx, all)
		if err != nil {
			return err
		}
		return c.useList(ctx, stored, l)
	}
	l, err := c.tenant.RecipientList(ctx, stored.List)
	if err != nil {
		return fmt.Errorf("read the list of campaign %d: %w", stored.ID, err)
	}
	return c.addRows(ctx, &l, all)
}

func (c *Client) useList(ctx context.Context, was puntuale.Campaign, l puntuale.RecipientList) error {
	if err := c.tenant.UseList(ctx, was, l.ID); err != nil {
		return fmt.Errorf("use the list of campaign %d: %w", was.ID, err)
	}
	return nil
}

// storeList stores recipients as a new list, which no campaign uses yet.
func (c *Client) storeList(ctx context.Context, all []Recipient) (puntuale.RecipientList, error) {
	l := puntuale.RecipientList{Columns: []string{columnPhone}}
	err := c.addRows(ctx, &l, all)
	return l, err
}

// addRows adds recipients to a list. If the list has no id, addRows begins it.
func (c *Client) addRows(ctx context.Context, l *puntuale.RecipientList, all []Recipient) error {
	m, err := mapped(*l)
	if err != nil {
		return err
	}
	columns := m.columns
	if err := widen(l, m, all); err != nil {
		return err
	}
	now := c.control.clock.Now()
	rows := make([]puntuale.Recipient, len(all))
	for i, r := range all {
		rows[i] = puntuale.Recipient{Line: l.Size + i + 1, Cells: make([]string, len(l.Columns))}
		for name, text := range r {
			rows[i].Cells[columns[name]] = text
		}
		rows[i].Phone = c.Listed(r[columnPhone])
	}
	if l.ID == 0 {
		if l.ID, err = c.tenant.NewList(ctx, *l, now); err != nil {
			return fmt.Errorf("begin a list of recipients: %w", err)
		}
	}
	if err := c.tenant.AddRecipients(ctx, *l, rows, now); err != nil {
		return fmt.Errorf("add recipients to list %d: %w", l.ID, err)
	}
	l.Size += len(rows)
	return nil
}

// maxRowFaults bounds the faults of rows in one answer. The API shows 100 faults, and the last one says how many more
// there are.
const maxRowFaults = 99

// Codes of the faults that this file reports.
const (
	faultCampaignFieldNameTooLong puntuale.ReasonCode = "campaign.field_name_too_long"
	faultCampaignTooManyFields    puntuale.ReasonCode = "campaign.too_many_fields"
	FaultListMoreFaults           puntuale.ReasonCode = "list.more_faults"
	FaultListNoPhoneColumn        puntuale.ReasonCode = "list.no_phone_column"
	FaultListNoRows               puntuale.ReasonCode = "list.no_rows"
)

func (c *Client) checkRecipient(f *request.Faults, location string, r Recipient) {
	f.Entries(location, len(r), roster.MaxColumns)
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if len(name) > puntuale.MaxName {
			f.Add(location, faultCampaignFieldNameTooLong, nil)
			continue
		}
		f.NoNUL(location, name)
		if len(r[name]) > puntuale.MaxField {
			f.Add(location+"."+name, puntuale.FaultLongerThanBytes, nil, strconv.Itoa(puntuale.MaxField))
		}
		f.NoNUL(location+"."+name, r[name])
	}
}

// widen adds a column for each field that has no column in the list yet. A call writes its dates in the form of the API, so
// the new columns are settled.
func widen(l *puntuale.RecipientList, m listMapping, all []Recipient) error {
	columns := m.columns
	if _, ok := columns[columnPhone]; !ok {
		columns[columnPhone] = 0
	}
	for _, r := range all {
		for _, name := range slices.Sorted(maps.Keys(r)) {
			if _, ok := columns[name]; !ok {
				columns[name], m.settled[len(l.Columns)] = len(l.Columns), true
				l.Columns = append(l.Columns, name)
			}
		}
	}
	if len(l.Columns) > roster.MaxColumns {
		return puntuale.Invalid(puntuale.Fault{Location: "body.recipients", Code: faultCampaignTooManyFields, Args: []string{strconv.Itoa(roster.MaxColumns)}})
	}
	text, err := m.stored()
	l.Mapping = text
	return err
}

// Listed returns a recipient's number in the form that messages use, or "" if the text is not a number. Of several
// numbers, it returns the first. The campaign's check refuses a row with "". In a list, a cell of only digits and hyphens is never the id of a group, because people
// write numbers in this way.
func (c *Client) Listed(text string) string {
	for _, one := range roster.Values(text) {
		one = strings.TrimPrefix(one, "'") // spreadsheets and exports put it before texts
		parse := request.ParseRecipient
		if strings.Trim(one, "0123456789-") == "" {
			parse = request.ParsePhone
		}
		if phone, err := parse(one, c.account.Region); err == nil {
			return phone
		}
	}
	return ""
}

// PutRecipients reads a list from a CSV or XLSX file, and replaces the campaign's list by it. A file with a fault changes
// nothing. Codes: not_found, invalid, too_large, conflict (the campaign started), overloaded (the server already reads
// too many lists), rate_limited (see [Client.Spend]).
func (c *Client) PutRecipients(ctx context.Context, id string, file io.Reader, contentType string, ask FileImport) (Recipients, error) {
	if err := request.Faults(ask.Faults).Err(); err != nil {
		return Recipients{}, err
	}
	stored, err := c.storedCampaign(ctx, id)
	if err != nil {
		return Recipients{}, err
	}
	if !stored.State.Editable() {
		return Recipients{}, puntuale.Conflict(puntuale.FaultCampaignWrongState, stored.State.String())
	}
	x, err := c.newList(ctx, stored, ask, "query")
	if err != nil {
		return Recipients{}, err
	}
	err = c.ReadTwice(ctx, UploadedList{File: file, Kind: contentType, Header: ask.Header, Stores: x.stores},
		func(r *roster.Reader) error { return x.judge(ctx, r) }, func(r *roster.Reader) error {
			if !x.stores() {
				return nil
			}
			return x.store(ctx, r)
		})
	if err != nil {
		return Recipients{}, err
	}
	return c.useNew(ctx, stored, x)
}

// useNew replaces a campaign's list by one that was just stored, and describes it. After a check it only describes it.
func (c *Client) useNew(ctx context.Context, stored puntuale.Campaign, x *newList) (Recipients, error) {
	for _, cells := range x.Out.Preview {
		x.Dated(cells)
	}
	r := Recipients{ImportReport: *x.Out, Size: x.Out.Rows}
	if x.stores() {
		if err := c.useList(ctx, stored, x.l); err != nil {
			return Recipients{}, err
		}
	}
	r.describe(stored, x.wanted)
	return r, nil
}

// MapRecipients changes which column fills which field, without a new upload of the file. dates has the form of
// [FileImport]. Codes: not_found, invalid, conflict, overloaded (the server already reads too many lists).
func (c *Client) MapRecipients(ctx context.Context, id, mapping, dates string) (Recipients, error) {
	stored, err := c.storedCampaign(ctx, id)
	if err != nil {
		return Recipients{}, err
	}
	switch {
	case !stored.State.Editable():
		return Recipients{}, puntuale.Conflict(puntuale.FaultCampaignWrongState, stored.State.String())
	case stored.List == 0:
		return Recipients{}, puntuale.Conflict(puntuale.FaultCampaignNoRecipients)
	}
	u, err := c.beginUpload()
	if err != nil {
		return Recipients{}, err
	}
	defer u.End()
	l, err := c.tenant.RecipientList(ctx, stored.List)
	if err != nil {
		return Recipients{}, fmt.Errorf("read the list of campaign %d: %w", stored.ID, err)
	}
	x, err := c.newList(ctx, stored, FileImport{Columns: mapping, Dates: dates}, "body")
	if err != nil {
		return Recipients{}, err
	}
	before, err := mapped(l)
	if err != nil {
		return Recipients{}, err
	}
	x.Settled = before.settled
	rows := storedRows{ctx: ctx, tenant: c.tenant, list: l}
	again := rows
	if err := x.judge(ctx, &rows); err != nil {
		return Recipients{}, err
	}
	if err := x.store(ctx, &again); err != nil {
		return Recipients{}, err
	}
	return c.useNew(ctx, stored, x)
}

// storedRows returns the rows of a list that is already stored.
type storedRows struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call
	tenant puntuale.Tenant
	list   puntuale.RecipientList
	after  int64
	rows   []puntuale.Recipient
}

func (s *storedRows) Columns() []string { return s.list.Columns }

func (s *storedRows) Next() (roster.Row, error) {
	for {
		if len(s.rows) == 0 {
			rows, err := s.tenant.Recipients(s.ctx, s.list.ID, puntuale.RecipientFilter{}, s.after, listChunk)
			if err != nil {
				return roster.Row{}, fmt.Errorf("read recipients: %w", err)
			}
			if len(rows) == 0 {
				return roster.Row{}, io.EOF
			}
			s.rows, s.after = rows, rows[len(rows)-1].N
		}
		r := s.rows[0]
		s.rows = s.rows[1:]
		if len(r.Cells) > 0 { // a row without cells is skipped, because it belongs to an erased person
			return roster.Row{Line: r.Line, Cells: r.Cells}, nil
		}
	}
}

// fieldsOf returns the fields that a campaign's texts contain.
func (c *Client) fieldsOf(ctx context.Context, stored puntuale.Campaign) ([]puntuale.Field, error) {
	sequence := puntuale.Sequence{}
	switch {
	case stored.Sequence != 0:
		s, err := c.tenant.Sequence(ctx, stored.Sequence)
		if puntuale.CodeOf(err) == puntuale.CodeNotFound {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read sequence %d: %w", stored.Sequence, err)
		}
		sequence = s
	case stored.Draft.Step != nil:
		sequence.Steps = stored.Draft.Variants()
	}
	expanded, err := c.expand(ctx, sequence)
	if err != nil {
		return nil, err
	}
	return plan.Fields(expanded[0]), nil
}

func fieldNames(fields []puntuale.Field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return names
}

// RecipientsOf returns the description of a campaign's list. Codes: not_found.
func (c *Client) RecipientsOf(ctx context.Context, id string) (Recipients, error) {
	stored, err := c.storedCampaign(ctx, id)
	if err != nil {
		return Recipients{}, err
	}
	fields, err := c.fieldsOf(ctx, stored)
	if err != nil || stored.List == 0 {
		return Recipients{ImportReport: ImportReport{Mapping: map[string]int{}}, Fields: fields}, err
	}
	l, err := c.tenant.RecipientList(ctx, stored.List)
	if err != nil {
		return Recipients{}, fmt.Errorf("read the list of campaign %d: %w", stored.ID, err)
	}
	r := Recipients{ImportReport: ImportReport{Columns: l.Columns}, Size: l.Size}
	m, err := mapped(l)
	if err != nil {
		return r, err
	}
	r.Mapping, r.Unread = m.columns, m.unsettled(fields)
	rows, err := c.tenant.Recipients(ctx, l.ID, puntuale.RecipientFilter{}, 0, previewRows)
	if err != nil {
		return r, fmt.Errorf("read recipients: %w", err)
	}
	for _, row := range rows {
		r.Preview = append(r.Preview, readable(row.Cells))
		r.Numbers = append(r.Numbers, ReadNumber{phoneCell(row.Cells, r.Mapping), row.Phone})
	}
	r.describe(stored, fields)
	return r, nil
}

// describe says which fields of a campaign the list fills.
func (r *Recipients) describe(of puntuale.Campaign, fields []puntuale.Field) {
	r.Fields = fields
	for _, field := range fields {
		_, given := r.Mapping[field.Name]
		if field.Required && !given && of.Draft.Fields[field.Name] == "" {
			r.Missing = append(r.Missing, field.Name)
		}
	}
}

// RecipientQuery is a request for a part of a campaign's list.
type RecipientQuery struct {
	State  string // waiting, fed or refused; "": all
	Reason string // why rows were refused; "": any reason
	After  int64
	Limit  int
}

// ListRecipients lists rows of a campaign's list, in the order of the list. Codes: not_found, invalid.
func (c *Client) ListRecipients(ctx context.Context, id string, q RecipientQuery) ([]puntuale.Recipient, error) {
	stored, err := c.storedCampaign(ctx, id)
	if err != nil || stored.List == 0 {
		return nil, err
	}
	filter := puntuale.RecipientFilter{Reason: q.Reason}
	switch q.State {
	case "":
	case puntuale.RecipientWaiting.String():
		filter.State = new(puntuale.RecipientWaiting)
	case puntuale.RecipientFed.String():
		filter.State = new(puntuale.RecipientFed)
	case puntuale.RecipientRefused.String():
		filter.State = new(puntuale.RecipientRefused)
	default:
		return nil, puntuale.Invalid(puntuale.Fault{Location: "query.state", Code: puntuale.FaultNotOneOf, Args: []string{"waiting, fed, refused"}, Value: q.State})
	}
	rows, err := c.tenant.Recipients(ctx, stored.List, filter, q.After, q.Limit)
	if err != nil {
		return nil, fmt.Errorf("list the recipients of campaign %d: %w", stored.ID, err)
	}
	return rows, nil
}

// RecipientSample is the message that one row of a campaign's list would get.
type RecipientSample struct {
	puntuale.CampaignSample
	Recipient puntuale.Recipient // with the reason why there is no message; Reason is "" if there is one
}

// faultCampaignNoLine says that a campaign's list has no recipient in a line of the file.
const faultCampaignNoLine puntuale.ReasonCode = "campaign.no_line"

// SampleRecipient returns the message for the recipient in a line of the uploaded file. Codes: not_found, invalid (the list
// has no recipient in this line), conflict.
func (c *Client) SampleRecipient(ctx context.Context, id string, line int) (s RecipientSample, err error) {
	stored, err := c.storedCampaign(ctx, id)
	if err != nil {
		return s, err
	}
	missing := puntuale.Invalid(puntuale.Fault{Location: "query.line", Code: faultCampaignNoLine, Args: []string{strconv.Itoa(line)}})
	if stored.List == 0 || line < 1 {
		return s, missing
	}
	// The lines of the rows grow with their numbers, and some lines have no row.
	n := sort.Search(stored.Feed.Size(), func(i int) bool {
		if err != nil {
			return true
		}
		var rows []puntuale.Recipient
		if rows, err = c.tenant.Recipients(ctx, stored.List, puntuale.RecipientFilter{}, int64(i), 1); err != nil || len(rows) == 0 {
			return true
		}
		return rows[0].Line >= line
	})
	if err != nil {
		return s, fmt.Errorf("read line %d of campaign %d: %w", line, stored.ID, err)
	}
	rows, err := c.tenant.Recipients(ctx, stored.List, puntuale.RecipientFilter{}, int64(n), 1)
	if err != nil {
		return s, fmt.Errorf("read line %d of campaign %d: %w", line, stored.ID, err)
	}
	if len(rows) == 0 || rows[0].Line != line {
		return s, missing
	}
	s.Recipient = rows[0]
	check, err := c.newCheck(ctx, stored, c.control.clock.Now().Truncate(time.Microsecond))
	if err != nil {
		return s, err
	}
	s.CampaignSample, s.Recipient.Reason, s.Recipient.Value = check.Sample(rows[0])
	return s, nil
}

// retryRows is how many messages one transaction of RetryCampaign resends.
const retryRows = 500

// RetryCampaign resends the failed messages of a campaign, and returns their number. The call counts once in the
// client's usage. Uncertain messages may have arrived, so RetryCampaign resends them only if uncertain is true. Codes:
// not_found, conflict (the campaign neither runs nor has ended), cap_reached, forbidden.
func (c *Client) RetryCampaign(ctx context.Context, id string, uncertain bool) (retried int, err error) {
	if err := c.MayCreate(); err != nil {
		return 0, err
	}
	stored, err := c.storedCampaign(ctx, id)
	if err != nil {
		return 0, err
	}
	if s := stored.State; s != puntuale.CampaignDone && s != puntuale.CampaignRunning {
		return 0, puntuale.Conflict(puntuale.FaultCampaignWrongState, s.String())
	}
	now := c.control.clock.Now()
	day, err := c.today(now)
	if err != nil {
		return 0, err
	}
	for after := puntuale.MessageID(0); ; {
		ids, err := c.tenant.FailedOfCampaign(ctx, stored.ID, uncertain, after, retryRows)
		if err != nil {
			return retried, fmt.Errorf("look for the failed messages of campaign %d: %w", stored.ID, err)
		}
		if len(ids) == 0 {
			break
		}
		after = ids[len(ids)-1]
		n, err := c.resendOfCampaign(ctx, ids, day, now, retried > 0)
		if err != nil {
			return retried, err
		}
		retried += n
	}
	if retried > 0 && stored.State == puntuale.CampaignDone {
		err = c.tenant.ChangeCampaign(ctx, stored.ID, puntuale.CampaignChange{From: []puntuale.CampaignState{puntuale.CampaignDone}, To: puntuale.CampaignRunning, By: c.actor, Now: now})
		if err != nil && puntuale.CodeOf(err) != puntuale.CodeConflict {
			return retried, fmt.Errorf("change campaign %d: %w", stored.ID, err)
		}
	}
	c.control.wakeup(stored.Session, time.Time{})
	return retried, nil
}

// resendOfCampaign resends messages of a campaign, each at the next time inside its window. If free is true, no call
// counts in the client's usage. It omits messages that were resent in the meantime, and messages whose text was
// removed.
func (c *Client) resendOfCampaign(ctx context.Context, ids []puntuale.MessageID, day puntuale.Date, now time.Time, free bool) (int, error) {
	found, err := c.tenant.Details(ctx, ids)
	if err != nil {
		return 0, fmt.Errorf("read messages to send again: %w", err)
	}
	zone, err := c.zone()
	if err != nil {
		return 0, err
	}
	r := puntuale.Resend{Day: day, Now: now, Campaign: true}
	moments := resendMoments{now: now, zone: zone}
	for i := range found {
		if found[i].Blanked || found[i].State != puntuale.Failed {
			continue
		}
		loc, err := c.control.zones.Load(found[i].Zone)
		if err != nil {
			loc = zone // data of an older version may contain an unknown zone
		}
		r.Messages = append(r.Messages, moments.momentsOf(&found[i], loc))
	}
	if len(r.Messages) == 0 {
		return 0, nil
	}
	store := c.tenant
	if free {
		store = c.control.tenants.Uncounted(c.account.ID)
	}
	if _, err := store.Resend(ctx, r); err != nil {
		return 0, fmt.Errorf("send messages of a campaign again: %w", untilMidnight(err, request.Midnight(day, zone).Sub(now)))
	}
	return len(r.Messages), nil
}
