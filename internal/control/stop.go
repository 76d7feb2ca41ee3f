package control

import (
	"context"
	"fmt"
	"puntuale/internal/control/request"
	"slices"
	"strconv"

	"puntuale"
)

// Stop cancels the unsent messages of a sequence's runs for one recipient. If a reference is given, it stops only the
// runs with this reference. The sequence may already be deleted. The call counts in the client's usage, but the daily
// cap never refuses it. found contains the faults that the calling package already found in the request. Codes:
// not_found, invalid.
func (c *Client) Stop(ctx context.Context, sequence, phone string, reference Reference, found ...puntuale.Fault) (puntuale.StopResult, error) {
	id, err := sequenceID(sequence)
	if err != nil {
		return puntuale.StopResult{}, err
	}
	f := request.Faults(found)
	person := c.person(&f, "body.phone", phone)
	only := reference.text(&f, puntuale.Sequence{})
	if err := f.Err(); err != nil {
		if _, missing := c.tenant.Sequence(ctx, id); missing != nil { // a sequence that does not exist is reported before faults of the body
			return puntuale.StopResult{}, fmt.Errorf("read sequence %d to stop: %w", id, missing)
		}
		return puntuale.StopResult{}, err
	}
	now := c.control.clock.Now()
	day, err := c.today(now)
	if err != nil {
		return puntuale.StopResult{}, err
	}
	stopped, err := c.tenant.Stop(ctx, id, person.Names, only, day, now)
	if err != nil {
		return puntuale.StopResult{}, fmt.Errorf("stop sequence %d: %w", id, err)
	}
	return stopped, nil
}

// StopRun cancels the unsent messages of one run to a recipient, and returns them. The daily cap never refuses the call.
// Codes: invalid.
func (c *Client) StopRun(ctx context.Context, phone, run string) (stopped []puntuale.CancelledMessage, err error) {
	var f request.Faults
	phone = c.person(&f, "body.phone", phone).Names[0]
	if err := f.Err(); err != nil {
		return nil, err
	}
	id, err := puntuale.ParseID[puntuale.RunID](run)
	if err != nil {
		return nil, nil // a text that is not an id finds no run, so nothing is pending
	}
	var ids []string
	for cursor := ""; ; {
		rows, next, err := c.Messages(ctx, MessageQuery{State: puntuale.Pending.String(), Phone: phone, Page: request.Page{Limit: strconv.Itoa(request.MaxPageRows), Cursor: cursor}})
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if rows[i].Run == id {
				ids = append(ids, rows[i].ID.String())
			}
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	for some := range slices.Chunk(ids, puntuale.MaxRequestIDs) {
		cancelled, err := c.CancelMessages(ctx, some)
		if stopped = append(stopped, cancelled...); err != nil {
			return stopped, err
		}
	}
	return stopped, nil
}

// CancelCall is a request to cancel messages: those to some recipients, those with a reference, or all of the client's
// messages.
type CancelCall struct {
	Phones    []string         // the recipients; if empty, All or Reference must say which messages to cancel
	Reference *string          // nil: the request contains no reference
	All       bool             // true: all of the client's messages are cancelled
	Location  string           // where the list is in the request: "body.phones" or "query.phones"
	Faults    []puntuale.Fault // the faults that the calling package already found; the error reports them together with the others
}

// CancelPending cancels the unsent messages, and returns their number. It passes the cancelled messages to report, at
// most 1,000 at a time. The call counts in the client's usage, but the daily cap never refuses it. Codes: invalid. In
// this case nothing is cancelled.
func (c *Client) CancelPending(ctx context.Context, call CancelCall, report func([]puntuale.CancelledMessage) error) (n int, err error) {
	f := request.Faults(call.Faults)
	target := puntuale.CancelTarget{Phones: c.people(&f, call.Location, call.Phones), All: call.All}
	if call.Reference != nil {
		target.Reference = *call.Reference
		f.Required("body.reference", target.Reference, puntuale.MaxReference)
	}
	if err := f.Err(); err != nil {
		return 0, err
	}
	now := c.control.clock.Now()
	day, err := c.today(now)
	if err != nil {
		return 0, err
	}
	if err := c.tenant.CancelPending(ctx, target, day, now, func(some []puntuale.CancelledMessage) error {
		n += len(some)
		return report(some)
	}); err != nil {
		return n, fmt.Errorf("cancel pending messages: %w", err)
	}
	return n, nil
}

// Cancelled returns the sentence about n cancelled messages.
func Cancelled(n int) string {
	switch n {
	case 0:
		return "Nessun messaggio annullato"
	case 1:
		return "1 messaggio annullato"
	}
	return fmt.Sprintf("%d messaggi annullati", n)
}
