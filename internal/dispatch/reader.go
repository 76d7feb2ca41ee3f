package dispatch

import (
	"context"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/dispatch/lookahead"
)

// Limits of messages in memory, and of reads.
const (
	memory      = 32_768 // largest number of messages in memory, of all sessions
	maxQueue    = 16_384 // largest number of messages in memory, of one session
	minQueue    = 32     // this number of messages of one session may always be in memory, even if many sessions are busy
	sharedRows  = 128    // largest number of rows of each session, if several sessions are read together
	smallQueue  = 32     // a session with at most this many messages in memory is read together with others
	queuesAtOne = 256
	readsAtOne  = 4

	// takeoverRows is how many rows one read may scan for messages in retry, in sessions that this node just got. A
	// session with more than its part of these rows is read alone. If it has even more rows than takeoverRows, the
	// remaining messages have no recipient order.
	takeoverRows = 16_384
	minTakeover  = 128 // rows of each session that a read may always scan
)

// reader is the state of the reads.
type reader struct {
	running int
	urgent  fifo[*sessionQueue] // sessions with a wakeup, or with few messages left in memory
	polled  fifo[*sessionQueue] // sessions that the poll wants to read
	blocked int                 // number of sessions that could not send at the last poll
}

// requestRead requests a read of a session up to the horizon. A session with a backlog is read again only when it has
// few messages in memory.
func (s *scheduler) requestRead(q *sessionQueue, urgent bool) {
	if q.lost() || s.life.retiring || !urgent && q.backlogged(s.capacity()) {
		return
	}
	s.act(q, q.lookahead.Want(urgent, s.cfg.Clock.Now()))
}

// act executes the action that a lookahead chose. A session may be in both lists. In this case, the list that is served
// first starts the read.
func (s *scheduler) act(q *sessionQueue, a lookahead.Action) {
	switch a.Kind {
	case lookahead.List:
		s.reader.polled.push(q)
	case lookahead.ListUrgent:
		s.reader.urgent.push(q)
	case lookahead.SetTimer:
		s.timers.set(&q.readTimer, a.At)
	case lookahead.Nothing:
	}
}

// countKnown returns how many rows of a read are probably already in memory.
func (q *sessionQueue) countKnown() int { return len(q.messages) + q.unrecorded }

// backlogged reports whether so many messages are overdue that a new message could not leave before the next refill.
func (q *sessionQueue) backlogged(capacity int) bool {
	return q.lookahead.More() && q.ready.len() > capacity/4
}

// capacity returns how many messages of one session may be in memory.
func (s *scheduler) capacity() int {
	busy := 1
	if s.inMemory > memory/2 {
		busy = max(1, len(s.queues))
	}
	return min(max(memory/busy, minQueue), maxQueue)
}

// refill starts a read for a session that has few messages in memory while the database has more.
func (s *scheduler) refill(q *sessionQueue) {
	if s.life.retiring || q.lookahead.Wanted() || !q.canSend() {
		return
	}
	low := q.lookahead.More() && q.withoutCampaigns() < s.capacity()/4
	campaignsLow := q.lookahead.MoreOfCampaigns() && q.campaign.inMemory < s.maxCampaign()/4
	if low || campaignsLow {
		s.act(q, q.lookahead.Refill(low, campaignsLow, s.cfg.Clock.Now()))
	}
}

// read starts the requested reads.
func (s *scheduler) read(now time.Time) {
	for s.reader.urgent.len() > 0 && s.reader.running < readsAtOne {
		s.readNext(&s.reader.urgent, now)
	}
	for s.reader.polled.len() > 0 && s.reader.running < readsAtOne-1 { // the poll leaves one read unused, so that wakeups never wait for the poll
		s.readNext(&s.reader.polled, now)
	}
}

// readNext reads the first session of a list, together with other sessions if they are small.
func (s *scheduler) readNext(list *fifo[*sessionQueue], now time.Time) {
	var small []begunRead
	for list.len() > 0 && len(small) < queuesAtOne {
		q := list.peek()
		if q.lost() || !q.lookahead.Pending() {
			list.pop()
			continue
		}
		big := q.countKnown() > smallQueue || q.lookahead.More() || q.lookahead.Crowded() || !q.canSend()
		if big && len(small) > 0 {
			break
		}
		list.pop()
		begun := begunRead{q, q.lookahead.Begin(big, s.cfg.Horizon, now)}
		if big {
			s.startRead([]begunRead{begun}, true, now)
			return
		}
		small = append(small, begun)
	}
	if len(small) > 0 {
		s.startRead(small, false, now)
	}
}

// room returns how many new rows a read of the session may return. A row is new if it is not in memory yet.
func (s *scheduler) room(q *sessionQueue) int {
	if !q.canSend() {
		return min(max(memory/max(1, s.reader.blocked), 2*sharedRows), maxQueue)
	}
	return max(s.capacity()-q.withoutCampaigns(), sharedRows)
}

