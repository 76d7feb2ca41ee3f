package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"puntuale"
)

// scheduler owns every queue in memory. Its methods run on its own goroutine unless they say otherwise.
type scheduler struct {
	cfg    *Config
	box    *mailbox
	log    *slog.Logger
	member *member
	health *health
	ctx    context.Context // of everything but sends
	wg     *sync.WaitGroup

	node   puntuale.NodeID // 0: none, nothing is claimed
	owner  atomic.Int64    // node, for other goroutines
	lanes  map[puntuale.SessionID]*lane
	shares map[puntuale.ClientID]*share
	ring   fifo[*share]
	alarms alarms
	held   int // entries in memory not yet claimed, of all lanes

	// alive are the attempts of this process without a recorded outcome, whatever became of their lane.
	alive  map[puntuale.MessageID]*entry
	orphan map[int64]time.Time // tokens of claims whose answer was lost: nothing of theirs was sent

	reader  reader
	loader  loader
	claims  claims
	pools   pools
	records *recorder
	settles *settler

	doubts doubts

	last      time.Time // when the loop last looked at the clock
	nextPoll  time.Time
	polls     int64 // so far: Poll apart, whatever the clock shows
	nextRound time.Time
	part      int64 // of the rounds
	asking    bool  // Standings is under way
	retiring  bool
	idle      chan struct{} // closed once retiring and nothing is in flight
	sendCtx   context.Context
	cutSends  context.CancelFunc
}

func newScheduler(cfg *Config, box *mailbox) *scheduler {
	s := &scheduler{
		cfg: cfg, box: box, log: cfg.Logger, health: newHealth(cfg),
		lanes:  map[puntuale.SessionID]*lane{},
		shares: map[puntuale.ClientID]*share{},
		alive:  map[puntuale.MessageID]*entry{},
		doubts: doubts{all: map[doubt]struct{}{}},
		orphan: map[int64]time.Time{},
		idle:   make(chan struct{}),
	}
	s.records = newRecorder(s)
	s.settles = newSettler(s)
	s.pools = newPools(s)
	s.sendCtx, s.cutSends = context.WithCancel(context.Background())
	return s
}

// start runs the scheduler and its helpers until ctx ends. Called once, from Start.
func (s *scheduler) start(ctx context.Context, wg *sync.WaitGroup) {
	s.ctx, s.wg = ctx, wg
	for range recorders {
		wg.Go(func() { s.records.run(ctx) })
	}
	wg.Go(func() { s.settles.run(ctx) })
	wg.Go(func() { s.run() })
}

// retire has the scheduler claim nothing more; the channel closes once nothing is in flight. Any goroutine.
func (s *scheduler) retire() <-chan struct{} {
	s.box.post(func() { s.retiring = true })
	return s.idle
}

func (s *scheduler) run() {
	defer s.cutSends()
	post := newMail()
	for s.ctx.Err() == nil {
		s.box.take(&post)
		now := s.tick()
		s.open(&post, now)
		s.poll(now)
		s.round(now)
		s.fire(now)
		s.claim(now)
		s.load()
		s.read(now)
		s.doubt(now)
		if s.retiring && s.claims.running == 0 && len(s.alive) == 0 {
			s.retired()
		}
		s.wait()
	}
}

func (s *scheduler) retired() {
	select {
	case <-s.idle:
	default:
		close(s.idle)
	}
}

// open reads the mail.
func (s *scheduler) open(post *mail, now time.Time) {
	for _, f := range post.calls {
		f()
	}
	for _, e := range post.prepared {
		s.loaded(e, now)
	}
	for i := range post.ended {
		s.ended(&post.ended[i], now)
	}
	for session, h := range post.hints {
		s.hinted(session, h, now)
	}
}

// wait sleeps until there is mail or the next moment comes.
func (s *scheduler) wait() {
	next := s.nextPoll
	if first, ok := s.alarms.first(); ok && first.Before(next) {
		next = first
	}
	if s.nextRound.Before(next) && s.held+len(s.alive) > smallLane { // else no lane has much in memory
		next = s.nextRound
	}
	now := s.cfg.Clock.Now()
	if at := s.claims.resume; at.After(now) && at.Before(next) {
		next = at
	}
	d := min(next.Sub(now), s.cfg.Poll) // a clock set back must not lengthen it
	if d <= 0 {
		return
	}
	fired, release := s.cfg.Clock.After(d)
	defer release()
	select {
	case <-s.box.wake:
	case <-fired:
	case <-s.ctx.Done():
	}
}

