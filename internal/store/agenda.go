package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/account"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// Limits for reads of the agenda. chatWithin is how many entries of the simulated network's ledger are searched for one
// session. openWithin is how many open messages are read to calculate a version.
const (
	chatWithin = "2000"
	openWithin = "20000"
	maxEvents  = "200"
)

// agendaDetails ends a statement: it reads the details of the messages whose ids are in the with-clause f.
const agendaDetails = ` select ` + detailColumns + ` from f join message m on m.client_id = $1 and m.id = f.i
 join run r on r.client_id = m.client_id and r.id = m.run_id` + detailReceipts

const endedIDs = `select m.id as i, m.done_at as d, m.outcome as o from message m
 where m.client_id = $1 and m.outcome <> 0 and m.done_at >= $2 and m.done_at < $3 order by m.done_at desc, m.id desc limit `

const (
	endedMessages  = `with f as (` + endedIDs + `$4)` + agendaDetails + ` order by f.d desc, m.id desc`
	failedMessages = `with f as (select x.i, x.d from (` + endedIDs + `$5) as x where x.o = 2 order by x.d desc, x.i desc limit $4)` +
		agendaDetails + ` order by f.d desc, m.id desc`
)

// Ended lists at most limit messages, newest first. Their outcome was recorded between the arguments from
// (inclusive) and to (exclusive). If failedOf is larger than 0, Ended lists only messages that did not leave, and
// searches only the latest failedOf outcomes.
func (t tenant) Ended(ctx context.Context, from, to time.Time, failedOf, limit int) ([]puntuale.MessageDetail, error) {
	if failedOf > 0 {
		return t.agenda(ctx, failedMessages, from, to, limit, failedOf)
	}
	return t.agenda(ctx, endedMessages, from, to, limit)
}

// openIn uses only columns of the index of open messages. So the database reads only the index, even on a day with many
// messages. The index needs no column for the client, because a session belongs to one client.
const openIn = ` from session s cross join message m where s.client_id = $1 and m.session_id = s.id and ` + queue.BothQueues + ` and m.state = 0`

const upcomingMessages = `with f as (select m.id as i, m.next_at as n` + openIn + ` and m.next_at >= $2 and m.next_at < $3 order by m.next_at, m.id limit $4)` +
	agendaDetails + ` order by f.n, m.id`

// Upcoming lists at most limit PENDING messages, soonest first. Their Next is between the arguments from
// (inclusive) and to (exclusive).
func (t tenant) Upcoming(ctx context.Context, from, to time.Time, limit int) ([]puntuale.MessageDetail, error) {
	return t.agenda(ctx, upcomingMessages, from, to, limit)
}

func (t tenant) agenda(ctx context.Context, text string, from, to time.Time, limit int, more ...any) ([]puntuale.MessageDetail, error) {
	var d details
	if err := t.lists().Query(ctx, text, append([]any{t.id, engine.Micros(from), engine.Micros(to), limit}, more...), d.scan); err != nil {
		return nil, engine.PublicError(fmt.Errorf("list messages of a day: %w", err))
	}
	n, bytes := d.fit()
	if err := engine.TakeMemory(ctx, n, bytes); err != nil {
		return nil, err
	}
	all := d.all[:n]
	return all, t.fill(ctx, all)
}

const upcomingCounts = `select m.next_at / $4 as q, count(*)` + openIn + ` and m.next_at >= $2 and m.next_at < $3 group by 1 order by 1`

// UpcomingCounts counts the PENDING messages whose Next is between the arguments from (inclusive) and to
// (exclusive). It counts them for each quarter of an hour, soonest first. It leaves out quarters without messages.
func (t tenant) UpcomingCounts(ctx context.Context, from, to time.Time) ([]puntuale.QuarterCount, error) {
	all, err := engine.QueryAll(ctx, t.lists(), upcomingCounts, []any{t.id, engine.Micros(from), engine.Micros(to), account.Quarter}, func(rows engine.Row, c *puntuale.QuarterCount) error {
		var at int64
		err := rows.Scan(&at, &c.N)
		c.Begin = engine.Instant(at * account.Quarter)
		return err
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("count pending messages: %w", err))
	}
	return all, nil
}

