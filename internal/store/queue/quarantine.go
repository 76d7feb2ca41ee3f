package queue

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
	"puntuale/internal/store/notice"
	"puntuale/internal/store/outbox"
)

// After a failover that may have lost commits, the network may have received any message that was due. The intent and the
// outcome of such a message may be missing in this database. So the quarantine turns each such message into an attempt
// without an answer. The attempt has a token that belongs to no node. If the network recognises repeats, the message is
// repeated. Otherwise the message waits for a receipt until its deadline, like any attempt that a crash left behind.
//
// Some messages do not change: those that are due later, those that were accepted on the new timeline, and those that
// could not have left. A message could not have left if its client may not send, or if its number is in the blacklist.
// If the blacklist contains only the number's mark, the quarantine does not find the number. Then the claim of the
// repeat closes the message and gives its credit back.
//
// How long a message was overdue proves nothing, because a queue with a backlog may have sent its oldest message last.
// But credits limit how many messages a client can have sent. So each of these attempts takes one credit, in the order
// of due times. Messages without a credit stay open.
//
// Nodes that join do this work in chunks, in any order, and again after each interruption. The transaction that finds
// no more messages renews the record of the timeline. No node can join or claim before that.
type quarantine struct {
	s *fleet.Fleet
	fleet.Failover
	token int64
	now   time.Time
	count int
	done  bool // the quarantine has ended, perhaps by the work of another node
}

const (
	// ClockSlack is the largest expected difference between the clocks of servers and databases.
	ClockSlack = 5 * time.Second

	// ForgottenJump is added to counters. After that, they are greater than every number that the lost commits may have
	// used.
	ForgottenJump = 100_000

	// IDJump is how far identifiers are raised after a failover. idAhead is how far identifiers may be ahead of the
	// clock in normal operation.
	IDJump  = time.Hour
	idAhead = 10 * time.Second
)

// reasonFailover is the reason of quarantined messages: the database server changed, so the last records may be
// missing.
const reasonFailover puntuale.ReasonCode = "maybe.failover"

// SettleTimeline does the quarantine after a failover, and then renews the record of the timeline.
func SettleTimeline(ctx context.Context, s *fleet.Fleet, f *fleet.Failover) error {
	q := &quarantine{s: s, Failover: *f, now: s.Config.Clock.Now()}
	log := s.Config.Logger.With("timeline", f.To, "before", f.From, "since", f.Since)
	if f.Lossless {
		if err := s.OnFleet(ctx, q.finish); err != nil {
			return err
		}
		log.Warn("the database is another server's, with synchronous replication: nothing was lost")
		return nil
	}
	log.Error("the database is another server's, or was restored, and may have lost what it accepted last; " +
		"what was due is set aside before anything is sent")
	if f.Since.IsZero() {
		log.Warn("the server does not know when it took over, so whatever is due counts as accepted before")
	}
	if err := q.Run(ctx); err != nil {
		return err
	}
	log.LogAttrs(ctx, slog.LevelError, "messages that were due count as sent with an unknown outcome; calls answered "+
		"in the lost time may be forgotten", slog.Int("messages", q.count))
	return nil
}

func (q *quarantine) Run(ctx context.Context) error {
	var sessions []puntuale.SessionID
	if err := q.s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := engine.NextNumber(ctx, a, "node")
		if err != nil {
			return err
		}
		q.token = n<<32 | 1
		if err := q.pauseCalendars(ctx, a); err != nil {
			return err
		}
		sessions, err = engine.QueryAll(ctx, a, `select s.id from session s cross join lateral (
 select 1 from message m where m.session_id = s.id and `+BothQueues+` and m.state = 0 and m.next_at <= $1 limit 1) due order by s.id`, []any{q.due()}, engine.ScanOne[puntuale.SessionID])
		return err
	}); err != nil {
		return fmt.Errorf("find what was due: %w", err)
	}
	for _, id := range sessions {
		if err := q.session(ctx, id); err != nil {
			return fmt.Errorf("set aside what was due: %w", err)
		}
		if q.done {
			return nil
		}
	}
	return q.s.OnFleet(ctx, q.finish)
}