// readResult is the result of a read.
type readResult struct {
	queues        []*sessionQueue
	limit         int
	retrying      []puntuale.DueMessage // messages in retry, in sessions that this node just got
	crowded       []puntuale.SessionID  // sessions with more messages in retry than the read may return
	due           []puntuale.DueMessage
	campaigns     []puntuale.DueMessage // messages of campaign queues
	campaignLimit int
	behind        bool                  // true: the read also searched for messages that expire
	expiring      []puntuale.DueMessage // the messages that this search found
	took          time.Duration
	err           error
}

// begunRead is a session and the read that begins for it.
type begunRead struct {
	queue *sessionQueue
	read  lookahead.Read
}

// startRead starts a goroutine that reads messages of the sessions from the store. A big session is read alone, and its
// read continues at its cursor.
func (s *scheduler) startRead(begun []begunRead, big bool, now time.Time) {
	queues := make([]*sessionQueue, len(begun))
	from := make([]puntuale.QueueCursor, len(begun))
	var fresh []puntuale.SessionID
	horizon, limit := now, sharedRows
	for i, b := range begun {
		q, read := b.queue, b.read
		queues[i] = q
		if big {
			limit = s.room(q)
			if read.From == (puntuale.QueueCursor{}) {
				limit += q.countKnown()
			}
		}
		from[i] = read.From
		from[i].Session = q.session.ID
		horizon = latest(horizon, read.Until)
		if read.Takeover {
			fresh = append(fresh, q.session.ID)
		}
	}
	behind := big && s.looksBehind(queues[0], now)
	campaigns, campaignLimit := s.campaignCursors(queues)
	s.reader.running++
	s.life.wg.Go(func() {
		var r readResult
		r.err = puntuale.Recovered(func() error {
			r = s.readDue(from, fresh, horizon, limit, now)
			if r.campaignLimit = campaignLimit; len(campaigns) > 0 && r.err == nil {
				s.readCampaigns(&r, campaigns, horizon, now)
			}
			if r.behind = behind && r.err == nil; r.behind {
				s.readExpiring(&r, from[0].Session, now)
			}
			return r.err
		})
		r.queues, r.limit = queues, limit
		s.mailbox.post(func() { s.gotRead(r) })
	})
}

// readDue reads due messages from the store. For sessions that this node just got (fresh), it also reads messages in
// retry. Any goroutine may call it.
func (s *scheduler) readDue(from []puntuale.QueueCursor, fresh []puntuale.SessionID, horizon time.Time, limit int, now time.Time) (r readResult) {
	ctx, cancel := context.WithTimeout(s.life.ctx, callWait)
	defer cancel()
	if len(fresh) > 0 {
		// A message in retry is due again within retryReach. A message that was due more than orderWait ago holds back
		// no other messages any more.
		maximum := max(takeoverRows/len(fresh), minTakeover)
		if r.retrying, r.crowded, r.err = s.cfg.Queue.Retrying(ctx, fresh, now.Add(-orderWait), now.Add(retryReach), maximum); r.err != nil {
			return r
		}
	}
	r.due, r.err = s.cfg.Queue.Due(ctx, from, horizon, limit)
	r.took = s.cfg.Clock.Now().Sub(now)
	return r
}

// readCampaigns reads messages of campaign queues from the store. Any goroutine may call it.
func (s *scheduler) readCampaigns(r *readResult, from []puntuale.QueueCursor, horizon, now time.Time) {
	ctx, cancel := context.WithTimeout(s.life.ctx, callWait)
	defer cancel()
	r.campaigns, r.err = s.cfg.Queue.Due(ctx, from, horizon, r.campaignLimit)
	r.took = s.cfg.Clock.Now().Sub(now)
}

// behindRows bounds the rows of one search behind a read. The search looks for messages that expire; see
// [lookahead.BehindUntil].
const behindRows = 1024

func (s *scheduler) looksBehind(q *sessionQueue, now time.Time) bool {
	return !q.canSend() && q.lookahead.BehindDue(now)
}

// readExpiring reads from the store the messages that expire before the next search. Any goroutine may call it.
func (s *scheduler) readExpiring(r *readResult, session puntuale.SessionID, now time.Time) {
	ctx, cancel := context.WithTimeout(s.life.ctx, callWait)
	defer cancel()
	r.expiring, r.err = s.cfg.Queue.Expiring(ctx, session, lookahead.BehindUntil(now), behindRows)
	r.took = s.cfg.Clock.Now().Sub(now)
}

// gotExpiring adds expiring messages to memory, so that they are closed, and sets the time of the next search.
func (s *scheduler) gotExpiring(q *sessionQueue, expiring []puntuale.DueMessage, now time.Time) {
	q.lookahead.GotBehind(expiring, len(expiring) == behindRows, s.cfg.Poll, now)
	for i := range expiring {
		s.takeRow(q, &expiring[i], now)
	}
}

