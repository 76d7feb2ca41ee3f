package control

import (
	"context"
	"fmt"

	"puntuale"
)

// AddBlacklisted puts a number on the client's blacklist and returns it as it is kept; adding twice changes nothing. It
// counts one call and is never refused by the cap. found are faults that the caller found in the request itself. Codes:
// invalid.
func (c *Client) AddBlacklisted(ctx context.Context, phone, reason string, o Once[puntuale.BlacklistEntry], found ...puntuale.Fault) (puntuale.BlacklistEntry, error) {
	f := faults(found)
	once, clash, err := o.begin(ctx, c.tenant, &f)
	if err != nil {
		return puntuale.BlacklistEntry{}, err
	}
	phone = c.recipient(&f, "body.phone", phone)
	f.text("body.reason", reason, puntuale.MaxName)
	if err := f.err(); err != nil {
		return puntuale.BlacklistEntry{}, err
	}
	if clash != nil {
		return puntuale.BlacklistEntry{}, clash
	}
	now := c.control.clock.Now()
	day, err := c.today(now)
	if err != nil {
		return puntuale.BlacklistEntry{}, err
	}
	e := puntuale.BlacklistEntry{Phone: phone, Mark: c.mark(phone), Reason: reason, Added: now}
	o.keep(once, func(any) puntuale.BlacklistEntry { return e })
	if err := c.tenant.AddBlacklisted(ctx, e, day, once); err != nil {
		return puntuale.BlacklistEntry{}, fmt.Errorf("add to the blacklist: %w", err)
	}
	return e, nil
}

// RemoveBlacklisted takes a number off the client's blacklist and reports whether it was there. It counts one call and
// is never refused by the cap. found are faults that the caller found in the request itself. Codes: invalid.
func (c *Client) RemoveBlacklisted(ctx context.Context, phone string, found ...puntuale.Fault) (bool, error) {
	f := faults(found)
	phone = c.recipient(&f, "body.phone", phone)
	if err := f.err(); err != nil {
		return false, err
	}
	day, err := c.today(c.control.clock.Now())
	if err != nil {
		return false, err
	}
	removed, err := c.tenant.RemoveBlacklisted(ctx, phone, c.mark(phone), day)
	if err != nil {
		return false, fmt.Errorf("remove from the blacklist: %w", err)
	}
	return removed, nil
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
