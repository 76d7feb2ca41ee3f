package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/campaign"
	"puntuale/internal/control/request"
	"puntuale/internal/plan"
)

// Campaign is a campaign with the progress of its messages.
type Campaign struct {
	puntuale.Campaign
	Counts puntuale.CampaignCounts
}

// NewCampaign is a request to create a campaign, or to change a campaign that has not started.
type NewCampaign struct {
	Name      string
	Purpose   string
	Reference string          // the caller's own name for the campaign; "": none
	Sequence  string          // "": the campaign sends one message
	Step      *puntuale.Step  // the content of the one message; the other members of the step are ignored
	Others    []puntuale.Step // further variants of the message; Step is the first
	Shares    []int           // share of each variant in percent; empty: there is only one
	Holdout   int             // share of the recipients who get nothing, in percent
	Session   string          // "": the sequence's session, or the client's default session if the sequence has none
	Fields    map[string]string
	PerMinute int // recipients in a minute; 0: as many as the session's pace allows
	Window    *puntuale.Window
	StartAt   string // a time in the form of a start call; "": immediately
	IfRunning string
	Canary    *int
	Timezone  string // "": the client's zone
	CreatedBy puntuale.UserID
	From      []string         // contacts that have one of these tags become recipients; nil: no contacts
	Starts    bool             // the call that creates the campaign also starts it
	Faults    []puntuale.Fault // the faults that the calling package already found in the request
}

// Recipient is one row of a list in a call: the phone and the fields.
type Recipient map[string]string

// maxCommonFields bounds the fields that all recipients share, in bytes. A list of campaigns contains these fields for
// each campaign, so their size must be bounded.
const maxCommonFields = 16 << 10

// columnPhone is the name of the column that contains the number.
const columnPhone = "phone"

// purposes are the valid purposes of a campaign.
var purposes = []string{"", "marketing", "service"}

// CreateCampaign creates a draft, with or without recipients. One transaction stores the draft, its recipients and the
// idempotency key. Codes: invalid, quota_reached, forbidden. If r.Starts is true, CreateCampaign also refuses what a
// start would refuse. Then [Client.StartMade] starts the campaign.
func (c *Client) CreateCampaign(ctx context.Context, r NewCampaign, recipients []Recipient, o Once[Campaign]) (Campaign, error) {
	if err := c.MayCreate(); err != nil {
		return Campaign{}, err
	}
	f := request.Faults(r.Faults)
	once, clash, err := o.Begin(ctx, c.tenant, &f)
	if err != nil {
		return Campaign{}, err
	}
	r.Faults = f
	drafted, err := c.checkCampaign(ctx, r, recipients)
	if err != nil {
		return Campaign{}, err
	}
	if clash != nil {
		return Campaign{}, clash
	}
	var l puntuale.RecipientList
	switch {
	case r.From != nil:
		l, err = c.listFrom(ctx, drafted, r.From)
	case len(recipients) > 0:
		l, err = c.storeList(ctx, recipients)
	}
	if err != nil {
		return Campaign{}, err
	}
	drafted.List, drafted.Feed.Waiting = l.ID, l.Size
	if r.Starts {
		drafted.Draft.Starts = l.ID
		if err := c.mayStart(ctx, drafted); err != nil {
			return Campaign{}, err
		}
	}
	result := func(stored any) Campaign {
		made := Campaign{Campaign: drafted}
		made.ID, _ = stored.(puntuale.CampaignID)
		return made
	}
	zone, err := c.zone()
	if err != nil {
		return Campaign{}, err
	}
	day := puntuale.DateOf(drafted.Created.In(zone))
	id, err := c.tenant.CreateCampaign(ctx, drafted, day, once.Keep(result))
	if err != nil {
		return Campaign{}, fmt.Errorf("create a campaign: %w", untilMidnight(err, request.Midnight(day, zone).Sub(drafted.Created)))
	}
	return result(id), nil
}

