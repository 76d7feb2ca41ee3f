package dispatch

import (
	"sync/atomic"
	"time"

	"puntuale"
)

// lane is the queue of one session that this node owns.
type lane struct {
	session puntuale.Session
	conn    puntuale.Connector // nil: no way out
	traits  puntuale.Traits
	share   *share

	entries    map[puntuale.MessageID]*entry // in memory and not yet claimed
	recipients map[person]*recipient
	ready      fifo[*entry] // due and prepared, in the order they came due
	second     second       // what campaigns fed
	again      fifo[*entry] // of these, the ones that repeat an unanswered attempt: the pace has counted them
	inflight   int          // being claimed or sent: slots taken
	open       int          // claimed, and the outcome not yet on disk

	alarm // the pace, or the end of a pause
	pace
	paused     time.Time    // the connector asked for quiet until then; see setPaused
	quietUntil atomic.Int64 // paused in microseconds of the Unix epoch, for goroutines that prepare
	unprepared []*entry     // wait for the end of the pause
	offline    bool
	active     bool // in its client's turn list

	// Reading.
	reading   bool
	wanted    bool                            // another read, as soon as may be
	urgent    bool                            // wanted so, and listed
	until     time.Time                       // as far as hints said
	full      bool                            // as far as the horizon
	readAlarm alarm                           // for readAfter
	left      map[puntuale.MessageID]struct{} // left memory while a read was under way, which may show them as they were
	more      bool                            // the database holds more that is due soon
	looked    time.Time                       // when the poll last had it read
	readAfter time.Time                       // not before, so that a lane spends half its time reading at most
	glance    time.Time                       // of a lane that cannot send: the next look for what expires
	deep      bool                            // more was due than the last read brought
	depths    time.Time                       // of a lane that cannot send: the next look for what expires behind that
	seen      puntuale.Place                  // every open row up to it is in memory or in flight; zero: not so
	seenUntil time.Time                       // then the lane is read from the beginning again
	strayed   bool                            // since the last read began, an open row left memory
	learnt    bool                            // what was in retry under the former owner is known
	crowded   bool                            // too much was found to know it, so it is read alone

	counting bool // the store is asked what left before

	resting time.Time       // somebody wants nothing to begin until then; zero: nobody does
	quiet   []chan struct{} // of those who wait until nothing is in flight

	draining bool // about to go to another node
	gone     bool // no longer this node's
}

func newLane(sh *share, session puntuale.Session, conn puntuale.Connector) *lane {
	l := &lane{
		share: sh, session: session, conn: conn,
		entries: map[puntuale.MessageID]*entry{}, recipients: map[person]*recipient{},
		left: map[puntuale.MessageID]struct{}{},
	}
	l.alarm.lane, l.readAlarm.reader = l, l
	l.second.open = session.Campaigns
	if conn != nil {
		l.traits = conn.Traits()
		l.traits.Slots = max(1, l.traits.Slots)
	}
	l.network, l.unknown = l.traits.PerSecond, true
	l.setPace(session.Pace, time.Time{})
	return l
}

// online asks the connector; a session without one is never online.
func (l *lane) online() bool { return l.conn != nil && l.conn.Online(l.session.ID) }

// setPaused has the connector left alone until a moment.
func (l *lane) setPaused(until time.Time) {
	l.paused = until
	l.quietUntil.Store(until.UnixMicro())
}

// blocked lanes keep nothing in memory but what is in flight.
func (l *lane) blocked() bool { return l.offline || l.draining || l.gone || !l.resting.IsZero() }

func (l *lane) recipient(p person) *recipient {
	r := l.recipients[p]
	if r == nil {
		r = &recipient{}
		l.recipients[p] = r
	}
	return r
}

// mayLeave tells whether the lane could send one more now. If not, wait is the moment to ask again, zero when an event
// will tell. It takes a pace token when it says yes.
func (l *lane) mayLeave(now time.Time) (ok bool, wait time.Time) {
	if l.blocked() || l.inflight >= l.traits.Slots {
		return false, time.Time{}
	}
	if now.Before(l.paused) {
		return false, l.paused
	}
	return l.pace.take(now)
}

// take returns the next message of the lane that may leave now, or nil: then the lane has nothing to send until an
// alarm or an event activates it again.
func (s *scheduler) take(l *lane, now time.Time) *entry {
	if !l.offline && !l.online() {
		s.checkOnline(l, now)
	}
	if e := s.takeAgain(l, now); e != nil {
		return e
	}
	e, must := s.takeFrom(l, &l.ready, now)
	if e == nil && !must {
		e, _ = s.takeFrom(l, &l.second.ready, now)
	}
	return e
}

