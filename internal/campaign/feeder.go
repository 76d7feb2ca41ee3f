package campaign

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/plan"
)

// Config contains the parts and settings of a [Feeder]. All members except Media must be set.
type Config struct {
	Store FeedStore
	Queue interface {
		SendPermissions(ctx context.Context, clients []puntuale.ClientID) (map[puntuale.ClientID]puntuale.SendPermission, error)
	}
	Tenant func(puntuale.ClientID) Tenant
	// Bound returns how many rows the next chunk may have: one for each run and one for each message. While calls
	// arrive, calls is true. The bound is then smaller, and the feeder rests after each chunk.
	Bound  func() (rows int, calls bool)
	Node   func() puntuale.NodeID // returns this node's id; 0: the node owns no sessions
	Wakeup puntuale.Wakeup
	Clock  clock.Clock
	Logger *slog.Logger
	Media  []string                                                                                          // allowed file name extensions; nil: the planner's own list
	Files  func(ctx context.Context, c *puntuale.FedCampaign) (map[puntuale.FileID]plan.UploadedFile, error) // what messages may name; nil: they may name all
}

// Tenant is the part of a client's store that a feeder uses.
type Tenant interface {
	Recipients(ctx context.Context, list puntuale.ListID, f puntuale.RecipientFilter, after int64, limit int) ([]puntuale.Recipient, error)
	ChangeCampaign(ctx context.Context, id puntuale.CampaignID, c puntuale.CampaignChange) error
	KnownPersons(ctx context.Context, session puntuale.SessionID, phones []string) (map[string]puntuale.KnownPerson, error)
	Portfolio(ctx context.Context, session puntuale.SessionID, now time.Time) (puntuale.Portfolio, error)
}

// Feeder feeds the campaigns of the sessions that this node owns. Call Run only once.
type Feeder struct {
	Config
	plans map[puntuale.CampaignID]*feedState
	told  map[puntuale.CampaignID]failure // the last failure of each campaign
}

// failure is a failure in the log, and when it was written there.
type failure struct {
	cause string
	at    time.Time
}

// feedState is what the feeder stores in memory about a campaign between two rounds. The store checks these values
// again.
type feedState struct {
	plan         *Plan
	begun        time.Time // the campaign's start; if the campaign starts again, it needs a new plan
	resumed      time.Time // the resumption to which moved belongs
	moved        int64     // while the campaign is resuming: the last recipient whose messages already have new due times
	finished     time.Time // when the feeder last asked the store whether all messages ended
	canary       time.Time // when all recipients of the canary had been fed
	awaitsCanary bool      // true: the other recipients wait for the canary
	overBudget   bool      // true: the campaign is marketing, and the budget of the client's month is used up
	portfolio    puntuale.Portfolio
	counted      time.Time // when portfolio was counted; zero: it must be counted again
}

const (
	feedWithin = 100 * time.Millisecond // how long the feeder works on one campaign before it goes to the next
	feedEvery  = 200 * time.Millisecond // wait after a round in which the feeder worked on a campaign, but no work is ready now
	idleEvery  = 500 * time.Millisecond // wait after a round in which there was no campaign, or all work failed
	// While calls arrive, a rest is feedRest times as long as the chunk took, but at most restAtMost. The other campaigns wait
	// for the rest, too, and that is its purpose: calls wait for a chunk of any campaign. If the next campaign began at once,
	// many campaigns would leave the calls no time. A campaign keeps the others for at most one chunk and one rest, because
	// after feedWithin it plans no further one, and each has its own callWithin.
	feedRest   = 4
	restAtMost = time.Second
	endsEvery  = time.Second
	callWithin = 15 * time.Second
	logEvery   = time.Minute      // between two entries in the log about the same failure
	countEvery = 10 * time.Second // between two counts of a business's room at the network
)

// New returns a feeder. The feeder does nothing before Run.
func New(cfg Config) *Feeder {
	return &Feeder{Config: cfg, plans: map[puntuale.CampaignID]*feedState{}, told: map[puntuale.CampaignID]failure{}}
}

// Run feeds the campaigns until ctx ends.
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

// round works on each campaign in order, and returns how long to wait until the next round.
func (f *Feeder) round(ctx context.Context, node puntuale.NodeID) time.Duration {
	within, cancel := context.WithTimeout(ctx, callWithin)
	all, err := f.Store.FedCampaigns(within, node)
	cancel()
	if err != nil {
		f.failed(ctx, 0, err)
		return idleEvery
	}
	onNode := make(map[puntuale.CampaignID]bool, len(all))
	wait := idleEvery
	for i := range all {
		c := &all[i]
		onNode[c.ID] = true
		more, err := false, c.Fault
		if err == nil {
			err = puntuale.Recovered(func() (err error) {
				more, err = f.work(ctx, node, c)
				return err
			})
		}
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
		if !onNode[id] {
			delete(f.plans, id)
		}
	}
	for id := range f.told {
		if id != 0 && !onNode[id] {
			delete(f.told, id)
		}
	}
	return wait
}

