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
	cfg        *Config
	mailbox    *mailbox
	log        *slog.Logger
	membership *membership
	health     *health
	ctx        context.Context // of everything but sends
	wg         *sync.WaitGroup

	node     puntuale.NodeID // 0: none, nothing is claimed
	owner    atomic.Int64    // node, for other goroutines
	queues   map[puntuale.SessionID]*sessionQueue
	tenants  map[puntuale.ClientID]*tenantQueue
	fair     fifo[*tenantQueue]
	timers   timers
	inMemory int // entries in memory not yet claimed, of all lanes

	// alive are the attempts of this process without a recorded outcome, whatever became of their lane.
	alive  map[puntuale.MessageID]*queuedMessage
	unsent map[int64]time.Time // tokens of claims whose answer was lost: nothing of theirs was sent

	reader   reader
	loader   loader
	claims   claims
	pools    workerPools
	recorder *recorder
	settler  *settler

	retryChecks retryChecks

	last     time.Time // when the loop last looked at the clock
	nextPoll time.Time
	polls    int64 // so far: Poll apart, whatever the clock shows
	nextPart time.Time
	part     int64 // of the rounds
	asking   bool  // Standings is under way
	retiring bool
	idle     chan struct{} // closed once retiring and nothing is in flight
	sendCtx  context.Context
	cutSends context.CancelFunc
}

func newScheduler(cfg *Config, box *mailbox) *scheduler {
	s := &scheduler{
		cfg: cfg, mailbox: box, log: cfg.Logger, health: newHealth(cfg),
		queues:      map[puntuale.SessionID]*sessionQueue{},
		tenants:     map[puntuale.ClientID]*tenantQueue{},
		alive:       map[puntuale.MessageID]*queuedMessage{},
		retryChecks: retryChecks{all: map[retryCheck]struct{}{}},
		unsent:      map[int64]time.Time{},
		idle:        make(chan struct{}),
	}
	s.recorder = newRecorder(s)
	s.settler = newSettler(s)
	s.pools = newWorkerPools(s)
	s.sendCtx, s.cutSends = context.WithCancel(context.Background())
	return s
}

// start runs the scheduler and its helpers until ctx ends. Called once, from Start.
func (s *scheduler) start(ctx context.Context, wg *sync.WaitGroup) {
	s.ctx, s.wg = ctx, wg
	for range recorders {
		wg.Go(func() { s.recorder.run(ctx) })
	}
	wg.Go(func() { s.settler.run(ctx) })
	wg.Go(func() { s.run() })
}

// retire has the scheduler claim nothing more; the channel closes once nothing is in flight. Any goroutine.
func (s *scheduler) retire() <-chan struct{} {
	s.mailbox.post(func() { s.retiring = true })
	return s.idle
}

func (s *scheduler) run() {
	defer s.cutSends()
	post := newMail()
	for s.ctx.Err() == nil {
		s.mailbox.take(&post)
		now := s.tick()
		s.readMail(&post, now)
		s.poll(now)
		s.pollPart(now)
		s.fireTimers(now)
		s.claim(now)
		s.load()
		s.read(now)
		s.checkRetries(now)
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
func (s *scheduler) readMail(post *mail, now time.Time) {
	for _, f := range post.calls {
		f()
	}
	for _, m := range post.prepared {
		s.gotPrepared(m, now)
	}
	for i := range post.ended {
		s.ended(&post.ended[i], now)
	}
	for session, w := range post.wakeups {
		s.wakeUp(session, w, now)
	}
}

// wait sleeps until there is mail or the next moment comes.
func (s *scheduler) wait() {
	next := s.nextPoll
	if first, ok := s.timers.first(); ok && first.Before(next) {
		next = first
	}
	if s.nextPart.Before(next) && s.inMemory+len(s.alive) > smallQueue { // else no lane has much in memory
		next = s.nextPart
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
	case <-s.mailbox.wake:
	case <-fired:
	case <-s.ctx.Done():
	}
}

// fire wakes what is due.
func (s *scheduler) fireTimers(now time.Time) {
	for t := s.timers.next(now); t != nil; t = s.timers.next(now) {
		switch {
		case t.message != nil:
			t.message.parked = false
			s.enqueueDue(t.message)
		case t.queue != nil:
			s.endPause(t.queue, now)
			s.activate(t.queue)
		default:
			s.act(t.reading, t.reading.lookahead.TimerFired(s.cfg.Clock.Now()))
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// share returns a client's part in the round.
func (s *scheduler) tenant(client puntuale.ClientID) *tenantQueue {
	t := s.tenants[client]
	if t == nil {
		t = &tenantQueue{client: client}
		s.tenants[client] = t
	}
	return t
}
