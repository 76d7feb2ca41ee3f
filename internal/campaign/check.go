package campaign

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"puntuale"
)

// Store is the part of a client's store that a check uses.
type Store interface {
	Recipients(ctx context.Context, list puntuale.ListID, f puntuale.RecipientFilter, after int64, limit int) ([]puntuale.Recipient, error)
	ChangeCheck(ctx context.Context, id puntuale.CampaignID, p puntuale.CheckProgress) error
	Running(ctx context.Context, sequence puntuale.SequenceID, phones []string) (map[string]bool, error)
	KnownPersons(ctx context.Context, session puntuale.SessionID, phones []string) (map[string]puntuale.KnownPerson, error)
}

// Check decides which recipients of a list to refuse.
type Check struct {
	Plan     *Plan
	Store    Store
	Now      func() time.Time
	Begun    time.Time // the start of this check, as in the campaign's row
	First    time.Time // when the first recipient's run would start: the planned start, or now
	Digest   string
	Limits   Limits
	Prices   *Prices // nil: the network does not bill messages
	Warnings []puntuale.CampaignWarning
	// Way returns the way of a message to a person of an Official session. nil: the session is not Official.
	Way func(m *puntuale.PlannedMessage, phone string, purpose puntuale.Purpose, window time.Time) (puntuale.MessageWay, puntuale.ReasonCode)

	// Blacklisted returns which of the phones are in the client's blacklist.
	Blacklisted func(ctx context.Context, phones []string) (map[string]bool, error)
	// Refused returns which of the phones get no marketing, because their consent is withdrawn or missing.
	Refused func(ctx context.Context, phones []string) (map[string]bool, error)

	found    puntuale.CampaignCheck
	refused  map[string]int
	kinds    map[puntuale.MessageKind]int // number of messages of each kind
	first    int                          // recipients outside their 24-hour window; the network counts them as first contacts
	cold     int                          // recipients that are cold contacts of the session
	seen     *SeenPhones
	shortest *puntuale.CampaignSample
	longest  *puntuale.CampaignSample
	alive    time.Time
	reported time.Time
}

const (
	checkRows = 5000
	tellEvery = time.Second
	samples   = 3
)

// reasons are the reasons to refuse a recipient, in the order of the report.
var reasons = []string{
	puntuale.RefusedPhone, puntuale.RefusedDuplicate, puntuale.RefusedMissing, puntuale.RefusedField, puntuale.RefusedBlacklisted, puntuale.RefusedNoConsent,
	puntuale.RefusedRunning, puntuale.RefusedPast, puntuale.RefusedWindow, puntuale.RefusedErased,
}

// Run runs the check and stores its result. Codes: conflict if another check took over, or the campaign changed.
func (c *Check) Run(ctx context.Context) error {
	c.found, c.first, c.cold, c.kinds = puntuale.CampaignCheck{}, 0, 0, map[puntuale.MessageKind]int{}
	c.shortest, c.longest = nil, nil
	c.refused, c.seen, c.alive, c.reported = map[string]int{}, NewSeenPhones(), c.Begun, c.Now()
	p := c.Plan
	if shares := p.campaign.Draft.Shares; len(shares) > 0 {
		c.found.Variants = make([]int, len(shares))
	}
	pacer := NewPacer(c.First, p.frozen.PerMinute, p.campaign.Draft.Window, p.zone)
	var after int64
	for {
		rows, err := c.Store.Recipients(ctx, p.campaign.List, puntuale.RecipientFilter{}, after, checkRows)
		if err != nil {
			return fmt.Errorf("read recipients: %w", err)
		}
		if len(rows) == 0 {
			return c.end(ctx)
		}
		after = rows[len(rows)-1].N
		changed, err := c.checkRecipients(ctx, rows, pacer)
		if err != nil {
			return err
		}
		c.found.Done = int(after)
		if len(changed) > 0 || c.Now().Sub(c.reported) >= tellEvery {
			if err := c.storeProgress(ctx, changed, false); err != nil {
				return err
			}
		}
	}
}

