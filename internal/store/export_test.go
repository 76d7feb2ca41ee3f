package store

import (
	"context"
	"runtime"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/store/account"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/automation"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/event"
	"puntuale/internal/store/fleet"
	"puntuale/internal/store/link"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/person"
	"puntuale/internal/store/queue"
	"puntuale/internal/store/reply"
	"puntuale/internal/store/retention"
	"puntuale/internal/store/statement"
)

// PlainRow is a message row for benchmarks.
type PlainRow struct{ Client, Session, ID, Due int64 }

// PlainInsert is the baseline for benchmarks. It only writes message rows, many in each statement, through a writer.
func PlainInsert(s *Store, rows []PlainRow) error {
	const hour = 3_600_000_000
	column := func(f func(r *PlainRow) int64) []int64 { return engine.Column(rows, f) }
	id := column(func(r *PlainRow) int64 { return r.ID })
	b := engine.Columns{
		column(func(r *PlainRow) int64 { return r.Client }), id, column(func(r *PlainRow) int64 { return r.Session }), id,
		column(func(r *PlainRow) int64 { return r.Due }), column(func(r *PlainRow) int64 { return r.Due }),
		column(func(r *PlainRow) int64 { return r.Due + 48*hour }), column(func(*PlainRow) int64 { return 0 }),
		column(func(*PlainRow) int64 { return 2 }), engine.Column(rows, func(*PlainRow) string { return "+393331234567" }),
		column(func(*PlainRow) int64 { return 0 }), column(func(*PlainRow) int64 { return 0 }), column(func(*PlainRow) int64 { return 0 }),
	}
	return s.TenantWriters[0].Do(context.Background(), engine.Single(s.Writes, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, insertMessages, b)
		return err
	}), false)
}

// Statement is a statement of the hot path. Explain shows its plan for the arguments Args.
type Statement struct {
	Text string
	Args []any
}

