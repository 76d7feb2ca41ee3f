package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/control/request"
)

// AddBlacklisted puts a number on the client's blacklist, and returns the stored entry. If an opt-out
// put it there, the entry becomes the client's own: START does not remove it any more. The client's own entry does not
// change. The call counts in the client's usage, but the daily cap never refuses it. found contains the faults that the
// calling package already found in the request. Codes: invalid.
func (c *Client) AddBlacklisted(ctx context.Context, phone, reason string, o Once[puntuale.BlacklistEntry], found ...puntuale.Fault) (puntuale.BlacklistEntry, error) {
	f := request.Faults(found)
	once, clash, err := o.Begin(ctx, c.tenant, &f)
	if err != nil {
		return puntuale.BlacklistEntry{}, err
	}
	phone = c.recipient(&f, "body.phone", phone)
	f.Text("body.reason", reason, puntuale.MaxName)
	if err := f.Err(); err != nil {
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
	if err := c.tenant.AddBlacklisted(ctx, e, day, once.Keep(func(any) puntuale.BlacklistEntry { return e })); err != nil {
		return puntuale.BlacklistEntry{}, fmt.Errorf("add to the blacklist: %w", err)
	}
	return e, nil
}

// RemoveBlacklisted removes a number from the client's blacklist and reports whether it was there. The call counts in the
// client's usage, but the daily cap never refuses it. found contains the faults that the calling package already found
// in the request. Codes: invalid.
func (c *Client) RemoveBlacklisted(ctx context.Context, phone string, found ...puntuale.Fault) (bool, error) {
	f := request.Faults(found)
	person := c.person(&f, "body.phone", phone)
	if err := f.Err(); err != nil {
		return false, err
	}
	now := c.control.clock.Now()
	day, err := c.today(now)
	if err != nil {
		return false, err
	}
	removed, err := c.tenant.RemoveBlacklisted(ctx, person, day, now)
	if err != nil {
		return false, fmt.Errorf("remove from the blacklist: %w", err)
	}
	return removed, nil
}

// Blacklist lists the client's blacklist, ordered by id. Codes: invalid.
func (c *Client) Blacklist(ctx context.Context, p request.Page) ([]puntuale.BlacklistEntry, string, error) {
	rows, next, err := request.List(p, func(p puntuale.Page) ([]puntuale.BlacklistEntry, string, error) {
		return c.tenant.Blacklist(ctx, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list the blacklist: %w", err)
	}
	return rows, next, nil
}

// FindBlacklisted lists the entries whose number or reason contains the text, newest first. An empty text finds all
// entries. Codes: invalid.
func (c *Client) FindBlacklisted(ctx context.Context, text string, p request.Page) ([]puntuale.BlacklistEntry, string, error) {
	filter, faults := c.blacklistFilter(text)
	p.Unknown = append(p.Unknown, faults...)
	rows, next, err := request.List(p, func(p puntuale.Page) ([]puntuale.BlacklistEntry, string, error) {
		return c.tenant.FindBlacklisted(ctx, filter, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("look into the blacklist: %w", err)
	}
	return rows, next, nil
}

// CountBlacklisted counts the entries that FindBlacklisted lists, up to [puntuale.MaxCounted]. all is true if n is the
// complete count. Codes: invalid.
func (c *Client) CountBlacklisted(ctx context.Context, text string) (n int, all bool, err error) {
	filter, faults := c.blacklistFilter(text)
	if err := faults.Err(); err != nil {
		return 0, false, err
	}
	if n, all, err = c.tenant.CountBlacklisted(ctx, filter, puntuale.MaxCounted); err != nil {
		return 0, false, fmt.Errorf("count the blacklist: %w", err)
	}
	return n, all, nil
}

func (c *Client) blacklistFilter(text string) (filter puntuale.BlacklistFilter, f request.Faults) {
	text = strings.TrimSpace(text)
	f.Text("query.q", text, puntuale.MaxName)
	filter.Text = text
	if strings.Trim(text, "+0123456789 ()./-") == "" {
		filter.Digits = strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, text)
	}
	if names, err := request.Readings(text, c.account.Region); err == nil {
		filter.Mark = c.mark(names[0])
		if names[0][0] == '+' {
			filter.Digits = names[0][1:]
		}
	}
	return filter, f
}

// BlacklistEntry returns one entry. Codes: not_found.
func (c *Client) BlacklistEntry(ctx context.Context, id string) (puntuale.BlacklistEntry, error) {
	wanted, err := puntuale.ParseID[int64](id)
	if err != nil {
		return puntuale.BlacklistEntry{}, puntuale.NotFound(puntuale.NoBlacklist)
	}
	e, err := c.tenant.BlacklistEntry(ctx, wanted)
	if err != nil {
		return puntuale.BlacklistEntry{}, fmt.Errorf("read an entry of the blacklist: %w", err)
	}
	return e, nil
}

// RemoveBlacklistEntry removes one entry from the blacklist, and returns it. The entry may belong to an erased person.
// Codes: not_found.
func (c *Client) RemoveBlacklistEntry(ctx context.Context, id string) (puntuale.BlacklistEntry, error) {
	e, err := c.BlacklistEntry(ctx, id)
	if err != nil {
		return puntuale.BlacklistEntry{}, err
	}
	if err := c.tenant.RemoveBlacklistEntry(ctx, e.ID, c.control.clock.Now()); err != nil {
		return puntuale.BlacklistEntry{}, fmt.Errorf("remove an entry of the blacklist: %w", err)
	}
	return e, nil
}

// MaxBlacklistLines bounds the numbers of one imported list.
const MaxBlacklistLines = 20_000

// BlacklistLine is one line of a list of numbers.
type BlacklistLine struct {
	Line   int // the number of the line in the list, from 1
	Phone  string
	Reason string
}

const faultBlacklistNoNumbers puntuale.ReasonCode = "blacklist.no_numbers"

// ImportBlacklist adds all numbers of a list. If one line is not a valid number, ImportBlacklist adds no number.
// Numbers that are already there are treated as [Client.AddBlacklisted] does. added is how many numbers were added; different is how many
// different numbers the list contains. Codes: invalid, with a fault at line[n].phone or line[n].reason for each wrong
// line, and at body.file for the whole list.
func (c *Client) ImportBlacklist(ctx context.Context, lines []BlacklistLine) (added, different int, err error) {
	var f request.Faults
	switch {
	case len(lines) == 0:
		f.Add("body.file", faultBlacklistNoNumbers, nil)
	default:
		f.Entries("body.file", len(lines), MaxBlacklistLines)
	}
	if err := f.Err(); err != nil {
		return 0, 0, err
	}
	now := c.control.clock.Now()
	entries := make(map[string]puntuale.BlacklistEntry, len(lines))
	for _, l := range lines {
		at := request.At("line", l.Line)
		phone := c.recipient(&f, at+".phone", strings.TrimSpace(l.Phone))
		f.Text(at+".reason", l.Reason, puntuale.MaxName)
		if _, twice := entries[phone]; !twice {
			entries[phone] = puntuale.BlacklistEntry{Phone: phone, Mark: c.mark(phone), Reason: l.Reason, Added: now}
		}
	}
	if err := f.Err(); err != nil {
		return 0, 0, err
	}
	all := slices.SortedFunc(maps.Values(entries), func(a, b puntuale.BlacklistEntry) int { return strings.Compare(a.Phone, b.Phone) })
	added, err = c.tenant.AddAllBlacklisted(ctx, all)
	if err != nil {
		return added, len(all), fmt.Errorf("add to the blacklist: %w", err)
	}
	return added, len(all), nil
}
