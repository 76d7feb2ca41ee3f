package control

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
)

// Details returns the messages with these ids, each message once, in the order of the ids. It omits unknown ids, ids of
// other clients' messages, and texts that are not ids. Codes: invalid.
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
		if id, err := puntuale.ParseID[puntuale.MessageID](text); err == nil { // a text that is not an id finds no message
			wanted = append(wanted, id)
		}
	}
	found, err := c.tenant.Details(ctx, wanted)
	if err != nil {
		return nil, fmt.Errorf("read message details: %w", err)
	}
	return found, c.tellWays(ctx, found)
}

// MessageQuery is a search for messages. A member that is "" excludes no message.
type MessageQuery struct {
	State              string // one of the contract's words
	Origin             string // SINGLE, SEQUENCE, MASSIVE, AUTOMATION
	Sequence           string // the sequence's id
	Campaign           string // the campaign's id
	Phone              string
	Reference          string         // the caller's reference
	Period             request.Period // the due times must be in this period
	Text               string         // words of the text or of the recipient's name; see [puntuale.MessageFilter]
	WithoutRescheduled bool           // true: exclude messages that were replaced when their due time changed
	Page               request.Page

	// Brief bounds how many rows the search for one page reads ([puntuale.MessageFilter].Look), so that the page is
	// quick. Searches for a text, or for a rare state, always have a bound.
	Brief bool
	Look  int // how many calls the search for one page reads, if it is brief; 0: [BriefCalls]
}

// BriefCalls is how many calls the search for one page reads. This takes about 20 ms.
const BriefCalls = 10_000

// briefLooks is how often a page of the dashboard searches, until it is full.
const briefLooks = 10

// Messages lists the client's messages, newest first. Codes: invalid.
func (c *Client) Messages(ctx context.Context, q MessageQuery) ([]puntuale.MessageDetail, string, error) {
	f := request.Faults(q.Page.Unknown)
	filter, err := c.filter(&f, q)
	if err != nil {
		return nil, "", err
	}
	q.Page.Unknown = f
	rows, next, err := request.List(q.Page, func(p puntuale.Page) (rows []puntuale.MessageDetail, next string, err error) {
		limit := p.Limit
		for range briefLooks { // of a rare state, one search finds only few messages
			found, after, err := c.tenant.Messages(ctx, filter, p)
			if err != nil {
				return nil, "", err
			}
			rows, next = append(rows, found...), after
			if p.Limit, p.Cursor = limit-len(rows), next; !q.Brief || filter.Text != "" || next == "" || p.Limit <= 0 {
				break
			}
		}
		return rows, next, nil
	})
	if err != nil {
		return nil, "", fmt.Errorf("list messages: %w", err)
	}
	return rows, next, nil
}

// fewMessages is how many messages a person may have so that they are counted in each state.
const fewMessages = 1000

// rareTexts is how many texts a count by state reads after a search that did not reach the oldest message. This takes about 40 ms.
const rareTexts = 2000

// CountStates counts what a query finds in each state. It ignores the query's own state. A count of [puntuale.MaxCounted] + 1
// means that there are more. A state is missing if counting it would read too much. No index serves a text, sequence, origin or
// period, because a message with these conditions may belong to any call. So a large client, or a large campaign with further
// conditions, gets counts only of its rare states; see countRare. For a person with more than fewMessages messages, it returns
// none. Codes: invalid.
func (c *Client) CountStates(ctx context.Context, q MessageQuery) (map[puntuale.State]int, error) {
	var f request.Faults
	q.State, q.WithoutRescheduled, q.Brief = "", false, false
	filter, err := c.filter(&f, q)
	if err == nil {
		err = f.Err()
	}
	if err != nil {
		return nil, err
	}
	served := filter.Sequence == 0 && filter.Origin == "" && filter.From.IsZero() && filter.To.IsZero()
	switch {
	case filter.Text != "" || filter.Phone != "" || filter.Reference != "":
		most := fewMessages
		if filter.Text != "" {
			most = puntuale.MaxCounted
		}
		if _, all, err := c.tenant.CountMessages(ctx, filter, most); err != nil {
			return nil, fmt.Errorf("count messages: %w", err)
		} else if !all && (filter.Phone != "" || filter.Reference != "") {
			return nil, nil //nolint:nilnil // nil has no state
		} else if !all {
			return c.countRare(ctx, filter)
		}
	case filter.Campaign != 0:
		counts, err := c.countCampaign(ctx, filter.Campaign)
		if err != nil || filter == (puntuale.MessageFilter{Campaign: filter.Campaign}) {
			return counts, err
		}
		sum := 0
		for _, n := range counts {
			sum += n
		}
		if sum > puntuale.MaxCounted {
			return c.countRare(ctx, filter)
		}
	case !served:
		filter.Look = BriefCalls
	}
	counts := map[puntuale.State]int{}
	for _, s := range []puntuale.State{puntuale.Blacklisted, puntuale.Rescheduled, puntuale.Cancelled, puntuale.Failed, puntuale.Completed, puntuale.Pending} {
		n, counted, err := c.countState(ctx, filter, s)
		if err != nil {
			return nil, err
		}
		if !counted {
			return c.countRare(ctx, filter)
		}
		counts[s] = n
	}
	return counts, nil
}

