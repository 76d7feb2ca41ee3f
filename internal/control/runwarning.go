package control

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"puntuale"
)

// reasonDayFull: the session sent as many messages in 24 hours as its pace allows; {1}: how many.
const reasonDayFull puntuale.ReasonCode = "sequence.day_full"

// RunWarnings says what the messages of a planned run would meet as things are now. Such a run starts nevertheless. Nothing is stored.
func (c *Client) RunWarnings(ctx context.Context, s puntuale.StartRun) (all []Warning, err error) {
	if len(s.Messages) == 0 {
		return nil, nil
	}
	warn := func(step int, reason puntuale.Reason) { all = append(all, Warning{step, reason}) }
	first := s.Messages[0].Step
	phone := s.Run.Phone
	barred, err := c.Blacklisted(ctx, phone)
	if err != nil {
		return nil, err
	}
	if barred {
		warn(first, puntuale.Because(puntuale.ReasonBlacklisted))
	}
	if i := slices.IndexFunc(s.Messages, func(m puntuale.PlannedMessage) bool { return m.Purpose == puntuale.PurposeMarketing }); i >= 0 {
		refused, err := c.MarketingRefused(ctx, phone)
		if err != nil {
			return nil, err
		}
		if refused[phone] {
			warn(s.Messages[i].Step, puntuale.Because(puntuale.ReasonNoConsent))
		}
	}
	if left := c.account.Credits; left != nil && *left <= 0 {
		warn(first, puntuale.Because(puntuale.ReasonNoCredit))
	}
	session, err := c.Session(ctx, s.Run.Session.String())
	if err != nil {
		return nil, err
	}
	if session.State == puntuale.LinkUnlinked {
		warn(first, puntuale.Because(puntuale.ReasonNotLinked))
	}
	limits, err := c.limitsOf(ctx, session.Session, s.Now)
	if err != nil {
		return nil, err
	}
	if most := session.Pace.PerDay; most > 0 && limits.Load.Sent >= most {
		warn(first, puntuale.Because(reasonDayFull, strconv.Itoa(most)))
	}
	network, err := c.networkWarnings(ctx, session, s)
	return append(all, network...), err
}

// networkWarnings are about what the session's network takes. Free text to an Official session's recipient leaves only within the window.
func (c *Client) networkWarnings(ctx context.Context, session Session, s puntuale.StartRun) (all []Warning, err error) {
	if session.Sandbox {
		return nil, nil
	}
	steps := make([]puntuale.Step, len(s.Messages))
	var names []string
	for i, m := range s.Messages {
		steps[i] = puntuale.Step{Text: m.Content.Text, Media: m.Content.MediaURL, Latitude: m.Content.Latitude, Official: m.Content.Official}
		if why := mediaWarning(steps[i], session.Type); why != "" {
			all = append(all, Warning{m.Step, puntuale.Because(why)})
		}
		if m.Content.Official != nil {
			names = append(names, m.Content.Official.Name)
		}
	}
	if session.Type != puntuale.Official {
		return all, nil
	}
	until, err := c.ReplyWindowEnd(ctx, session.ID, s.Run.Phone)
	if err != nil {
		return nil, err
	}
	about, _, _, err := c.tenant.NetworkTemplates(ctx, session.ID, puntuale.Page{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("read about templates: %w", err)
	}
	known, err := c.tenant.NetworkTemplatesNamed(ctx, session.ID, names)
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	for i, m := range s.Messages {
		if m.Content.Official == nil && m.Due.Before(until) {
			continue
		}
		if why := stepWarning(steps[i], about, known); !why.IsZero() {
			all = append(all, Warning{m.Step, why})
		}
	}
	return all, nil
}
