package statement

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/price"
)

// What a closed month counted is not computed again: people are erased, contents removed, and the network puts templates into
// other categories. So the close of a month stores as what it counted each message, in parts of a few bytes for a message. A
// correction looks its messages up there. A message that is not there was not counted, and nothing is taken back for it.

const (
	partSize    = 8192   // messages that are stored together
	correctedAt = 20_000 // messages that are looked up together
	zones       = 14 * time.Hour
)

// countedMessages are messages that were counted, and are not stored yet.
type countedMessages struct {
	lines map[puntuale.StatementLine][]puntuale.MessageID
	size  int
	parts int // that were stored
}

func (m *countedMessages) add(line puntuale.StatementLine, id puntuale.MessageID) {
	if m.lines == nil {
		m.lines = map[puntuale.StatementLine][]puntuale.MessageID{}
	}
	m.lines[line] = append(m.lines[line], id)
	m.size++
}

// keepCounted stores the messages that were counted, if there are so many.
func (c *monthCounter) keepCounted(ctx context.Context, least int) error {
	m := &c.counted
	if m.size < least {
		return nil
	}
	parts := make([]puntuale.StatementPart, 0, len(m.lines))
	for line, ids := range m.lines {
		parts = append(parts, puntuale.StatementPart{Line: line, Messages: ids})
	}
	if err := c.tenant.KeepStatementParts(ctx, c.month, c.to, m.parts, parts); err != nil {
		return fmt.Errorf("store what was counted: %w", err)
	}
	c.counted = countedMessages{parts: m.parts + len(parts)}
	return nil
}

// correction is what became known of a message.
type correction struct {
	id   puntuale.MessageID
	line puntuale.StatementLine // in which it counts now
	sent bool                   // false: it counts in none, because it failed
}

// correct adds the corrections of the month before, if it is closed: what became known after it was counted.
func (c *monthCounter) correct(ctx context.Context) error {
	if c.before.Month == 0 {
		return nil
	}
	var all []correction
	add := func(page []puntuale.BilledMessage) error {
		for _, m := range page {
			if m.Late || m.ChargedAt.Before(c.to) {
				all = append(all, correction{id: m.ID, line: lineOf(m, c.to), sent: !m.Late})
			}
		}
		if len(all) < correctedAt {
			return nil
		}
		part := all
		all = nil
		return c.apply(ctx, part)
	}
	charged := puntuale.BilledPeriod{From: c.before.Month.Begin(time.UTC).Add(-zones), To: c.month.Begin(time.UTC).Add(zones), ChargedFrom: c.before.CountedTo}
	if err := c.days(ctx, charged, add); err != nil {
		return err
	}
	if err := c.days(ctx, puntuale.BilledPeriod{From: c.before.CountedTo, To: c.to, Late: true}, add); err != nil {
		return err
	}
	return c.apply(ctx, all)
}

// days reads a period a day at a time. So no statement reads a month of messages of which only few are wanted.
func (c *monthCounter) days(ctx context.Context, p puntuale.BilledPeriod, do func([]puntuale.BilledMessage) error) error {
	for end := p.To; p.From.Before(end); p.From = p.To {
		if p.To = p.From.Add(24 * time.Hour); p.To.After(end) {
			p.To = end
		}
		if err := c.read(ctx, p, do); err != nil {
			return err
		}
	}
	return nil
}

// apply takes messages back from the lines in which the month before counted them, and adds them to those in which they count
// now.
func (c *monthCounter) apply(ctx context.Context, all []correction) error {
	if len(all) == 0 {
		return nil
	}
	ids := make([]puntuale.MessageID, 0, len(all))
	for _, x := range all {
		ids = append(ids, x.id)
	}
	counted, err := c.tenant.StatementLines(ctx, c.before.Month, c.before.CountedTo, ids)
	if err != nil {
		return fmt.Errorf("read what was counted: %w", err)
	}
	for _, x := range all {
		was, found := counted[x.id]
		if !found {
			continue
		}
		was.Month = c.before.Month
		c.lines[was]--
		if x.sent {
			x.line.Month, x.line.Country = was.Month, cmp.Or(x.line.Country, was.Country)
			c.lines[x.line]++
		}
	}
	return nil
}

// correctionPrice returns the price of a correction, at the prices of the month that it corrects. The list of today decides
// only what that month had no message of.
func (c *monthCounter) correctionPrice(line puntuale.StatementLine) string {
	if c.before.Currency != c.s.cfg.Prices.Currency {
		return ""
	}
	same := ""
	for _, was := range c.before.Lines {
		if was.Month != 0 || was.Source == puntuale.PriceNone || was.Free || was.MessageKind != line.MessageKind {
			continue
		}
		if share := price.Share(was.Price, was.Messages, line.Messages); share != "" {
			same = share
		}
		if was.Network == line.Network && was.Origin == line.Origin && was.Source == line.Source {
			return price.Share(was.Price, was.Messages, line.Messages)
		}
	}
	return cmp.Or(same, c.s.listPrice(line))
}
