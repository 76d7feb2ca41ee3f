package control

import (
	"context"
	"fmt"
	"strings"

	"puntuale"
)

// Standing is what is known of somebody before a sequence is started for them by hand.
type Standing struct {
	Blacklisted bool // every message would end as BLACKLISTED
	Running     bool // messages of the sequence are pending for them already
}

// Standing looks somebody up, and stores and counts nothing. Codes: not_found (the sequence), invalid.
func (c *Client) Standing(ctx context.Context, sequence, phone string) (s Standing, err error) {
	if _, err = sequenceID(sequence); err != nil {
		return s, err
	}
	var f faults
	known := c.recipient(&f, "body.phone", phone)
	if err := f.err(); err != nil {
		return s, err
	}
	if s.Blacklisted, err = c.Blacklisted(ctx, known); err != nil {
		return s, err
	}
	pending, _, err := c.Messages(ctx, MessageQuery{State: puntuale.Pending.String(), Sequence: sequence, Phone: known, Page: Page{Limit: "1"}})
	s.Running = len(pending) > 0
	return s, err
}

// Blacklisted reports whether a number, as messages have it, is in the blacklist: as it is written, or as the mark of who was
// erased. It looks twice at most.
func (c *Client) Blacklisted(ctx context.Context, phone string) (bool, error) {
	if len(phone) > puntuale.MaxPersonID || strings.ContainsRune(phone, 0) {
		return false, nil // no list has such a number
	}
	for _, word := range []string{phone, c.mark(phone)} {
		if word == "" {
			continue
		}
		found, _, err := c.tenant.FindBlacklisted(ctx, puntuale.BlacklistFilter{Mark: word}, puntuale.Page{Limit: 1})
		if err != nil {
			return false, fmt.Errorf("look for a number in the blacklist: %w", err)
		}
		if len(found) > 0 {
			return true, nil
		}
	}
	return false, nil
}
