package dispatch

import (
	"context"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/dispatch/lookahead"
)

// Sizes of what is read into memory.
const (
	memory     = 32_768 // messages in memory, of all lanes
	laneMost   = 16_384 // of one lane
	laneLeast  = 32     // of one lane, however many are busy
	glanceRows = 128    // of each lane, when many are read at once
	smallLane  = 32     // a lane with no more in memory is read together with others
	lanesAtOne = 256
	readsAtOne = 4

	// What a read may look through, to learn what is in retry of lanes newly owned. One that holds more than its part is
	// read alone; if it then still holds more, the order of what is in retry behind that is not kept.
	learnRows  = 16_384
	learnLeast = 128 // of each lane
)

// reader is what the scheduler knows of its reads under way.
type reader struct {
	running int
	urgent  fifo[*lane] // hinted, or running low
	rest    fifo[*lane] // for the poll
	blocked int         // lanes that could not send at the last poll
}

// want has a lane read as far as the horizon. One with a backlog is read again as it runs low.
func (s *scheduler) want(l *lane, urgent bool) {
	if l.gone || s.retiring || !urgent && l.backlogged(s.capacity()) {
		return
	}
	s.act(l, l.lookahead.Want(urgent, s.cfg.Clock.Now()))
}

// act does what the lane's lookahead decided. A lane may be in both lists: the first one that comes to it has it read.
func (s *scheduler) act(l *lane, a lookahead.Action) {
	switch a.Task {
	case lookahead.List:
		s.reader.rest.push(l)
	case lookahead.ListUrgent:
		s.reader.urgent.push(l)
	case lookahead.SetTimer:
		s.alarms.set(&l.readAlarm, a.At)
	case lookahead.Nothing:
	}
}

// known is how many of the lane's rows a read returns that are in memory already.
func (l *lane) known() int { return len(l.entries) + l.open }

// backlogged lanes have so much overdue that nothing new could leave before the next refill.
func (l *lane) backlogged(capacity int) bool { return l.lookahead.More() && l.ready.len() > capacity/4 }

// capacity is how many messages a lane may hold.
func (s *scheduler) capacity() int {
	busy := 1
	if s.held > memory/2 {
		busy = max(1, len(s.lanes))
	}
	return min(max(memory/busy, laneLeast), laneMost)
}

// refill reads a lane at once when it runs low while the database holds more.
func (s *scheduler) refill(l *lane) {
	if s.retiring || l.lookahead.Wanted() || l.blocked() || l.share.held {
		return
	}
	low := l.lookahead.More() && l.first() < s.capacity()/4
	campaignsLow := l.lookahead.MoreOfCampaigns() && l.second.held < s.secondRoom()/4
	if low || campaignsLow {
		s.act(l, l.lookahead.Refill(low, campaignsLow, s.cfg.Clock.Now()))
	}
}

// read starts reads of the lanes that want one.
func (s *scheduler) read(now time.Time) {
	for s.reader.urgent.len() > 0 && s.reader.running < readsAtOne {
		s.readNext(&s.reader.urgent, now)
	}
	for s.reader.rest.len() > 0 && s.reader.running < readsAtOne-1 { // hints never wait for the poll
		s.readNext(&s.reader.rest, now)
	}
}

// readNext reads the first lane of a list, together with others if they are small.
func (s *scheduler) readNext(list *fifo[*lane], now time.Time) {
	var small []started
	for list.len() > 0 && len(small) < lanesAtOne {
		l := list.peek()
		if l.gone || !l.lookahead.Pending() {
			list.pop()
			continue
		}
		big := l.known() > smallLane || l.lookahead.More() || l.lookahead.Crowded() || l.blocked() || l.share.held
		if big && len(small) > 0 {
			break
		}
		list.pop()
		begun := started{l, l.lookahead.Begin(big, s.cfg.Horizon, now)}
		if big {
			s.startRead([]started{begun}, true, now)
			return
		}
		small = append(small, begun)
	}
	if len(small) > 0 {
		s.startRead(small, false, now)
	}
}

// room is how many rows not yet known a read of the lane may bring.
func (s *scheduler) room(l *lane) int {
	if l.blocked() || l.share.held {
		return min(max(memory/max(1, s.reader.blocked), 2*glanceRows), laneMost)
	}
	return max(s.capacity()-l.first(), glanceRows)
}

