package control

import (
	"context"
	"fmt"
	"puntuale/internal/control/request"

	"puntuale"
)

// Stop cancels the messages of a sequence's runs for one recipient that are not sent yet. It works on a deleted
// sequence too. It counts one call and is never refused by the cap. found are faults that the caller found in the request itself. Codes: not_found, invalid.
func (c *Client) Stop(ctx context.Context, sequence, phone string, found ...puntuale.Fault) (puntuale.StopResult, error) {
	id, err := sequenceID(sequence)
	if err != nil {
		return puntuale.StopResult{}, err
	}
	f := request.Faults(found)
	phone = c.recipient(&f, "body.phone", phone)
	if err := f.Err(); err != nil {
		if _, missing := c.tenant.Sequence(ctx, id); missing != nil { // which comes before what is wrong with the body
			return puntuale.StopResult{}, fmt.Errorf("read sequence %d to stop: %w", id, missing)
		}
		return puntuale.StopResult{}, err
	}
	now := c.control.clock.Now()
	day, err := c.today(now)
	if err != nil {
		return puntuale.StopResult{}, err
	}
	stopped, err := c.tenant.Stop(ctx, id, phone, day, now)
	if err != nil {
		return puntuale.StopResult{}, fmt.Errorf("stop sequence %d: %w", id, err)
	}
	return stopped, nil
}

// CancelCall is a request to cancel the messages to some recipients, or all of the client's.
type CancelCall struct {
	Phones   []string         // none of them: nothing is cancelled, unless All
	All      bool             // all of the client's
	Location string           // of the list: "body.phones", "query.phones"
	Faults   []puntuale.Fault // found by the caller in the request itself, answered together with the others
}

// CancelPending cancels the messages that are not sent yet, tells took of them in parts of at most 1,000, and returns how
// many they are. It counts one call and is never refused by the cap. Codes: invalid, and then nothing is cancelled.
func (c *Client) CancelPending(ctx context.Context, call CancelCall, took func([]puntuale.CancelledMessage) error) (n int, err error) {
	f := request.Faults(call.Faults)
	phones := c.recipients(&f, call.Location, call.Phones)
	if err := f.Err(); err != nil {
		return 0, err
	}
	now := c.control.clock.Now()
	day, err := c.today(now)
	if err != nil {
		return 0, err
	}
	if err := c.tenant.CancelPending(ctx, phones, call.All, day, now, func(some []puntuale.CancelledMessage) error {
		n += len(some)
		return took(some)
	}); err != nil {
		return n, fmt.Errorf("cancel pending messages: %w", err)
	}
	return n, nil
}

// Cancelled is what people read of n cancelled messages.
func Cancelled(n int) string {
	switch n {
	case 0:
		return "Nessun messaggio annullato"
	case 1:
		return "1 messaggio annullato"
	}
	return fmt.Sprintf("%d messaggi annullati", n)
}
