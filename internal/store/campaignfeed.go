package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
	"puntuale/internal/store/queue"
)

// Feeding starts the runs of some recipients and marks the recipients' rows, in one transaction. So these rows show the
// progress. Locks: node, usage, campaign, campaign_feed, recipients, messages, runs.
//
// A chunk is the work of one transaction. It contains the cursor at which its rows were read, so two feeders cannot
// feed the same rows. After a lost answer, the feeder reads the cursor again, and so finds out whether the chunk was
// stored.

// newFeedKind returns the task kind of chunks. After a lost answer, the writer cannot find out whether a chunk was
// stored. The feeder finds it out from the cursor.
func newFeedKind() *engine.Kind {
	return &engine.Kind{Name: "feed", Priority: engine.PriorityFeed, Class: engine.ClassFeed, Prepare: prepareFeed, Run: func(ctx context.Context, w *engine.Writer, tasks []*engine.Task) error {
		f, ok := tasks[0].Body.(*feedChunk)
		if !ok {
			return tasks[0].Run(ctx, &w.Conn)
		}
		f.a = &w.Conn
		return f.Run(ctx)
	}}
}

func prepareFeed(ctx context.Context, w *engine.Writer, tasks []*engine.Task) error {
	f, ok := tasks[0].Body.(*feedChunk)
	if !ok || len(f.runs) == 0 {
		return nil
	}
	return prepareStarts(ctx, w, f.runs)
}

// feedChunk is the writer's task that feeds one chunk.
type feedChunk struct {
	puntuale.FeedChunk
	node  puntuale.NodeID
	runs  []*engine.Task // one start for each row that is not refused
	rowOf []int          // for each start, the index of its row in Rows

	a    engine.Querier
	done bool
}

// errLeftOut refuses a start because its recipient is not waiting any more.
var errLeftOut = errors.New("the recipient is not waiting any more")

func (s *Store) Feed(ctx context.Context, node puntuale.NodeID, c puntuale.FeedChunk) (bool, error) {
	f := &feedChunk{FeedChunk: c, node: node}
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Reason != "" {
			continue
		}
		st := &start{StartRun: r.Start, client: c.Client, day: queue.UsageDay{Client: c.Client, Day: c.Day}}
		var err error
		if st.steps, err = engine.ToJSON(r.Start.Run.Steps); err != nil {
			return false, err
		}
		f.runs, f.rowOf = append(f.runs, engine.Joined(s.kinds.free, len(r.Start.Messages), st)), append(f.rowOf, i)
	}
	t := &engine.Task{Kind: s.kinds.feed, Weight: 1, Body: f, Done: make(chan error, 1)}
	err := s.FeedWriter.Do(ctx, t.ForOwner(int64(c.Client)), false)
	return f.done && err == nil, err
}

// callsLast is the time after a call in which the store expects more calls.
const callsLast = 250 * time.Millisecond

// sizes contains how much work one background transaction may do. On SQLite, all calls wait for such a transaction. On
// PostgreSQL, only calls of the same client wait, but all calls share the disk.
type sizes struct{ sqlite, sqliteBeside, postgres, postgresBeside int } // sqliteBeside and postgresBeside apply while calls arrive

// bound returns how much work the next background transaction may do, and whether calls arrive now.
func (s *Store) bound(z sizes) (size int, calls bool) {
	if last := s.LastCall.Load(); last != nil {
		calls = s.LocalClock.Now().Sub(*last) < callsLast
	}
	switch {
	case s.Dialect.Postgres && calls:
		return z.postgresBeside, calls
	case s.Dialect.Postgres:
		return z.postgres, calls
	case calls:
		return z.sqliteBeside, calls
	}
	return z.sqlite, calls
}

// ChunkBound returns how many rows the next chunk may contain. Each run and each message counts as one row. calls reports
// whether calls arrive now. If they do, chunks are smaller, and the feeder must rest after each chunk. ChunkBound is
// safe for concurrent use.
func (s *Store) ChunkBound() (rows int, calls bool) {
	return s.bound(sizes{sqlite: 200, sqliteBeside: 25, postgres: 1000, postgresBeside: 30})
}

