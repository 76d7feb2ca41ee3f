package campaign

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// Config is what a [Feeder] needs. All but Media must be set.
type Config struct {
	Store puntuale.CampaignFeeder
	Queue interface {
		Standings(ctx context.Context, clients []puntuale.ClientID) (map[puntuale.ClientID]puntuale.Standing, error)
	}
	Tenant func(puntuale.ClientID) Tenant
	Node   func() puntuale.NodeID // that owns the sessions here; 0: none
	Hint   puntuale.Hint
	Clock  clock.Clock
	Logger *slog.Logger
	Media  []string // nil: the planner's own list
}

// Tenant is what a feeder asks of a client's store.
type Tenant interface {
	Recipients(ctx context.Context, list puntuale.ListID, f puntuale.RecipientFilter, after int64, limit int) ([]puntuale.Recipient, error)
	ChangeCampaign(ctx context.Context, id puntuale.CampaignID, c puntuale.CampaignChange) error
	Contacts(ctx context.Context, session puntuale.SessionID, phones []string) (map[string]puntuale.Contact, error)
}

// Feeder feeds the campaigns of the sessions that this node owns. Run is called once.
type Feeder struct {
	Config
	plans map[puntuale.CampaignID]*fed
}

// fed is what is remembered of a campaign between two rounds; none of it is trusted.
type fed struct {
	plan     *Plan
	begun    time.Time // the campaign's start: another one, another plan
	moved    int64     // with resuming: the place to go on behind
	finished time.Time // when it was last asked whether all ended
	canary   time.Time // when the first recipients were all fed
	holds    bool      // the others wait for them
}

const (
	feedRows   = 200                    // of one transaction: it keeps others waiting for a few milliseconds
	feedTurn   = 100 * time.Millisecond // of one campaign, before the others have theirs
	feedEvery  = 200 * time.Millisecond // between two rounds while some campaign runs
	idleEvery  = 500 * time.Millisecond // between two looks for campaigns
	endsEvery  = time.Second
	callWithin = 15 * time.Second
)

// New returns a feeder; it does nothing before Run.
func New(cfg Config) *Feeder { return &Feeder{Config: cfg, plans: map[puntuale.CampaignID]*fed{}} }

// Run feeds until ctx ends.
func (f *Feeder) Run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := idleEvery
		if node := f.Node(); node != 0 {
			wait = f.round(ctx, node)
		}
		if f.Clock.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// round gives each campaign a turn, and returns how long to wait for the next round.
func (f *Feeder) round(ctx context.Context, node puntuale.NodeID) time.Duration {
	within, cancel := context.WithTimeout(ctx, callWithin)
	all, err := f.Store.FedCampaigns(within, node)
	cancel()
	if err != nil {
		f.failed(ctx, 0, err)
		return idleEvery
	}
	here := make(map[puntuale.CampaignID]bool, len(all))
	wait := idleEvery
	for i := range all {
		c := &all[i]
		here[c.ID] = true
		more, err := f.turn(ctx, node, c)
		if err != nil {
			f.failed(ctx, c.ID, err)
			continue
		}
		wait = min(wait, feedEvery)
		if more {
			wait = 0
		}
	}
	for id := range f.plans {
		if !here[id] {
			delete(f.plans, id)
		}
	}
	return wait
}

// failed tells of a campaign that could not be fed, 0 for all of them. It is tried again.
func (f *Feeder) failed(ctx context.Context, id puntuale.CampaignID, err error) {
	if ctx.Err() != nil || errors.Is(err, puntuale.ErrFenced) {
		return
	}
	f.Logger.Warn("feeding failed", "campaign_id", int64(id), "error", err)
}