// failed logs that a campaign could not be fed. id 0 means all campaigns. The next round tries again, and often fails
// again, so the same failure is logged only once a minute.
func (f *Feeder) failed(ctx context.Context, id puntuale.CampaignID, err error) {
	if ctx.Err() != nil || errors.Is(err, puntuale.ErrFenced) || errors.Is(err, errMoved) {
		return
	}
	now, cause := f.Clock.Now(), err.Error()
	if last, ok := f.told[id]; ok && last.cause == cause && now.Before(last.at.Add(logEvery)) {
		return
	}
	f.told[id] = failure{cause: cause, at: now}
	f.Logger.Warn("feeding failed", "campaign_id", int64(id), "error", err)
}

// work does a part of a campaign's work. It returns true if more work is ready.
func (f *Feeder) work(ctx context.Context, node puntuale.NodeID, c *puntuale.FedCampaign) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	x := f.plans[c.ID]
	if x == nil || !x.begun.Equal(c.Started) {
		made, err := f.planOf(ctx, c)
		if err != nil {
			return false, err
		}
		x = &feedState{plan: made, begun: c.Started}
		f.plans[c.ID] = x
	}
	x.plan.campaign = c.Campaign
	// What was fed before leaves first, so feeding waits until it is due again.
	if x.overBudget = x.plan.marketing() && f.Clock.Now().Before(c.MarketingFrom.Add(puntuale.MarketingSpread)); c.State == puntuale.CampaignRunning && c.Feed.Waiting > 0 {
		if reason, err := f.mustPause(ctx, c, x); err != nil || reason != "" {
			return false, errors.Join(err, f.pause(ctx, c, reason))
		}
	}
	end := f.Clock.Now().Add(feedWithin)
	if c.State == puntuale.CampaignRunning {
		more, err = f.feed(ctx, node, c, x, end)
		if waits := x.waits(c); err == nil && waits != c.Reason {
			err = f.Store.SayWaits(ctx, node, c.Client, c.ID, waits)
		}
		return more, err
	}
	for more = true; more && err == nil && f.Clock.Now().Before(end); {
		if c.State == puntuale.CampaignResuming {
			more, err = f.move(ctx, node, c, x)
		} else {
			more, err = f.cancel(ctx, node, c)
		}
	}
	return more, err
}

func (f *Feeder) planOf(ctx context.Context, c *puntuale.FedCampaign) (*Plan, error) {
	var files map[puntuale.FileID]plan.UploadedFile
	if f.Files != nil {
		var err error
		if files, err = f.Files(ctx, c); err != nil {
			return nil, err
		}
	}
	return NewPlan(c.Campaign, c.Frozen, f.Media, files)
}

func (f *Feeder) move(ctx context.Context, node puntuale.NodeID, c *puntuale.FedCampaign, x *feedState) (more bool, err error) {
	if !x.resumed.Equal(c.Resumed) {
		x.resumed, x.moved = c.Resumed, 0
	}
	next, done, err := f.Store.MoveChunk(ctx, node, c.Client, c.ID, c.Resumed, x.moved, f.Clock.Now())
	if err != nil {
		return false, err
	}
	if x.moved = next; done {
		x.moved = 0
		f.Wakeup(c.Session, time.Time{})
	}
	return !done, nil
}

func (f *Feeder) cancel(ctx context.Context, node puntuale.NodeID, c *puntuale.FedCampaign) (more bool, err error) {
	done, err := f.Store.CancelChunk(ctx, node, c.Client, c.ID, f.Clock.Now())
	return err == nil && !done, err
}

// feed feeds chunks of a running campaign. After the time in the argument end, it plans no further chunk. While the
// store writes one chunk, feed plans the next one. It returns true if another chunk may be ready.
func (f *Feeder) feed(ctx context.Context, node puntuale.NodeID, c *puntuale.FedCampaign, x *feedState, end time.Time) (more bool, err error) {
	if c.Feed.Waiting == 0 {
		return false, f.finish(ctx, node, c, x, f.Clock.Now())
	}
	chunk, err := f.next(ctx, c, x, 0)
	for err == nil && len(chunk.Rows) > 0 {
		session, stored := c.Session, make(chan error, 1)
		go func() {
			stored <- puntuale.Recovered(func() error { return f.store(ctx, node, session, chunk) })
		}()
		f.passed(c, x, &chunk)
		var next puntuale.FeedChunk
		if more = f.Clock.Now().Before(end); more {
			next, err = f.next(ctx, c, x, len(chunk.Rows))
		}
		if failed := <-stored; failed != nil {
			x.counted = time.Time{}
			return false, failed
		}
		if !more {
			return c.Feed.Waiting > 0, nil
		}
		chunk = next
	}
	return false, err
}

