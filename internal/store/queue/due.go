package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/fleet"
	"puntuale/internal/store/link"
)

// DueColumns returns 0 as the campaign for a message outside the campaign queue, for example for a message that a
// person sent again.
const DueColumns = `m.client_id, m.id, m.session_id, m.run_id, m.step, m.phone, m.due_at, m.next_at, m.valid_until,
 m.intent, m.intent_at, m.attempt, m.repeats, m.generation, m.campaign_id * m.priority, m.purpose`

// dueRow scans DueColumns, one row after another. No other rows are read so often. So it scans into plain integers,
// which need no reflection.
type dueRow struct {
	client, id, session, run, step, due, next, validUntil, intent, at, attempt, repeats, generation, campaign, purpose int64
	phone                                                                                                              string
	into                                                                                                               []any
}

// NewDueRow returns a dueRow that scans the additional columns of a row into more.
func NewDueRow(more ...any) *dueRow {
	d := &dueRow{}
	d.into = append([]any{&d.client, &d.id, &d.session, &d.run, &d.step, &d.phone, &d.due, &d.next, &d.validUntil,
		&d.intent, &d.at, &d.attempt, &d.repeats, &d.generation, &d.campaign, &d.purpose}, more...)
	return d
}

func (d *dueRow) Scan(rows engine.Row, m *puntuale.DueMessage) error {
	if err := rows.Scan(d.into...); err != nil {
		return err
	}
	*m = puntuale.DueMessage{
		Client: puntuale.ClientID(d.client), ID: puntuale.MessageID(d.id), Session: puntuale.SessionID(d.session), Run: puntuale.RunID(d.run),
		Step: int(d.step), Phone: d.phone, Due: engine.Instant(d.due), Next: engine.Instant(d.next), ValidUntil: engine.Instant(d.validUntil),
		Intent: d.intent, IntentAt: engine.Instant(d.at), Attempt: int(d.attempt), Repeats: int(d.repeats), Generation: int(d.generation),
		Campaign: puntuale.CampaignID(d.campaign), Purpose: puntuale.Purpose(d.purpose),
	}
	return nil
}

// BothQueues lists both values of priority. With this list, a statement that reads both queues of a session can use
// ranges of the index.
const BothQueues = `m.priority in (0, 1)`

// HeldCampaign is true for a message m whose campaign may not send now.
const HeldCampaign = `exists (select 1 from campaign c where c.client_id = m.client_id and c.id = m.campaign_id and c.state between 4 and 6)`

// These statements read the open messages of queues in the order of the index, and stop at the limit. PostgreSQL reads
// all queues with one statement, in one round trip. SQLite has no lateral join, so each queue is read with its own
// statement. This costs little, because statements on SQLite need no round trips.
const (
	DueOfSessions = `
select ` + DueColumns + ` from $u(s bigint, k smallint, n bigint, i bigint) cross join lateral (
 select * from message m where m.session_id = u.s and m.priority = u.k and m.state = 0 and m.next_at <= $1 and (m.next_at, m.id) > (u.n, u.i)
 and (u.k = 0 or not ` + HeldCampaign + `)
 order by m.next_at, m.id limit $2) m`
	DueOfSession = `
select ` + DueColumns + ` from message m where m.session_id = $3 and m.priority = 0 and m.state = 0 and m.next_at between $4 and $1
 and (m.next_at > $4 or m.id > $5) order by m.next_at, m.id limit $2`
	CampaignsOfSession = `
select ` + DueColumns + ` from message m where m.session_id = $3 and m.priority = 1 and m.state = 0 and m.next_at between $4 and $1
 and (m.next_at > $4 or m.id > $5) and not ` + HeldCampaign + ` order by m.next_at, m.id limit $2`

	// A message in retry has a next_at after its attempt. If the attempt was after $1, next_at is also after $1. So the
	// condition next_at > $1, which uses the index, loses no such message.
	RetryingOfSessions = `
select ` + DueColumns + `, m.place from $u(s bigint) cross join lateral (
 select o.*, row_number() over (order by o.next_at, o.id) as place from message o
 where o.session_id = u.s and o.priority in (0, 1) and o.state = 0 and o.next_at > $1 and o.next_at <= $2 order by o.next_at, o.id limit $3) m
where m.intent = 0 and m.intent_at > $1 or m.place = $3`
	RetryingOfSession = `
select ` + DueColumns + `, m.place from (
 select o.*, row_number() over (order by o.next_at, o.id) as place from message o
 where o.session_id = $4 and o.priority in (0, 1) and o.state = 0 and o.next_at > $1 and o.next_at <= $2 order by o.next_at, o.id limit $3) m
where m.intent = 0 and m.intent_at > $1 or m.place = $3`

	ExpiringOfSession = `
select ` + DueColumns + ` from message m where m.session_id = $1 and ` + BothQueues + ` and m.state = 0 and m.next_at <= $2
 and m.valid_until <= $2 and m.intent = 0 and (m.priority = 0 or not ` + HeldCampaign + `) order by m.valid_until, m.id limit $3`
)