// CountMessages counts the messages that match the filter. It stops counting when n reaches maximum. The result all
// reports whether n is the full count.
func (t tenant) CountMessages(ctx context.Context, f puntuale.MessageFilter, limit int) (int, bool, error) {
	if f.State != nil && *f.State == puntuale.Pending && f == (puntuale.MessageFilter{State: f.State, Look: f.Look, WithoutRescheduled: f.WithoutRescheduled}) {
		n, err := t.waiting(ctx, limit+1)
		if err != nil {
			return 0, false, engine.PublicError(fmt.Errorf("count waiting messages: %w", err))
		}
		return min(n, limit), n <= limit, nil
	}
	last, floor, err := t.span(ctx, f, puntuale.MaxID+1)
	if err != nil {
		return 0, false, engine.PublicError(fmt.Errorf("bound a count of messages: %w", err))
	}
	others, err := t.othersOf(ctx, f)
	if err != nil {
		return 0, false, err
	}
	if f.Text != "" {
		found, reached, err := t.searched(ctx, f, last, floor, limit+1, others)
		if err != nil {
			return 0, false, engine.PublicError(fmt.Errorf("count messages: %w", err))
		}
		return min(len(found), limit), len(found) <= limit && reached == 0, nil
	}
	l := t.listing(last, floor, limit+1, others...)
	text := `select count(*) from (` + l.found(f) + `) as found`
	var n int
	if err := t.lists().Query(ctx, text, l.args, func(rows engine.Row) error { return rows.Scan(&n) }); err != nil {
		return 0, false, engine.PublicError(fmt.Errorf("count messages: %w", err))
	}
	return min(n, limit), n <= limit && floor == 0, nil
}

const messageEvents = `select at, kind, detail from event where client_id = $1 and message_id = $2 order by id limit ` + maxEvents

