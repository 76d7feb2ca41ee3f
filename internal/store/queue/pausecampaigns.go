package queue

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// NoteCampaigns puts a change of state into the audit log, for the campaigns that a condition finds. Its arguments begin at $8.
func NoteCampaigns(ctx context.Context, a engine.Querier, c puntuale.CampaignChange, which string, args ...any) error {
	_, err := a.Exec(ctx, `insert into audit (partner_id, client_id, login_id, who, entry, action, target, at, address)
 select l.partner_id, c.client_id, $1::bigint, $2::text, $3::bigint, $4::text, cast(c.id as text) || $5::text, $6::bigint, $7::text
 from campaign c join client l on l.id = c.client_id where `+which,
		append([]any{c.By.User, c.By.Who, engine.Bit(c.By.Entry), "campaign." + c.To.String(), prefixed(" ", c.Reason), engine.Micros(c.Now), c.By.Address}, args...)...)
	if err != nil {
		return fmt.Errorf("note a campaign's state: %w", err)
	}
	return nil
}

// prefixed puts a prefix before a text that is not empty.
func prefixed(sign, text string) string {
	if text == "" {
		return ""
	}
	return sign + text
}

// PauseCampaigns pauses all campaigns that send, and lets automations miss earlier facts. It stores the reason, so that a person who resumes one sees it.
func PauseCampaigns(ctx context.Context, a engine.Querier, reason string, now time.Time) error {
	if err := NoteCampaigns(ctx, a, puntuale.CampaignChange{To: puntuale.CampaignPaused, Reason: reason, Now: now}, `c.state in (3, 5)`); err != nil {
		return err
	}
	_, err := a.Exec(ctx, `update campaign set paused_at = case when state = 3 then $2::bigint else paused_at end, state = 4, reason = $1 where state in (3, 5)`, reason, engine.Micros(now))
	if err != nil {
		return fmt.Errorf("pause campaigns: %w", err)
	}
	// What rules did lately may be lost, too. So they leave alone what came before.
	if _, err := a.Exec(ctx, `update automation_client set since = $1`, engine.Micros(now)); err != nil {
		return fmt.Errorf("let rules miss what came before: %w", err)
	}
	return nil
}