// Statements contains the statements whose plans must not change when the tables grow.
var Statements = map[string]Statement{
	"followed link":   {link.Followed, []any{"c1"}},
	"waits for money": {statement.WaitingMarketing, []any{int64(1), int64(1), int64(9), 10}},
	"persons":         {automation.PersonsOf, []any{engine.Columns{one1, oneText}}},
	"answered":        {automation.AnsweredOf, []any{engine.Columns{one1, oneText}}},
	"assigned":        {automation.AssignedOf, []any{engine.Columns{one1, oneText}}},
	"reached":         {automation.ReachedOf, []any{int64(1), engine.Columns{one1, oneText}}},
	"acted":           {automation.ActedOf, []any{engine.Columns{one1, oneText}}},
	"first reply":     {automation.FirstOf, []any{engine.Columns{one1, oneText}}},
	"in a run":        {automation.RunningOf, []any{engine.Columns{one1, oneText, one1}}},
	"trigger reply":   {automation.TriggerReplies, []any{engine.Columns{one1, one1, one1}}},
	"trigger message": {automation.TriggerMessages, []any{engine.Columns{one1, one1, one1}}},
	"take triggers":   {automation.TakeDue, []any{int64(1), int64(9), 10, int64(1), engine.Columns{one1}}},
	"take contacts":   {automation.TakeContacts, []any{int64(1), int64(9), 10, int64(1), engine.Columns{one1}}},
	"due dates":       {automation.DueDates, []any{int64(1), int64(1), 20261125, 10}},
	"move dates":      {automation.MoveDates, []any{engine.Columns{one1, one1, one1, one1, one1, one1}}},
	"keep runs":       {automation.KeepRuns, []any{engine.Columns{one1, one1, one1, one1}}},
	"count firings":   {automation.CountFirings, []any{int64(1), int64(1), engine.Columns{one1, one1}}},
	"lock persons":    {automation.LockPersons, []any{engine.Columns{one1, oneText}}},
	"lock contacts":   {automation.LockContacts, []any{engine.Columns{one1, one1}}},
	"rules dated":     {automation.RulesDated, []any{engine.Columns{one1, one1, one1, one1}}},
	"dates":           {automation.DatesOf, []any{engine.Columns{one1, one1, one1}}},
	"reply rules":     {reply.ReplyRules, []any{engine.Columns{one1}}},
	"runs of dates":   {automation.RunsOfDates, []any{int64(1), engine.Columns{one1, one1}}},
	"former dates":    {automation.MessagesOfRuns, []any{int64(1), engine.Columns{one1}}},

	"done":             {endedMessages, []any{int64(1), int64(1), int64(9), 10}},
	"failed":           {failedMessages, []any{int64(1), int64(1), int64(9), 10, 5000}},
	"upcoming":         {upcomingMessages, []any{int64(1), int64(1), int64(9), 10}},
	"quarters":         {upcomingCounts, []any{int64(1), int64(1), int64(9), account.Quarter}},
	"overdue":          {overdue, []any{int64(9)}},
	"pushes":           {claimPushes, []any{int64(9), int64(9), int64(9), 10}},
	"version":          {clientVersion, []any{int64(1)}},
	"uncertain":        {uncertainAttempts, []any{int64(1), int64(1)}},
	"among":            {amongBlacklisted, []any{int64(1), engine.Columns{one1, oneText}}},
	"recent":           {lastStarted, []any{int64(1), 5}},
	"resent as":        {resentAs, []any{int64(1), int64(1), int64(1)}},
	"campaigns":        {queue.CampaignsOfSession, []any{int64(1), 10, int64(1), int64(0), int64(0)}},
	"ahead":            {aheadOfSession, []any{int64(1), int64(9), 10}},
	"sending":          {stillSending, []any{int64(1), int64(9)}},
	"counts":           {campaignCounts, []any{int64(1), int64(1)}},
	"again":            {failedOfCampaign, []any{int64(1), int64(1), 0, int64(0), 10}},
	"rows":             {stateRecipients, []any{int64(1), int64(1), int64(0), 10, 0}},
	"refused":          {refusedFor, []any{int64(1), int64(1), int64(0), 10, "x"}},
	"feed":             {markRecipients, []any{engine.Columns{one1, one1, one1, oneText, one1}}},
	"to move":          {toMove, []any{int64(1), int64(1), int64(9), int64(0), int64(500)}},
	"mark moved":       {markMoved, []any{int64(1), int64(1), int64(9), int64(0), int64(500)}},
	"movable":          {movable, []any{int64(1), int64(1), engine.Columns{one1}}},
	"moved":            {movedContents, []any{int64(1), engine.Columns{one1}}},
	"by pause":         {moveByPause, []any{engine.Columns{one1, one1, one1, one1, one1}}},
	"due":              {queue.DueOfSession, []any{int64(1), 10, int64(1), int64(0), int64(0)}},
	"retrying":         {queue.RetryingOfSession, []any{int64(1), int64(2), 10, int64(1)}},
	"expiring":         {queue.ExpiringOfSession, []any{int64(1), int64(1), 10}},
	"claim":            {queue.ClaimMessages, []any{int64(1), int64(1), engine.Columns{one1, one1, one1, one1, one1}}},
	"marked":           {queue.BlockedMessages, []any{engine.Columns{one1, one1, oneText}}},
	"former":           {queue.FormerMessages, []any{engine.Columns{one1, one1}}},
	"former names":     {alias.FormerNames, []any{engine.Columns{one1, one1, oneText}}},
	"close":            {queue.CloseResults, []any{int64(1), engine.Columns{one1, one1, one1, one1, oneText, oneText}}},
	"reopen":           {queue.ReopenResults, []any{engine.Columns{one1, one1, one1, one1, one1, one1, oneText}}},
	"cancel":           {queue.CancelMessages, []any{int64(1), engine.Columns{one1, one1}}},
	"fail":             {queue.FailMessages, []any{int64(1), engine.Columns{one1, one1, one1, oneText, oneText}}},
	"postpone":         {queue.PostponeMessages, []any{engine.Columns{one1, one1, one1, one1, oneText}}},
	"stop":             {stopCandidates, []any{int64(1), int64(1), "", engine.Columns{oneText}}},
	"reference":        {referenceCandidates, []any{int64(1), "booking"}},
	"phones":           {queue.PhoneCandidates, []any{int64(1), engine.Columns{oneText}}},
	"replies":          {`select y.id, ` + reply.ReplyBytes + reply.RepliesOf + ` order by y.id desc limit $3`, []any{int64(1), int64(9), 10, engine.Columns{oneText}}},
	"consents":         {`select c.id, c.words` + consentsOf + ` order by c.id limit $3`, []any{int64(1), int64(1), 10, engine.Columns{oneText}}},
	"replied":          {reply.ReplyCandidates, []any{engine.Columns{one1, one1, one1, one1, oneText}}},
	"names of runs":    {person.NamesOfRuns, []any{int64(1), engine.Columns{oneText, oneText}}},
	"who wrote":        {reply.WhoWrote, []any{engine.Columns{one1, one1, oneText, one1, one1}}},
	"all":              {openCandidates, []any{int64(1)}},
	"sequence":         {sequencePending, []any{int64(1), int64(1)}},
	"names":            {alias.OtherNames, []any{engine.Columns{one1, one1, oneText}}},
	"running":          {runningMessages, []any{engine.Columns{one1, one1, oneText, one1, oneText}}},
	"details":          {messageDetails, []any{int64(1), engine.Columns{one1}}},
	"contents":         {`select r.id, r.content, r.request` + runContents, []any{int64(1), engine.Columns{one1}}},
	"usage":            {queue.CountCalls, []any{engine.Columns{one1, one1, one1}}},
	"send permissions": {queue.SendPermissionsOf, []any{engine.Columns{one1}}},

	"outcomes":         {messageOutcomes, []any{int64(1), int64(1), int64(9), int64(1), int64(1), 10}},
	"resendable":       {readResendable, []any{engine.Columns{one1, one1}}},
	"blank clients":    {retention.BlankCandidates, []any{int64(9), int64(0), 10}},
	"blank runs":       {retention.BlankNext, []any{int64(1), int64(0), int64(9), 10}},
	"blank late":       {retention.LateNext, []any{int64(1), 10}},
	"ended":            {retention.RunsEnded, []any{engine.Columns{one1, one1}}},
	"blank sandbox":    {retention.SandboxMessagesOf, []any{engine.Columns{one1, one1}}},
	"members":          {retention.RunMembers, []any{engine.Columns{one1, one1}}},
	"lock resendable":  {lockResendable, []any{engine.Columns{one1, one1}}},
	"reschedule":       {rescheduleMessages, []any{int64(1), "x", "x", engine.Columns{one1, one1}}},
	"insert resent":    {insertResent, []any{int64(0), engine.Columns{one1, one1, one1, one1, one1, one1, one1}}},
	"move":             {moveMessages, []any{int64(1), engine.Columns{one1, one1}}},
	"list":             listed(puntuale.MessageFilter{}),
	"list a reference": listed(puntuale.MessageFilter{Reference: "booking"}),
	"list a phone":     listed(puntuale.MessageFilter{Phone: "+391", Origin: puntuale.OriginSingle}),
	"list a sequence":  listed(puntuale.MessageFilter{Sequence: 1, State: new(puntuale.Failed)}),
	"list a campaign":  listed(puntuale.MessageFilter{Campaign: 1, State: new(puntuale.Failed), WithoutRescheduled: true}),
	"uncertain once":   {queue.UncertainBefore, []any{engine.Columns{one1, one1}}},
	"emit":             {outbox.EmitFacts, []any{int64(1), engine.Columns{one1, one1, one1, oneText, oneText}}},
	"facts":            {event.FactsOf, []any{int64(1), int64(0), 10}},
	"deliver a range":  {event.DeliverRange, []any{int64(1), engine.Columns{one1, one1, one1, one1, one1}}},
	"expiries":         {account.DueExpiries, []any{int64(1), int64(0), 10}},
	"number targets":   {event.ActiveWebhooks, []any{engine.Columns{one1}}},
	"feed events":      {event.FeedEvents, []any{int64(1), int64(1), int64(9), 10, int64(2), 10}},
	"waiting hooks":    {event.WaitingWebhooks, nil},
	"due of webhook":   {event.DueOfWebhook, []any{int64(1), int64(9), int64(1), int64(1), int64(1), 10}},
	"due webhooks":     {event.DueWebhooks, []any{int64(9), engine.Columns{one1, one1}}},
	"attempts":         {event.LockAttempts, []any{engine.Columns{one1, one1, one1, one1}}},
	"deliveries":       {event.DeliveriesBefore, []any{int64(1), int64(9), int64(9), int64(9), int64(1), int64(1), int64(1), int64(-1), 10}},
	"replay":           {event.ReplayRange, []any{int64(1), int64(1), int64(1), int64(1), int64(9), 10}},
	"old deliveries":   {event.OldDeliveries, []any{int64(1), int64(9), 10}},
	"old events":       {event.OldEvents, []any{int64(1), int64(9), 10}},
	"answers":          {outbox.AnswersAbout, []any{engine.Columns{one1, one1}}},
	"list pending":     listed(puntuale.MessageFilter{State: new(puntuale.Pending), Sequence: 1}),
}

