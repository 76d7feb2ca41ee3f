package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

// NoteCampaigns writes audit entries and facts about a change of state, for each campaign that the SQL condition
// selects. args are the arguments of this condition, beginning at $1. The facts are for the campaigns' clients.
func NoteCampaigns(ctx context.Context, a engine.Querier, c puntuale.CampaignChange, condition string, args ...any) error {
	if err := tellCampaigns(ctx, a, c, condition, args); err != nil {
		return err
	}
	n := len(args)
	_, err := a.Exec(ctx, fmt.Sprintf(`insert into audit (partner_id, client_id, login_id, who, entry, action, target, at, address)
 select l.partner_id, c.client_id, $%d::bigint, $%d::text, $%d::bigint, $%d::text, cast(c.id as text) || $%d::text, $%d::bigint, $%d::text
 from campaign c join client l on l.id = c.client_id where `, n+1, n+2, n+3, n+4, n+5, n+6, n+7)+condition,
		slices.Concat(args, []any{c.By.User, c.By.Who, engine.Bit(c.By.Entry), "campaign." + c.To.String(), prefixed(" ", c.Reason), engine.Micros(c.Now), c.By.Address})...)
	if err != nil {
		return fmt.Errorf("note a campaign's state: %w", err)
	}
	return nil
}

// campaignTypes maps each state that causes an event to its type of event. All states that end a campaign have the same
// type.
var campaignTypes = map[puntuale.CampaignState]puntuale.EventType{
	puntuale.CampaignRunning: puntuale.EventCampaignStarted, puntuale.CampaignPaused: puntuale.EventCampaignPaused,
	puntuale.CampaignDone: puntuale.EventCampaignDone, puntuale.CampaignCancelled: puntuale.EventCampaignDone, puntuale.CampaignFailed: puntuale.EventCampaignDone,
}

// tellCampaigns writes facts about a change of state. It locks the campaigns. So if another transaction changes a
// campaign at the same time, tellCampaigns reads the campaign's state after that change.
func tellCampaigns(ctx context.Context, a engine.Querier, c puntuale.CampaignChange, condition string, args []any) error {
	kind, hasEvent := campaignTypes[c.To]
	if !hasEvent {
		return nil
	}
	var facts []outbox.Fact
	err := a.Query(ctx, `select c.client_id, c.id, c.name, c.draft, c.started_at, c.final from campaign c
 where `+condition+` order by c.client_id, c.id for update of c`, args, func(r engine.Row) error {
		var m puntuale.Campaign
		var final *puntuale.CampaignCounts
		var fault error // what cannot be decoded is left out of the fact
		if err := r.Scan(engine.ScanFaulty(&fault, &m.Client, &m.ID, &m.Name, engine.ScanJSON(&m.Draft), engine.ScanTime(&m.Started), engine.ScanOptionalJSON(&final))...); err != nil {
			return err
		}
		detail, err := campaignDetail(c, &m, final)
		facts = append(facts, outbox.Fact{Client: m.Client, Type: kind, Subject: int64(m.ID), Detail: detail})
		return err
	})
	if err != nil {
		return fmt.Errorf("read campaigns to tell of: %w", err)
	}
	return outbox.Tell(ctx, a, c.Now, facts...)
}

func campaignDetail(c puntuale.CampaignChange, m *puntuale.Campaign, final *puntuale.CampaignCounts) (string, error) {
	members := struct {
		Name      string                   `json:"name"`
		Reference string                   `json:"reference,omitempty"`
		State     string                   `json:"state"`
		Reason    string                   `json:"reason,omitempty"`
		Resumed   bool                     `json:"resumed,omitempty"`
		Counts    *puntuale.CampaignCounts `json:"counts,omitempty"`
	}{Name: m.Name, Reference: m.Draft.Reference, State: c.To.String(), Reason: c.Reason}
	switch {
	case c.To == puntuale.CampaignRunning:
		members.Resumed = !m.Started.Equal(c.Now)
	case c.To.Ended() && c.Reason == "": // a Reason means that the session was deleted, and then the messages are not counted
		members.Counts = final
	}
	return outbox.Detail(members)
}

// prefixed returns sign followed by text, or "" if text is empty.
func prefixed(sign, text string) string {
	if text == "" {
		return ""
	}
	return sign + text
}

// PauseCampaigns pauses all campaigns that send, and stores the reason for the person who resumes them. It also makes
// automations ignore all earlier facts.
func PauseCampaigns(ctx context.Context, a engine.Querier, reason string, now time.Time) error {
	if err := NoteCampaigns(ctx, a, puntuale.CampaignChange{To: puntuale.CampaignPaused, Reason: reason, Now: now}, `c.state in (3, 5)`); err != nil {
		return err
	}
	_, err := a.Exec(ctx, `update campaign set paused_at = case when state = 3 then $2::bigint else paused_at end, state = 4, reason = $1 where state in (3, 5)`, reason, engine.Micros(now))
	if err != nil {
		return fmt.Errorf("pause campaigns: %w", err)
	}
	// The latest acts of automations may be lost, too. If automations saw earlier facts again, they might act twice.
	if _, err := a.Exec(ctx, `update automation_client set since = $1`, engine.Micros(now)); err != nil {
		return fmt.Errorf("let rules miss what came before: %w", err)
	}
	return nil
}