func (f *feedChunk) Run(ctx context.Context) error {
	f.done = false
	for _, t := range f.runs {
		t.Refused, t.Later = nil, false
	}
	held, err := fleet.Leased(ctx, f.a, f.node)
	if err != nil {
		return err
	}
	if p := f.Portfolio; p != nil {
		n, err := f.a.Exec(ctx, `update official set chunks = chunks + 1 where client_id = $1 and session_id = $2 and chunks = $3`, f.Client, p.Holder, p.Chunks)
		if err != nil || n == 0 {
			return err
		}
	}
	b := &startBatch{a: f.a, tasks: f.runs, free: true}
	if err := b.count(ctx); err != nil {
		return err
	}
	allowed, err := f.lock(ctx)
	if err == nil {
		err = held()
	}
	if err != nil || !allowed {
		return err
	}
	if err := b.pass(ctx); err != nil {
		return err
	}
	fed, err := f.mark(ctx)
	if err != nil {
		return err
	}
	if err := b.decideRunning(ctx); err != nil {
		return err
	}
	refused, err := f.refuse(ctx)
	if err != nil {
		return err
	}
	fed -= f.uncount(refused)
	if err := b.insert(ctx); err != nil {
		return err
	}
	n := int64(len(refused))
	if _, err := f.a.Exec(ctx, `update campaign_feed set place = $3, next_at = $4, waiting = waiting - $5::bigint, fed = fed + $6::bigint, refused = refused + $7::bigint
 where client_id = $1 and campaign_id = $2`, f.Client, f.Campaign, f.To.Cursor, engine.Micros(f.To.Next), int64(fed)+n, int64(fed), n); err != nil {
		return fmt.Errorf("note how far a campaign is fed: %w", err)
	}
	f.done = true
	return nil
}

// lock locks the campaign and its cursor. It returns true only if the campaign is running, its list is the chunk's
// list, and its cursor is still the chunk's cursor.
func (f *feedChunk) lock(ctx context.Context) (bool, error) {
	var state puntuale.CampaignState
	var list puntuale.ListID
	if err := f.a.Queue(ctx, `select c.state, c.list_id from campaign c where c.client_id = $1 and c.id = $2 for share`, []any{f.Client, f.Campaign}, func(r engine.Row) error {
		return r.Scan(&state, &list)
	}); err != nil {
		return false, fmt.Errorf("lock a campaign: %w", err)
	}
	var cursor int64
	_, err := engine.QueryOne(ctx, f.a, `select place from campaign_feed where client_id = $1 and campaign_id = $2 for update`, []any{f.Client, f.Campaign}, &cursor)
	return state == puntuale.CampaignRunning && list == f.List && cursor == f.From.Cursor, err
}

const markRecipients = `update recipient set state = 1, run_id = u.r from $u(c bigint, l bigint, n bigint, p text, r bigint)
 where recipient.client_id = u.c and recipient.list_id = u.l and recipient.n = u.n and recipient.state = 0 and recipient.phone = u.p
 returning recipient.n`

