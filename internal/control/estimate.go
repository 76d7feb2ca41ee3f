package control

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/campaign"
)

// limitsOf reads what a session and its network allow, and what the session did in the last 24 hours.
func (c *Client) limitsOf(ctx context.Context, session puntuale.Session, now time.Time) (campaign.Limits, error) {
	limits := campaign.NewLimits(session)
	if !limits.Any() {
		return limits, nil
	}
	var err error
	if limits.Load, err = c.tenant.SessionLoad(ctx, session.ID, now.Add(-24*time.Hour)); err != nil {
		return limits, fmt.Errorf("read what session %d did: %w", session.ID, err)
	}
	return limits, nil
}