// countRare counts what a filter finds in the client's rare states, or in those of the filter's campaign. An index yields all
// messages of a state, which are then compared with the filter: at most [puntuale.MaxCounted] of all states together, or rareTexts
// if their texts must be read. So the count takes as long for a client of any size. Other states are missing.
func (c *Client) countRare(ctx context.Context, filter puntuale.MessageFilter) (map[puntuale.State]int, error) {
	filter.Look = 0
	counts, left := map[puntuale.State]int{}, puntuale.MaxCounted
	if filter.Text != "" {
		left = rareTexts
	}
	for _, s := range []puntuale.State{puntuale.Blacklisted, puntuale.Failed, puntuale.Pending, puntuale.Cancelled, puntuale.Rescheduled, puntuale.Completed} {
		whole, all, err := c.tenant.CountMessages(ctx, puntuale.MessageFilter{State: &s, Campaign: filter.Campaign}, left)
		if err != nil {
			return nil, fmt.Errorf("count messages of a state: %w", err)
		}
		if !all {
			continue
		}
		n, counted, err := c.countState(ctx, filter, s)
		if err != nil {
			return nil, err
		}
		if left -= whole; counted {
			counts[s] = n
		}
	}
	return counts, nil
}

// countState counts the messages in one state. counted is false if the newest calls do not contain all of them.
func (c *Client) countState(ctx context.Context, filter puntuale.MessageFilter, s puntuale.State) (n int, counted bool, err error) {
	filter.State = &s
	n, all, err := c.tenant.CountMessages(ctx, filter, puntuale.MaxCounted)
	switch {
	case err != nil:
		return 0, false, fmt.Errorf("count messages by state: %w", err)
	case !all && n == puntuale.MaxCounted:
		return n + 1, true, nil
	}
	return n, all, nil
}

// countCampaign counts a campaign's messages in each state, of any number, because they have an index.
func (c *Client) countCampaign(ctx context.Context, id puntuale.CampaignID) (map[puntuale.State]int, error) {
	of, err := c.tenant.CampaignCounts(ctx, id, false)
	if err != nil {
		return nil, fmt.Errorf("count messages of campaign %d: %w", id, err)
	}
	counts := map[puntuale.State]int{puntuale.Pending: of.Pending, puntuale.Completed: of.Completed, puntuale.Failed: of.Failed, puntuale.Cancelled: of.Cancelled, puntuale.Blacklisted: of.Blacklisted}
	for s, n := range counts {
		counts[s] = min(n, puntuale.MaxCounted+1)
	}
	counts[puntuale.Rescheduled], _, err = c.countState(ctx, puntuale.MessageFilter{Campaign: id}, puntuale.Rescheduled)
	return counts, err
}

// Codes of the faults that this file reports.
const (
	faultNotCampaignID puntuale.ReasonCode = "fault.not_campaign_id"
	FaultNotSequenceID puntuale.ReasonCode = "fault.not_sequence_id"
)

func (c *Client) filter(f *request.Faults, q MessageQuery) (puntuale.MessageFilter, error) {
	filter := puntuale.MessageFilter{Origin: puntuale.Origin(q.Origin), WithoutRescheduled: q.WithoutRescheduled, Text: strings.TrimSpace(q.Text)}
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
			f.Add("query.sequence", FaultNotSequenceID, q.Sequence)
		}
	}
	if q.Campaign != "" {
		var err error
		if filter.Campaign, err = puntuale.ParseID[puntuale.CampaignID](q.Campaign); err != nil {
			f.Add("query.campaign", faultNotCampaignID, q.Campaign)
		}
	}
	if q.Phone != "" {
		filter.Phone = c.person(f, "query.phone", q.Phone).Names[0]
	}
	f.Text("query.reference", q.Reference, puntuale.MaxReference)
	filter.Reference = q.Reference
	loc, err := c.zone()
	if err != nil {
		return filter, err
	}
	filter.From, filter.To = q.Period.Loose(f, loc)
	if q.Brief || filter.State != nil || filter.Text != "" {
		filter.Look = cmp.Or(q.Look, BriefCalls)
	}
	return filter, nil
}

// MediaName returns the name of a message's media: the given name, or else the last part of the address. It returns ""
// if the message has no media.
func MediaName(c puntuale.Content) string {
	if c.MediaURL == "" || c.MediaName != "" {
		return c.MediaName
	}
	if _, uploaded := puntuale.UploadedFile(c.MediaURL); uploaded {
		return ""
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

// maxOutcomes bounds the outcomes in one answer. The contract sets this number.
const maxOutcomes = 1000

// OutcomeQuery is a request for the outcomes of a period.
type OutcomeQuery struct {
	Period request.Period
	Cursor string           // "": from the beginning; otherwise the cursor of the last answer
	Faults []puntuale.Fault // the faults that the calling package already found in the request
}

// Outcomes lists at most 1,000 outcomes of messages, with the cursor of the next page. The order is that in which the
// outcomes were recorded, oldest first. If the period is over, or another page follows, the answer is complete. To make
// sure of this, the call may wait for up to two seconds. In all other cases, the call returns immediately, with the
// outcomes recorded until now. Codes: invalid.
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
	if !from.Before(to) { // both bounds are in the hour that a clock change skips, so the period is empty
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