// Queue is the store's part for the dispatcher. It implements puntuale.Queue, and keeps the simulated
// network's ledger. Its methods are safe for concurrent use.
type Queue struct {
	*engine.DB
	Links *link.Links

	claim, record, settle, receive, receipt *engine.Kind
}

// New returns the Queue of a database.
func New(db *engine.DB) *Queue {
	// Tasks of these kinds may run twice. Outcomes and settlements compare the intent that the caller saw, and a
	// repeated receipt changes nothing.
	repeatable := func(k *engine.Kind) *engine.Kind {
		k.Check = engine.RunAgain
		return k
	}
	s := &Queue{
		DB: db, Links: link.New(db), claim: newClaimKind(), record: repeatable(engine.NewSingle("record", engine.PrioritySend)), settle: repeatable(engine.NewSingle("settle", engine.PrioritySend)),
		receive: newReceiveKind(), receipt: repeatable(engine.NewSingle("evidence", engine.PriorityCall)),
	}
	s.receipt.Background = true // calls slow campaigns down, but receipts must not: networks may send receipts as fast as messages leave
	return s
}

// Due returns, for each cursor, at most limit open messages of the cursor's queue, sorted by (next, id). Their Next
// is not later than the argument horizon. The result includes uncertain messages that the dispatcher must look at
// again.
func (s *Queue) Due(ctx context.Context, from []puntuale.QueueCursor, horizon time.Time, limit int) ([]puntuale.DueMessage, error) {
	if len(from) == 0 || limit <= 0 {
		return nil, nil
	}
	var all []puntuale.DueMessage
	var err error
	if s.Dialect.Postgres {
		all, err = engine.QueryAll(ctx, s.DispatchReads, DueOfSessions, []any{engine.Micros(horizon), limit, engine.Columns{
			engine.Column(from, func(p *puntuale.QueueCursor) int64 { return int64(p.Session) }),
			engine.Column(from, func(p *puntuale.QueueCursor) int64 { return engine.Bit(p.Campaign) }),
			engine.Column(from, func(p *puntuale.QueueCursor) int64 { return engine.Micros(p.Next) }),
			engine.Column(from, func(p *puntuale.QueueCursor) int64 { return int64(p.ID) }),
		}}, NewDueRow().Scan)
	} else {
		for _, p := range from {
			var some []puntuale.DueMessage
			text := DueOfSession
			if p.Campaign {
				text = CampaignsOfSession
			}
			if some, err = engine.QueryAll(ctx, s.DispatchReads, text, []any{engine.Micros(horizon), limit, p.Session, engine.Micros(p.Next), p.ID}, NewDueRow().Scan); err != nil {
				break
			}
			all = append(all, some...)
		}
	}
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read due messages: %w", err))
	}
	slices.SortFunc(all, compareDue)
	return all, nil
}

// Retrying returns the sessions' open messages that are in retry. Their last attempt began after the argument
// since, and their Next is not later than the argument end. A new owner of the sessions needs these messages to
// keep the order of messages to each recipient. For each session, Retrying reads at most maximum open messages,
// with or without an attempt. The result crowded contains the sessions in which it read maximum messages, because
// these sessions may have more.
func (s *Queue) Retrying(ctx context.Context, sessions []puntuale.SessionID, since, end time.Time, limit int) (
	tried []puntuale.DueMessage, crowded []puntuale.SessionID, err error,
) {
	if len(sessions) == 0 || limit <= 0 {
		return nil, nil, nil
	}
	var place int
	due := NewDueRow(&place)
	keep := func(rows engine.Row) error {
		var m puntuale.DueMessage
		if err := due.Scan(rows, &m); err != nil {
			return err
		}
		if place == limit {
			crowded = append(crowded, m.Session)
		}
		if m.Intent == 0 && m.IntentAt.After(since) {
			tried = append(tried, m)
		}
		return nil
	}
	if s.Dialect.Postgres {
		err = s.DispatchReads.Query(ctx, RetryingOfSessions, []any{engine.Micros(since), engine.Micros(end), limit, fleet.SessionColumn(sessions)}, keep)
	} else {
		for _, id := range sessions {
			if err = s.DispatchReads.Query(ctx, RetryingOfSession, []any{engine.Micros(since), engine.Micros(end), limit, id}, keep); err != nil {
				break
			}
		}
	}
	if err != nil {
		return nil, nil, engine.PublicError(fmt.Errorf("read messages in retry: %w", err))
	}
	slices.SortFunc(tried, compareDue)
	return tried, crowded, nil
}

// Expiring returns at most limit messages of a session, sorted by deadline. They are open and due, have no intent,
// and their deadline is not later than the argument end. If a session cannot send, the dispatcher closes these
// messages, even if it has not read them from the queue. Expiring reads all due messages of the session, so do not
// call it every second. Expiring leaves out messages that a campaign holds back.
func (s *Queue) Expiring(ctx context.Context, session puntuale.SessionID, end time.Time, limit int) ([]puntuale.DueMessage, error) {
	all, err := engine.QueryAll(ctx, s.DispatchReads, ExpiringOfSession, []any{session, engine.Micros(end), limit}, NewDueRow().Scan)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read expiring messages: %w", err))
	}
	return all, nil
}

