package dispatch

import (
	"time"

	"puntuale"
	"puntuale/internal/dispatch/lookahead"
)

// sessionQueue contains the messages of one session that this node owns.
type sessionQueue struct {
	session      puntuale.Session
	conn         puntuale.Connector // nil: the session has no connector
	capabilities puntuale.Capabilities
	tenant       *tenantQueue

	messages   map[puntuale.MessageID]*queuedMessage // messages in memory that are not claimed yet
	recipients map[recipientKey]*recipientOrder
	ready      fifo[*queuedMessage] // prepared messages that are due, in the order in which they became due
	campaign   campaignQueue        // messages of campaigns
	repeats    fifo[*queuedMessage] // repeats of unanswered attempts; the pace counted these messages at their first attempts
	inFlight   int                  // number of messages that are being claimed or sent; each of them uses a slot
	unrecorded int                  // number of claimed messages whose outcome is not on disk yet

	timer   timer // wakes the session when the pace allows the next message, or at the end of a pause
	pace    pace
	pause   pause
	offline bool
	active  bool // true: the session queue is in the list of its tenant queue

	lookahead lookahead.Lookahead
	readTimer timer // the timer that the lookahead sets

	drain     drain
	ownership ownership
}

func newSessionQueue(t *tenantQueue, session puntuale.Session, conn puntuale.Connector) *sessionQueue {
	q := &sessionQueue{
		tenant: t, session: session, conn: conn,
		messages: map[puntuale.MessageID]*queuedMessage{}, recipients: map[recipientKey]*recipientOrder{},
	}
	q.timer.queue, q.readTimer.reading = q, q
	q.campaign.open = session.Campaigns
	if conn != nil {
		q.capabilities = conn.Capabilities()
		q.capabilities.Slots = max(1, q.capabilities.Slots)
	}
	q.pace.network, q.pace.unknown = q.capabilities.PerSecond, true
	q.pace.setPace(session.Pace, time.Time{})
	return q
}

// online reports whether the session is online, according to its connector. A session without a connector is never
// online.
func (q *sessionQueue) online() bool { return q.conn != nil && q.conn.Online(q.session.ID) }

// blocked reports whether the session itself cannot send now: it is offline, leaving, lost or drained.
func (q *sessionQueue) blocked() bool {
	return q.offline || q.ownership != sessionOwned || q.drain.active()
}

// canSend reports whether the session and its client may send now.
func (q *sessionQueue) canSend() bool { return !q.blocked() && !q.tenant.stopped }

func (q *sessionQueue) lost() bool { return q.ownership == sessionLost }

func (q *sessionQueue) recipient(p recipientKey) *recipientOrder {
	r := q.recipients[p]
	if r == nil {
		r = &recipientOrder{}
		q.recipients[p] = r
	}
	return r
}

// mayLeave reports whether the session may send one more message now. If it returns true, the pace has already counted
// this message. If not, wait is the time to try again. A zero wait means that an event will wake the session.
func (q *sessionQueue) mayLeave(now time.Time) (ok bool, wait time.Time) {
	if q.blocked() || q.inFlight >= q.capabilities.Slots {
		return false, time.Time{}
	}
	if q.pause.active(now) {
		return false, q.pause.end
	}
	return q.pace.take(now)
}

// take returns the session's next message that may leave now, or nil if there is none. If it returns nil, a timer or an
// event activates the session again.
func (s *scheduler) take(q *sessionQueue, now time.Time) *queuedMessage {
	if !q.offline && !q.online() {
		s.checkOnline(q, now)
	}
	if m := s.takeRepeat(q, now); m != nil {
		return m
	}
	m, taken := s.takeFrom(q, &q.ready, now)
	if m == nil && !taken {
		m, _ = s.takeFrom(q, &q.campaign.ready, now)
	}
	return m
}

// takeFrom does the same as take, but for only one of the session's lists. wait is true if the first message of the
// list must wait for the session.
func (s *scheduler) takeFrom(q *sessionQueue, queue *fifo[*queuedMessage], now time.Time) (_ *queuedMessage, wait bool) {
	for queue.len() > 0 {
		m := queue.peek()
		if m.stage != ready || m.parked {
			queue.pop()
			continue
		}
		if q.tenant.stopped && !m.repeat() {
			queue.pop()
			s.forget(m)
			continue
		}
		if s.overtaken(m, now) {
			queue.pop()
			continue
		}
		ok, at := q.mayLeave(now)
		if ok {
			queue.pop()
			return m, false
		}
		if !at.IsZero() {
			s.timers.set(&q.timer, at)
		}
		return nil, true
	}
	return nil, false
}

