package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/campaign"
	"puntuale/internal/price"
)

// limitsOf reads the limits of a session and of its network, and how many messages the session sent in the last 24
// hours.
func (c *Client) limitsOf(ctx context.Context, session puntuale.Session, now time.Time) (campaign.Limits, error) {
	limits := campaign.NewLimits(session)
	if !limits.HasLimits() {
		return limits, nil
	}
	var err error
	if limits.Load, err = c.tenant.SessionLoad(ctx, session.ID, now.Add(-24*time.Hour)); err != nil {
		return limits, fmt.Errorf("read what session %d did: %w", session.ID, err)
	}
	return limits, nil
}

// SessionHealth is what Meta says about the number and the business of a session.
type SessionHealth struct {
	puntuale.SessionHealth
	Portfolio puntuale.Portfolio
}

// SessionHealth returns the health of an Official session. Codes: not_found, conflict (another type, or a sandbox).
func (c *Client) SessionHealth(ctx context.Context, id string) (SessionHealth, error) {
	found, err := c.official(ctx, id)
	if err != nil {
		return SessionHealth{}, err
	}
	now := c.Now()
	h, err := c.tenant.HealthOf(ctx, found.ID, now)
	if err != nil {
		return SessionHealth{}, fmt.Errorf("read the health of session %d: %w", found.ID, err)
	}
	p, err := c.tenant.Portfolio(ctx, found.ID, now)
	if err != nil {
		return SessionHealth{}, fmt.Errorf("read whom session %d addresses: %w", found.ID, err)
	}
	return SessionHealth{h, p}, nil
}

// LinkCheck is one thing that an Official session needs, and whether it is there.
type LinkCheck struct {
	Check string // webhook, subscription, display_name, payment, portfolio
	State string // ok, to_do, unknown
	Text  puntuale.Reason
}

// Codes of what an Official session needs, and whether it is there.
const (
	linkWebhookOK           puntuale.ReasonCode = "link.webhook_ok"
	linkWebhookToDo         puntuale.ReasonCode = "link.webhook_to_do"
	linkWebhookUnknown      puntuale.ReasonCode = "link.webhook_unknown"
	linkSubscriptionOK      puntuale.ReasonCode = "link.subscription_ok"
	linkSubscriptionToDo    puntuale.ReasonCode = "link.subscription_to_do"
	linkSubscriptionUnknown puntuale.ReasonCode = "link.subscription_unknown"
	linkDisplayNameOK       puntuale.ReasonCode = "link.display_name_ok"
	linkDisplayNameToDo     puntuale.ReasonCode = "link.display_name_to_do"
	linkDisplayNameUnknown  puntuale.ReasonCode = "link.display_name_unknown"
	linkPaymentOK           puntuale.ReasonCode = "link.payment_ok"
	linkPaymentToDo         puntuale.ReasonCode = "link.payment_to_do" // {1}: Meta's words
	linkPaymentUnknown      puntuale.ReasonCode = "link.payment_unknown"
	linkPortfolioOK         puntuale.ReasonCode = "link.portfolio_ok"    // {1}: how many people may still get messages, {2}: the limit
	linkPortfolioToDo       puntuale.ReasonCode = "link.portfolio_to_do" // {1}: the limit
	linkPortfolioUnknown    puntuale.ReasonCode = "link.portfolio_unknown"
)

// linkTexts has the codes for each check.
var linkTexts = map[string]map[string]puntuale.ReasonCode{
	"webhook":      {"ok": linkWebhookOK, "to_do": linkWebhookToDo, "unknown": linkWebhookUnknown},
	"subscription": {"ok": linkSubscriptionOK, "to_do": linkSubscriptionToDo, "unknown": linkSubscriptionUnknown},
	"display_name": {"ok": linkDisplayNameOK, "to_do": linkDisplayNameToDo, "unknown": linkDisplayNameUnknown},
	"payment":      {"ok": linkPaymentOK, "to_do": linkPaymentToDo, "unknown": linkPaymentUnknown},
	"portfolio":    {"ok": linkPortfolioOK, "to_do": linkPortfolioToDo, "unknown": linkPortfolioUnknown},
}

// Checks returns what an Official session needs besides its keys, in the order in which people set it up.
func (h SessionHealth) Checks() []LinkCheck {
	check := func(name, state string, args ...string) LinkCheck {
		return LinkCheck{name, state, puntuale.Because(linkTexts[name][state], args...)}
	}
	state := func(value string, words map[string]string) string { return cmp.Or(words[value], "unknown") }
	all := []LinkCheck{check("webhook", "to_do")}
	switch {
	case !h.Delivered.IsZero():
		all[0] = check("webhook", "ok")
	case !h.Verified.IsZero():
		all[0] = check("webhook", "unknown")
	}
	all = append(all,
		check("subscription", state(h.Subscribed.Value, map[string]string{"yes": "ok", "no": "to_do"})),
		check("display_name", state(h.DisplayName, map[string]string{"approved": "ok", "declined": "to_do"})),
		check("payment", state(h.Payment.Value, map[string]string{"ok": "ok", "problem": "to_do"}), h.Payment.Detail))
	left := h.Portfolio.Room
	switch {
	case h.Limit == 0:
		return append(all, check("portfolio", "unknown"))
	case left <= 0:
		return append(all, check("portfolio", "to_do", strconv.Itoa(h.Limit)))
	}
	return append(all, check("portfolio", "ok", strconv.Itoa(left), strconv.Itoa(h.Limit)))
}