// turn does some of a campaign's work, and reports that there is more to do at once.
func (f *Feeder) turn(ctx context.Context, node puntuale.NodeID, c *puntuale.FedCampaign) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	x := f.plans[c.ID]
	if x == nil || !x.begun.Equal(c.Started) {
		plan, err := NewPlan(c.Campaign, c.Frozen, f.Media)
		if err != nil {
			return false, err
		}
		x = &fed{plan: plan, begun: c.Started}
		f.plans[c.ID] = x
	}
	x.plan.campaign = c.Campaign
	if c.State == puntuale.CampaignRunning && c.Feed.Waiting > 0 {
		if reason, err := f.mustPause(ctx, c, x); err != nil || reason != "" {
			return false, errors.Join(err, f.pause(ctx, c, reason))
		}
	}
	for end := f.Clock.Now().Add(feedTurn); ; {
		switch c.State {
		case puntuale.CampaignResuming:
			more, err = f.move(ctx, node, c, x)
		case puntuale.CampaignCancelling:
			more, err = f.cancel(ctx, node, c)
		default:
			more, err = f.feed(ctx, node, c, x)
		}
		if err != nil || !more || !f.Clock.Now().Before(end) {
			return more, err
		}
	}
}

func (f *Feeder) move(ctx context.Context, node puntuale.NodeID, c *puntuale.FedCampaign, x *fed) (more bool, err error) {
	next, done, err := f.Store.MoveChunk(ctx, node, c.Client, c.ID, x.moved, f.Clock.Now())
	if err != nil {
		return false, err
	}
	if x.moved = next; done {
		x.moved = 0
		f.Hint(c.Session, time.Time{})
	}
	return !done, nil
}

func (f *Feeder) cancel(ctx context.Context, node puntuale.NodeID, c *puntuale.FedCampaign) (more bool, err error) {
	done, err := f.Store.CancelChunk(ctx, node, c.Client, c.ID, f.Clock.Now())
	return err == nil && !done, err
}

// feed feeds one chunk of a running campaign, and reports that there may be another one now.
func (f *Feeder) feed(ctx context.Context, node puntuale.NodeID, c *puntuale.FedCampaign, x *fed) (more bool, err error) {
	now := f.Clock.Now()
	if c.Feed.Waiting == 0 {
		return false, f.finish(ctx, node, c, x, now)
	}
	if !c.Online || x.holds {
		return false, nil
	}
	ahead, err := f.Store.Ahead(ctx, c.Session, now.Add(puntuale.CampaignAheadTime))
	if err != nil {
		return false, err
	}
	room := min(puntuale.CampaignAhead-ahead, feedRows)
	if n := c.Draft.CanarySize() - c.Feed.Fed; n > 0 && hasCanary(c) {
		room = min(room, n)
	}
	if room <= 0 {
		return false, nil
	}
	rows, err := f.Tenant(c.Client).Recipients(ctx, c.List, puntuale.RecipientFilter{State: new(puntuale.RecipientWaiting)}, c.Feed.Place, room)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	var contacts map[string]puntuale.Contact
	if c.Official {
		if contacts, err = f.Tenant(c.Client).Contacts(ctx, c.Session, phonesOf(rows)); err != nil {
			return false, err
		}
	}
	chunk := f.plan(c, x, rows, contacts, now)
	if len(chunk.Rows) == 0 {
		return false, nil // the next one's moment is too far ahead
	}
	stored, err := f.Store.Feed(ctx, node, chunk)
	if err != nil || !stored {
		return false, err
	}
	planned := len(chunk.Rows)
	refused := f.hint(c, chunk)
	c.Feed.Place, c.Feed.Next = chunk.To.Place, chunk.To.Next
	c.Feed.Waiting, c.Feed.Fed, c.Feed.Refused = c.Feed.Waiting-planned, c.Feed.Fed+planned-refused, c.Feed.Refused+refused
	if hasCanary(c) && c.Feed.Fed >= c.Draft.CanarySize() {
		x.holds = true // until somebody has looked at them
		return false, nil
	}
	return planned == len(rows) && len(rows) == room && c.Feed.Waiting > 0, nil
}

// hint tells the session's dispatcher when the first message of the chunk is due, and counts who was refused.
func (f *Feeder) hint(c *puntuale.FedCampaign, chunk puntuale.FeedChunk) (refused int) {
	var first time.Time
	for i := range chunk.Rows {
		r := &chunk.Rows[i]
		if r.Reason != "" {
			refused++
			continue
		}
		for _, m := range r.Start.Messages {
			if first.IsZero() || m.Due.Before(first) {
				first = m.Due
			}
		}
	}
	if !first.IsZero() {
		f.Hint(c.Session, first)
	}
	return refused
}