// UpdateCampaign changes a campaign that has not started. The change makes the campaign's last check invalid. Codes:
// not_found, invalid, conflict.
func (c *Client) UpdateCampaign(ctx context.Context, id string, r NewCampaign) (Campaign, error) {
	old, err := c.storedCampaign(ctx, id)
	if err != nil {
		return Campaign{}, err
	}
	drafted, err := c.checkCampaign(ctx, r, nil)
	if err != nil {
		return Campaign{}, err
	}
	drafted.ID = old.ID
	if err := c.tenant.UpdateCampaign(ctx, drafted); err != nil {
		return Campaign{}, fmt.Errorf("update campaign %d: %w", old.ID, err)
	}
	return c.Campaign(ctx, id)
}

// Codes of the faults that this file reports.
const (
	faultCampaignFieldsTooLong  puntuale.ReasonCode = "campaign.fields_too_long"
	faultCampaignNotChecked     puntuale.ReasonCode = "campaign.not_checked"
	faultCampaignNotDate        puntuale.ReasonCode = "campaign.not_date"
	faultCampaignNotOwnSequence puntuale.ReasonCode = "campaign.not_own_sequence"
	faultCampaignTemplateGone   puntuale.ReasonCode = "campaign.template_gone"
	faultCampaignWhatRequired   puntuale.ReasonCode = "campaign.what_required"
)

// checkCampaign checks a request, and reports all its faults.
func (c *Client) checkCampaign(ctx context.Context, r NewCampaign, recipients []Recipient) (puntuale.Campaign, error) {
	f := request.Faults(r.Faults)
	now := c.control.clock.Now()
	made := puntuale.Campaign{Client: c.account.ID, Name: strings.TrimSpace(r.Name), CreatedBy: r.CreatedBy, Created: now}
	f.Required("body.name", r.Name, puntuale.MaxName)
	f.Word("body.purpose", r.Purpose, purposes...)
	f.Entries("body.recipients", len(recipients), puntuale.MaxInline)
	c.checkFrom(&f, r.From, len(recipients))
	f.Entries("body.fields", len(r.Fields), puntuale.MaxFields)
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		f.Text("body.fields."+name, r.Fields[name], puntuale.MaxField)
	}
	total := 0
	for name, text := range r.Fields {
		total += len(name) + len(text)
	}
	if total > maxCommonFields {
		f.Add("body.fields", faultCampaignFieldsTooLong, nil, strconv.Itoa(maxCommonFields))
	}
	if r.PerMinute < 0 || r.PerMinute > puntuale.MaxCampaignRate {
		f.Add("body.pace.per_minute", puntuale.FaultNotInRange, r.PerMinute, "1", strconv.Itoa(puntuale.MaxCampaignRate))
	}
	if r.Canary != nil && (*r.Canary < 0 || *r.Canary > puntuale.CampaignAhead) {
		f.Add("body.canary", puntuale.FaultNotInRange, *r.Canary, "0", strconv.Itoa(puntuale.CampaignAhead))
	}
	f.Text("body.reference", r.Reference, puntuale.MaxReference)
	checkShares(&f, r)
	made.Draft = puntuale.CampaignDraft{Purpose: r.Purpose, Reference: r.Reference, Fields: r.Fields, PerMinute: r.PerMinute, Window: r.Window, Canary: r.Canary, Zone: r.Timezone, Shares: r.Shares, Holdout: r.Holdout}
	zone, err := c.zoneOf(&f, "body.timezone", r.Timezone)
	if err != nil {
		return made, err
	}
	if made.Draft.StartAt, err = startAt(r.StartAt, zone); err != nil {
		notDate, ok := errors.AsType[*plan.NotDateError](err)
		if !ok {
			return made, err
		}
		f.Add("body.start_at", faultCampaignNotDate, r.StartAt, strconv.Quote(notDate.Text))
	}
	f.Horizon("body.start_at", made.Draft.StartAt, now)
	if r.IfRunning != "" {
		if made.Draft.IfRunning, err = puntuale.ParseIfRunning(r.IfRunning); err != nil {
			f.Add("body.if_running", puntuale.FaultNotOneOf, r.IfRunning, "allow, skip, restart, reject")
		}
	}
	if err := c.checkWhat(ctx, &f, &made, r); err != nil {
		return made, err
	}
	c.checkRecipients(&f, recipients) // the last check, because an answer may have no room for all faults of rows
	return made, f.Err()
}

