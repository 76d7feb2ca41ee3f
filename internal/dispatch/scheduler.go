package dispatch

import (
	"context"
	"sync"
	"time"

	"puntuale"
)

// scheduler owns all queues in memory. Its methods run on its own goroutine, unless their comments say otherwise.
type scheduler struct {
	cfg        *Config
	mailbox    *mailbox
	membership *membership
	health     *health
	life       lifetime

	node     puntuale.NodeID // 0: the node has no id, and nothing is claimed
	queues   map[puntuale.SessionID]*sessionQueue
	fair     fairQueue
	timers   timers
	inMemory int // number of messages of all sessions that are in memory and not claimed yet

	attempts attempts

	reader   reader
	loader   loader
	claims   claims
	recorder *recorder
	settler  *settler

	retryChecks retryChecks

	last  time.Time // when the loop last read the clock
	polls polls
}

func newScheduler(cfg *Config, box *mailbox) *scheduler {
	s := &scheduler{
		cfg: cfg, mailbox: box, health: newHealth(cfg), life: newLifetime(),
		queues:      map[puntuale.SessionID]*sessionQueue{},
		fair:        fairQueue{tenants: map[puntuale.ClientID]*tenantQueue{}},
		attempts:    newAttempts(),
		retryChecks: retryChecks{all: map[retryCheck]struct{}{}},
	}
	s.recorder = newRecorder(s)
	s.settler = newSettler(s)
	s.loader.pools = newWorkerPools(s)
	return s
}

// start runs the scheduler and its helpers until ctx ends. Only [Dispatcher.Start] calls it, once.
func (s *scheduler) start(ctx context.Context, wg *sync.WaitGroup) {
	s.life.ctx, s.life.wg = ctx, wg
	for range recorders {
		wg.Go(func() { s.recorder.run(ctx) })
	}
	wg.Go(func() { s.settler.run(ctx) })
	wg.Go(func() { s.run() })
}

// retire makes the scheduler stop claiming. The returned channel is closed when nothing is in flight. Any goroutine may
// call it.
func (s *scheduler) retire() <-chan struct{} {
	s.mailbox.post(func() { s.life.retiring = true })
	return s.life.idle
}

func (s *scheduler) run() {
	defer s.life.cutSends()
	post := newMail()
	for s.life.ctx.Err() == nil {
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
		if s.life.retiring && s.claims.running == 0 && s.attempts.count() == 0 {
			s.life.retired()
		}
		s.wait()
	}
}

// readMail handles one batch of mail.
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

// wait sleeps until mail arrives, or until the next time at which the scheduler must act.
func (s *scheduler) wait() {
	next := s.polls.next
	if first, ok := s.timers.first(); ok && first.Before(next) {
		next = first
	}
	if s.polls.nextPart.Before(next) && s.inMemory+s.attempts.count() > smallQueue { // with fewer messages in memory, no session has enough of them for pollPart
		next = s.polls.nextPart
	}
	now := s.cfg.Clock.Now()
	if at := s.claims.resume; at.After(now) && at.Before(next) {
		next = at
	}
	d := min(next.Sub(now), s.cfg.Poll) // at most Poll, so that a clock that was set back does not lengthen the wait
	if d <= 0 {
		return
	}
	fired, release := s.cfg.Clock.After(d)
	defer release()
	select {
	case <-s.mailbox.wake:
	case <-fired:
	case <-s.life.ctx.Done():
	}
}

// fireTimers handles the timers that are due.
func (s *scheduler) fireTimers(now time.Time) {
	for t := s.timers.next(now); t != nil; t = s.timers.next(now) {
		switch {
		case t.message != nil:
			t.message.parked = false
			s.enqueueDue(t.message)
		case t.queue != nil:
			s.endPause(t.queue, now)
			s.fair.activate(t.queue)
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