func listed(f puntuale.MessageFilter) Statement { return listStatement{}.explained(f) }

func (l listStatement) explained(f puntuale.MessageFilter) Statement {
	l.args = []any{int64(1), int64(1) << 50, 10}
	text := l.statement(f)
	return Statement{text, l.args}
}

// ForPostgres contains the statements that have a different text on PostgreSQL.
var ForPostgres = map[string]Statement{
	"due":              {queue.DueOfSessions, []any{int64(1), 10, engine.Columns{one1, one1, one1, one1}}},
	"retrying":         {queue.RetryingOfSessions, []any{int64(1), int64(2), 10, engine.Columns{one1}}},
	"list":             listedOnPostgres(puntuale.MessageFilter{}),
	"list a reference": listedOnPostgres(puntuale.MessageFilter{Reference: "booking"}),
	"list a phone":     listedOnPostgres(puntuale.MessageFilter{Phone: "+391", Origin: puntuale.OriginSingle}),
	"list a campaign":  listedOnPostgres(puntuale.MessageFilter{Campaign: 1}),
	"list a sequence":  listedOnPostgres(puntuale.MessageFilter{Sequence: 1, State: new(puntuale.Failed)}),
}

func listedOnPostgres(f puntuale.MessageFilter) Statement {
	return listStatement{postgres: true}.explained(f)
}