// startAt parses the time at which a campaign starts. A day without a time of day gets the default time.
func startAt(text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	m, err := plan.ParseMoment(text)
	if err != nil {
		return time.Time{}, err
	}
	return m.At(plan.DefaultTime, zone), nil
}

// checkWhat checks the content that a campaign sends, and the campaign's session.
func (c *Client) checkWhat(ctx context.Context, f *request.Faults, made *puntuale.Campaign, r NewCampaign) error {
	switch {
	case (r.Sequence == "") == (r.Step == nil):
		f.Add("body.sequence", faultCampaignWhatRequired, nil)
	case r.Step != nil:
		step := *r.Step
		step.Timing = puntuale.Timing{Anchor: puntuale.AnchorStart, Window: r.Window}
		made.Draft.Step = &step
		for _, other := range r.Others {
			other.Timing = step.Timing
			made.Draft.Others = append(made.Draft.Others, other)
		}
	default:
		id, unknown := puntuale.ParseID[puntuale.SequenceID](r.Sequence)
		if unknown == nil {
			var s puntuale.Sequence
			if s, unknown = c.tenant.Sequence(ctx, id); unknown != nil && puntuale.CodeOf(unknown) != puntuale.CodeNotFound {
				return fmt.Errorf("read sequence %d: %w", id, unknown)
			}
			if s.Booking != "" {
				f.Add("body.sequence", puntuale.FaultBookingForBookings, r.Sequence)
			}
		}
		if unknown != nil {
			f.Add("body.sequence", faultCampaignNotOwnSequence, r.Sequence)
		}
		made.Sequence = id
	}
	if made.Draft.Step != nil {
		if err := c.checkVariants(ctx, f, made, r.Session); err != nil {
			return err
		}
	}
	if r.Window != nil { // the window is checked like a step's window
		probe := puntuale.Sequence{Name: "-", Steps: []puntuale.Step{{Text: "-", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart, Window: r.Window}}}}
		for _, fault := range plan.Check(probe) {
			fault.Location = "body.window" + strings.TrimPrefix(fault.Location, "body.steps[0].timing.window")
			*f = append(*f, fault)
		}
	}
	if r.Session != "" {
		s, err := c.sessionFor(ctx, f, r.Session)
		if err != nil {
			return err
		}
		made.Session = s.ID
	}
	return nil
}

// checkShares checks how the recipients are divided.
func checkShares(f *request.Faults, r NewCampaign) {
	if r.Holdout < 0 || r.Holdout > puntuale.MaxHoldout {
		f.Add("body.holdout", puntuale.FaultNotInRange, r.Holdout, "0", strconv.Itoa(puntuale.MaxHoldout))
	}
	if r.Sequence != "" && r.Holdout > 0 { // nobody's reminder is an experiment
		f.Add("body.holdout", puntuale.FaultGoesWithout, r.Holdout, "sequence")
	}
	if r.Sequence != "" && len(r.Shares) > 0 {
		f.Add("body.variants", puntuale.FaultGoesWithout, nil, "sequence")
	}
	if len(r.Shares) > 0 {
		*f = append(*f, plan.CheckShares("body.variants", slices.Values(r.Shares))...)
	}
}

