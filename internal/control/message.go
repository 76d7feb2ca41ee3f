package control

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"

	"puntuale"
	"puntuale/internal/control/request"
)

// Details returns the messages found, in the order asked, each once; unknown and foreign ids are left out, and
// what is no id. Codes:
// invalid.
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

// MessageQuery narrows a list of messages; what is "" does not.
type MessageQuery struct {
	State    string // one of the contract's words
	Origin   string // SINGLE, SEQUENCE, MASSIVE, AUTOMATION
	Sequence string // id
	Campaign string // id
	Phone    string
	Period   request.Period // of the planned moment
	Text     string         // words of the text and of the recipient's name; see [puntuale.MessageFilter]
	Standing bool           // without those in whose place another message stands
	Page     request.Page

	// Brief bounds how much one page looks through ([puntuale.MessageFilter].Look), so that it comes at once. A state that
	// few messages have, or a text, is looked for so in any case.
	Brief bool
}

// BriefCalls are calls, so many that a page looks through them within some 20 ms.
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

// MediaName is the name that a message's media goes by: the one given, else the last part of its address; "" without
// media.
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