// networkTemplatesOf reads the approved templates that a sequence uses. Only Official sessions have approved templates.
func (c *Client) networkTemplatesOf(ctx context.Context, limits campaign.Limits, sequence puntuale.Sequence) ([]puntuale.NetworkTemplate, error) {
	var names []string
	for _, step := range puntuale.Texts(sequence.Steps) {
		if step.Official != nil && !slices.Contains(names, step.Official.Name) {
			names = append(names, step.Official.Name)
		}
	}
	if len(names) == 0 || !limits.Official {
		return nil, nil
	}
	known, err := c.tenant.NetworkTemplatesNamed(ctx, limits.Session.ID, names)
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	return known, nil
}

// pricesOf returns the prices of an Official session's messages. It returns nil for any other session.
func (c *Control) pricesOf(limits campaign.Limits, known []puntuale.NetworkTemplate) *campaign.Prices {
	if !limits.Official {
		return nil
	}
	return &campaign.Prices{
		Country: price.Country, Cost: c.prices.Cost,
		Category: func(m *puntuale.PlannedMessage) string {
			if m.Content.Official == nil || m.Way == puntuale.WayFreeText {
				return puntuale.CategoryService
			}
			return strings.ToLower(templateOf(known, m.Content.Official).Category)
		},
	}
}

// templateOf returns the stored copy of an approved template, or the zero value if there is none.
func templateOf(known []puntuale.NetworkTemplate, a *puntuale.Approved) puntuale.NetworkTemplate {
	t, _ := puntuale.ChooseLanguage(known, a.Name, a.Language, "")
	return t
}

// CampaignBill is the cost of a campaign at its network.
type CampaignBill struct {
	Estimated *puntuale.CampaignCost // from the last check; nil: the check had no estimate
	Reported  *puntuale.CampaignCost // for the messages that the network has billed until now, at current prices
	Free      int                    // messages that the network delivered free of charge
}

// CampaignBill returns the estimate of a campaign's check beside the network's bill, by the prices that whoever asks may know.
// It returns nil if the network does not bill messages.
func (c *Client) CampaignBill(ctx context.Context, campaign Campaign) (*CampaignBill, error) {
	charges, err := c.tenant.Charges(ctx, campaign.ID)
	if err != nil {
		return nil, fmt.Errorf("read the charges of campaign %d: %w", campaign.ID, err)
	}
	own, err := c.OwnPrices(ctx)
	if err != nil {
		return nil, err
	}
	if campaign.Checked.Cost == nil && len(charges) == 0 {
		return nil, nil
	}
	bill := &CampaignBill{Estimated: campaign.Checked.Cost}
	networks, clients := map[puntuale.MessageKind]int{}, map[puntuale.MessageKind]int{}
	free := 0 // with the network, and without a price of the partner's
	for _, charge := range charges {
		owned := charge.Category != "" && own.Of(charge.Category) != ""
		switch {
		case charge.Billable:
			networks[charge.MessageKind] += charge.Messages
		case owned:
			bill.Free += charge.Messages
		default:
			free += charge.Messages
		}
		if charge.Billable || owned {
			clients[charge.MessageKind] += charge.Messages
		}
	}
	bill.Reported = c.control.prices.Cost(networks)
	toClient := price.AtOwn(c.control.prices.Cost(clients), own)
	switch {
	case !c.ByPartner():
		bill.Reported, bill.Free = toClient, free
	case toClient.Own:
		bill.Reported.ToClient = toClient
	}
	if c.ByPartner() {
		bill.Free += free
	}
	return bill, nil
}

// OwnPrices returns what the client's partner asks for messages. Where it set a price, the client itself may see only this
// one, and not what the network bills: see [Client.ByPartner].
func (c *Client) OwnPrices(ctx context.Context) (puntuale.Prices, error) {
	own, err := c.control.tenants.Partner(c.account.Partner).OwnPrices(ctx)
	if err != nil {
		return own, fmt.Errorf("read the partner's prices: %w", err)
	}
	return own, nil
}

// mayKnow returns a check with the cost that whoever asks may know.
func (c *Client) mayKnow(ctx context.Context, check puntuale.CampaignCheck) (puntuale.CampaignCheck, error) {
	if check.Cost == nil {
		return check, nil
	}
	own, err := c.OwnPrices(ctx)
	if err != nil {
		return check, err
	}
	toClient := price.AtOwn(check.Cost, own)
	switch {
	case !c.ByPartner():
		check.Cost = toClient
	case toClient.Own:
		networks := *check.Cost
		networks.ToClient, check.Cost = toClient, &networks
	}
	return check, nil
}

