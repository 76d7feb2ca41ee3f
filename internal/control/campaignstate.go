package control

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/campaign"
	"puntuale/internal/control/request"
)

// mayStart refuses a new campaign that could not start. Its list is stored, the campaign is not. Codes: conflict.
func (c *Client) mayStart(ctx context.Context, drafted puntuale.Campaign) error {
	if drafted.Feed.Size() == 0 {
		return puntuale.Conflict(puntuale.FaultCampaignNoRecipients)
	}
	_, err := c.newCheck(ctx, drafted, c.control.clock.Now())
	return err
}

// Changed is the error of a start whose campaign changed after its check. Check is the campaign's current check.
type Changed struct{ Check puntuale.CampaignCheck }

func (*Changed) Error() string { return "the campaign was changed since its check" }

// StartCampaign starts exactly what a check showed. checked is the digest of this check. The call counts once in the
// client's usage; a repeat does not count. Codes: not_found, conflict, cap_reached, forbidden. The error wraps a
// [*Changed] if something changed after the check.
func (c *Client) StartCampaign(ctx context.Context, id, checked string) (Campaign, puntuale.Usage, error) {
	if err := c.MayCreate(); err != nil {
		return Campaign{}, puntuale.Usage{}, err
	}
	stored, err := c.storedCampaign(ctx, id)
	if err != nil {
		return Campaign{}, puntuale.Usage{}, err
	}
	now := c.control.clock.Now()
	zone, err := c.zone()
	if err != nil {
		return Campaign{}, puntuale.Usage{}, err
	}
	day := puntuale.DateOf(now.In(zone))
	start := puntuale.CampaignStart{Digest: checked, Day: day, By: c.actor, Now: now, First: now}
	if !stored.Started.IsZero() && checked != "" && stored.Checked.Digest == checked { // this is a repeat of the start
		usage, err := c.tenant.StartCampaign(ctx, stored.ID, start)
		if err != nil {
			return Campaign{}, usage, fmt.Errorf("start campaign %d: %w", stored.ID, err)
		}
		found, err := c.Campaign(ctx, id)
		return found, usage, err
	}
	if stored.State == puntuale.CampaignDrafted {
		return Campaign{}, puntuale.Usage{}, puntuale.Conflict(faultCampaignNotChecked)
	}
	if stored.State != puntuale.CampaignReady {
		return Campaign{}, puntuale.Usage{}, puntuale.Conflict(puntuale.FaultCampaignWrongState, stored.State.String())
	}
	frozen, session, err := c.freeze(ctx, stored)
	if err != nil {
		return Campaign{}, puntuale.Usage{}, err
	}
	made, err := digest(stored, frozen, session.ID)
	if err != nil {
		return Campaign{}, puntuale.Usage{}, err
	}
	if made != checked {
		return Campaign{}, puntuale.Usage{}, c.checkedAnew(ctx, id, stored.Checked, made)
	}
	if stored.Draft.StartAt.After(now) {
		start.First = stored.Draft.StartAt
	}
	start.Frozen, start.Session = frozen.Apart(&stored.Draft), session.ID
	usage, err := c.tenant.StartCampaign(ctx, stored.ID, start)
	if err != nil {
		return Campaign{}, usage, fmt.Errorf("start campaign %d: %w", stored.ID, untilMidnight(err, request.Midnight(day, zone).Sub(now)))
	}
	c.control.wakeup(session.ID, time.Time{})
	found, err := c.Campaign(ctx, id)
	return found, usage, err
}

// checkedAnew refuses a start whose check is out of date. The error contains a new check of what a start would send
// now.
func (c *Client) checkedAnew(ctx context.Context, id string, kept puntuale.CampaignCheck, made string) error {
	var check puntuale.CampaignCheck
	var err error
	if kept.Digest == made { // kept is up to date, and the caller named an older check
		check, err = c.mayKnow(ctx, kept)
	} else {
		check, err = c.CheckCampaign(ctx, id)
	}
	if err != nil {
		return err
	}
	return conflictWith(&Changed{check})
}

func conflictWith(changed *Changed) error {
	refused := puntuale.Conflict(puntuale.FaultCampaignChangedSinceCheck)
	refused.Err = changed
	return refused
}

// startTries is how often StartMade tries again when another call changed the campaign meanwhile.
const startTries = 3

// StartMade checks and starts a campaign, for the call that created it with Starts. A repeat of the call finishes what
// an earlier try left undone. If the check is not complete after 15 s, it goes on, and StartMade starts nothing. A
// campaign that a person edited, or gave another list, stays as it is. Codes: not_found, conflict, cap_reached.
func (c *Client) StartMade(ctx context.Context, id string) (made Campaign, err error) {
	for range startTries {
		stored, readErr := c.storedCampaign(ctx, id)
		if readErr != nil {
			return Campaign{}, readErr
		}
		if stored.State > puntuale.CampaignReady || stored.Draft.Starts == 0 || stored.Draft.Starts != stored.List {
			return c.Campaign(ctx, id)
		}
		check := stored.Checked
		if stored.State != puntuale.CampaignReady {
			if check, err = c.CheckCampaign(ctx, id); err == nil && check.Digest == "" {
				return c.Campaign(ctx, id)
			}
		}
		if err == nil {
			made, _, err = c.StartCampaign(ctx, id, check.Digest)
		}
		if puntuale.CodeOf(err) != puntuale.CodeConflict { // a conflict may mean that a repeat of the call went ahead
			return made, err
		}
	}
	return made, err
}