// errMoved means that the campaign's cursor or state changed after the feeder read the chunk.
var errMoved = errors.New("the campaign was moved on, or paused")

// store stores a chunk, and wakes the session's dispatcher for the chunk's first due message. While calls arrive, store
// rests after the chunk, because a call that arrives during a chunk waits for the chunk's end.
func (f *Feeder) store(ctx context.Context, node puntuale.NodeID, session puntuale.SessionID, chunk puntuale.FeedChunk) error {
	begun := f.Clock.Now()
	stored, err := f.Store.Feed(ctx, node, chunk)
	took := f.Clock.Now().Sub(begun)
	switch {
	case err != nil:
		return err
	case !stored:
		return errMoved
	}
	if first := firstDue(chunk); !first.IsZero() {
		f.Wakeup(session, first)
	}
	if _, calls := f.Bound(); calls {
		return f.Clock.Sleep(ctx, min(feedRest*took, restAtMost))
	}
	return nil
}

// next reads and plans the chunk after the campaign's cursor. The result has no rows if no recipient can be fed now.
// coming is the number of recipients in the chunk that the store is still writing.
func (f *Feeder) next(ctx context.Context, c *puntuale.FedCampaign, x *feedState, coming int) (chunk puntuale.FeedChunk, err error) {
	if !c.Online || x.awaitsCanary || x.overBudget || c.Feed.Waiting == 0 {
		return chunk, nil
	}
	now := f.Clock.Now()
	ahead, err := f.Store.CountAhead(ctx, c.Session, now.Add(puntuale.CampaignAheadTime))
	if err != nil {
		return chunk, err
	}
	limit, _ := f.Bound()
	room := min(puntuale.CampaignAhead-ahead-coming, max(1, limit/(1+len(x.plan.frozen.Sequence.Steps))))
	if n := c.Draft.CanarySize() - c.Feed.Fed; n > 0 && hasCanary(c) {
		room = min(room, n)
	}
	if c.Official {
		if err := f.count(ctx, c, x, now); err != nil {
			return chunk, err
		}
		if x.portfolio.Limit > 0 {
			room = min(room, x.portfolio.Room)
		}
	}
	if room <= 0 {
		return chunk, nil
	}
	rows, err := f.Tenant(c.Client).Recipients(ctx, c.List, puntuale.RecipientFilter{State: new(puntuale.RecipientWaiting)}, c.Feed.Cursor, room)
	if err != nil || len(rows) == 0 {
		return chunk, err
	}
	var contacts map[string]puntuale.KnownPerson
	if c.Official {
		if contacts, err = f.Tenant(c.Client).KnownPersons(ctx, c.Session, phonesOf(rows)); err != nil {
			return chunk, err
		}
	}
	return f.plan(c, x, rows, contacts, now), nil // the chunk has no rows if the next recipient's time is too far ahead
}

// count counts the room that the network's limit leaves for people who are addressed outside their 24-hour window. Between
// two counts, each chunk takes its part of the room.
func (f *Feeder) count(ctx context.Context, c *puntuale.FedCampaign, x *feedState, now time.Time) (err error) {
	if since := now.Sub(x.counted); since >= 0 && since < countEvery {
		return nil
	}
	x.portfolio, err = f.Tenant(c.Client).Portfolio(ctx, c.Session, now)
	if x.counted = now; err != nil {
		x.counted = time.Time{}
	}
	return err
}

// waits returns why the campaign waits, or "" if it does not.
func (x *feedState) waits(c *puntuale.FedCampaign) string {
	if x.overBudget {
		return puntuale.CampaignByBudget
	}
	if c.Official && c.Online && c.Feed.Waiting > 0 && !x.awaitsCanary && x.portfolio.Limit > 0 && x.portfolio.Room == 0 {
		return puntuale.CampaignByRoom
	}
	return ""
}

