package control

import (
	"context"
	"fmt"

	"puntuale"
)

// AddBlacklisted puts a number on the client's blacklist and returns it as it is kept; adding twice changes nothing. It
// counts one call and is never refused by the cap. Codes: invalid.
func (c *Client) AddBlacklisted(ctx context.Context, phone, reason string) (puntuale.BlacklistEntry, error) {
	var f faults
	phone = c.recipient(&f, "body.phone", phone)
	f.text("body.reason", reason, puntuale.MaxName)
	if err := f.err(); err != nil {
		return puntuale.BlacklistEntry{}, err
	}
	now := c.control.clock.Now()
	day, err := c.today(now)
	if err != nil {
		return puntuale.BlacklistEntry{}, err
	}
	e := puntuale.BlacklistEntry{Phone: phone, Reason: reason, Added: now}
	if err := c.tenant.AddBlacklisted(ctx, e, day); err != nil {
		return puntuale.BlacklistEntry{}, fmt.Errorf("add to the blacklist: %w", err)
	}
	return e, nil
}

// RemoveBlacklisted takes a number off the client's blacklist and reports whether it was there. It counts one call and
// is never refused by the cap. Codes: invalid.
func (c *Client) RemoveBlacklisted(ctx context.Context, phone string) (bool, error) {
	var f faults
	phone = c.recipient(&f, "body.phone", phone)
	if err := f.err(); err != nil {
		return false, err
	}
	day, err := c.today(c.control.clock.Now())
	if err != nil {
		return false, err
	}
	found, err := c.tenant.RemoveBlacklisted(ctx, phone, day)
	if err != nil {
		return false, fmt.Errorf("remove from the blacklist: %w", err)
	}
	return found, nil
}

// Blacklist lists the client's blacklist by the entries' ids. Codes: invalid.
func (c *Client) Blacklist(ctx context.Context, p Page) ([]puntuale.BlacklistEntry, string, error) {
	rows, next, err := list(p, func(p puntuale.Page) ([]puntuale.BlacklistEntry, string, error) {
		return c.tenant.Blacklist(ctx, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list the blacklist: %w", err)
	}
	return rows, next, nil
}
