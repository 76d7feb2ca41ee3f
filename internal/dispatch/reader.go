package dispatch

import (
	"context"
	"slices"
	"time"

	"puntuale"
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

// want has a lane read as far as the horizon.
func (s *scheduler) want(l *lane, urgent bool) {
	if !urgent && l.backlogged(s.capacity()) {
		l.more = true // it is read again as it runs low
		return
	}
	l.full = true
	s.enlist(l, urgent)
}

// enlist has a lane read as soon as may be; never twice at a time.
func (s *scheduler) enlist(l *lane, urgent bool) {
	if l.gone || s.retiring {
		return
	}
	if l.wanted {
		if urgent && !l.reading && !l.urgent {
			s.enqueue(l, urgent)
		}
		return
	}
	l.wanted = true
	if !l.reading { // else when it ends
		s.enqueue(l, urgent)
	}
}

// enqueue lists a wanted lane; a later entry in the other list finds it no longer wanted.
func (s *scheduler) enqueue(l *lane, urgent bool) {
	switch {
	case s.cfg.Clock.Now().Before(l.readAfter):
		s.alarms.set(&l.readAlarm, l.readAfter)
	case urgent:
		l.urgent = true
		s.reader.urgent.push(l)
	default:
		s.reader.rest.push(l)
	}
}

// known is how many of the lane's rows a read returns that are in memory already.
func (l *lane) known() int { return len(l.entries) + l.open }

// backlogged lanes have so much overdue that nothing new could leave before the next refill.
func (l *lane) backlogged(capacity int) bool { return l.more && l.ready.len() > capacity/4 }

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
	if l.wanted || l.blocked() || l.share.held {
		return
	}
	if l.more && l.first() < s.capacity()/4 {
		l.more = false
		s.want(l, true)
	}
	if l.second.more && l.second.held < s.secondRoom()/4 {
		l.second.more = false
		s.want(l, true)
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
	var small []*lane
	for list.len() > 0 && len(small) < lanesAtOne {
		l := list.peek()
		if l.gone || !l.wanted || l.reading {
			list.pop()
			continue
		}
		big := l.known() > smallLane || l.more || l.crowded || l.blocked() || l.share.held
		if big && len(small) > 0 {
			break
		}
		list.pop()
		l.wanted, l.urgent, l.reading = false, false, true
		if big {
			limit := s.room(l)
			if l.seen == (puntuale.Place{}) || !now.Before(l.seenUntil) {
				l.seen = puntuale.Place{}
				limit += l.known()
			}
			s.startRead([]*lane{l}, limit, now)
			return
		}
		l.seen = puntuale.Place{}
		small = append(small, l)
	}
	if len(small) > 0 {
		s.startRead(small, glanceRows, now)
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

func (s *scheduler) startRead(lanes []*lane, limit int, now time.Time) {
	from := make([]puntuale.Place, len(lanes))
	var fresh []puntuale.SessionID
	horizon := now
	for i, l := range lanes {
		from[i] = l.seen
		from[i].Session = l.session.ID
		l.strayed = false
		if !l.learnt {
			fresh = append(fresh, l.session.ID)
		}
		if l.full {
			l.until = now.Add(s.cfg.Horizon)
		}
		horizon = later(horizon, l.until)
		l.until, l.full = time.Time{}, false
	}
	deep := len(lanes) == 1 && s.looksDeep(lanes[0], now)
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

// A lane that cannot send may hold more than is read of it. What expires behind that is looked for apart, which reads
// all that is due: not more often than depthsLeast, nor less than depthsMost.
const (
	depthsLeast = 10 * time.Second
	depthsMost  = time.Minute
	depthsRows  = 1024
)

func (s *scheduler) looksDeep(l *lane, now time.Time) bool {
	return (l.deep || l.second.more) && (l.blocked() || l.share.held) && !now.Before(l.depths)
}

// fetchEnding asks the store for what expires before it is asked again. Any goroutine.
func (s *scheduler) fetchEnding(r *rows, session puntuale.SessionID, now time.Time) {
	ctx, cancel := context.WithTimeout(s.ctx, callWait)
	defer cancel()
	r.ending, r.err = s.cfg.Queue.Expiring(ctx, session, now.Add(depthsMost), depthsRows)
	r.took = s.cfg.Clock.Now().Sub(now)
}

// gotEnding takes what expires into memory, to be closed, and plans the next look.
func (s *scheduler) gotEnding(l *lane, ending []puntuale.DueMessage, now time.Time) {
	l.depths = now.Add(depthsMost)
	if len(ending) == depthsRows {
		l.depths = now.Add(s.cfg.Poll) // there may be more
	}
	for i := range ending {
		m := &ending[i]
		if m.ValidUntil.After(now) && m.ValidUntil.Before(l.depths) {
			l.depths = later(m.ValidUntil, now.Add(depthsLeast))
		}
		s.admit(l, m, now)
	}
	if l.depths.Before(l.glance) {
		l.glance = l.depths
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
		if l.crowded = len(r.lanes) > 1 && slices.Contains(r.crowded, l.session.ID); r.err == nil && !l.crowded {
			l.learnt = true
			l.glance = now.Add(glanceEvery)
		}
	}
	for i := range r.due {
		m := &r.due[i]
		if l := s.lanes[m.Session]; l != nil && l.reading && !l.crowded {
			count[m.Session]++
			switch s.admit(l, m, now) {
			case leftOut:
				l.stray()
			case noRoom:
				l.more, full = true, true
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
		l.reading = false
		clear(l.left)
		l.readAfter = now.Add(min(r.took, s.cfg.Poll)) // what held up one read is no reason to put off the next
		if l.blocked() || l.share.held {
			l.readAfter = now.Add(s.cfg.Poll) // hints have no hurry here
		}
		if r.err != nil {
			l.readAfter = now.Add(s.cfg.Poll / 4)
			l.wanted = false // the poll asks again
			continue
		}
		if l.crowded && s.lanes[l.session.ID] == l {
			l.full, l.wanted = true, true
		}
		l.deep = count[l.session.ID] >= r.limit
		if len(r.lanes) == 1 {
			s.seen(l, last, l.deep || full, now)
		}
		l.more = l.more || l.deep
		if s.lanes[l.session.ID] != l {
			continue
		}
		if l.wanted {
			s.enqueue(l, true)
		} else {
			s.refill(l)
		}
	}
}

// seenFor bounds how long a lane with a backlog is read on from where the last read ended: a row that came to stand
// before that, and whose hint was lost, is found then.
const seenFor = 5 * time.Second

// seen notes where the next read of a lane with a backlog goes on. Reading again what is in memory, and what lies closed
// before it, would cost more than all the rest.
func (s *scheduler) seen(l *lane, last puntuale.Place, more bool, now time.Time) {
	switch {
	case !more || l.strayed || l.blocked() || l.share.held:
		l.seen = puntuale.Place{}
	case last == (puntuale.Place{}): // nothing was taken: as before
	case l.seen == (puntuale.Place{}):
		l.seen, l.seenUntil = last, now.Add(seenFor)
	default:
		l.seen = last
	}
}

// learn keeps the order of recipients whose earlier message was tried by this session's former owner.
func (s *scheduler) learn(m *puntuale.DueMessage, now time.Time) {
	l := s.lanes[m.Session]
	if l == nil || l.learnt || m.Intent != 0 || !now.Before(m.IntentAt.Add(orderWait)) {
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
	if _, stale := l.left[m.ID]; stale {
		return known // if it is still open, the lane has strayed
	}
	e := &entry{m: *m, lane: l}
	e.alarm.entry = e
	if m.Intent > 0 {
		if !s.recover(e, now) {
			if e.stage == loading { // its time to be looked at has not come
				if m.Next.After(now) && m.Next.Before(l.glance) {
					l.glance = m.Next
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
		if m.ValidUntil.Before(l.glance) {
			l.glance = m.ValidUntil
		}
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
