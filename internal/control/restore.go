package control

import (
	"context"
	"fmt"
	"puntuale/internal/control/request"

	"puntuale"
)

// Restored returns the decisions that the client must make after a restore.
func (c *Client) Restored(ctx context.Context) (puntuale.RestoreResult, error) {
	r, err := c.tenant.Restored(ctx)
	if err != nil {
		return r, fmt.Errorf("look for what a restore left: %w", err)
	}
	return r, nil
}

// UnknownMessages lists the messages that may have left before a restore, and about which nobody has decided. Codes:
// invalid.
func (c *Client) UnknownMessages(ctx context.Context, p request.Page) ([]puntuale.MessageDetail, string, error) {
	rows, next, err := request.List(p, func(p puntuale.Page) ([]puntuale.MessageDetail, string, error) {
		return c.tenant.UnknownMessages(ctx, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list unknown messages: %w", err)
	}
	return rows, next, nil
}

// UnknownCall selects messages from the list of UnknownMessages: at most 1,000 by id, or all.
type UnknownCall struct {
	IDs    []string
	All    bool
	Faults []puntuale.Fault
}

// ResendUnknown resends messages that may have left before a restore, and closes the old messages as FAILED. For each
// old message, ResendUnknown schedules a new message, which leaves as soon as its window is open. A repeat sends
// nothing, because the messages are no longer unknown. If the call selects all messages, ResendUnknown resends up to
// 1,000 messages in one step, and omits messages whose content was removed. Each step resends all of its messages or
// none. Codes: not_found and conflict, with each message; cap_reached; forbidden.
func (c *Client) ResendUnknown(ctx context.Context, call UnknownCall) (ids []puntuale.MessageID, err error) {
	said := func(m *puntuale.MessageDetail) bool { return !m.Blanked }
	err = c.eachUnknown(ctx, call, said, func(texts []string) error {
		resent, err := c.Resend(ctx, ResendCall{IDs: texts, Faults: call.Faults, unknown: true})
		ids = append(ids, resent.IDs...)
		return err
	})
	return ids, err
}

// CloseUnknown sets messages that may have left before a restore to FAILED, with an uncertain outcome. It returns how
// many messages it changed. Messages that were already closed or resent are not counted. Codes: not_found, with each id
// that is not one of the client's messages.
func (c *Client) CloseUnknown(ctx context.Context, call UnknownCall) (closed int, err error) {
	every := func(*puntuale.MessageDetail) bool { return true }
	err = c.eachUnknown(ctx, call, every, func(texts []string) error {
		f := request.Faults(call.Faults)
		messages, _, err := c.named(ctx, &f, texts)
		if err != nil {
			return err
		}
		if err := f.Err(); err != nil {
			return err
		}
		ids := make([]puntuale.MessageID, len(messages))
		for i := range messages {
			ids[i] = messages[i].ID
		}
		now := c.control.clock.Now()
		day, err := c.today(now)
		if err != nil {
			return err
		}
		done, err := c.tenant.CloseUnknown(ctx, ids, day, now)
		closed += len(done)
		if err != nil {
			return fmt.Errorf("close unknown messages: %w", err)
		}
		return nil
	})
	return closed, err
}

// eachUnknown calls the function do with the ids that a call selects, one page at a time. If the call selects all
// messages, do gets only the ids of messages for which the argument pass returns true.
func (c *Client) eachUnknown(ctx context.Context, call UnknownCall, pass func(*puntuale.MessageDetail) bool, do func(ids []string) error) error {
	if !call.All {
		return do(call.IDs)
	}
	if err := (request.Faults)(call.Faults).Err(); err != nil {
		return err
	}
	p := puntuale.Page{Limit: puntuale.MaxRequestIDs}
	for {
		page, next, err := c.tenant.UnknownMessages(ctx, p)
		if err != nil {
			return fmt.Errorf("list unknown messages: %w", err)
		}
		var ids []string
		for i := range page {
			if pass(&page[i]) {
				ids = append(ids, page[i].ID.String())
			}
		}
		if len(ids) > 0 {
			if err := do(ids); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		p.Cursor = next
	}
}

// ReleaseHeld releases the messages that a restore held back.
func (c *Client) ReleaseHeld(ctx context.Context) error {
	day, err := c.today(c.control.clock.Now())
	if err != nil {
		return err
	}
	if err := c.tenant.Release(ctx, day); err != nil {
		return fmt.Errorf("release what is held: %w", err)
	}
	return nil
}

// ClientOf returns a client for commands of the operator. The commands do not count in the client's usage. Codes:
// not_found.
func (c *Control) ClientOf(ctx context.Context, owner *puntuale.RestoredClient) (*Client, error) {
	account, err := c.tenants.Partner(owner.Partner).Client(ctx, owner.Client)
	if err != nil {
		return nil, fmt.Errorf("read a client: %w", err)
	}
	return &Client{control: c, account: account, tenant: c.tenants.Uncounted(owner.Client)}, nil
}
