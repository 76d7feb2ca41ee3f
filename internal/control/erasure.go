package control

import (
	"context"
	"errors"
	"fmt"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/control/request"
)

// Erase removes the data of a person, found by number, or of a group. It cancels the pending messages to the number,
// and removes the number and all texts from the client's data. Counts and charges remain. The call counts in the
// client's usage, but the daily cap never refuses it. After a failure, a repeat completes the erasure. found contains
// the faults that the calling package already found in the request. Codes: invalid; busy if a message to the number is
// in flight. A busy call does not count.
func (c *Client) Erase(ctx context.Context, phone string, found ...puntuale.Fault) (puntuale.ErasureResult, error) {
	f := request.Faults(found)
	person := c.person(&f, "body.phone", phone)
	if err := f.Err(); err != nil {
		return puntuale.ErasureResult{}, err
	}
	if c.control.vault == nil {
		return puntuale.ErasureResult{}, errors.New("there is no vault to mark a number with")
	}
	now := c.control.clock.Now()
	day, err := c.today(now)
	if err != nil {
		return puntuale.ErasureResult{}, err
	}
	done, err := c.tenant.Erase(ctx, puntuale.Erasure{Person: person, Day: day, Now: now})
	if err != nil {
		return puntuale.ErasureResult{}, fmt.Errorf("erase: %w", err)
	}
	return done, nil
}

// Mark returns the keyed hash that replaces an erased person's number in a client's blacklist. Without the vault's key,
// nobody can find the number from this hash. Two clients have different hashes of the same number.
func Mark(v *auth.Vault, client puntuale.ClientID, phone string) string {
	return puntuale.MarkPrefix + v.Mark("blacklist", client.String(), phone)
}

// mark returns the result of [Mark] for this client, or "" if there is no vault.
func (c *Client) mark(phone string) string {
	if c.control.vault == nil {
		return ""
	}
	return Mark(c.control.vault, c.account.ID, phone)
}