// MessageEvents lists at most 200 unusual events of a message, oldest first.
func (t tenant) MessageEvents(ctx context.Context, id puntuale.MessageID) ([]puntuale.MessageEvent, error) {
	all, err := engine.QueryAll(ctx, t.s.CallReads, messageEvents, []any{t.id, id}, func(rows engine.Row, e *puntuale.MessageEvent) error {
		return rows.Scan(engine.ScanTime(&e.At), &e.Kind, engine.ScanReason(&e.Detail))
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list a message's events: %w", err))
	}
	return all, nil
}

// resentAs sorts by a sum, so that SQLite does not read all that the client's bookings got, in the order of the messages.
const resentAs = `select x.i from (select m.id as i from message m where m.client_id = $1 and m.run_id = $2 and m.resent_from <> 0 and m.resent_from = $3
 union all select s.message_id from booking_step s where s.client_id = $1 and s.previous_id = $3 and s.previous_id <> 0) x group by x.i order by x.i + 0 limit 100`

// ResentAs lists the messages that replaced a message of the run, oldest first: somebody sent it again, or its booking
// changed.
func (t tenant) ResentAs(ctx context.Context, run puntuale.RunID, id puntuale.MessageID) ([]puntuale.MessageID, error) {
	all, err := engine.QueryAll(ctx, t.s.CallReads, resentAs, []any{t.id, run, id}, func(rows engine.Row, id *puntuale.MessageID) error {
		return rows.Scan(id)
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list re-sent messages: %w", err))
	}
	return all, nil
}

// clientVersion reads the parts of a version that depend on messages. These are the latest call, the latest outcome,
// the latest receipts, and the open messages.
const clientVersion = `select
 (select coalesce(max(r.id), 0) from run r where r.client_id = $1),
 (select coalesce(max(m.done_at), 0) from message m where m.client_id = $1 and m.outcome <> 0),
 (select coalesce(sum((x.d + x.e) % 1000003), 0) from (select g.delivered_at as d, g.read_at as e from receipt g where g.client_id = $1
  order by g.message_id desc limit 200) as x),
 y.n, y.t from (select count(*) as n, coalesce(sum(o.n % 1000003), 0) as t from (select m.next_at as n` + openIn + ` limit ` + openWithin + `) as o) as y`

// noticesVersion reads the client's latest notice that is already due.
const noticesVersion = `select n.id, n.due_at from notice n where n.client_id = $1 and n.due_at <= $2 order by n.client_id desc, n.partner_id desc, n.due_at desc, n.id desc limit 1`

// repliesVersion reads the latest reply, and the number of unread replies in the 200 latest unread conversations.
const repliesVersion = `select (select coalesce(max(y.id), 0) from reply y where y.client_id = $1),
 (select coalesce(sum(x.unread), 0) from (select g.unread from conversation g where g.client_id = $1 and g.unread > 0 order by g.last_id desc limit 200) as x)`

// bookingsVersion reads the latest changes of bookings.
const bookingsVersion = `select coalesce(max(x.changed_at), 0), coalesce(sum((x.id % 1000003) * (x.revision % 1000003) % 1000003), 0) from
 (select b.id, b.revision, b.changed_at from booking b where b.client_id = $1 order by b.changed_at desc limit 20) as x`

// Version returns a text that changes when the lists of messages or of bookings change. A page may call it every second or two,
// because it is cheap. It may miss changes of messages that are neither new nor due.
func (t tenant) Version(ctx context.Context) (string, error) {
	var run, done, receipts, open, sum int64
	err := t.lists().Query(ctx, clientVersion, []any{t.id}, func(rows engine.Row) error { return rows.Scan(&run, &done, &receipts, &open, &sum) })
	if err != nil {
		return "", engine.PublicError(fmt.Errorf("look for changes of messages: %w", err))
	}
	var reply, unread int64
	if _, err := engine.QueryOne(ctx, t.lists(), repliesVersion, []any{t.id}, &reply, &unread); err != nil {
		return "", engine.PublicError(fmt.Errorf("look for changes of replies: %w", err))
	}
	var notice, due int64
	if _, err := engine.QueryOne(ctx, t.lists(), noticesVersion, []any{t.id, engine.Micros(t.s.Config.Clock.Now())}, &notice, &due); err != nil {
		return "", engine.PublicError(fmt.Errorf("look for new notices: %w", err))
	}
	var changed, bookings int64
	if _, err := engine.QueryOne(ctx, t.lists(), bookingsVersion, []any{t.id}, &changed, &bookings); err != nil {
		return "", engine.PublicError(fmt.Errorf("look for changes of bookings: %w", err))
	}
	return fmt.Sprintf("%x.%x.%x.%x.%x.%x.%x.%x.%x.%x.%x", run, done, receipts, open, sum, reply, unread, notice, due, changed, bookings), nil
}

const sandboxChat = `select g.seq, g.client_id, g.message_id, g.connector_id, g.phone, g.content, g.received_at, g.copies
 from (select * from sandbox_message where client_id = $1 order by seq desc limit ` + chatWithin + `) as g
 join message m on m.client_id = g.client_id and m.id = g.message_id
 where m.session_id = $2 and ($3 = '' or g.phone = $3) order by g.seq desc limit $4`

// SandboxChat lists at most limit messages that the simulated network received from a session, newest first. It
// reads only the client's last 2,000 messages. phone "" means all recipients.
func (t tenant) SandboxChat(ctx context.Context, session puntuale.SessionID, phone string, limit int) ([]puntuale.SandboxMessage, error) {
	all, err := engine.QueryAll(ctx, t.lists(), sandboxChat, []any{t.id, session, phone, limit}, scanReceived)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list what the sandbox received of a session: %w", err))
	}
	return all, nil
}

func scanReceived(rows engine.Row, m *puntuale.SandboxMessage) error {
	var content string
	if err := rows.Scan(&m.Seq, &m.Client, &m.Message, &m.ConnectorID, &m.Phone, &content, engine.ScanTime(&m.Received), &m.Copies); err != nil {
		return err
	}
	if m.Blanked = content == ""; m.Blanked {
		return nil
	}
	return json.Unmarshal([]byte(content), &m.Content)
}

// SandboxMessages lists messages, oldest first.
func (t tenant) SandboxMessages(ctx context.Context, p puntuale.Page) ([]puntuale.SandboxMessage, string, error) {
	last, limit, err := engine.ReadCursor(p, "sandbox")
	if err != nil {
		return nil, "", err
	}
	page, err := engine.ReadPageSpan(ctx, t.lists(), "sandbox", `select seq, octet_length(content)
 from sandbox_message where client_id = $1 and seq > $2 order by seq limit $3`, []any{t.id, last, limit + 1}, limit)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list what the sandbox received: %w", err))
	}
	all, err := engine.QueryAll(ctx, t.lists(), `select seq, client_id, message_id, connector_id, phone, content, received_at, copies
 from sandbox_message where client_id = $1 and seq > $2 and seq <= $3 order by seq`, []any{t.id, last, page.Last}, scanReceived)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list what the sandbox received: %w", err))
	}
	return all, page.Next, nil
}
