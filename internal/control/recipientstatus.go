package control

import (
	"context"
	"fmt"
	"puntuale/internal/control/request"
	"slices"

	"puntuale"
)

// RecipientStatus describes a person before somebody starts a sequence for the person.
type RecipientStatus struct {
	Blacklisted bool // true: all messages would become BLACKLISTED
	Running     bool // true: messages of the sequence to the person are already pending
}

// RecipientStatus returns the status of a person for a sequence. It stores and counts nothing. Codes: not_found (the
// sequence does not exist), invalid.
func (c *Client) RecipientStatus(ctx context.Context, sequence, phone string) (s RecipientStatus, err error) {
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

// Recipient parses a number or a group, and returns it in the form that messages use. Codes: invalid.
func (c *Client) Recipient(text string) (string, error) {
	var f request.Faults
	phone := c.recipient(&f, "query.phone", text)
	return phone, f.Err()
}

// Known is [Client.Recipient] for a number that may be stored. It also accepts a number that only earlier versions
// accepted. Codes: invalid.
func (c *Client) Known(text string) (string, error) {
	var f request.Faults
	phone := c.person(&f, "query.phone", text).Names[0]
	return phone, f.Err()
}

// Blacklisted reports whether the blacklist contains a number, or the keyed hash that replaced the number after an
// erasure. The number must have the form that messages use.
func (c *Client) Blacklisted(ctx context.Context, phone string) (bool, error) {
	found, err := c.BlacklistedAmong(ctx, phone)
	return found[phone], err
}

// BlacklistedAmong is [Client.Blacklisted] for several numbers. The result has the value true for each number in the
// blacklist.
func (c *Client) BlacklistedAmong(ctx context.Context, phones ...string) (map[string]bool, error) {
	phones = slices.DeleteFunc(slices.Clone(phones), func(phone string) bool { return !possible(phone) }) // a blacklist cannot contain such a text
	listed, err := c.tenant.AmongBlacklisted(ctx, phones, c.mark)
	if err != nil {
		return nil, fmt.Errorf("look for numbers in the blacklist: %w", err)
	}
	return listed, nil
}

// Unwanted returns the pending messages that will not leave, each with the reason. Either the number is in the
// blacklist, or the message is marketing that the person must not get.
func (c *Client) Unwanted(ctx context.Context, messages ...[]puntuale.MessageDetail) (map[puntuale.MessageID]puntuale.ReasonCode, error) {
	var phones, marketing []string
	waits := func(m *puntuale.MessageDetail) bool {
		return m.State == puntuale.Pending && m.Intent == 0 && m.Phone != "" && m.Purpose != puntuale.PurposeConfirmation
	}
	for _, list := range messages {
		for i := range list {
			if m := &list[i]; waits(m) {
				phones = append(phones, m.Phone)
				if m.Purpose == puntuale.PurposeMarketing {
					marketing = append(marketing, m.Phone)
				}
			}
		}
	}
	listed, err := c.BlacklistedAmong(ctx, phones...)
	if err != nil {
		return nil, err
	}
	refused := map[string]bool{}
	if len(marketing) > 0 {
		slices.Sort(marketing)
		if refused, err = c.MarketingRefused(ctx, slices.Compact(marketing)...); err != nil {
			return nil, err
		}
	}
	reason := map[puntuale.MessageID]puntuale.ReasonCode{}
	for _, list := range messages {
		for i := range list {
			switch m := &list[i]; {
			case !waits(m):
			case listed[m.Phone]:
				reason[m.ID] = puntuale.ReasonBlacklisted
			case m.Purpose == puntuale.PurposeMarketing && refused[m.Phone]:
				reason[m.ID] = puntuale.ReasonNoConsent
			}
		}
	}
	return reason, nil
}

// Day returns the client's current day. Codes: unavailable.
func (c *Client) Day() (puntuale.Date, error) { return c.today(c.control.clock.Now()) }

// OutlinesOf reads messages without their contents. Messages that do not exist are left out.
func (c *Client) OutlinesOf(ctx context.Context, ids []puntuale.MessageID) ([]puntuale.MessageDetail, error) {
	found, err := c.tenant.Outlines(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	return found, nil
}

// Results reads a report.
func (c *Client) Results(ctx context.Context, f puntuale.ResultFilter) (puntuale.ResultReport, error) {
	found, err := c.tenant.Results(ctx, f, c.control.clock.Now())
	if err != nil {
		return found, fmt.Errorf("read results: %w", err)
	}
	return found, nil
}

// ResultMessages lists the messages behind a count. Codes: invalid.
func (c *Client) ResultMessages(ctx context.Context, f puntuale.ResultMessages, page request.Page) ([]puntuale.ResultMessage, string, error) {
	found, next, err := request.List(page, func(p puntuale.Page) ([]puntuale.ResultMessage, string, error) {
		return c.tenant.ResultMessages(ctx, f, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list the messages behind a count: %w", err)
	}
	return found, next, nil
}
