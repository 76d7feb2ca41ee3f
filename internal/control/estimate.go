package control

import (
	"context"
	"fmt"
	"slices"
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

// networkTemplatesOf reads the approved templates that a sequence uses. Only Official sessions have approved templates.
func (c *Client) networkTemplatesOf(ctx context.Context, limits campaign.Limits, sequence puntuale.Sequence) ([]puntuale.NetworkTemplate, error) {
	var names []string
	for _, step := range sequence.Steps {
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
		Category: func(m puntuale.Content) string {
			if m.Official == nil {
				return puntuale.CategoryService
			}
			return strings.ToLower(templateOf(known, m.Official).Category)
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

// CampaignBill returns the estimate of a campaign's check beside the network's bill. It returns nil if the network does
// not bill messages.
func (c *Client) CampaignBill(ctx context.Context, campaign Campaign) (*CampaignBill, error) {
	charges, err := c.tenant.Charges(ctx, campaign.ID)
	if err != nil {
		return nil, fmt.Errorf("read the charges of campaign %d: %w", campaign.ID, err)
	}
	if campaign.Checked.Cost == nil && len(charges) == 0 {
		return nil, nil
	}
	bill := &CampaignBill{Estimated: campaign.Checked.Cost}
	counts := map[puntuale.MessageKind]int{}
	for _, charge := range charges {
		if charge.Billable {
			counts[charge.MessageKind] += charge.Messages
		} else {
			bill.Free += charge.Messages
		}
	}
	bill.Reported = c.control.prices.Cost(counts)
	return bill, nil
}