// rows is what a read found.
type rows struct {
	lanes       []*lane
	limit       int
	retrying    []puntuale.DueMessage // of lanes newly owned
	crowded     []puntuale.SessionID  // of which that is not all
	due         []puntuale.DueMessage
	second      []puntuale.DueMessage // of second queues
	secondLimit int
	deep        bool                  // it was asked for what expires, besides
	ending      []puntuale.DueMessage // and this does
	took        time.Duration
	err         error
}

// started is a lane whose read begins.
type started struct {
	lane *lane
	read lookahead.Read
}

// startRead asks for what lanes want. A big one is read alone: its read goes on where the last one ended.
func (s *scheduler) startRead(begun []started, big bool, now time.Time) {
	lanes := make([]*lane, len(begun))
	from := make([]puntuale.Place, len(begun))
	var fresh []puntuale.SessionID
	horizon, limit := now, glanceRows
	for i, b := range begun {
		l, read := b.lane, b.read
		lanes[i] = l
		if big {
			limit = s.room(l)
			if read.From == (puntuale.Place{}) {
				limit += l.known()
			}
		}
		from[i] = read.From
		from[i].Session = l.session.ID
		horizon = later(horizon, read.Until)
		if read.Takeover {
			fresh = append(fresh, l.session.ID)
		}
	}
	deep := big && s.looksDeep(lanes[0], now)
	second, secondLimit := s.seconds(lanes)
	s.reader.running++
	s.wg.Go(func() {
		r := s.fetch(from, fresh, horizon, limit, now)
		if r.secondLimit = secondLimit; len(second) > 0 && r.err == nil {
			s.fetchSecond(&r, second, horizon, now)
		}
		if r.deep = deep && r.err == nil; r.deep {
			s.fetchEnding(&r, from[0].Session, now)
		}
		r.lanes, r.limit = lanes, limit
		s.box.post(func() { s.gotRows(r) })
	})
}

// fetch asks the store. Any goroutine.
func (s *scheduler) fetch(from []puntuale.Place, fresh []puntuale.SessionID, horizon time.Time, limit int, now time.Time) (r rows) {
	ctx, cancel := context.WithTimeout(s.ctx, callWait)
	defer cancel()
	if len(fresh) > 0 {
		// As far as the longest backoff: whatever is in retry and still holds back others.
		most := max(learnRows/len(fresh), learnLeast)
		if r.retrying, r.crowded, r.err = s.cfg.Queue.Retrying(ctx, fresh, now.Add(-orderWait), now.Add(retryReach), most); r.err != nil {
			return r
		}
	}
	r.due, r.err = s.cfg.Queue.Due(ctx, from, horizon, limit)
	r.took = s.cfg.Clock.Now().Sub(now)
	return r
}

// fetchSecond asks the store for what campaigns fed. Any goroutine.
func (s *scheduler) fetchSecond(r *rows, from []puntuale.Place, horizon, now time.Time) {
	ctx, cancel := context.WithTimeout(s.ctx, callWait)
	defer cancel()
	r.second, r.err = s.cfg.Queue.Due(ctx, from, horizon, r.secondLimit)
	r.took = s.cfg.Clock.Now().Sub(now)
}

// depthsRows is how many messages a look for what expires behind the rows of a read may bring.
const depthsRows = 1024

func (s *scheduler) looksDeep(l *lane, now time.Time) bool {
	return (l.blocked() || l.share.held) && l.lookahead.BehindDue(now)
}

// fetchEnding asks the store for what expires before it is asked again. Any goroutine.
func (s *scheduler) fetchEnding(r *rows, session puntuale.SessionID, now time.Time) {
	ctx, cancel := context.WithTimeout(s.ctx, callWait)
	defer cancel()
	r.ending, r.err = s.cfg.Queue.Expiring(ctx, session, lookahead.BehindUntil(now), depthsRows)
	r.took = s.cfg.Clock.Now().Sub(now)
}

// gotEnding takes what expires into memory, to be closed, and plans the next look.
func (s *scheduler) gotEnding(l *lane, ending []puntuale.DueMessage, now time.Time) {
	l.lookahead.GotBehind(ending, len(ending) == depthsRows, s.cfg.Poll, now)
	for i := range ending {
		s.admit(l, &ending[i], now)
	}
}

