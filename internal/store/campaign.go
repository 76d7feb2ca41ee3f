package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// campaignColumns reads the progress from the table campaign_feed (f). The progress is not in the table campaign,
// because claims lock the rows of that table. Only a change of a campaign's state writes the table campaign.
const campaignColumns = `c.id, c.client_id, c.session_id, c.sequence_id, c.state, c.name, c.draft, c.frozen, c.list_id, c.checked, c.checked_at,
 c.reason, c.created_by, c.created_at, c.started_at, c.paused_at, c.resumed_at, c.ended_at, c.final,
 f.place, f.next_at, f.waiting, f.fed, f.refused, f.held_out`

const fromCampaigns = ` from campaign c join campaign_feed f on f.client_id = c.client_id and f.campaign_id = c.id`

func scanCampaign(rows engine.Row, c *puntuale.Campaign) error {
	return rows.Scan(campaignFields(c)...)
}

func campaignFields(c *puntuale.Campaign) []any {
	return []any{&c.ID, &c.Client, &c.Session, &c.Sequence, &c.State, &c.Name, engine.ScanJSON(&c.Draft), optionalJSON{&c.Frozen}, &c.List, optionalJSON{&c.Checked}, engine.ScanTime(&c.Alive),
		&c.Reason, &c.CreatedBy, engine.ScanTime(&c.Created), engine.ScanTime(&c.Started), engine.ScanTime(&c.Paused), engine.ScanTime(&c.Resumed), engine.ScanTime(&c.Ended), optionalJSON{&c.Final},
		&c.Feed.Cursor, engine.ScanTime(&c.Feed.Next), &c.Feed.Waiting, &c.Feed.Fed, &c.Feed.Refused, &c.Feed.HeldOut}
}

// optionalJSON scans a column that contains JSON or an empty text.
type optionalJSON struct{ into any }

func (k optionalJSON) Scan(value any) error {
	if value == "" || value == nil {
		return nil
	}
	return engine.ScanJSON(k.into).Scan(value)
}

// CreateCampaign stores a new campaign, and gives it the list that it names. The argument o may be nil; its function
// Answer gets the CampaignID. Codes: quota_reached beyond MaxOpenCampaigns; cap_reached if the call also starts the
// campaign, and the cap of this day allows no start.
func (t tenant) CreateCampaign(ctx context.Context, c puntuale.Campaign, day puntuale.Date, o *puntuale.Idempotency) (id puntuale.CampaignID, err error) {
	draft, err := engine.ToJSON(c.Draft)
	if err != nil {
		return 0, err
	}
	err = t.once(ctx, o, func(ctx context.Context, a engine.Querier) (any, error) {
		if c.Draft.Starts != 0 {
			u, err := queue.CountAlways(ctx, a, queue.UsageDay{Client: t.id, Day: day}, 0)
			if err != nil {
				return nil, err
			}
			if u.Remaining() == 0 {
				return nil, t.capReached(u)
			}
		}
		if err := t.sessionThere(ctx, a, c.Session); err != nil {
			return nil, err
		}
		if err := t.checkCampaigns(ctx, a); err != nil {
			return nil, err
		}
		n, err := engine.NextNumber(ctx, a, "campaign")
		if err != nil {
			return nil, err
		}
		id = puntuale.CampaignID(n)
		if _, err := a.Exec(ctx, `insert into campaign (client_id, id, session_id, sequence_id, state, name, draft, created_at, created_by)
 values ($1, $2, $3, $4, 0, $5, $6, $7, $8)`, t.id, id, c.Session, c.Sequence, c.Name, draft, engine.Micros(c.Created), c.CreatedBy); err != nil {
			return nil, fmt.Errorf("insert a campaign: %w", err)
		}
		if _, err := a.Exec(ctx, `insert into campaign_feed (client_id, campaign_id) values ($1, $2)`, t.id, id); err != nil {
			return nil, fmt.Errorf("insert a campaign: %w", err)
		}
		if c.List == 0 {
			return id, nil
		}
		return id, t.giveList(ctx, a, id, c.List)
	})
	return id, err
}

const faultCampaignTooMany puntuale.ReasonCode = "campaign.too_many"

