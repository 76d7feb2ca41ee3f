package control

import (
	"context"
	"errors"
	"fmt"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control/request"
)

// Erase forgets the person behind a number, or a group. It cancels the pending messages to it, and removes the number
// and all texts from the client's data. Counts and charges stay. It counts one call and is never refused by the cap; a
// repeat finishes what a failure left. found are faults that the caller found in the request itself. Codes: invalid;
// busy, not counted, when messages to the number are just being sent.
func (c *Client) Erase(ctx context.Context, phone string, found ...puntuale.Fault) (puntuale.ErasureResult, error) {
	f := request.Faults(found)
	phone = c.recipient(&f, "body.phone", phone)
	if err := f.Err(); err != nil {
		return puntuale.ErasureResult{}, err
	}
	mark := c.mark(phone)
	if mark == "" {
		return puntuale.ErasureResult{}, errors.New("there is no vault to mark a number with")
	}
	now := c.control.clock.Now()
	day, err := c.today(now)
	if err != nil {
		return puntuale.ErasureResult{}, err
	}
	done, err := c.tenant.Erase(ctx, puntuale.Erasure{Phone: phone, Mark: mark, Day: day, Now: now})
	if err != nil {
		return puntuale.ErasureResult{}, fmt.Errorf("erase: %w", err)
	}
	return done, nil
}

// Mark replaces a number in a client's blacklist after its person was erased. Without the vault, nobody can find the number. Each client
// has another mark for the same number.
func Mark(v *auth.Vault, client puntuale.ClientID, phone string) string {
	return puntuale.MarkPrefix + v.Mark("blacklist", client.String(), phone)
}

// mark returns "" without a vault.
func (c *Client) mark(phone string) string {
	if c.control.vault == nil {
		return ""
	}
	return Mark(c.control.vault, c.account.ID, phone)
}