// checkVariants checks the message of a campaign, in each of its variants.
func (c *Client) checkVariants(ctx context.Context, f *request.Faults, made *puntuale.Campaign, session string) error {
	d := &made.Draft
	expanded, err := c.expand(ctx, puntuale.Sequence{Name: made.Name, Steps: d.Variants()})
	if err != nil {
		return err
	}
	for i, step := range expanded[0].Steps {
		at, drafted := "body", d.Step
		if len(d.Shares) > 0 {
			at = request.At("body.variants", i)
		}
		if i > 0 {
			drafted = &d.Others[i-1]
		}
		if unfilled(&step) {
			f.Add(at+".template", puntuale.FaultNotOwnTemplate, step.Template)
		} else if step.Template == "" { // a stored template was checked when it was stored
			*f = append(*f, plan.CheckContent(at+".content", step, c.control.media...)...)
		}
		if err := c.checkDraftFile(ctx, f, at+".content.media", drafted, step, session); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) storedCampaign(ctx context.Context, id string) (puntuale.Campaign, error) {
	wanted, err := puntuale.ParseID[puntuale.CampaignID](id)
	if err != nil {
		return puntuale.Campaign{}, puntuale.NotFound(puntuale.NoCampaign)
	}
	stored, err := c.tenant.Campaign(ctx, wanted)
	if err != nil {
		return stored, fmt.Errorf("read campaign %d: %w", wanted, err)
	}
	return stored, nil
}

// Campaign returns one campaign. Codes: not_found.
func (c *Client) Campaign(ctx context.Context, id string) (Campaign, error) {
	return c.campaign(ctx, id, false)
}

// CampaignProgress returns one campaign with the delivery receipts of its messages. Codes: not_found.
func (c *Client) CampaignProgress(ctx context.Context, id string) (Campaign, error) {
	return c.campaign(ctx, id, true)
}

func (c *Client) campaign(ctx context.Context, id string, receipts bool) (Campaign, error) {
	stored, err := c.storedCampaign(ctx, id)
	if err != nil {
		return Campaign{}, err
	}
	found := Campaign{Campaign: stored}
	if found.Checked, err = c.mayKnow(ctx, stored.Checked); err != nil {
		return Campaign{}, err
	}
	if stored.Started.IsZero() {
		return found, nil
	}
	if found.Counts, err = c.tenant.CampaignCounts(ctx, stored.ID, receipts); err != nil {
		return Campaign{}, fmt.Errorf("count the messages of campaign %d: %w", stored.ID, err)
	}
	if found.Counts.Total() < stored.Final.Total() { // some of the messages are already in the archive
		found.Counts = stored.Final
	}
	return found, nil
}

// Campaigns lists the client's campaigns, newest first. Codes: invalid.
func (c *Client) Campaigns(ctx context.Context, p request.Page) ([]puntuale.Campaign, string, error) {
	rows, next, err := request.List(p, func(p puntuale.Page) ([]puntuale.Campaign, string, error) { return c.tenant.Campaigns(ctx, p) })
	if err != nil {
		return nil, "", fmt.Errorf("list campaigns: %w", err)
	}
	return rows, next, nil
}

// freeze reads everything that the campaign would send if it started now.
func (c *Client) freeze(ctx context.Context, stored puntuale.Campaign) (frozen puntuale.CampaignFrozen, session puntuale.Session, err error) {
	zone, err := c.zone()
	if err != nil {
		return frozen, session, err
	}
	frozen = puntuale.CampaignFrozen{ClientName: c.account.Name, Zone: zone.String(), Closed: c.account.Closed, PerMinute: stored.Draft.PerMinute}
	if stored.Draft.Zone != "" {
		frozen.Zone = stored.Draft.Zone
	}
	sequence := puntuale.Sequence{IfRunning: puntuale.IfRunningAllow}
	if stored.Sequence != 0 {
		if sequence, session, err = c.tenant.StartInfo(ctx, stored.Sequence); err != nil {
			return frozen, session, fmt.Errorf("read sequence %d: %w", stored.Sequence, err)
		}
	} else {
		sequence.Steps = stored.Draft.Variants()
	}
	expanded, err := c.expand(ctx, sequence)
	if err != nil {
		return frozen, session, err
	}
	frozen.Sequence = expanded[0]
	fields := plan.Fields(frozen.Sequence)
	for _, step := range puntuale.Texts(frozen.Sequence.Steps) {
		if unfilled(step) {
			return frozen, session, puntuale.Conflict(faultCampaignTemplateGone, step.Template)
		}
	}
	if stored.Session != 0 || session.ID == 0 {
		var f request.Faults
		name := ""
		if stored.Session != 0 {
			name = stored.Session.String()
		}
		if session, err = c.sessionFor(ctx, &f, name); err != nil || len(f) > 0 {
			return frozen, session, cmp.Or(err, f.Err())
		}
	}
	sequence = frozen.Sequence
	if stored.Draft.Purpose == puntuale.PurposeMarketing.String() {
		sequence.Purpose = puntuale.PurposeMarketing
	}
	if frozen.Purposes, err = c.purposesOf(ctx, session, sequence); err != nil {
		return frozen, session, err
	}
	freezeTexts(&frozen)
	if limit := session.Pace.PerMinute; limit > 0 && (frozen.PerMinute == 0 || limit < frozen.PerMinute) {
		frozen.PerMinute = limit
	}
	if stored.List == 0 {
		return frozen, session, nil
	}
	l, err := c.tenant.RecipientList(ctx, stored.List)
	if err != nil {
		return frozen, session, fmt.Errorf("read the list of campaign %d: %w", stored.ID, err)
	}
	m, err := mapped(l)
	if err != nil {
		return frozen, session, err
	}
	if open := m.unsettled(fields); len(open) > 0 {
		return frozen, session, puntuale.Conflict(faultCampaignDatesOpen, strings.Join(open, ", "))
	}
	frozen.Columns = m.columns
	return frozen, session, nil
}

// freezeTexts keeps what the templates of the expanded steps contain. The lists by step have the first variant of each, which
// a server of a version without variants sends. All variants have a list of their own.
func freezeTexts(frozen *puntuale.CampaignFrozen) {
	for i := range frozen.Sequence.Steps {
		step := &frozen.Sequence.Steps[i]
		var first *puntuale.Step
		for x := range step.Texts() {
			if first == nil {
				first = x
			}
			if len(step.Variants) > 0 {
				frozen.Filled = append(frozen.Filled, puntuale.FrozenVariant{Step: *x, Official: x.Official, Values: x.Values})
			}
		}
		frozen.Official, frozen.Values = append(frozen.Official, first.Official), append(frozen.Values, first.Values)
		variants := step.Variants
		*step = *first
		step.Variants = variants
	}
}

// digest returns a hash of everything that a start would send: list, steps, session and settings.
func digest(stored puntuale.Campaign, frozen puntuale.CampaignFrozen, session puntuale.SessionID) (string, error) {
	frozen.Sequence.Created, frozen.Sequence.Updated = time.Time{}, time.Time{}
	text, err := json.Marshal(struct {
		List    puntuale.ListID
		Size    int
		Name    string
		Draft   puntuale.CampaignDraft
		Frozen  puntuale.CampaignFrozen
		Session puntuale.SessionID
	}{stored.List, stored.Feed.Size(), stored.Name, stored.Draft, frozen, session})
	if err != nil {
		return "", fmt.Errorf("make a digest: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

const (
	checkWait    = 15 * time.Second // how long a call waits for its check
	checkStale   = 10 * time.Second // after this time without progress, a check counts as stopped, and the next call begins a new check
	maxCheckTime = 10 * time.Minute
	checkLook    = 200 * time.Millisecond
)

// CheckCampaign checks every recipient, and returns a report of the messages that a start would send. After 15 s it
// returns the incomplete report, and the check continues. Digest is "" until the check is complete. Codes: not_found,
// conflict (the campaign has started, or has no recipients).
func (c *Client) CheckCampaign(ctx context.Context, id string) (puntuale.CampaignCheck, error) {
	check, err := c.checkList(ctx, id)
	if err != nil {
		return check, err
	}
	return c.mayKnow(ctx, check)
}

func (c *Client) checkList(ctx context.Context, id string) (puntuale.CampaignCheck, error) {
	stored, err := c.storedCampaign(ctx, id)
	if err != nil {
		return puntuale.CampaignCheck{}, err
	}
	now := c.control.clock.Now().Truncate(time.Microsecond)
	switch {
	case stored.State == puntuale.CampaignChecking && now.Sub(stored.Alive) < checkStale:
		return c.awaitCheck(ctx, stored.ID)
	case stored.State != puntuale.CampaignChecking && !stored.State.Editable():
		return puntuale.CampaignCheck{}, puntuale.Conflict(puntuale.FaultCampaignWrongState, stored.State.String())
	case stored.Feed.Size() == 0:
		return puntuale.CampaignCheck{}, puntuale.Conflict(puntuale.FaultCampaignNoRecipients)
	}
	leave, err := share(c.control.shares.checks, c.Holders(clientChecks)...)
	if err != nil {
		return puntuale.CampaignCheck{}, err
	}
	running := false
	defer func() {
		if !running {
			leave()
		}
	}()
	check, err := c.newCheck(ctx, stored, now)
	if err != nil {
		return puntuale.CampaignCheck{}, err
	}
	if err := c.tenant.ChangeCampaign(ctx, stored.ID, puntuale.CampaignChange{
		From: []puntuale.CampaignState{stored.State}, To: puntuale.CampaignChecking, By: c.actor, Now: now,
	}); err != nil {
		return puntuale.CampaignCheck{}, fmt.Errorf("begin to check campaign %d: %w", stored.ID, err)
	}
	running = true
	ended := c.runCheck(ctx, stored.ID, check, leave)
	puntuale.AdmissionDeadlineOf(ctx).LeaveSeat()
	timeout, stop := c.control.clock.After(checkWait)
	defer stop()
	select {
	case err := <-ended:
		if err != nil {
			return puntuale.CampaignCheck{}, fmt.Errorf("check campaign %d: %w", stored.ID, err)
		}
	case <-timeout:
	case <-c.control.stopping:
	case <-ctx.Done():
		return puntuale.CampaignCheck{}, context.Cause(ctx)
	}
	stored, err = c.storedCampaign(ctx, id)
	return stored.Checked, err
}

func (c *Client) newCheck(ctx context.Context, stored puntuale.Campaign, now time.Time) (*campaign.Check, error) {
	frozen, session, err := c.freeze(ctx, stored)
	if err != nil {
		return nil, err
	}
	made, err := digest(stored, frozen, session.ID)
	if err != nil {
		return nil, err
	}
	p, err := c.planOf(ctx, stored, frozen, session)
	if err != nil {
		return nil, err
	}
	first := now
	if stored.Draft.StartAt.After(now) {
		first = stored.Draft.StartAt
	}
	limits, err := c.limitsOf(ctx, session, now)
	if err != nil {
		return nil, err
	}
	known, err := c.networkTemplatesOf(ctx, limits, frozen.Sequence)
	if err != nil {
		return nil, err
	}
	check := &campaign.Check{
		Plan: p, Store: c.tenant, Now: c.control.clock.Now, Begun: now, First: first, Digest: made, Limits: limits,
		Prices: c.control.pricesOf(limits, known), Warnings: append(optOutWarnings(stored.Draft.Purpose, frozen.Sequence.Steps, known), insteadWarnings(frozen.Sequence.Steps, session)...),
		Blacklisted: func(ctx context.Context, phones []string) (map[string]bool, error) {
			return c.BlacklistedAmong(ctx, phones...)
		},
		Refused: func(ctx context.Context, phones []string) (map[string]bool, error) {
			return c.MarketingRefused(ctx, phones...)
		},
	}
	contents := make([]*puntuale.Content, 0, len(frozen.Sequence.Steps))
	for _, step := range puntuale.Texts(frozen.Sequence.Steps) {
		contents = append(contents, &puntuale.Content{Official: step.Official})
	}
	ways, err := c.wayReader(ctx, session, nil, contents...)
	if ways != nil {
		check.Way = ways.ofCampaign
	}
	return check, err
}

// awaitCheck waits for a check that another call, or another server, runs. If the check stops before it is complete,
// the caller's next call begins a new check.
func (c *Client) awaitCheck(ctx context.Context, id puntuale.CampaignID) (puntuale.CampaignCheck, error) {
	puntuale.AdmissionDeadlineOf(ctx).LeaveSeat()
	for end := c.control.clock.Now().Add(checkWait); ; {
		stored, err := c.tenant.Campaign(ctx, id)
		if err != nil {
			return puntuale.CampaignCheck{}, fmt.Errorf("read campaign %d: %w", id, err)
		}
		now := c.control.clock.Now()
		if stored.State != puntuale.CampaignChecking || !now.Before(end) || now.Sub(stored.Alive) >= checkStale {
			return stored.Checked, nil
		}
		if !c.Pause(ctx, checkLook) {
			return stored.Checked, ctx.Err()
		}
	}
}