// checkCampaigns locks the client's row. It returns an error if the client already has too many campaigns.
func (t tenant) checkCampaigns(ctx context.Context, a engine.Querier) error {
	var n int64
	found, err := engine.QueryOne(ctx, a, `select id from client where id = $1 and deleted_at = 0 for update`, []any{t.id}, &n)
	if err := engine.ThereOr(found, err, puntuale.NoClient); err != nil {
		return err
	}
	if _, err := engine.QueryOne(ctx, a, `select count(*) from campaign where client_id = $1 and state < 7`, []any{t.id}, &n); err != nil {
		return fmt.Errorf("count campaigns: %w", err)
	}
	if n >= puntuale.MaxOpenCampaigns {
		return &puntuale.Error{Code: puntuale.CodeQuotaReached, Reason: puntuale.Because(faultCampaignTooMany, strconv.FormatInt(n, 10))}
	}
	return nil
}

// UpdateCampaign replaces name, sequence, session and draft, and deletes the check. Codes: conflict (the campaign
// is not editable).
func (t tenant) UpdateCampaign(ctx context.Context, c puntuale.Campaign) error {
	draft, err := engine.ToJSON(c.Draft)
	if err != nil {
		return err
	}
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if err := t.sessionThere(ctx, a, c.Session); err != nil {
			return err
		}
		if _, err := t.lockCampaign(ctx, a, c.ID, puntuale.CampaignState.Editable); err != nil {
			return err
		}
		_, err := a.Exec(ctx, `update campaign set session_id = $3, sequence_id = $4, state = 0, name = $5, draft = $6, checked = '' where client_id = $1 and id = $2`,
			t.id, c.ID, c.Session, c.Sequence, c.Name, draft)
		if err != nil {
			return fmt.Errorf("update a campaign: %w", err)
		}
		return nil
	})
}

// lockCampaign locks a campaign's row and reads it. It returns an error if allowed returns false for the campaign's
// state.
func (t tenant) lockCampaign(ctx context.Context, a engine.Querier, id puntuale.CampaignID, allowed func(puntuale.CampaignState) bool) (c puntuale.Campaign, err error) {
	found, err := engine.QueryOne(ctx, a, `select c.id, c.state, c.list_id, c.checked_at, c.paused_at, c.resumed_at, c.started_at from campaign c
 where c.client_id = $1 and c.id = $2 for no key update`, []any{t.id, id}, &c.ID, &c.State, &c.List, engine.ScanTime(&c.Alive), engine.ScanTime(&c.Paused), engine.ScanTime(&c.Resumed), engine.ScanTime(&c.Started))
	if err := engine.ThereOr(found, err, puntuale.NoCampaign); err != nil {
		return c, err
	}
	if !allowed(c.State) {
		return c, puntuale.Conflict(puntuale.FaultCampaignWrongState, c.State.String())
	}
	return c, nil
}

func (t tenant) Campaign(ctx context.Context, id puntuale.CampaignID) (c puntuale.Campaign, err error) {
	found, err := engine.QueryOne(ctx, t.s.CallReads, `select `+campaignColumns+fromCampaigns+` where c.client_id = $1 and c.id = $2`, []any{t.id, id}, campaignFields(&c)...)
	return c, engine.FoundOr(found, err, puntuale.NoCampaign)
}

// listedCampaigns does not read the contents of campaigns, because they may be long.
const listedCampaigns = `select c.id, c.client_id, c.session_id, c.sequence_id, c.state, c.name, c.draft, '' as frozen, c.list_id, '' as checked, c.checked_at,
 c.reason, c.created_by, c.created_at, c.started_at, c.paused_at, c.resumed_at, c.ended_at, c.final,
 f.place, f.next_at, f.waiting, f.fed, f.refused, f.held_out` + fromCampaigns + ` where c.client_id = $1 and c.id < $2 order by c.id desc limit $3`

// Campaigns lists campaigns, newest first. Codes: invalid (the cursor).
func (t tenant) Campaigns(ctx context.Context, p puntuale.Page) ([]puntuale.Campaign, string, error) {
	last, limit, err := engine.ReadCursor(p, "campaigns")
	if err != nil {
		return nil, "", err
	}
	if last == 0 {
		last = puntuale.MaxID
	}
	all, err := engine.QueryAll(ctx, t.lists(), listedCampaigns, []any{t.id, last, limit + 1}, scanCampaign)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list campaigns: %w", err))
	}
	all, next := engine.CutPage(all, limit, "campaigns", func(c *puntuale.Campaign) int64 { return int64(c.ID) })
	return all, next, nil
}

// CountCampaigns counts campaigns, up to limit. all reports whether n is the complete count.
func (t tenant) CountCampaigns(ctx context.Context, limit int) (n int, all bool, err error) {
	if _, err := engine.QueryOne(ctx, t.lists(), `select count(*) from (select c.id from campaign c where c.client_id = $1 limit $2) as found`,
		[]any{t.id, limit + 1}, &n); err != nil {
		return 0, false, engine.PublicError(fmt.Errorf("count campaigns: %w", err))
	}
	return min(n, limit), n <= limit, nil
}