// wayReader contains what decides about the ways of an Official session's messages.
type wayReader struct {
	ways    puntuale.OfficialWays
	known   []puntuale.NetworkTemplate
	windows map[string]puntuale.KnownPerson
	now     time.Time
}

// wayReader reads what decides about the ways of messages with the given contents. It returns nil for a session that is
// not Official.
func (c *Client) wayReader(ctx context.Context, s puntuale.Session, phones []string, contents ...*puntuale.Content) (*wayReader, error) {
	if s.Type != puntuale.Official || s.Sandbox || s.ID == 0 {
		return nil, nil //nolint:nilnil // nil is the reader of other sessions
	}
	r := &wayReader{now: c.control.clock.Now()}
	var names []string
	for _, m := range contents {
		if m.Official != nil && !slices.Contains(names, m.Official.Name) {
			names = append(names, m.Official.Name)
		}
	}
	var err error
	if r.ways, err = c.tenant.OfficialWays(ctx, s.ID, r.now); err != nil {
		return nil, fmt.Errorf("read the ways of session %d: %w", s.ID, err)
	}
	if len(names) > 0 {
		if r.known, err = c.tenant.NetworkTemplatesNamed(ctx, s.ID, names); err != nil {
			return nil, fmt.Errorf("read templates: %w", err)
		}
	}
	if len(phones) > 0 {
		if r.windows, err = c.tenant.KnownPersons(ctx, s.ID, phones); err != nil {
			return nil, fmt.Errorf("look for contacts: %w", err)
		}
	}
	return r, nil
}

// query returns what decides about a message to a person whose 24-hour window ends at the time window.
func (r *wayReader) query(m *puntuale.Content, phone string, purpose puntuale.Purpose, due, window time.Time) puntuale.WayQuery {
	q := puntuale.WayQuery{Content: *m, To: phone, Purpose: purpose, Open: due.Before(window), Ways: r.ways, Now: r.now}
	if m.Official != nil {
		q.Template = templateOf(r.known, m.Official)
	}
	return q
}

// ofCampaign returns the way of a campaign's message.
func (r *wayReader) ofCampaign(m *puntuale.PlannedMessage, phone string, purpose puntuale.Purpose, window time.Time) (puntuale.MessageWay, puntuale.ReasonCode) {
	q := r.query(&m.Content, phone, purpose, m.Due, window)
	q.Campaign = true
	return q.Way()
}

// tellPlanned sets the ways of the messages that a dry run plans. It returns a warning for each message that Meta would
// refuse, as things are now. purposes contains the purpose of each step; nil: service.
func (c *Client) tellPlanned(ctx context.Context, s puntuale.Session, phone string, messages []*puntuale.PlannedMessage, purposes []puntuale.Purpose) (refused []puntuale.SkippedStep, err error) {
	contents := make([]*puntuale.Content, len(messages))
	for i, m := range messages {
		contents[i] = &m.Content
	}
	r, err := c.wayReader(ctx, s, []string{phone}, contents...)
	if r == nil || err != nil {
		return nil, err
	}
	for _, m := range messages {
		purpose := m.Purpose
		if m.Step < len(purposes) {
			purpose = purposes[m.Step]
		}
		m.Way, m.WayReason = r.query(&m.Content, phone, purpose, m.Due, r.windows[phone].Window).Way()
		if m.Way == puntuale.WayRefused {
			refused = append(refused, puntuale.SkippedStep{Step: m.Step, Moment: m.Due, Reason: puntuale.Because(m.WayReason)})
		}
	}
	return refused, nil
}

// tellWays sets the ways of stored messages.
func (c *Client) tellWays(ctx context.Context, all []puntuale.MessageDetail) error {
	bySession := map[puntuale.SessionID][]int{}
	for i := range all {
		bySession[all[i].Session] = append(bySession[all[i].Session], i)
	}
	for id, places := range bySession {
		s, err := c.tenant.Session(ctx, id)
		if puntuale.CodeOf(err) == puntuale.CodeNotFound {
			continue
		}
		if err != nil {
			return fmt.Errorf("read session %d: %w", id, err)
		}
		var phones []string
		var contents []*puntuale.Content
		for _, i := range places {
			if m := &all[i]; m.State == puntuale.Pending && m.Phone != "" {
				phones, contents = append(phones, m.Phone), append(contents, &m.Content)
			}
		}
		r, err := c.wayReader(ctx, s, phones, contents...)
		if err != nil {
			return err
		}
		for _, i := range places {
			if m := &all[i]; r != nil && !m.Blanked {
				q := r.query(&m.Content, m.Phone, m.Purpose, m.Planned(), r.windows[m.Phone].Window)
				q.Campaign = m.Campaign != 0
				m.TellWay(q)
			}
		}
	}
	return nil
}