// plan plans as many of the rows as have their moment soon.
func (f *Feeder) plan(c *puntuale.FedCampaign, x *fed, rows []puntuale.Recipient, contacts map[string]puntuale.Contact, now time.Time) puntuale.FeedChunk {
	p := x.plan
	pacer := NewPacer(c.Feed.Next, p.frozen.PerMinute, c.Draft.Window, p.zone)
	chunk := puntuale.FeedChunk{Client: c.Client, Campaign: c.ID, List: c.List, From: c.Feed, Day: puntuale.DateOf(now.In(p.zone)), Now: now}
	for i := range rows {
		at, opens := pacer.Next(now)
		if opens && at.After(now.Add(puntuale.CampaignAheadTime)) {
			break
		}
		r := puntuale.FedRecipient{Recipient: rows[i]}
		built, reason, value := p.Build(&rows[i], at, rand.Uint64()|1) //nolint:gosec // spreads load, guards nothing
		switch {
		case !opens:
			r.Reason = puntuale.RefusedPast
		case reason != "":
			r.Reason, r.Value = reason, shortened(value)
		case c.Official && closed(built, contacts[r.Phone]):
			r.Reason = puntuale.RefusedWindow
		default:
			r.Start = p.Start(&rows[i], built, now)
			pacer.Taken()
		}
		chunk.Rows = append(chunk.Rows, r)
		chunk.To.Place = rows[i].N
	}
	chunk.To.Next = pacer.Place()
	return chunk
}

// hasCanary reports that the first recipients go before the others. A person who resumed the campaign has seen them.
func hasCanary(c *puntuale.FedCampaign) bool {
	size := c.Draft.CanarySize()
	return size > 0 && c.Resumed.IsZero() && c.Feed.Fed <= size && c.Feed.Fed+c.Feed.Waiting > size
}

// mustPause says why the campaign must pause by itself, "" when it need not. It also finds out whether the others still wait
// for the first recipients.
func (f *Feeder) mustPause(ctx context.Context, c *puntuale.FedCampaign, x *fed) (reason string, err error) {
	now := f.Clock.Now()
	found, err := f.Queue.Standings(ctx, []puntuale.ClientID{c.Client})
	if err != nil {
		return "", err
	}
	switch hold := found[c.Client].Hold(now); {
	case hold == puntuale.SaysNoCredit:
		return puntuale.CampaignByCredit, nil
	case hold != "":
		return puntuale.CampaignByStanding, nil
	case c.Link.Condition == puntuale.Banned || c.Link.Limited.After(now):
		return puntuale.CampaignByNumber, nil
	}
	if x.holds = false; !hasCanary(c) || c.Feed.Fed < c.Draft.CanarySize() {
		return "", nil
	}
	if x.canary.IsZero() {
		x.canary = now
	}
	counts, err := f.Store.Canary(ctx, c.Client, c.ID)
	if err != nil {
		return "", err
	}
	if 3*counts.Failed > counts.Total() {
		return puntuale.CampaignByCanary, nil
	}
	x.holds = counts.Pending > 0 && now.Before(x.canary.Add(puntuale.CanaryWait))
	return "", nil
}

func (f *Feeder) pause(ctx context.Context, c *puntuale.FedCampaign, reason string) error {
	if reason == "" {
		return nil
	}
	err := f.Tenant(c.Client).ChangeCampaign(ctx, c.ID, puntuale.CampaignChange{
		From: []puntuale.CampaignState{puntuale.CampaignRunning}, To: puntuale.CampaignPaused, Reason: reason, Now: f.Clock.Now(),
	})
	if puntuale.CodeOf(err) == puntuale.CodeConflict {
		return nil // somebody else changed its state
	}
	if err == nil {
		f.Logger.Warn("a campaign paused by itself", "campaign_id", int64(c.ID), "reason", reason)
	}
	return err
}

// finish ends a campaign when all that it fed ended. It asks once a second.
func (f *Feeder) finish(ctx context.Context, node puntuale.NodeID, c *puntuale.FedCampaign, x *fed, now time.Time) error {
	if now.Before(x.finished.Add(endsEvery)) && !now.Before(x.finished) {
		return nil
	}
	x.finished = now
	_, err := f.Store.FinishCampaign(ctx, node, c.Client, c.ID, now)
	return err
}