// passed moves the campaign's cursor to the end of a chunk.
func (f *Feeder) passed(c *puntuale.FedCampaign, x *feedState, chunk *puntuale.FeedChunk) {
	planned, refused := len(chunk.Rows), 0
	for i := range chunk.Rows {
		if chunk.Rows[i].Reason != "" {
			refused++
		}
	}
	if chunk.Portfolio != nil {
		x.portfolio.Room -= min(x.portfolio.Room, planned-refused)
		x.portfolio.Chunks++
	}
	c.Feed.Cursor, c.Feed.Next = chunk.To.Cursor, chunk.To.Next
	c.Feed.Waiting, c.Feed.Fed, c.Feed.Refused = c.Feed.Waiting-planned, c.Feed.Fed+planned-refused, c.Feed.Refused+refused
	x.awaitsCanary = hasCanary(c) && c.Feed.Fed >= c.Draft.CanarySize() // if true, nothing is fed until the canary's messages have ended
}

// firstDue returns the earliest due time in a chunk, or the zero time if the chunk has no messages.
func firstDue(chunk puntuale.FeedChunk) (first time.Time) {
	for i := range chunk.Rows {
		for _, m := range chunk.Rows[i].Start.Messages {
			if first.IsZero() || m.Due.Before(first) {
				first = m.Due
			}
		}
	}
	return first
}

// plan plans the rows whose time comes soon.
func (f *Feeder) plan(c *puntuale.FedCampaign, x *feedState, rows []puntuale.Recipient, contacts map[string]puntuale.KnownPerson, now time.Time) puntuale.FeedChunk {
	p := x.plan
	pacer := NewPacer(c.Feed.Next, p.frozen.PerMinute, c.Draft.Window, p.zone)
	chunk := puntuale.FeedChunk{Client: c.Client, Campaign: c.ID, List: c.List, From: c.Feed, Day: puntuale.DateOf(now.In(p.zone)), Now: now}
	for i := range rows {
		at, opens := pacer.Next(now)
		if opens && at.After(now.Add(puntuale.CampaignAheadTime)) {
			break
		}
		r := puntuale.FedRecipient{Recipient: rows[i]}
		built, reason, value := p.Build(&rows[i], at, rand.Uint64()|1) //nolint:gosec // the random number only spreads load
		switch {
		case !opens:
			r.Reason = puntuale.RefusedPast
		case reason != "":
			r.Reason, r.Value = reason, value
		case c.Official && closed(built, r.Phone, contacts[r.Phone]):
			r.Reason = puntuale.RefusedWindow
		default:
			r.Start = p.Start(&rows[i], built, now)
			pacer.Advance()
		}
		chunk.Rows = append(chunk.Rows, r)
		chunk.To.Cursor = rows[i].N
	}
	chunk.To.Next = pacer.Position()
	if c.Official && x.portfolio.Limit > 0 {
		chunk.Portfolio = new(x.portfolio)
	}
	return chunk
}

// hasCanary reports whether the campaign's first recipients are a canary, for which the other recipients wait. After a
// person resumed the campaign, there is no canary any more.
func hasCanary(c *puntuale.FedCampaign) bool {
	size := c.Draft.CanarySize()
	return size > 0 && c.Resumed.IsZero() && c.Feed.Fed <= size && c.Feed.Fed+c.Feed.Waiting > size
}

// mustPause returns why the campaign must pause by itself, or "" if it need not pause. It also finds out whether the
// other recipients still wait for the canary.
func (f *Feeder) mustPause(ctx context.Context, c *puntuale.FedCampaign, x *feedState) (reason string, err error) {
	now := f.Clock.Now()
	found, err := f.Queue.SendPermissions(ctx, []puntuale.ClientID{c.Client})
	if err != nil {
		return "", err
	}
	switch hold := found[c.Client].WaitReason(now); {
	case hold == puntuale.ReasonNoCredit:
		return puntuale.CampaignByCredit, nil
	case hold != "":
		return puntuale.CampaignByAccount, nil
	case c.Link.Condition == puntuale.Banned || c.Link.Limited.After(now):
		return puntuale.CampaignByNumber, nil
	}
	if x.awaitsCanary = false; !hasCanary(c) || c.Feed.Fed < c.Draft.CanarySize() {
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
	x.awaitsCanary = counts.Pending > 0 && now.Before(x.canary.Add(puntuale.CanaryWait))
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
		return nil // another call changed the campaign's state
	}
	if err == nil {
		f.Logger.Warn("a campaign paused by itself", "campaign_id", int64(c.ID), "reason", reason)
	}
	return err
}

// finish ends a campaign if all its messages have ended. It asks the store at most once a second.
func (f *Feeder) finish(ctx context.Context, node puntuale.NodeID, c *puntuale.FedCampaign, x *feedState, now time.Time) error {
	if now.Before(x.finished.Add(endsEvery)) && !now.Before(x.finished) {
		return nil
	}
	x.finished = now
	_, err := f.Store.FinishCampaign(ctx, node, c.Client, c.ID, now)
	return err
}