// takeRepeat returns the session's next repeat that may leave now, or nil.
func (s *scheduler) takeRepeat(q *sessionQueue, now time.Time) *queuedMessage {
	for q.repeats.len() > 0 {
		m := q.repeats.peek()
		if m.stage != ready || s.overtaken(m, now) {
			q.repeats.pop()
			continue
		}
		if q.blocked() || q.inFlight >= q.capabilities.Slots {
			return nil
		}
		if q.pause.active(now) {
			s.timers.set(&q.timer, q.pause.end)
			return nil
		}
		q.repeats.pop()
		return m
	}
	return nil
}

// enqueueDue adds a prepared due message to its list.
func (s *scheduler) enqueueDue(m *queuedMessage) {
	m.queue.readyList(m).push(m)
	s.fair.activate(m.queue)
}

// overtaken handles a due message that must not leave now. The message has expired, its window is closed, or another
// message to its recipient comes first. overtaken returns true if it handled the message.
func (s *scheduler) overtaken(m *queuedMessage, now time.Time) bool {
	if m.expired(now) && !m.repeat() {
		s.expire(m)
		return true
	}
	if next, inside := insideWindow(m.window, m.zone, now); !inside {
		s.postpone(m, next, puntuale.Reason{}, puntuale.Reason{})
		return true
	}
	if m.repeat() {
		if !s.mayRepeat(m, now) {
			s.giveUpRepeat(m)
			return true
		}
		return false
	}
	ok, wait := m.queue.recipient(recipientKeyOf(&m.row)).mayGo(m, now)
	if !ok {
		m.parked = true
		if !wait.IsZero() {
			s.timers.set(&m.timer, wait)
			s.retryChecks.add(retryCheck{m.queue, recipientKeyOf(&m.row)})
		}
	}
	return !ok
}

// makeReady marks a message as prepared. It adds a due message to its list now, and sets a timer for any other message.
func (s *scheduler) makeReady(m *queuedMessage, now time.Time) {
	m.stage = ready
	if m.due(now) {
		s.enqueueDue(m)
		return
	}
	s.timers.set(&m.timer, m.row.Next)
}

// advance allows the recipient's next message to leave.
func (s *scheduler) advance(q *sessionQueue, p recipientKey) {
	r := q.recipients[p]
	if r == nil {
		return
	}
	if r.idle() {
		delete(q.recipients, p)
		return
	}
	if m := r.nextParked(); m != nil && r.busy == nil {
		m.parked = false
		s.timers.drop(&m.timer)
		q.readyList(m).push(m)
		s.fair.activate(q)
	}
}

// forget removes a message from memory. The next read may add it again.
func (s *scheduler) forget(m *queuedMessage) {
	if m.stage == gone {
		return
	}
	q := m.queue
	m.stage = gone
	s.timers.drop(&m.timer)
	s.removeFromMemory(m)
	if m.row.Campaign == 0 {
		q.lookahead.ReadFromStart()
	}
	q.lookahead.Leave(m.row.ID)
	if !m.repeat() {
		if r := q.recipients[recipientKeyOf(&m.row)]; r != nil {
			r.remove(m)
			s.advance(q, recipientKeyOf(&m.row))
		}
	}
	s.refill(q)
}

// clear removes the waiting messages of a session queue from memory. Messages in flight do not wait in the queue any
// more, so they stay in memory.
func (s *scheduler) clear(q *sessionQueue) {
	for _, m := range q.messages {
		if m.stage == settling {
			continue // the message is being closed or postponed
		}
		s.forget(m)
	}
	q.ready, q.campaign.ready, q.repeats = fifo[*queuedMessage]{}, fifo[*queuedMessage]{}, fifo[*queuedMessage]{}
	q.pause.waiting = nil
	s.timers.drop(&q.timer)
	if q.lost() {
		s.timers.drop(&q.readTimer)
	}
}