// takeFrom is take for one of the lane's queues. wait tells that its first message must wait for the lane.
func (s *scheduler) takeFrom(l *lane, queue *fifo[*entry], now time.Time) (_ *entry, wait bool) {
	for queue.len() > 0 {
		e := queue.peek()
		if e.stage != ready || e.parked {
			queue.pop()
			continue
		}
		if l.share.held && !e.repeat() {
			queue.pop()
			s.forget(e)
			continue
		}
		if s.overtaken(e, now) {
			queue.pop()
			continue
		}
		ok, at := l.mayLeave(now)
		if ok {
			queue.pop()
			return e, false
		}
		if !at.IsZero() {
			s.alarms.set(&l.alarm, at)
		}
		return nil, true
	}
	return nil, false
}

// takeAgain returns the lane's next repeat that may leave now.
func (s *scheduler) takeAgain(l *lane, now time.Time) *entry {
	for l.again.len() > 0 {
		e := l.again.peek()
		if e.stage != ready || s.overtaken(e, now) {
			l.again.pop()
			continue
		}
		if l.blocked() || l.inflight >= l.traits.Slots {
			return nil
		}
		if now.Before(l.paused) {
			s.alarms.set(&l.alarm, l.paused)
			return nil
		}
		l.again.pop()
		return e
	}
	return nil
}

// dueNow lists a prepared message whose moment has come.
func (s *scheduler) dueNow(e *entry) {
	e.lane.queueOf(e).push(e)
	s.activate(e.lane)
}

// overtaken sorts out a due message that must not leave after all: expired, outside its window, not its turn.
func (s *scheduler) overtaken(e *entry, now time.Time) bool {
	if e.expired(now) && !e.repeat() {
		s.expire(e)
		return true
	}
	if next, inside := insideWindow(e.window, e.zone, now); !inside {
		s.postpone(e, next, puntuale.Reason{}, puntuale.Reason{})
		return true
	}
	if e.repeat() {
		if !s.mayRepeat(e, now) {
			s.giveUpRepeat(e)
			return true
		}
		return false
	}
	ok, wait := e.lane.recipient(personOf(&e.m)).turnFor(e, now)
	if !ok {
		e.parked = true
		if !wait.IsZero() {
			s.alarms.set(&e.alarm, wait)
			s.doubts.add(doubt{e.lane, personOf(&e.m)})
		}
	}
	return !ok
}

// makeReady hands a prepared message to its moment.
func (s *scheduler) makeReady(e *entry, now time.Time) {
	e.stage = ready
	if e.due(now) {
		s.dueNow(e)
		return
	}
	s.alarms.set(&e.alarm, e.m.Next)
}

// advance lets the next message to a recipient have its turn.
func (s *scheduler) advance(l *lane, p person) {
	r := l.recipients[p]
	if r == nil {
		return
	}
	if r.idle() {
		delete(l.recipients, p)
		return
	}
	if e := r.nextParked(); e != nil && r.busy == nil {
		e.parked = false
		s.alarms.drop(&e.alarm)
		l.queueOf(e).push(e)
		s.activate(l)
	}
}

// forget drops a message from memory; the next read may find it again.
func (s *scheduler) forget(e *entry) {
	if e.stage == gone {
		return
	}
	l := e.lane
	e.stage = gone
	s.alarms.drop(&e.alarm)
	s.drop(e)
	if e.m.Campaign == 0 {
		l.stray()
	}
	if l.reading {
		l.left[e.m.ID] = struct{}{}
	}
	if !e.repeat() {
		if r := l.recipients[personOf(&e.m)]; r != nil {
			r.remove(e)
			s.advance(l, personOf(&e.m))
		}
	}
	s.refill(l)
}

// stray has the next read begin at the beginning: an open row may stand before what was seen.
func (l *lane) stray() { l.seen, l.strayed = puntuale.Place{}, true }

// clear drops all of a lane that is not in flight.
func (s *scheduler) clear(l *lane) {
	for _, e := range l.entries {
		if e.stage == settling {
			continue // its end is on the way to disk
		}
		s.forget(e)
	}
	l.ready, l.second.ready, l.again, l.unprepared = fifo[*entry]{}, fifo[*entry]{}, fifo[*entry]{}, nil
	s.alarms.drop(&l.alarm)
	if l.gone {
		s.alarms.drop(&l.readAlarm)
	}
}
