package control

import (
	"context"
	"fmt"
	"puntuale/internal/control/request"
	"strings"

	"puntuale"
)

// RecipientStatus is what is known of somebody before a sequence is started for them by hand.
type RecipientStatus struct {
	Blacklisted bool // every message would end as BLACKLISTED
	Running     bool // messages of the sequence are pending for them already
}

// Standing looks somebody up, and stores and counts nothing. Codes: not_found (the sequence), invalid.
func (c *Client) Standing(ctx context.Context, sequence, phone string) (s RecipientStatus, err error) {
	if _, err = sequenceID(sequence); err != nil {
		return s, err
	}
	var f request.Faults
	known := c.recipient(&f, "body.phone", phone)
	if err := f.Err(); err != nil {
		return s, err
	}
	if s.Blacklisted, err = c.Blacklisted(ctx, known); err != nil {
		return s, err
	}
	pending, _, err := c.Messages(ctx, MessageQuery{State: puntuale.Pending.String(), Sequence: sequence, Phone: known, Page: request.Page{Limit: "1"}})
	s.Running = len(pending) > 0
	return s, err
}

// Blacklisted reports whether a number, as messages have it, is in the blacklist: as it is written, or as the mark of who was
// erased.
func (c *Client) Blacklisted(ctx context.Context, phone string) (bool, error) {
	found, err := c.BlacklistedAmong(ctx, phone)
	return found[phone], err
}

// BlacklistedAmong is [Client.Blacklisted] for several numbers; those in the blacklist are true.
func (c *Client) BlacklistedAmong(ctx context.Context, phones ...string) (map[string]bool, error) {
	words := make([]string, 0, 2*len(phones))
	of := make(map[string]string, cap(words)) // the number that a word stands for
	for _, phone := range phones {
		if len(phone) > puntuale.MaxPersonID || strings.ContainsRune(phone, 0) {
			continue // no list has such a number
		}
		for _, word := range []string{phone, c.mark(phone)} {
			if _, twice := of[word]; word != "" && !twice {
				words, of[word] = append(words, word), phone
			}
		}
	}
	found, err := c.tenant.AmongBlacklisted(ctx, words)
	if err != nil {
		return nil, fmt.Errorf("look for numbers in the blacklist: %w", err)
	}
	listed := make(map[string]bool, len(found))
	for _, word := range found {
		listed[of[word]] = true
	}
	return listed, nil
}

// Unwanted returns the numbers of pending messages that are in the blacklist: those messages will not leave.
func (c *Client) Unwanted(ctx context.Context, messages ...[]puntuale.MessageDetail) (map[string]bool, error) {
	var phones []string
	for _, list := range messages {
		for i := range list {
			if m := &list[i]; m.State == puntuale.Pending && m.Intent == 0 && m.Phone != "" {
				phones = append(phones, m.Phone)
			}
		}
	}
	return c.BlacklistedAmong(ctx, phones...)
}