// retryReach is longer than the longest backoff, including the backoff's random part.
const retryReach = 15 * time.Minute

func (s *scheduler) gotRead(r readResult) {
	now := s.cfg.Clock.Now()
	s.reader.running--
	s.health.read(r.err == nil, now)
	if r.err != nil && s.life.ctx.Err() == nil {
		s.cfg.Logger.Warn("reading due messages failed", "error", r.err)
	}
	if r.err == nil {
		for i := range r.retrying {
			s.addTakeover(&r.retrying[i], now)
		}
	}
	count := make(map[puntuale.SessionID]int, len(r.queues))
	last, full := puntuale.QueueCursor{}, false
	for _, q := range r.queues {
		crowded := len(r.queues) > 1 && slices.Contains(r.crowded, q.session.ID)
		q.lookahead.ReadReturned(r.err != nil, crowded, now)
	}
	for i := range r.due {
		row := &r.due[i]
		if q := s.queues[row.Session]; q != nil && q.lookahead.Reading() && !q.lookahead.Crowded() {
			count[row.Session]++
			switch s.takeRow(q, row, now) {
			case rowLeftOut:
				q.lookahead.ReadFromStart()
			case rowNoRoom:
				q.lookahead.FoundMore()
				full = true
			}
			if !full {
				last = puntuale.QueueCursor{Next: row.Next, ID: row.ID}
			}
		}
	}
	s.gotCampaigns(&r)
	if q := r.queues[0]; r.behind && r.err == nil && s.queues[q.session.ID] == q {
		s.gotExpiring(q, r.expiring, now)
	}
	for _, q := range r.queues {
		s.act(q, q.lookahead.End(lookahead.Result{
			Failed: r.err != nil, Took: r.took, Poll: s.cfg.Poll,
			Alone: len(r.queues) == 1, Last: last, NoRoom: full,
			Cut:     count[q.session.ID] >= r.limit,
			CanSend: q.canSend(), Lost: q.lost(),
		}, now))
		if r.err == nil && !q.lost() {
			s.refill(q)
		}
	}
}

// addTakeover adds a retry barrier for a message that the session's former owner tried to send. Therefore, later
// messages to the message's recipient leave in their order.
func (s *scheduler) addTakeover(row *puntuale.DueMessage, now time.Time) {
	q := s.queues[row.Session]
	if q == nil || q.lookahead.TakeoverKnown() || row.Intent != 0 || !now.Before(row.IntentAt.Add(orderWait)) {
		return
	}
	since := row.IntentAt
	if since.After(now) {
		since = now // IntentAt is from another node's clock, or from before this clock was set back
	}
	q.recipient(recipientKeyOf(row)).addBarrier(row, since, row.Next, false)
}

// rowResult is what takeRow did with a row.
type rowResult int8

const (
	rowKnown   rowResult = iota // the message is in memory already, or it is closed
	rowLeftOut                  // the message must not be in memory yet
	rowNoRoom
)

// takeRow adds a row to memory, unless its message is already in memory, or must not be in memory yet.
func (s *scheduler) takeRow(q *sessionQueue, row *puntuale.DueMessage, now time.Time) rowResult {
	if q.messages[row.ID] != nil || s.attempts.has(row.ID) {
		return rowKnown
	}
	if q.lookahead.LeftMemory(row.ID) {
		return rowKnown // if the row is still open, another read finds it, because the dispatcher called ReadFromStart
	}
	m := &queuedMessage{row: *row, queue: q}
	m.timer.message = m
	if row.Intent > 0 {
		if !s.recover(m, now) {
			if m.stage == loading { // recover did nothing, because the next check of the message is not due yet
				q.lookahead.ExpireBy(row.Next)
				return rowLeftOut
			}
			return rowKnown
		}
	} else if m.expired(now) {
		s.addToMemory(m)
		s.expire(m)
		return rowKnown
	}
	if q.blocked() || q.tenant.stopped && !m.repeat() {
		q.lookahead.ExpireBy(row.ValidUntil)
		return rowLeftOut
	}
	if row.Intent == 0 && row.Purpose == puntuale.PurposeMarketing && now.Before(q.tenant.marketingFrom) {
		s.addToMemory(m)
		s.overBudget(m)
		return rowKnown
	}
	if n := len(q.messages); n >= 2*maxQueue || s.inMemory >= memory && n >= minQueue {
		return rowNoRoom
	}
	s.addToMemory(m)
	if !m.repeat() {
		q.recipient(recipientKeyOf(row)).add(m)
	}
	s.queueLoad(m, now)
	return rowKnown
}

// addToMemory puts a message into its session queue.
func (s *scheduler) addToMemory(m *queuedMessage) {
	m.queue.messages[m.row.ID] = m
	s.inMemory++
	if m.row.Campaign != 0 {
		m.queue.campaign.inMemory++
	}
}