// campaignCounts reads only the index of a campaign's messages, not their rows. This index has no column for the
// client. So the statement checks the client in the campaign's row.
const campaignCounts = `select m.state, count(*) from campaign c join message m on m.campaign_id = c.id and m.campaign_id <> 0
 where c.client_id = $1 and c.id = $2 group by m.state`

// campaignReceipts counts the delivery receipts of a campaign's COMPLETED messages.
const campaignReceipts = `select coalesce(sum(case when g.delivered_at <> 0 or g.read_at <> 0 then 1 else 0 end), 0), coalesce(sum(case when g.read_at <> 0 then 1 else 0 end), 0)
 from campaign c join message m on m.campaign_id = c.id and m.campaign_id <> 0 and m.state = 1 join receipt g on g.client_id = m.client_id and g.message_id = m.id
 where c.client_id = $1 and c.id = $2`

// CampaignCounts counts the messages of fed recipients. It reads only an index. With receipts, it also reads the
// delivery receipts of each message, which takes about a second for 1,000,000 messages.
func (t tenant) CampaignCounts(ctx context.Context, id puntuale.CampaignID, receipts bool) (puntuale.CampaignCounts, error) {
	counts, err := countCampaign(ctx, t.lists(), campaignCounts, t.id, id)
	if err == nil && receipts && counts.Completed > 0 {
		err = t.lists().Query(ctx, campaignReceipts, []any{t.id, id}, func(rows engine.Row) error { return rows.Scan(&counts.Delivered, &counts.Read) })
	}
	return counts, engine.PublicError(err)
}

// rowQuerier runs a query. It is a part of engine.Querier.
type rowQuerier interface {
	Query(ctx context.Context, text string, args []any, scan func(r engine.Row) error) error
}

func countCampaign(ctx context.Context, a rowQuerier, text string, client puntuale.ClientID, id puntuale.CampaignID) (c puntuale.CampaignCounts, err error) {
	err = a.Query(ctx, text, []any{client, id}, func(rows engine.Row) error {
		var state puntuale.State
		var n int
		err := rows.Scan(&state, &n)
		switch state {
		case puntuale.Pending:
			c.Pending = n
		case puntuale.Completed:
			c.Completed = n
		case puntuale.Failed:
			c.Failed = n
		case puntuale.Cancelled:
			c.Cancelled = n
		case puntuale.Blacklisted:
			c.Blacklisted = n
		}
		return err
	})
	if err != nil {
		return c, fmt.Errorf("count a campaign's messages: %w", err)
	}
	return c, nil
}

// ChangeCampaign changes a campaign's state, and notes the change in the audit log. If the new state holds messages
// back, no message of the campaign is claimed after ChangeCampaign returns. Codes: conflict (the state is not one
// of From).
func (t tenant) ChangeCampaign(ctx context.Context, id puntuale.CampaignID, c puntuale.CampaignChange) error {
	return t.s.TenantWriter(int64(t.id)).Do(ctx, engine.Single(t.s.kinds.campaign, func(ctx context.Context, a engine.Querier) error {
		stored, err := t.lockCampaign(ctx, a, id, func(s puntuale.CampaignState) bool {
			for _, from := range c.From {
				if s == from {
					return true
				}
			}
			return false
		})
		if err != nil {
			return err
		}
		return moveCampaign(ctx, a, t.id, stored, c)
	}).ForOwner(int64(t.id)), false)
}

// moveCampaign writes the new state of a campaign. The caller has locked the campaign's row.
func moveCampaign(ctx context.Context, a engine.Querier, client puntuale.ClientID, stored puntuale.Campaign, c puntuale.CampaignChange) error {
	paused, resumed, ended, alive := stored.Paused, stored.Resumed, time.Time{}, stored.Alive
	switch c.To {
	case puntuale.CampaignPaused:
		// A campaign that is still resuming keeps the time of its earlier pause, because some messages still have the
		// due times from before that pause.
		if stored.State != puntuale.CampaignResuming {
			paused = c.Now
		}
	case puntuale.CampaignResuming:
		resumed = c.Now
	case puntuale.CampaignChecking:
		alive = c.Now
	case puntuale.CampaignDone, puntuale.CampaignCancelled, puntuale.CampaignFailed:
		ended = c.Now
	default:
	}
	_, err := a.Exec(ctx, `update campaign set state = $3, reason = $4, paused_at = $5, resumed_at = $6, ended_at = $7, checked_at = $8 where client_id = $1 and id = $2`,
		client, stored.ID, c.To, c.Reason, engine.Micros(paused), engine.Micros(resumed), engine.Micros(ended), engine.Micros(alive))
	if err != nil {
		return fmt.Errorf("change a campaign's state: %w", err)
	}
	return queue.NoteCampaigns(ctx, a, c, `c.client_id = $1 and c.id = $2`, client, stored.ID)
}