// fire wakes what is due.
func (s *scheduler) fire(now time.Time) {
	for a := s.alarms.next(now); a != nil; a = s.alarms.next(now) {
		switch {
		case a.entry != nil:
			a.entry.parked = false
			s.dueNow(a.entry)
		case a.lane != nil:
			s.endPause(a.lane, now)
			s.activate(a.lane)
		default:
			s.act(a.reader, a.reader.lookahead.TimerFired(s.cfg.Clock.Now()))
		}
	}
}

// poll looks at everything once a second: hints may be lost, reads may be stale, the poll is not.
func (s *scheduler) poll(now time.Time) {
	if now.Before(s.nextPoll) && s.nextPoll.Sub(now) <= s.cfg.Poll { // a clock set back must not stop it
		return
	}
	s.nextPoll = now.Add(s.cfg.Poll)
	s.polls++
	held := map[puntuale.ClientID]bool{}
	s.reader.blocked = 0
	for _, l := range s.lanes {
		s.sweep(l, now)
		s.checkOnline(l, now)
		s.count(l, now)
		if !l.resting.IsZero() && !now.Before(l.resting) {
			s.restEnds(l)
		}
		if l.share.held {
			held[l.session.Client] = true
		}
		if l.blocked() || l.share.held {
			s.reader.blocked++
			if !l.lookahead.ExpiryDue(now) {
				continue
			}
		}
		if l.known() <= smallLane || l.lookahead.PollDue(s.cfg.Poll, now) {
			s.look(l, now)
		}
	}
	s.askStandings(held)
	s.overdue(now)
	s.doubts.again()
	for token, since := range s.orphan {
		if now.Sub(since) > orphanKept {
			delete(s.orphan, token)
		}
	}
	s.cfg.Meter.Queue(s.held, len(s.lanes))
}

// rounds are the parts of a poll's interval in which lanes with much in memory are read, each lane in one: all at once they would
// keep what comes due meanwhile waiting for a processor.
const rounds = 32

// round reads one part of the lanes with much in memory.
func (s *scheduler) round(now time.Time) {
	if now.Before(s.nextRound) && s.nextRound.Sub(now) <= s.cfg.Poll { // a clock set back must not stop it
		return
	}
	s.nextRound = now.Add(s.cfg.Poll / rounds)
	s.part = (s.part + 1) % rounds
	for id, l := range s.lanes {
		if int64(id)%rounds == s.part && l.known() > smallLane && !l.blocked() && !l.share.held {
			s.look(l, now)
		}
	}
}

// look has a lane read for the poll.
func (s *scheduler) look(l *lane, now time.Time) {
	l.lookahead.Polled(now)
	s.want(l, false)
}

// orphanKept is how long tokens of lost claims are remembered: rows that carry one are found by the next polls.
const orphanKept = time.Hour

// sweep closes what expired while it waited in memory, and forgets holds that are over.
func (s *scheduler) sweep(l *lane, now time.Time) {
	for _, e := range l.entries {
		if (e.stage == ready || e.stage == loading) && !e.repeat() && e.expired(now) {
			s.expire(e)
		}
	}
	for p, r := range l.recipients {
		if len(r.holds) > 0 {
			r.sweep(now)
			s.advance(l, p)
		}
	}
}

// checkOnline notices a session that came or went.
func (s *scheduler) checkOnline(l *lane, now time.Time) {
	if online := l.online(); online == l.offline {
		l.offline = !online
		if l.offline {
			s.clear(l)
		}
		l.lookahead.ExpireNow()
		s.resume(l)
	}
}

// resume reads a lane that may send again.
func (s *scheduler) resume(l *lane) {
	if !s.retiring {
		s.act(l, l.lookahead.Resume(s.cfg.Clock.Now()))
	}
}

// hinted acts on a hint.
func (s *scheduler) hinted(session puntuale.SessionID, h hint, now time.Time) {
	l := s.lanes[session]
	if l == nil && h.here {
		s.passOn(session, h)
	}
	if l == nil || h.changed {
		s.member.nudge(session, h.changed, l != nil || h.here && h.changed)
	}
	if l == nil {
		return
	}
	s.checkOnline(l, now)
	if h.changed {
		l.lookahead.Stray()
	} else {
		l.lookahead.StrayBefore(h.first)
	}
	if s.retiring || l.backlogged(s.capacity()) {
		return // it stands behind what is in memory
	}
	until := later(h.until, now)
	if len(l.entries) < laneMost/4 {
		// A hint tells of the first moment of several; the poll is in time only for what is due well after it.
		until = later(until, now.Add(s.cfg.Poll+s.cfg.Poll/2))
	}
	s.act(l, l.lookahead.Wakeup(until, h.changed, s.cfg.Clock.Now()))
}