// checkRecipients decides about some recipients, and returns those whose state or reason changed.
func (c *Check) checkRecipients(ctx context.Context, rows []puntuale.Recipient, pacer *Pacer) (changed []puntuale.Recipient, err error) {
	phones := phonesOf(rows)
	barred, err := c.Blacklisted(ctx, phones)
	if err != nil {
		return nil, err
	}
	var refused map[string]bool
	if c.Plan.marketing() {
		if refused, err = c.Refused(ctx, phones); err != nil {
			return nil, err
		}
	}
	var contacts map[string]puntuale.KnownPerson
	if c.Limits.Official || c.Limits.pacesColdContacts() {
		if contacts, err = c.Store.KnownPersons(ctx, c.Limits.Session.ID, phones); err != nil {
			return nil, fmt.Errorf("look for contacts: %w", err)
		}
	}
	var busy map[string]bool
	if w := c.Plan.ifRunning(); c.Plan.frozen.Sequence.ID != 0 && (w == puntuale.IfRunningSkip || w == puntuale.IfRunningReject) {
		if busy, err = c.Store.Running(ctx, c.Plan.frozen.Sequence.ID, phones); err != nil {
			return nil, fmt.Errorf("look for running messages: %w", err)
		}
	}
	for i := range rows {
		r := rows[i]
		before := r
		r.State, r.Reason, r.Value = puntuale.RecipientWaiting, "", ""
		if before.Reason == puntuale.RefusedErased {
			r = before
		} else {
			c.decide(&r, &before, knownPhone{barred[r.Phone], refused[r.Phone], busy[r.Phone], contacts[r.Phone]}, pacer)
		}
		c.found.Recipients++
		switch r.Reason {
		case "":
			c.found.Valid++
		case puntuale.RefusedHeldOut:
			r.State = puntuale.RecipientRefused
			c.found.HeldOut++
		default:
			r.State = puntuale.RecipientRefused
			c.refused[r.Reason]++
		}
		if r.State != before.State || r.Reason != before.Reason || r.Value != before.Value {
			changed = append(changed, r)
		}
	}
	return changed, nil
}

// knownPhone contains what is known about a recipient's phone.
type knownPhone struct {
	barred, refused, busy bool
	contact               puntuale.KnownPerson
}

// decide finds the first reason to refuse a recipient. If there is none, it counts the recipient's messages.
func (c *Check) decide(r, before *puntuale.Recipient, k knownPhone, pacer *Pacer) {
	if r.Phone == "" {
		r.Reason, r.Value = puntuale.RefusedPhone, shortened(c.Plan.cell(before, "phone"))
		return
	}
	if c.seen.Add(r.Phone) {
		r.Reason, r.Value = puntuale.RefusedDuplicate, r.Phone
		return
	}
	at, opens := pacer.Next(c.First)
	built, reason, value := c.Plan.Build(r, at, 0)
	switch {
	case reason == puntuale.RefusedMissing || reason == puntuale.RefusedField:
		r.Reason, r.Value = reason, value
	case k.barred:
		r.Reason, r.Value = puntuale.RefusedBlacklisted, r.Phone
	case k.refused:
		r.Reason, r.Value = puntuale.RefusedNoConsent, r.Phone
	case k.busy:
		r.Reason, r.Value = puntuale.RefusedRunning, r.Phone
	case reason != "" || !opens:
		r.Reason = puntuale.RefusedPast
	case c.tellWays(r.Phone, built, k.contact) == puntuale.WayRefused:
		r.Reason = puntuale.RefusedWindow
	case c.Plan.heldOut(r.Phone): // the last reason, so that these people differ in nothing else from those who get the message
		r.Reason = puntuale.RefusedHeldOut
	default:
		pacer.Advance()
		c.address(built, k.contact)
		c.price(r.Phone, built)
		for i := range built.Messages {
			c.count(&built.Messages[i])
			c.countWay(&built.Messages[i])
		}
		first := firstOf(built)
		s := puntuale.CampaignSample{Line: r.Line, Written: shortened(c.Plan.cell(before, "phone")), Phone: r.Phone, At: first.Due, Text: first.Content.Text}
		if c.Plan.variant(r.Phone) >= 0 {
			s.Variant = puntuale.VariantKey(first.Step)
			c.found.Variants[first.Step]++
		}
		c.show(s)
	}
}