// StartCampaign makes a ready campaign running, notes the start in the audit log and counts the call, in one
// transaction. If the campaign already started with the same digest, nothing changes and no call is counted.
// Codes: conflict, cap_reached.
func (t tenant) StartCampaign(ctx context.Context, id puntuale.CampaignID, c puntuale.CampaignStart) (u puntuale.Usage, err error) {
	frozen, err := engine.ToJSON(c.Frozen)
	if err != nil {
		return u, err
	}
	err = t.s.TenantWriter(int64(t.id)).Do(ctx, engine.Single(t.s.Writes, func(ctx context.Context, a engine.Querier) error {
		// Two starts at the same time wait for each other here, so that the second one is a repeat.
		if u, err = queue.CountAlways(ctx, a, queue.UsageDay{Client: t.id, Day: c.Day}, 0); err != nil {
			return err
		}
		var begun puntuale.Campaign
		found, err := engine.QueryOne(ctx, a, `select started_at, checked from campaign where client_id = $1 and id = $2`, []any{t.id, id}, engine.ScanTime(&begun.Started), optionalJSON{&begun.Checked})
		if err := engine.ThereOr(found, err, puntuale.NoCampaign); err != nil {
			return err
		}
		if !begun.Started.IsZero() && begun.Checked.Digest == c.Digest {
			return nil
		}
		var exhausted bool
		if u, exhausted, err = t.countOne(ctx, a, queue.UsageDay{Client: t.id, Day: c.Day}); err != nil {
			return err
		}
		if err := t.sessionThere(ctx, a, c.Session); err != nil {
			return err
		}
		if _, err := t.lockCampaign(ctx, a, id, func(s puntuale.CampaignState) bool { return s == puntuale.CampaignReady }); err != nil {
			return err
		}
		var check puntuale.CampaignCheck
		if _, err := engine.QueryOne(ctx, a, `select checked from campaign where client_id = $1 and id = $2`, []any{t.id, id}, optionalJSON{&check}); err != nil {
			return fmt.Errorf("read a campaign's check: %w", err)
		}
		switch {
		case check.Digest == "" || check.Digest != c.Digest:
			return puntuale.Conflict(puntuale.FaultCampaignChangedSinceCheck)
		case exhausted:
			return t.capReached(u)
		}
		if _, err := a.Exec(ctx, `update campaign set state = 3, session_id = $3, frozen = $4, started_at = $5, reason = '' where client_id = $1 and id = $2`,
			t.id, id, c.Session, frozen, engine.Micros(c.Now)); err != nil {
			return fmt.Errorf("start a campaign: %w", err)
		}
		if _, err := a.Exec(ctx, `update campaign_feed set next_at = $3 where client_id = $1 and campaign_id = $2`, t.id, id, engine.Micros(c.First)); err != nil {
			return fmt.Errorf("start a campaign: %w", err)
		}
		return queue.NoteCampaigns(ctx, a, puntuale.CampaignChange{To: puntuale.CampaignRunning, By: c.By, Now: c.Now}, `c.client_id = $1 and c.id = $2`, t.id, id)
	}).ForOwner(int64(t.id)), false)
	return u, err
}

// capReached counts and returns the refusal of a call that exceeds the daily cap.
func (t tenant) capReached(u puntuale.Usage) error {
	t.s.Config.Meter.CapRefused(1)
	return &puntuale.Error{Code: puntuale.CodeCapReached, Reason: puntuale.Because(faultCallerCapReached), Usage: &u}
}

// countOne counts one call of the client. It reports whether the call exceeds the daily cap.
func (t tenant) countOne(ctx context.Context, a engine.Querier, day queue.UsageDay) (u puntuale.Usage, exhausted bool, err error) {
	if t.free {
		u, err = queue.CountAlways(ctx, a, day, 0)
		return u, false, err
	}
	counts, err := queue.Count(ctx, a.Query, []queue.UsageDay{day}, []int64{1})
	if err != nil {
		return u, false, err
	}
	c, ok := counts[day]
	if !ok {
		return u, false, puntuale.NotFound(puntuale.NoClient)
	}
	return c.Usage(c.Used - c.Prev), c.Used == c.Prev, c.Report(ctx, a, day, c.Used)
}