// passOn tells other nodes of a hint for a session that is not here.
func (s *scheduler) passOn(session puntuale.SessionID, h hint) {
	if h.changed {
		s.cfg.Elsewhere(session, time.Time{})
	}
	if !h.until.IsZero() {
		s.cfg.Elsewhere(session, h.until)
	}
	if h.first.Before(h.until) {
		s.cfg.Elsewhere(session, h.first)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// share returns a client's part in the round.
func (s *scheduler) share(client puntuale.ClientID) *share {
	sh := s.shares[client]
	if sh == nil {
		sh = &share{client: client}
		s.shares[client] = sh
	}
	return sh
}

// setSessions takes over what the member found: exactly these sessions are the node's, and those in leaving are to be
// let go once nothing of theirs is in flight.
func (s *scheduler) setSessions(node puntuale.NodeID, mine []puntuale.Session, leaving map[puntuale.SessionID]bool) {
	if node != s.node {
		return
	}
	s.own(node, mine, leaving) // before their lanes ask whether they are online
	now := s.cfg.Clock.Now()
	owned := make(map[puntuale.SessionID]bool, len(mine))
	for _, session := range mine {
		owned[session.ID] = true
		l := s.lanes[session.ID]
		if l == nil {
			l = s.addLane(session, now)
		} else if l.is != session.Pace {
			l.setPace(session.Pace, now)
			s.count(l, now)
			s.activate(l)
		}
		if session.Campaigns && !l.second.open {
			s.want(l, true)
		}
		l.second.open = session.Campaigns
		switch drain := leaving[session.ID]; {
		case drain && !l.draining:
			l.draining = true
			s.clear(l)
		case !drain && l.draining:
			l.draining = false
			s.resume(l)
		}
		s.drained(l)
	}
	for id, l := range s.lanes {
		if !owned[id] {
			s.dropLane(l)
		}
	}
}

// own has the node's sessions opened, and what is no longer its own closed.
func (s *scheduler) own(node puntuale.NodeID, mine []puntuale.Session, leaving map[puntuale.SessionID]bool) {
	s.owner.Store(int64(node))
	if s.cfg.Sessions != nil {
		s.cfg.Sessions.Own(node, mine, leaving)
	}
}

func (s *scheduler) addLane(session puntuale.Session, now time.Time) *lane {
	sh := s.share(session.Client)
	sh.count++
	l := newLane(sh, session, s.cfg.Connector(session))
	l.offline = !l.online()
	s.count(l, now)
	s.lanes[session.ID] = l
	s.want(l, true)
	return l
}

func (s *scheduler) dropLane(l *lane) {
	l.gone = true
	s.clear(l)
	s.isQuiet(l)
	delete(s.lanes, l.session.ID)
	if l.share.count--; l.share.count == 0 {
		delete(s.shares, l.session.Client)
	}
}

// letGo drops lanes that went to another node.
func (s *scheduler) letGo(node puntuale.NodeID, sessions []puntuale.SessionID) {
	for _, id := range sessions {
		if l := s.lanes[id]; l != nil && node == s.node {
			s.dropLane(l)
		}
	}
}

// drained tells the member that a lane may go to its new owner, once its session is closed here.
func (s *scheduler) drained(l *lane) {
	if !l.draining || l.open > 0 || l.gone {
		return
	}
	session := l.session.ID
	if s.cfg.Sessions == nil {
		s.member.drained(session)
		return
	}
	s.cfg.Sessions.Release(session, func() { s.member.drained(session) })
}

// fenced drops everything: another node may own the sessions by now. Outcomes on their way are recorded all the same.
func (s *scheduler) fenced(node puntuale.NodeID) {
	if node == 0 || node != s.node {
		return
	}
	s.log.Warn("the node's lease is gone, joining again", "node", int64(node))
	s.node = 0
	for _, l := range s.lanes {
		s.dropLane(l)
	}
	s.own(0, nil, nil)
	s.health.joined(false)
	s.member.rejoin(node)
}