// pauseCalendars stops all calendars and replans, until a person starts them again. What they planned last may be forgotten, so they
// would plan it again.
func (q *quarantine) pauseCalendars(ctx context.Context, a engine.Querier) error {
	type started struct {
		client puntuale.ClientID
		id     puntuale.CalendarID
	}
	all, err := engine.QueryAll(ctx, a, `update calendar set started_at = 0 where started_at <> 0 returning client_id, id`, nil, func(r engine.Row, c *started) error { return r.Scan(&c.client, &c.id) })
	if err != nil {
		return fmt.Errorf("stop calendars: %w", err)
	}
	if _, err := a.Exec(ctx, `update replan set state = $1 where state = $2`, puntuale.ReplanPaused, puntuale.ReplanRunning); err != nil {
		return fmt.Errorf("pause replans: %w", err)
	}
	for _, c := range all {
		if err := notice.Add(ctx, a, puntuale.Notice{Client: c.client, Kind: puntuale.NoticeCalendar, Subject: int64(c.id), At: q.now,
			Detail: puntuale.NoticeDetail{Reason: puntuale.Because(puntuale.NoticeCalendarPaused).Stored()}}); err != nil {
			return fmt.Errorf("tell people of a stopped calendar: %w", err)
		}
	}
	return nil
}

// due returns the latest due time (in µs) of a message that may have been claimed.
func (q *quarantine) due() int64 { return engine.Micros(q.now.Add(ClockSlack)) }

// accepted returns the latest time (in µs) at which the old timeline may have accepted a message.
func (q *quarantine) accepted() int64 {
	if q.Since.IsZero() {
		return math.MaxInt64
	}
	return engine.Micros(q.Since.Add(ClockSlack))
}

// numbered returns the largest identifier that a message may have got on the old timeline. received_at would not be
// enough: for a resent message, it is the time of the first call. Identifiers grow with the clock. They may be ahead of
// the clock by the blocks that several writers took together. For an hour after a failover, they may also be ahead by
// [IDJump].
func (q *quarantine) numbered() int64 {
	if q.Since.IsZero() {
		return math.MaxInt64
	}
	latest := q.Since
	if leapt := q.Joined.Add(IDJump); leapt.After(latest) {
		latest = leapt
	}
	return FirstID(latest.Add(ClockSlack + idAhead))
}

// readCursor is the place in a session's queue where the next read begins.
type readCursor struct{ priority, next, id int64 }

func (q *quarantine) session(ctx context.Context, id puntuale.SessionID) error {
	for priority := range int64(2) {
		if err := q.queue(ctx, id, readCursor{priority: priority, next: -1}); err != nil || q.done {
			return err
		}
	}
	return nil
}

func (q *quarantine) queue(ctx context.Context, id puntuale.SessionID, from readCursor) error {
	for {
		var n, read int
		var last readCursor
		err := q.s.OnFleet(ctx, func(ctx context.Context, a engine.Querier) error {
			n = 0
			rows, err := q.candidates(ctx, a, id, from)
			if read = len(rows); err != nil || read == 0 {
				return err
			}
			last = readCursor{from.priority, rows[read-1].due, int64(rows[read-1].ID)}
			n, err = q.mark(ctx, a, rows)
			return err
		})
		if err != nil || read == 0 || q.done {
			return err
		}
		q.count += n
		q.s.Config.Meter.Quarantined(n)
		from = last
	}
}

// candidates reads the next chunk of a session's messages. If the quarantine has ended, it returns no messages.
func (q *quarantine) candidates(ctx context.Context, a engine.Querier, id puntuale.SessionID, from readCursor) ([]grantedRow, error) {
	if still, err := q.isOpen(ctx, a); err != nil || !still {
		return nil, err
	}
	return engine.QueryAll(ctx, a, `
select m.client_id, m.id, m.next_at from message m join run r on r.client_id = m.client_id and r.id = m.run_id
where m.session_id = $1 and m.priority = $8::smallint and m.state = 0 and m.next_at <= $2 and (m.next_at, m.id) > ($3::bigint, $4::bigint) and m.intent = 0
 and case when m.resent_from <> 0 then m.id <= $7 else r.received_at <= $5 end
 and not exists (select 1 from blacklist b where b.client_id = m.client_id and b.phone = m.phone)
order by m.next_at, m.id limit $6`, []any{id, q.due(), from.next, from.id, q.accepted(), engine.Chunk, q.numbered(), from.priority},
		func(rows engine.Row, g *grantedRow) error { return rows.Scan(&g.Client, &g.ID, &g.due) })
}

// isOpen locks the record of the timeline, and reports whether the quarantine still has to be done.
func (q *quarantine) isOpen(ctx context.Context, a engine.Querier) (bool, error) {
	var timeline int64
	if _, err := engine.QueryOne(ctx, a, `select timeline from cluster where one = 1 for update`, nil, &timeline); err != nil {
		return false, fmt.Errorf("read the timeline: %w", err)
	}
	q.done = timeline != q.From
	return !q.done, nil
}