var (
	one1    = []int64{1}
	oneText = []string{"x"}
)

// Explain returns the database's plan for a statement. It uses a writer's connection, or a reader's connection if
// reads is true.
func (s *Store) Explain(ctx context.Context, st Statement, reads bool) (plan string, err error) {
	explain := func(ctx context.Context, a engine.Querier) error {
		plan = ""
		return a.Query(ctx, "explain "+map[bool]string{false: "query plan "}[s.Dialect.Postgres]+st.Text, st.Args, func(rows engine.Row) error {
			var line string
			var id, parent, unused int64
			into := []any{&line}
			if !s.Dialect.Postgres {
				into = []any{&id, &parent, &unused, &line}
			}
			err := rows.Scan(into...)
			plan += line + "\n"
			return err
		})
	}
	if reads {
		err = explain(ctx, s.CallReads)
		return plan, err
	}
	err = s.ClaimWriter.Do(ctx, engine.Single(s.Writes, explain), false)
	return plan, err
}

// ForeignTables returns the tables of the database that MovedTables and LeftTables do not list.
func ForeignTables(ctx context.Context, s *Store) ([]string, error) {
	_, foreign, err := archive.Catalogue(ctx, s.Dialect, s.CallReads)
	return foreign, err
}

// OnMachine gives a store the local clock c, as if the store ran on another machine. Call it right after the store was
// opened.
func OnMachine(s *Store, c clock.Clock) { s.LocalClock = c }

// ListWithoutEnd reads an endless list that belongs to no client.
func ListWithoutEnd(ctx context.Context, s *Store) error {
	_, err := engine.QueryAll(ctx, s.ListReads, `with recursive n(i) as (select 1 union all select i + 1 - i / 1000000 from n) select count(*) from n`, nil, engine.ScanOne[int64])
	return engine.PublicError(err)
}

// ListOwnWithoutEnd reads an endless list of one client.
func ListOwnWithoutEnd(ctx context.Context, s *Store, client puntuale.ClientID) error {
	_, err := engine.QueryAll(ctx, tenant{s: s, id: client}.lists(), `with recursive n(i) as (select 1 union all select i + 1 - i / 1000000 from n) select count(*) from n`, nil, engine.ScanOne[int64])
	return engine.PublicError(err)
}

// ListsRead returns how many lists are being read now.
func ListsRead(s *Store) int {
	now, _ := s.ListReads.InUse()
	return now
}

// Listing reports whether lists use all connections that they may use.
func Listing(s *Store) bool {
	now, highest := s.ListReads.InUse()
	return now == highest
}

// SetAside does the quarantine after a failover. since is the time of the last commit that the new database server has.
func SetAside(ctx context.Context, s *Store, since time.Time) error {
	var f *fleet.Failover
	if err := s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) (err error) {
		f, err = s.SameTimeline(ctx, a)
		return err
	}); err != nil {
		return err
	}
	f.Since = since
	return queue.SettleTimeline(ctx, s.Fleet, f)
}