// mark gives the state "fed" to the rows whose runs start in this chunk. It refuses the starts of rows that changed
// since they were read. fed is the number of changed rows.
func (f *feedChunk) mark(ctx context.Context) (fed int, err error) {
	if len(f.runs) == 0 {
		return 0, nil
	}
	marked := map[int64]bool{}
	places := engine.Column(f.rowOf, func(i *int) int64 { return f.Rows[*i].N })
	err = f.a.Query(ctx, markRecipients, []any{append(ofList(f.Client, f.List, places),
		engine.Column(f.rowOf, func(i *int) string { return f.Rows[*i].Phone }),
		engine.Column(f.runs, func(t **engine.Task) int64 { return (*t).Body.(*start).first }),
	)}, func(rows engine.Row) error {
		var n int64
		err := rows.Scan(&n)
		marked[n] = true
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("mark recipients: %w", err)
	}
	for k, t := range f.runs {
		if !marked[f.Rows[f.rowOf[k]].N] {
			t.Refused = errLeftOut
		}
	}
	return len(marked), nil
}

// refuse marks rows as refused: rows that the chunk itself refuses, and rows whose start was refused. A start is
// refused, for example, if the sequence is already running for the recipient. refuse returns the numbers of the marked
// rows.
func (f *feedChunk) refuse(ctx context.Context) ([]int64, error) {
	var all []puntuale.Recipient
	for i := range f.Rows {
		if r := f.Rows[i].Recipient; r.Reason != "" {
			all = append(all, r)
		}
	}
	for k, t := range f.runs {
		st := t.Body.(*start)
		if t.Refused == errLeftOut || t.Refused == nil && !t.Later && st.answer.IDs == nil { //nolint:errorlint // errLeftOut is never wrapped
			continue
		}
		r := f.Rows[f.rowOf[k]].Recipient
		r.Reason = puntuale.RefusedRunning
		all = append(all, r)
		if t.Refused == nil {
			t.Refused = errLeftOut
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	var marked []int64
	err := f.a.Query(ctx, `update recipient set state = 2, run_id = 0, reason = u.r, value = u.v from $u(c bigint, l bigint, n bigint, r text, v text)
 where recipient.client_id = u.c and recipient.list_id = u.l and recipient.n = u.n and recipient.state < 2 returning recipient.n`, []any{append(
		ofList(f.Client, f.List, engine.Column(all, func(r *puntuale.Recipient) int64 { return r.N })),
		engine.Column(all, func(r *puntuale.Recipient) string { return r.Reason }),
		engine.Column(all, func(r *puntuale.Recipient) string { return r.Value }),
	)}, func(rows engine.Row) error {
		var n int64
		err := rows.Scan(&n)
		marked = append(marked, n)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("refuse recipients: %w", err)
	}
	return marked, nil
}

// uncount returns how many of the refused rows got the state "fed" from the method mark.
func (f *feedChunk) uncount(refused []int64) (n int) {
	for _, i := range f.rowOf {
		if slices.Contains(refused, f.Rows[i].N) {
			n++
		}
	}
	return n
}

// fedCampaigns also reads whether the session can send. A session can send if it is a sandbox, if its number is linked,
// or if devices take its messages.
const fedCampaigns = `select ` + campaignColumns + `, case when s.way = 'device' or s.link = 4 or s.sandbox = 1 and s.link = 0 then 1 else 0 end,
 case when s.type = 'Official' and s.sandbox = 0 then 1 else 0 end, s.link, s.link_condition, s.limited_until,
 (select k.marketing_from from client k where k.id = c.client_id)` + fromCampaigns + ` join session s on s.id = c.session_id and s.client_id = c.client_id
 where c.state in (3, 5, 6) and s.owner = $1 and s.deleted_at = 0 order by c.id`

func (s *Store) FedCampaigns(ctx context.Context, node puntuale.NodeID) ([]puntuale.FedCampaign, error) {
	all, err := engine.QueryAll(ctx, s.DispatchReads, fedCampaigns, []any{node}, func(rows engine.Row, c *puntuale.FedCampaign) error {
		return rows.Scan(engine.ScanFaulty(&c.Fault, append(campaignFields(&c.Campaign), engine.ScanBool(&c.Online), engine.ScanBool(&c.Official), &c.Link.State, &c.Link.Condition, engine.ScanTime(&c.Link.Limited), engine.ScanTime(&c.MarketingFrom))...)...)
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list campaigns to feed: %w", err))
	}
	return all, nil
}

// aheadOfSession counts only the first message of each run. That message has the same id as the run.
const aheadOfSession = `select count(*) from (select 1 from message m where m.session_id = $1 and m.priority = 1 and m.state = 0 and m.next_at <= $2
 and m.attempt = 0 and m.id = m.run_id limit $3) as ahead`

func (s *Store) CountAhead(ctx context.Context, session puntuale.SessionID, end time.Time) (n int, err error) {
	_, err = engine.QueryOne(ctx, s.DispatchReads, aheadOfSession, []any{session, engine.Micros(end), puntuale.CampaignAhead}, &n)
	if err != nil {
		return 0, engine.PublicError(fmt.Errorf("count what is fed ahead: %w", err))
	}
	return n, nil
}

const canaryCounts = `select m.state, count(*) from campaign c join message m on m.campaign_id = c.id and m.campaign_id <> 0
 where c.client_id = $1 and c.id = $2 and m.id = m.run_id group by m.state`

func (s *Store) Canary(ctx context.Context, client puntuale.ClientID, id puntuale.CampaignID) (puntuale.CampaignCounts, error) {
	c, err := countCampaign(ctx, s.DispatchReads, canaryCounts, client, id)
	return c, engine.PublicError(err)
}

// SayWaits stores why a running campaign waits. "": it does not.
func (s *Store) SayWaits(ctx context.Context, node puntuale.NodeID, client puntuale.ClientID, id puntuale.CampaignID, reason string) error {
	err := s.FeedWriter.Do(ctx, engine.Single(s.kinds.feed, func(ctx context.Context, a engine.Querier) error {
		if err := fleet.Fence(ctx, a, node); err != nil {
			return err
		}
		_, err := a.Exec(ctx, `update campaign set reason = $3 where client_id = $1 and id = $2 and state = 3`, client, id, reason)
		return err
	}).ForOwner(int64(client)), false)
	return engine.PublicError(err)
}

// The functions below finish changes of a campaign's state in chunks. Each chunk is one transaction under the node's
// lease. After a crash, the session's next owner finds in the campaign's state what is left to do.

// onCampaign locks the campaign's row. If the campaign is still in the given state, onCampaign runs one chunk of work.
func (s *Store) onCampaign(ctx context.Context, node puntuale.NodeID, client puntuale.ClientID, id puntuale.CampaignID, state puntuale.CampaignState,
	do func(ctx context.Context, a engine.Querier, t tenant, c puntuale.Campaign) error,
) (still bool, err error) {
	t := tenant{s: s, id: client}
	err = s.FeedWriter.Do(ctx, engine.SingleTimestamped(s.kinds.feed, func(ctx context.Context, a engine.Querier) error {
		still = false
		if err := fleet.Fence(ctx, a, node); err != nil {
			return err
		}
		c, err := t.lockCampaign(ctx, a, id, func(s puntuale.CampaignState) bool { still = s == state; return true })
		if err != nil || !still {
			return err
		}
		return do(ctx, a, t, c)
	}).ForOwner(int64(client)), false)
	return still, err
}

const (
	moveChunk = 500 // how many recipients one chunk contains

	toMove = `select r.run_id, r.moved_at from recipient r
 where r.client_id = $1 and r.list_id = $2 and r.n > $4 and r.n <= $5 and r.state = 1 and r.moved_at <> $3`

	markMoved = `update recipient set moved_at = $3::bigint
 where client_id = $1 and list_id = $2 and n > $4 and n <= $5 and state = 1 and moved_at <> $3`

	movable = `
select m.id, m.run_id, m.step, m.resent_from <> 0, m.due_at from $u(r bigint) cross join run r cross join message m
where r.client_id = $1 and r.id = u.r and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.intent = 0 and m.campaign_id = $2
union all
select m.id, m.run_id, m.step, m.resent_from <> 0, m.due_at from $u(r bigint) cross join run r cross join message m
where r.client_id = $1 and r.id = u.r and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0 and m.intent = 0 and m.campaign_id = $2`

	movedContents = `select r.id, r.content from $u(i bigint) cross join run r where r.client_id = $1 and r.id = u.i`

	// u.d delays next_at, and u.v delays valid_until. u.l limits both of a message whose time is counted from a date. 0
	// means no limit.
	moveByPause = `update message set next_at = least(message.next_at + u.d, case when u.l = 0 then message.next_at + u.d else u.l end),
 valid_until = case when message.valid_until < 0 then message.valid_until when u.l = 0 then message.valid_until + u.v
 else least(message.valid_until + u.v, u.l) end
from $u(c bigint, i bigint, d bigint, v bigint, l bigint) where message.client_id = u.c and message.id = u.i and message.intent = 0`
)

func (s *Store) MoveChunk(ctx context.Context, node puntuale.NodeID, client puntuale.ClientID, id puntuale.CampaignID, resumed time.Time, after int64, now time.Time) (next int64, done bool, err error) {
	next = after + moveChunk
	other := false // another resumption began, so the caller's place is not its place
	still, err := s.onCampaign(ctx, node, client, id, puntuale.CampaignResuming, func(ctx context.Context, a engine.Querier, t tenant, c puntuale.Campaign) error {
		if other = !c.Resumed.Equal(resumed); other {
			return nil
		}
		done = false
		var place int64
		if _, err := engine.QueryOne(ctx, a, `select place from campaign_feed where client_id = $1 and campaign_id = $2 for update`, []any{client, id}, &place); err != nil {
			return fmt.Errorf("read a campaign's place: %w", err)
		}
		chunk := []any{client, c.List, engine.Micros(c.Resumed), after, next}
		moved := map[puntuale.RunID]time.Time{}
		if err := a.Query(ctx, toMove, chunk, func(rows engine.Row) error {
			var run puntuale.RunID
			var at time.Time
			err := rows.Scan(&run, engine.ScanTime(&at))
			moved[run] = at
			return err
		}); err != nil {
			return fmt.Errorf("look for recipients to move: %w", err)
		}
		if err := t.move(ctx, a, c, moved); err != nil {
			return err
		}
		if _, err := a.Exec(ctx, markMoved, chunk...); err != nil {
			return fmt.Errorf("mark recipients: %w", err)
		}
		if next < place {
			return nil
		}
		done = true
		if _, err := a.Exec(ctx, `update campaign_feed set next_at = case when next_at = 0 then 0 else next_at + $3::bigint end where client_id = $1 and campaign_id = $2`,
			client, id, heldFor(c.Resumed, c.Paused).Microseconds()); err != nil {
			return fmt.Errorf("move a campaign's place: %w", err)
		}
		return moveCampaign(ctx, a, client, c, puntuale.CampaignChange{To: puntuale.CampaignRunning, Now: now})
	})
	return next, done || other || !still, err
}

// heldFor returns how long something was held that the pause has held since then. Clocks of two nodes may differ, so
// the result is never negative.
func heldFor(resumed, since time.Time) time.Duration { return max(0, resumed.Sub(since)) }

// move delays the open messages of runs by the length of the pause. moved has the latest resumption that moved each run.
// If the campaign was paused again during that resumption, the pause goes on, and only the rest of it is left to move.
//
// If a message's time is counted from a date, move delays only the message's deadline, at most to the limit that the
// step sets. A message that a person sent again keeps its due time, unless this time came before the pause. Its
// deadline moves by the time that the message was overdue.
func (t tenant) move(ctx context.Context, a engine.Querier, c puntuale.Campaign, moved map[puntuale.RunID]time.Time) error {
	if len(moved) == 0 {
		return nil
	}
	type message struct {
		id   puntuale.MessageID
		step puntuale.StepRef

		resent bool
		due    time.Time
	}
	runs := slices.Sorted(maps.Keys(moved))
	column := engine.Columns{engine.Column(runs, func(r *puntuale.RunID) int64 { return int64(*r) })}
	all, err := engine.QueryAll(ctx, a, movable, []any{t.id, c.ID, column}, func(rows engine.Row, m *message) error {
		m.step.Client = t.id
		return rows.Scan(&m.id, &m.step.ID, &m.step.Step, &m.resent, engine.ScanTime(&m.due))
	})
	if err != nil {
		return fmt.Errorf("look for messages to move: %w", err)
	}
	steps := map[puntuale.RunID][]puntuale.FrozenStep{}
	if err := a.Query(ctx, movedContents, []any{t.id, column}, func(rows engine.Row) error {
		var id puntuale.RunID
		var frozen []puntuale.FrozenStep
		err := rows.Scan(&id, optionalJSON{&frozen})
		steps[id] = frozen
		return err
	}); err != nil {
		return fmt.Errorf("read what is moved: %w", err)
	}
	engine.Sort(all, func(x, y message) int {
		return queue.CompareRefs(puntuale.MessageRef{ID: x.id}, puntuale.MessageRef{ID: y.id})
	})
	delay, extend, limit := make([]int64, len(all)), make([]int64, len(all)), make([]int64, len(all))
	for i, m := range all {
		since := latest(c.Paused, moved[m.step.ID])
		delay[i] = heldFor(c.Resumed, since).Microseconds()
		extend[i] = delay[i]
		switch frozen := steps[m.step.ID]; {
		case m.resent && !m.due.Before(c.Paused):
			delay[i], extend[i] = 0, heldFor(c.Resumed, latest(since, m.due)).Microseconds()
		case !m.resent && m.step.Step < len(frozen) && frozen[m.step.Step].Dated:
			delay[i], limit[i] = 0, engine.Micros(frozen[m.step.Step].Limit)
		}
	}
	if _, err := a.Exec(ctx, moveByPause, append(queue.RefColumns(engine.Column(all, func(m *message) puntuale.MessageRef { return puntuale.MessageRef{Client: t.id, ID: m.id} })), delay, extend, limit)); err != nil {
		return fmt.Errorf("move messages: %w", err)
	}
	return nil
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

const openOfCampaign = `select m.client_id, m.id from message m where m.campaign_id = $1 and m.campaign_id <> 0 and m.state = 0
 and m.client_id + 0 = $2 and (m.intent = 0 or m.valid_until > 0) order by m.id + 0 limit $3`

func (s *Store) CancelChunk(ctx context.Context, node puntuale.NodeID, client puntuale.ClientID, id puntuale.CampaignID, now time.Time) (done bool, err error) {
	still, err := s.onCampaign(ctx, node, client, id, puntuale.CampaignCancelling, func(ctx context.Context, a engine.Querier, t tenant, c puntuale.Campaign) error {
		done = false
		refs, err := engine.QueryAll(ctx, a, openOfCampaign, []any{id, client, engine.Chunk}, queue.ScanRef)
		if err != nil {
			return fmt.Errorf("look for a campaign's messages: %w", err)
		}
		engine.Sort(refs, queue.CompareRefs)
		if _, err := queue.CancelOpen(ctx, a, refs, now); err != nil || len(refs) == engine.Chunk {
			return err
		}
		done = true
		return t.end(ctx, a, c, puntuale.CampaignCancelled, now)
	})
	return done || !still, err
}

// end ends a campaign. It also stores the counts of the campaign's messages, because the archiver may later remove
// these messages from the database.
func (t tenant) end(ctx context.Context, a engine.Querier, c puntuale.Campaign, to puntuale.CampaignState, now time.Time) error {
	counts, err := countCampaign(ctx, a, campaignCounts, t.id, c.ID)
	if err != nil {
		return err
	}
	final, err := engine.ToJSON(counts)
	if err != nil {
		return err
	}
	if _, err := a.Exec(ctx, `update campaign set final = $3 where client_id = $1 and id = $2`, t.id, c.ID, final); err != nil {
		return fmt.Errorf("keep a campaign's counts: %w", err)
	}
	return moveCampaign(ctx, a, t.id, c, puntuale.CampaignChange{To: to, Now: now})
}

// uncertainSince is how long a campaign waits for the outcome of an attempt. After that the campaign ends without this
// outcome.
const uncertainSince = 2 * time.Minute

const stillSending = `select 1 from message m where m.campaign_id = $1 and m.campaign_id <> 0 and m.state = 0 and (m.intent = 0 or m.intent_at > $2) limit 1`

func (s *Store) FinishCampaign(ctx context.Context, node puntuale.NodeID, client puntuale.ClientID, id puntuale.CampaignID, now time.Time) (done bool, err error) {
	var n int64
	since := engine.Micros(now.Add(-uncertainSince))
	if sending, err := engine.QueryOne(ctx, s.DispatchReads, stillSending, []any{id, since}, &n); err != nil || sending {
		return false, engine.PublicError(err)
	}
	_, err = s.onCampaign(ctx, node, client, id, puntuale.CampaignRunning, func(ctx context.Context, a engine.Querier, t tenant, c puntuale.Campaign) error {
		done = false
		var waiting int64
		if _, err := engine.QueryOne(ctx, a, `select waiting from campaign_feed where client_id = $1 and campaign_id = $2`, []any{client, id}, &waiting); err != nil {
			return fmt.Errorf("read a campaign's place: %w", err)
		}
		sending, err := engine.QueryOne(ctx, a, stillSending, []any{id, since}, &n)
		if err != nil || sending || waiting > 0 {
			return err
		}
		done = true
		return t.end(ctx, a, c, puntuale.CampaignDone, now)
	})
	return done, err
}
