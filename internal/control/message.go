package control

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
)

// Details returns the messages found, in the order asked, each once. It leaves out unknown ids, other clients' ids, and texts that are no
// id. Codes: invalid.
func (c *Client) Details(ctx context.Context, ids []string) ([]puntuale.MessageDetail, error) {
	const location = "query.message_ids"
	var f request.Faults
	switch {
	case len(ids) == 0:
		f.Add(location, puntuale.FaultRequired, nil)
	default:
		f.Entries(location, len(ids), puntuale.MaxRequestIDs)
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	wanted := make([]puntuale.MessageID, 0, len(ids))
	for _, text := range ids {
		if id, err := puntuale.ParseID[puntuale.MessageID](text); err == nil { // a text that is no id belongs to nobody
			wanted = append(wanted, id)
		}
	}
	found, err := c.tenant.Details(ctx, wanted)
	if err != nil {
		return nil, fmt.Errorf("read message details: %w", err)
	}
	return found, nil
}

// MessageQuery narrows a list of messages; a field that is "" does not narrow.
type MessageQuery struct {
	State     string // one of the contract's words
	Origin    string // SINGLE, SEQUENCE, MASSIVE, AUTOMATION
	Sequence  string // id
	Campaign  string // id
	Phone     string
	Reference string         // of the caller
	Period    request.Period // of the planned moment
	Text      string         // words of the text and of the recipient's name; see [puntuale.MessageFilter]
	Standing  bool           // without those in whose place another message stands
	Page      request.Page

	// Brief bounds how much one page looks through ([puntuale.MessageFilter].Look), so that the page comes at once. Searches for a text, or
	// for a rare state, are always bounded.
	Brief bool
}

// BriefCalls is how many calls a page looks through in about 20 ms.
const BriefCalls = 10_000

// Messages lists the client's messages, newest first. Codes: invalid.
func (c *Client) Messages(ctx context.Context, q MessageQuery) ([]puntuale.MessageDetail, string, error) {
	f := request.Faults(q.Page.Unknown)
	filter, err := c.filter(&f, q)
	if err != nil {
		return nil, "", err
	}
	q.Page.Unknown = f
	rows, next, err := request.List(q.Page, func(p puntuale.Page) ([]puntuale.MessageDetail, string, error) {
		return c.tenant.Messages(ctx, filter, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list messages: %w", err)
	}
	return rows, next, nil
}

// Faults of this file.
const (
	faultNotCampaignID puntuale.ReasonCode = "fault.not_campaign_id"
	faultNotSequenceID puntuale.ReasonCode = "fault.not_sequence_id"
)

func (c *Client) filter(f *request.Faults, q MessageQuery) (puntuale.MessageFilter, error) {
	filter := puntuale.MessageFilter{Origin: puntuale.Origin(q.Origin), Standing: q.Standing, Text: strings.TrimSpace(q.Text)}
	f.Text("query.text", q.Text, puntuale.MaxName)
	if q.State != "" {
		state, err := puntuale.ParseState(q.State)
		if err != nil {
			f.Add("query.state", puntuale.FaultNotOneOf, q.State, "PENDING, COMPLETED, FAILED, CANCELLED, RESCHEDULED, BLACKLISTED")
		}
		filter.State = &state
	}
	if q.Origin != "" {
		f.Word("query.origin", q.Origin, string(puntuale.OriginSingle), string(puntuale.OriginSequence),
			string(puntuale.OriginMassive), string(puntuale.OriginAutomation))
	}
	if q.Sequence != "" {
		var err error
		if filter.Sequence, err = puntuale.ParseID[puntuale.SequenceID](q.Sequence); err != nil {
			f.Add("query.sequence", faultNotSequenceID, q.Sequence)
		}
	}
	if q.Campaign != "" {
		var err error
		if filter.Campaign, err = puntuale.ParseID[puntuale.CampaignID](q.Campaign); err != nil {
			f.Add("query.campaign", faultNotCampaignID, q.Campaign)
		}
	}
	if q.Phone != "" {
		filter.Phone = c.recipient(f, "query.phone", q.Phone)
	}
	f.Text("query.reference", q.Reference, puntuale.MaxReference)
	filter.Reference = q.Reference
	loc, err := c.zone()
	if err != nil {
		return filter, err
	}
	filter.From, filter.To = q.Period.Loose(f, loc)
	if q.Brief || filter.State != nil || filter.Text != "" {
		filter.Look = BriefCalls
	}
	return filter, nil
}

// MediaName is the name of a message's media: the given name, else the last part of its address; "" without media.
func MediaName(c puntuale.Content) string {
	if c.MediaURL == "" || c.MediaName != "" {
		return c.MediaName
	}
	u, err := url.Parse(c.MediaURL)
	if err != nil {
		return path.Base(c.MediaURL)
	}
	if last := path.Base(u.Path); last != "." && last != "/" {
		return last
	}
	return u.Host
}

// maxOutcomes is the most that one answer lists; the contract sets it.
const maxOutcomes = 1000

// OutcomeQuery asks for the outcomes of a period.
type OutcomeQuery struct {
	Period request.Period
	Cursor string           // "" reads from the beginning; otherwise the cursor of the last answer
	Faults []puntuale.Fault // found by the caller in the request itself
}

// Outcomes lists outcomes of messages by the moment of their record, oldest first, at most 1,000, with the cursor of
// the next page. The answer is complete if its period is over, or if another page follows. Within two seconds after the
// period's end, the call waits. For a period that has not ended it answers at once, with all outcomes so far. Codes:
// invalid.
func (c *Client) Outcomes(ctx context.Context, q OutcomeQuery) ([]puntuale.MessageOutcome, string, error) {
	loc, err := c.zone()
	if err != nil {
		return nil, "", err
	}
	var f request.Faults
	from, to := q.Period.Strict(&f, loc)
	f = append(f, q.Faults...)
	f.Text("query.cursor", q.Cursor, puntuale.MaxName)
	if err := f.Err(); err != nil {
		return nil, "", err
	}
	if !from.Before(to) { // both bounds lie in the hour that a clock change skips
		return nil, "", nil
	}
	var rows []puntuale.MessageOutcome
	var next string
	err = c.follow(ctx, func(now time.Time) (complete time.Time, err error) {
		rows, next, err = c.tenant.Outcomes(ctx, from, to, puntuale.Page{Limit: maxOutcomes, Cursor: q.Cursor})
		switch {
		case next != "":
			complete = rows[len(rows)-1].Done
		case !now.Before(to):
			complete = to
		}
		return complete, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list outcomes: %w", err)
	}
	return rows, next, nil
}