// compareDue sorts messages by next_at, then by id. Messages in campaign queues come last.
func compareDue(a, b puntuale.DueMessage) int {
	return cmp.Or(cmp.Compare(engine.Bit(a.Campaign != 0), engine.Bit(b.Campaign != 0)), a.Next.Compare(b.Next), cmp.Compare(a.ID, b.ID))
}

// Contents reads steps of runs. It leaves out steps that do not exist, or whose content was removed. If the client or the
// sequence wants it, the addresses in the texts are tracked links, which are on disk when Contents returns.
//
// Contents decodes one run at a time, and keeps only the requested steps. The steps of a run take up to 1 MiB, and
// each step takes a few KiB. Decoding all steps of a run takes no longer than finding the beginning of one step.
func (s *Queue) Contents(ctx context.Context, steps []puntuale.StepRef) (map[puntuale.StepRef]puntuale.StepContent, error) {
	contents := make(map[puntuale.StepRef]puntuale.StepContent, len(steps))
	if len(steps) == 0 {
		return contents, nil
	}
	placesOf := map[puntuale.RunRef][]int{}
	var runs []puntuale.RunRef
	for _, ref := range steps {
		if placesOf[ref.RunRef] == nil {
			runs = append(runs, ref.RunRef)
		}
		placesOf[ref.RunRef] = append(placesOf[ref.RunRef], ref.Step)
	}
	var client, id int64
	var zone string
	var text []byte
	target := []any{&client, &id, &zone, &text}
	err := s.DispatchReads.Query(ctx, `
select r.client_id, r.id, r.zone, r.content from $u(c bigint, i bigint) join run r on r.client_id = u.c and r.id = u.i`,
		[]any{engine.Columns{
			engine.Column(runs, func(r *puntuale.RunRef) int64 { return int64(r.Client) }),
			engine.Column(runs, func(r *puntuale.RunRef) int64 { return int64(r.ID) }),
		}}, func(rows engine.Row) error {
			if err := rows.Scan(target...); err != nil {
				return err
			}
			var frozen []puntuale.FrozenStep
			if json.Unmarshal(text, &frozen) != nil {
				return nil //nolint:nilerr // these steps count as missing, so that only this run's messages fail
			}
			ref := puntuale.RunRef{Client: puntuale.ClientID(client), ID: puntuale.RunID(id)}
			for _, i := range placesOf[ref] {
				if i >= 0 && i < len(frozen) {
					contents[puntuale.StepRef{RunRef: ref, Step: i}] = puntuale.StepContent{Zone: zone, Content: frozen[i].Content, Window: frozen[i].Window}
				}
			}
			return nil
		})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read contents: %w", err))
	}
	return contents, s.Links.Replace(ctx, contents)
}

// SendPermissions returns for each client whether its messages may leave.
func (s *Queue) SendPermissions(ctx context.Context, clients []puntuale.ClientID) (map[puntuale.ClientID]puntuale.SendPermission, error) {
	all, _, err := sendPermissions(ctx, s.DispatchReads, clients)
	return all, engine.PublicError(err)
}

// SendPermissionsOf reads the data for the send permissions of clients.
const SendPermissionsOf = `
select k.id, k.deleted_at, k.suspended, k.held_at, k.expires_at, k.credits, k.erased, k.marketing_from, ` + erasures + ` from $u(c bigint) join client k on k.id = u.c`

// erasures counts the erasures that replaced a number by its mark, in the blacklist or in the ledger of consent. The
// database evaluates this expression once in each statement.
const erasures = `coalesce((select n.next from counter n where n.noun = 'erasure'), 0)`

// sendPermissions returns the send permissions of clients. It leaves out clients that do not exist. erased is the
// number of erasures when the permissions were read.
func sendPermissions(ctx context.Context, a engine.Querier, clients []puntuale.ClientID) (all map[puntuale.ClientID]puntuale.SendPermission, erased int64, err error) {
	all = make(map[puntuale.ClientID]puntuale.SendPermission, len(clients))
	if len(clients) == 0 {
		return all, 0, nil
	}
	err = a.Query(ctx, SendPermissionsOf, []any{engine.Columns{engine.Column(clients, func(c *puntuale.ClientID) int64 { return int64(*c) })}},
		func(rows engine.Row) error {
			var id puntuale.ClientID
			var deleted, held int64
			var st puntuale.SendPermission
			if err := rows.Scan(&id, &deleted, engine.ScanBool(&st.Suspended), &held, engine.ScanTime(&st.ExpiresAt), &st.Credits, engine.ScanBool(&st.Erased), engine.ScanTime(&st.MarketingFrom), &erased); err != nil {
				return err
			}
			st.Deleted, st.Held = deleted != 0, held != 0
			all[id] = st
			return nil
		})
	if err != nil {
		return nil, 0, fmt.Errorf("read send permissions: %w", err)
	}
	return all, erased, nil
}