// PauseCampaign pauses a campaign. When it returns, no message of the campaign can be claimed any more. Codes:
// not_found, conflict.
func (c *Client) PauseCampaign(ctx context.Context, id string) (Campaign, error) {
	return c.changeCampaign(ctx, id, puntuale.CampaignPaused, puntuale.CampaignRunning, puntuale.CampaignResuming)
}

// ResumeCampaign ends the pause of a campaign. The campaign's messages leave later by the length of the pause, except
// messages whose due time comes from a date field. Codes: not_found, conflict, forbidden.
func (c *Client) ResumeCampaign(ctx context.Context, id string) (Campaign, error) {
	if err := c.MayCreate(); err != nil {
		return Campaign{}, err
	}
	return c.changeCampaign(ctx, id, puntuale.CampaignResuming, puntuale.CampaignPaused)
}

// CancelCampaign cancels the pending messages of a campaign. The feeder starts no more runs of the campaign. Codes:
// not_found, conflict.
func (c *Client) CancelCampaign(ctx context.Context, id string) (Campaign, error) {
	stored, err := c.storedCampaign(ctx, id)
	if err != nil {
		return Campaign{}, err
	}
	if stored.State < puntuale.CampaignRunning {
		return c.changeCampaign(ctx, id, puntuale.CampaignCancelled, puntuale.CampaignDrafted, puntuale.CampaignChecking, puntuale.CampaignReady)
	}
	return c.changeCampaign(ctx, id, puntuale.CampaignCancelling, puntuale.CampaignRunning, puntuale.CampaignPaused, puntuale.CampaignResuming)
}

// changeCampaign changes a campaign's state. If the campaign already has the new state, nothing changes.
func (c *Client) changeCampaign(ctx context.Context, id string, to puntuale.CampaignState, from ...puntuale.CampaignState) (Campaign, error) {
	stored, err := c.storedCampaign(ctx, id)
	if err != nil {
		return Campaign{}, err
	}
	done := stored.State == to || to == puntuale.CampaignResuming && stored.State == puntuale.CampaignRunning ||
		to == puntuale.CampaignCancelling && stored.State == puntuale.CampaignCancelled
	if !done {
		if err := c.tenant.ChangeCampaign(ctx, stored.ID, puntuale.CampaignChange{From: from, To: to, By: c.actor, Now: c.control.clock.Now()}); err != nil {
			return Campaign{}, fmt.Errorf("change campaign %d: %w", stored.ID, err)
		}
		c.control.wakeup(stored.Session, time.Time{})
	}
	return c.Campaign(ctx, id)
}

// runCheck runs a campaign's check apart from the call, which may stop waiting for it. The result gets the error of the
// check. A check that fails after its call ended is only logged, and the next call begins a new check. The check ends
// when the server begins to stop; see [Control.Wait].
func (c *Client) runCheck(ctx context.Context, id puntuale.CampaignID, check *campaign.Check, leave func()) <-chan error {
	ended := make(chan error, 1)
	apart, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxCheckTime)
	done := make(chan struct{})
	go func() {
		select {
		case <-c.control.stopping:
			cancel()
		case <-done:
		}
	}()
	c.control.checks.Go(func() {
		defer leave()
		defer cancel()
		defer close(done)
		err := puntuale.Recovered(func() error { return check.Run(apart) })
		if err != nil && apart.Err() == nil {
			c.control.logger.Error("the check of a campaign failed", "campaign_id", int64(id), "client_id", int64(c.ID()), "error", err)
		}
		select {
		case <-c.control.stopping: // the call answers with what was checked until now
			err = nil
		default:
		}
		ended <- err
	})
	return ended
}

// Wait waits for checks that no call waits for any more, but not longer than ctx. The checks end soon after the server
// began to stop. Call Wait before the store is closed.
func (c *Control) Wait(ctx context.Context) {
	ended := make(chan struct{})
	go func() { defer close(ended); c.checks.Wait() }()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// CountCampaigns counts the campaigns that Campaigns lists, up to [puntuale.MaxCounted]. all is true if n is the complete
// count.
func (c *Client) CountCampaigns(ctx context.Context) (n int, all bool, err error) {
	if n, all, err = c.tenant.CountCampaigns(ctx, puntuale.MaxCounted); err != nil {
		return 0, false, fmt.Errorf("count campaigns: %w", err)
	}
	return n, all, nil
}