// mark turns a chunk of one session's messages into attempts without an answer. The rows are sorted by due time. Locks:
// messages by (client, id), then clients.
func (q *quarantine) mark(ctx context.Context, a engine.Querier, rows []grantedRow) (int, error) {
	client := rows[0].Client
	known, _, err := sendPermissions(ctx, a, []puntuale.ClientID{client})
	if err != nil {
		return 0, err
	}
	permission := known[client]
	paid := permission.Credits != nil
	permission.Credits = nil
	if permission.WaitReason(q.Since) != "" {
		return 0, nil
	}
	if rows, err = stillOpen(ctx, a, rows); err != nil || len(rows) == 0 {
		return 0, err
	}
	if paid {
		taken, err := TakeCredits(ctx, a, []puntuale.ClientID{client}, []int64{int64(len(rows))}, q.now)
		if err != nil {
			return 0, err
		}
		if err := Enter(ctx, a, "reserve", q.now, []puntuale.ClientID{client}, []int64{-taken[0]}); err != nil {
			return 0, err
		}
		rows = rows[:taken[0]]
	}
	refs := engine.Column(rows, func(g *grantedRow) puntuale.MessageRef { return g.MessageRef })
	slices.SortFunc(refs, CompareRefs)
	uncertain, err := uncertainBefore(ctx, a, refs)
	if err != nil {
		return 0, err
	}
	// Attempt 0 means that no attempt is known. So a later claim of the message still checks the blacklist.
	if _, err := a.Exec(ctx, `update message set intent = $1::bigint, intent_at = $2::bigint, attempt = 0, repeats = 0,
 credit = $3::smallint, detail = $4::text from $u(c bigint, i bigint)
 where message.client_id = u.c and message.id = u.i and message.intent = 0`,
		q.token, engine.Micros(q.now), engine.Bit(paid), puntuale.Because(reasonFailover).Stored(), RefColumns(refs)); err != nil {
		return 0, fmt.Errorf("set messages aside: %w", err)
	}
	if err := writeEvents(ctx, a, q.now, engine.Column(refs, func(r *puntuale.MessageRef) event {
		return event{*r, "uncertain", puntuale.Because(reasonFailover)}
	})); err != nil {
		return 0, err
	}
	refs = slices.DeleteFunc(refs, func(r puntuale.MessageRef) bool { return uncertain[r] })
	return len(rows), outbox.Emit(ctx, a, q.now, engine.Column(refs, func(r *puntuale.MessageRef) outbox.Fact {
		return outbox.Message(*r, puntuale.EventMessageUncertain)
	}))
}

// stillOpen locks messages in the order of locks. It leaves out messages that are no longer open.
func stillOpen(ctx context.Context, a engine.Querier, rows []grantedRow) ([]grantedRow, error) {
	refs := engine.Column(rows, func(g *grantedRow) puntuale.MessageRef { return g.MessageRef })
	slices.SortFunc(refs, CompareRefs)
	open := make(map[puntuale.MessageRef]bool, len(refs))
	err := a.Query(ctx, `select message.client_id, message.id from $u(c bigint, i bigint)
 join message on message.client_id = u.c and message.id = u.i where message.intent = 0
 order by message.client_id, message.id for update of message`, []any{RefColumns(refs)}, func(r engine.Row) error {
		var ref puntuale.MessageRef
		err := r.Scan(&ref.Client, &ref.ID)
		open[ref] = true
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("lock messages: %w", err)
	}
	return slices.DeleteFunc(rows, func(g grantedRow) bool { return !open[g.MessageRef] }), nil
}

// finish renews the record of the timeline. It removes the nodes of the old timeline, so that other nodes can take
// their sessions immediately. It also raises counters, so that no number that may have been used is used again.
func (q *quarantine) finish(ctx context.Context, a engine.Querier) error {
	if still, err := q.isOpen(ctx, a); err != nil || !still {
		return err
	}
	for _, step := range []struct {
		text string
		args []any
	}{
		{`delete from node`, nil},
		{`update session set owner = 0 where owner <> 0`, nil},
		{`update counter set next = next + $1::bigint`, []any{int64(ForgottenJump)}},
		{engine.TakeBlock, []any{IDJump.Microseconds()}},
		{outbox.Leap, []any{IDJump.Microseconds()}},
		{`update cluster set timeline = $1::bigint, synchronous = ` + fleet.SynchronousNow + `, since = $clock where one = 1`, []any{q.To}},
	} {
		if _, err := a.Exec(ctx, step.text, step.args...); err != nil {
			return fmt.Errorf("renew the timeline: %w", err)
		}
	}
	if q.Lossless {
		return nil
	}
	if err := PauseCampaigns(ctx, a, puntuale.CampaignByFailover, q.now); err != nil {
		return err
	}
	var linked bool // whether this database contains the keys of linked numbers
	if _, err := engine.QueryOne(ctx, a, `select exists (select 1 from information_schema.tables where table_schema = current_schema() and table_name = 'whatsmeow_pre_keys')`,
		nil, &linked); err != nil || !linked {
		return err
	}
	return RenewNumbers(ctx, a)
}