// retryReach covers the longest backoff with its spread.
const retryReach = 15 * time.Minute

func (s *scheduler) gotRows(r rows) {
	now := s.cfg.Clock.Now()
	s.reader.running--
	s.health.read(r.err == nil, now)
	if r.err != nil && s.ctx.Err() == nil {
		s.log.Warn("reading due messages failed", "error", r.err)
	}
	if r.err == nil {
		for i := range r.retrying {
			s.learn(&r.retrying[i], now)
		}
	}
	count := make(map[puntuale.SessionID]int, len(r.lanes))
	last, full := puntuale.Place{}, false
	for _, l := range r.lanes {
		crowded := len(r.lanes) > 1 && slices.Contains(r.crowded, l.session.ID)
		l.lookahead.Got(r.err != nil, crowded, now)
	}
	for i := range r.due {
		m := &r.due[i]
		if l := s.lanes[m.Session]; l != nil && l.lookahead.Reading() && !l.lookahead.Crowded() {
			count[m.Session]++
			switch s.admit(l, m, now) {
			case leftOut:
				l.lookahead.Stray()
			case noRoom:
				l.lookahead.FoundMore()
				full = true
			}
			if !full {
				last = puntuale.Place{Next: m.Next, ID: m.ID}
			}
		}
	}
	s.gotSeconds(&r)
	if l := r.lanes[0]; r.deep && r.err == nil && s.lanes[l.session.ID] == l {
		s.gotEnding(l, r.ending, now)
	}
	for _, l := range r.lanes {
		s.act(l, l.lookahead.End(lookahead.Result{
			Failed: r.err != nil, Took: r.took, Poll: s.cfg.Poll,
			Alone: len(r.lanes) == 1, Last: last, NoRoom: full,
			Cut:     count[l.session.ID] >= r.limit,
			CanSend: !l.blocked() && !l.share.held, Lost: l.gone,
		}, now))
		if r.err == nil && !l.gone {
			s.refill(l)
		}
	}
}

// learn keeps the order of recipients whose earlier message was tried by this session's former owner.
func (s *scheduler) learn(m *puntuale.DueMessage, now time.Time) {
	l := s.lanes[m.Session]
	if l == nil || l.lookahead.TakeoverKnown() || m.Intent != 0 || !now.Before(m.IntentAt.Add(orderWait)) {
		return
	}
	since := m.IntentAt
	if since.After(now) {
		since = now // another node's clock, or this one's before it was set back
	}
	l.recipient(personOf(m)).hold(m, since, m.Next, false)
}

// admission is what became of a row that was read.
type admission int8

const (
	known   admission = iota // it is in memory, or closed
	leftOut                  // it has nothing to seek there yet
	noRoom
)

// admit takes a row into memory, unless it is there already or has nothing to seek there.
func (s *scheduler) admit(l *lane, m *puntuale.DueMessage, now time.Time) admission {
	if l.entries[m.ID] != nil || s.alive[m.ID] != nil {
		return known
	}
	if l.lookahead.Left(m.ID) {
		return known // if it is still open, the lane has strayed
	}
	e := &entry{m: *m, lane: l}
	e.alarm.entry = e
	if m.Intent > 0 {
		if !s.recover(e, now) {
			if e.stage == loading { // its time to be looked at has not come
				if m.Next.After(now) {
					l.lookahead.ExpireBy(m.Next)
				}
				return leftOut
			}
			return known
		}
	} else if e.expired(now) {
		s.hold(e)
		s.expire(e)
		return known
	}
	if l.blocked() || l.share.held && !e.repeat() {
		l.lookahead.ExpireBy(m.ValidUntil)
		return leftOut
	}
	if n := len(l.entries); n >= 2*laneMost || s.held >= memory && n >= laneLeast {
		return noRoom
	}
	s.hold(e)
	if !e.repeat() {
		l.recipient(personOf(m)).add(e)
	}
	s.queueLoad(e, now)
	return known
}

// hold puts an entry into memory.
func (s *scheduler) hold(e *entry) {
	e.lane.entries[e.m.ID] = e
	s.held++
	if e.m.Campaign != 0 {
		e.lane.second.held++
	}
}