// Occupy keeps the client's writer busy until the function release is called.
func Occupy(s *Store, client puntuale.ClientID) (release func()) {
	begun, free := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.TenantWriter(int64(client)).Do(context.Background(), engine.Single(s.Writes, func(context.Context, engine.Querier) error {
			close(begun)
			<-free
			return nil
		}), true)
	}()
	<-begun
	return func() { close(free) }
}

// Claiming keeps claims in the client's writer until the function end is called: one runs, and two wait.
func Claiming(s *Store, client puntuale.ClientID) (end func()) {
	k := engine.NewSingle("claim", engine.PrioritySend)
	k.Class = engine.ClassClaim
	return busy(s, client, k)
}

// Calling does the same as Claiming with calls that stop a sequence.
func Calling(s *Store, client puntuale.ClientID) (end func()) { return busy(s, client, s.kinds.stop) }

func busy(s *Store, client puntuale.ClientID, k *engine.Kind) (end func()) {
	ended := make(chan struct{})
	var tasks sync.WaitGroup
	var next func()
	next = func() {
		tasks.Go(func() {
			_ = s.TenantWriter(int64(client)).Do(context.Background(), engine.Single(k, func(context.Context, engine.Querier) error {
				select {
				case <-ended:
					return nil
				default:
				}
				before := Queued(s, client)
				next()
				for Queued(s, client) == before {
					runtime.Gosched()
				}
				return nil
			}), false)
		})
	}
	release := Occupy(s, client)
	for range 3 {
		next()
	}
	for Queued(s, client) < 3 {
		runtime.Gosched()
	}
	release()
	return func() {
		close(ended)
		tasks.Wait()
	}
}

// Queued returns how many tasks wait at the client's writer.
func Queued(s *Store, client puntuale.ClientID) int { return s.TenantWriter(int64(client)).Waiting() }

// Write runs the function do in a transaction of the client's writer. owner is the owner of the task.
func Write(ctx context.Context, s *Store, client puntuale.ClientID, owner int64, do func()) error {
	return WriteBytes(ctx, s, client, owner, 0, do)
}

// WriteBytes does the same as Write, for a task that writes this many bytes.
func WriteBytes(ctx context.Context, s *Store, client puntuale.ClientID, owner int64, bytes int, do func()) error {
	t := engine.Single(s.Writes, func(context.Context, engine.Querier) error {
		do()
		return nil
	}).ForOwner(owner)
	t.Bytes = bytes
	return s.TenantWriter(int64(client)).Do(ctx, t, false)
}

// Feeding runs the function do as if it were a chunk of a campaign.
func Feeding(s *Store, do func()) error {
	return s.FeedWriter.Do(context.Background(), engine.Single(s.kinds.feed, func(context.Context, engine.Querier) error {
		do()
		return nil
	}), false)
}

// Acting runs the function do as if it were a transaction in which rules act. do gets a function that runs one
// statement of the transaction.
func Acting(s *Store, do func(statement func() error) error) error {
	return s.FeedWriter.Do(context.Background(), engine.Single(s.kinds.act, func(ctx context.Context, a engine.Querier) error {
		return do(func() error {
			_, err := engine.QueryAll(ctx, a, `select id from client where id = 0`, nil, engine.ScanOne[int64])
			return err
		})
	}), false)
}

// OccupyReaders occupies all connections that calls read with, until the function release is called.
func OccupyReaders(s *Store) (release func()) {
	_, n := s.CallReads.InUse()
	for range n {
		if err := s.CallReads.Acquire(context.Background()); err != nil {
			panic(err)
		}
	}
	return func() {
		for range n {
			s.CallReads.Release()
		}
	}
}

// Unsure reports whether err is the error of a COMMIT whose result is in doubt.
func Unsure(err error) bool { return engine.Unsure(err) }

// Sizes of SQLite's log at which the log is copied into the database file.
const (
	CheckpointFrom = engine.CheckpointFrom
	CheckpointLast = engine.CheckpointLast
	CheckpointEnd  = engine.CheckpointEnd
)

// Do runs the function do in a transaction of the client's writer.
func Do(s *Store, client puntuale.ClientID, do func(ctx context.Context, a engine.Querier) error) error {
	return s.TenantWriter(int64(client)).Do(context.Background(), engine.Single(s.Writes, do), false)
}