// Sample returns the first message that a recipient would get if the campaign began with them, or the reason why there is
// none. reason is "" if there is one.
func (c *Check) Sample(r puntuale.Recipient) (s puntuale.CampaignSample, reason, value string) {
	s = puntuale.CampaignSample{Line: r.Line, Written: shortened(c.Plan.cell(&r, "phone")), Phone: r.Phone}
	if r.State == puntuale.RecipientRefused {
		return s, r.Reason, r.Value
	}
	built, reason, value := c.Plan.Build(&r, c.First, 0)
	if reason != "" {
		return s, reason, value
	}
	first := firstOf(built)
	s.At, s.Text = first.Due, first.Content.Text
	if c.Plan.variant(r.Phone) >= 0 {
		s.Variant = puntuale.VariantKey(first.Step)
	}
	return s, "", ""
}

// show keeps the first messages, and the shortest and the longest: a value that is missing, or written in another form, is
// most often seen there.
func (c *Check) show(s puntuale.CampaignSample) {
	length := utf8.RuneCountInString(s.Text)
	if len(c.found.Samples) < samples || c.found.Variants != nil && !slices.ContainsFunc(c.found.Samples, func(x puntuale.CampaignSample) bool { return x.Variant == s.Variant }) {
		c.found.Samples = append(c.found.Samples, s)
	}
	if c.shortest == nil || length < utf8.RuneCountInString(c.shortest.Text) {
		c.shortest = &s
	}
	if c.longest == nil || length > utf8.RuneCountInString(c.longest.Text) {
		c.longest = &s
	}
}

// extremes adds the shortest and the longest message, unless they are among the first.
func (c *Check) extremes() {
	first := c.found.Samples
	for _, x := range []struct {
		kind   string
		sample *puntuale.CampaignSample
	}{{puntuale.SampleShortest, c.shortest}, {puntuale.SampleLongest, c.longest}} {
		if x.sample == nil || slices.ContainsFunc(first, func(s puntuale.CampaignSample) bool { return s.Line == x.sample.Line }) {
			continue
		}
		shown := *x.sample
		shown.Kind = x.kind
		c.found.Samples = append(c.found.Samples, shown)
	}
}

func (c *Check) count(m *puntuale.PlannedMessage) {
	f := &c.found
	f.Messages++
	if f.First.IsZero() || m.Due.Before(f.First) {
		f.First = m.Due
	}
	if m.DueMax.After(f.Last) {
		f.Last = m.DueMax
	}
	f.Longest = max(f.Longest, utf8.RuneCountInString(m.Content.Text))
}

// end stores the result.
func (c *Check) end(ctx context.Context) error {
	f := &c.found
	for _, reason := range reasons {
		if n := c.refused[reason]; n > 0 {
			f.Refused = append(f.Refused, puntuale.RefusedGroup{Reason: reason, Count: n})
		}
	}
	c.extremes()
	c.limit()
	if c.Prices != nil {
		f.Cost = c.Prices.Cost(c.kinds)
	}
	f.Warnings = c.Warnings
	f.Done, f.Digest = 0, c.Digest
	return c.storeProgress(ctx, nil, true)
}

func (c *Check) storeProgress(ctx context.Context, changed []puntuale.Recipient, ended bool) error {
	now := c.Now().Truncate(time.Microsecond)
	err := c.Store.ChangeCheck(ctx, c.Plan.campaign.ID, puntuale.CheckProgress{Alive: c.alive, Now: now, Changed: changed, Check: c.found, Over: ended})
	if err != nil {
		return fmt.Errorf("store a check: %w", err)
	}
	c.alive, c.reported = now, now
	return nil
}

// cell returns a recipient's value of a field.
func (p *Plan) cell(r *puntuale.Recipient, field string) string {
	if at, ok := p.frozen.Columns[field]; ok && at < len(r.Cells) {
		return r.Cells[at]
	}
	return ""
}

// shownValue bounds the stored part of a refused value, in bytes.
const shownValue = 200

func shortened(text string) string {
	for len(text) > shownValue {
		_, size := utf8.DecodeLastRuneInString(text[:shownValue])
		text = text[:shownValue-size]
	}
	return text
}
