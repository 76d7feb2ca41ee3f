package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// Config is what a sender needs. Store, Caller and Node must be set.
type Config struct {
	Store  puntuale.OutboxStore
	Caller *Caller
	Node   func() puntuale.NodeID // 0: the node has no lease
	Clock  clock.Clock            // nil: the system's
	Logger *slog.Logger           // nil: slog.Default
	Meter  Meter                  // nil: none
	Random func() float64         // from 0 to 1, for jitter; nil: a random one
}

// Meter gets the sender's figures.
type Meter interface {
	Attempted(result string) // delivered, failed (it is tried again), given_up or gone
	TaskDone(name string, at time.Time)
	TaskFailed(name string)
}

// Bounds of what one node does at once.
const (
	poolSize     = 256  // attempts to receivers that answer, and as many to slow ones
	mostAtOnce   = 768  // attempts in all: those to receivers that answered before, and hang now, are over a pool
	perFree      = 16   // a receiver gets at most one of so many free places, and at least one
	mostQueued   = 8192 // deliveries in memory
	mostUnkept   = 256  // results that are not on disk yet: a crash repeats them
	mostRead     = 256  // webhooks in one read
	mostLook     = 512  // receivers at which one look by the clock looks
	perLook      = 200 * time.Microsecond
	ownEvery     = time.Second
	lookPoll     = 200 * time.Millisecond // between looks for due deliveries, if nothing wakes
	ownSoon      = lookPoll
	ownedFor     = 3 * time.Second // after the store said so; then no attempt begins
	stopLongest  = 5 * time.Second // for attempts in flight
	recordWithin = 2 * time.Second // for the last results
)

// Sender delivers the events of the webhooks that its node owns. Start and Stop may be called more than once.
type Sender struct {
	cfg    Config
	health *health

	wake     chan struct{} // facts were written
	numbered chan struct{} // deliveries were made
	ended    chan endedAttempt
	found    chan reading

	mu      sync.Mutex
	stop    func(context.Context) error // nil: not started
	stopped bool
}

// New returns a sender. It does nothing before Start.
func New(cfg Config) *Sender {
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Meter == nil {
		cfg.Meter = noMeter{}
	}
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	s := &Sender{cfg: cfg, wake: make(chan struct{}, 1), numbered: make(chan struct{}, 1), ended: make(chan endedAttempt, mostAtOnce), found: make(chan reading, 1)}
	s.health = newHealth(&s.cfg)
	return s
}

type noMeter struct{}

func (noMeter) Attempted(string)           {}
func (noMeter) TaskDone(string, time.Time) {}
func (noMeter) TaskFailed(string)          {}

// Wake says that events may have been written. It may be called at any time and never blocks. Without it the sender looks by itself.
func (s *Sender) Wake() { signal(s.wake) }

// Healthy returns nil while the store does what the sender asks. The error says what has failed for a while.
func (s *Sender) Healthy() error { return s.health.err() }

// Start begins to number and to send.
func (s *Sender) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil || s.stopped {
		return
	}
	attempts, cut := context.WithCancel(context.Background())
	records, giveUp := context.WithCancel(context.Background())
	running, end := context.WithCancel(attempts)
	recorder := newRecorder(s)
	var parts sync.WaitGroup
	parts.Go(func() { recorder.run(records) })
	parts.Go(func() { s.number(running) })
	parts.Go(func() {
		newScheduler(s, recorder, attempts).run(running)
		recorder.close()
		for range recorder.done { // until the last is on disk
		}
	})
	s.stop = func(ctx context.Context) error {
		end()
		over := make(chan struct{})
		go func() { parts.Wait(); close(over) }()
		defer giveUp()
		defer cut()
		if s.within(ctx, over, stopLongest) {
			return nil
		}
		cut()
		if s.within(ctx, over, recordWithin) {
			return nil
		}
		giveUp()
		<-over
		return fmt.Errorf("record what receivers answered: %w", context.DeadlineExceeded)
	}
}

// within waits for the end, for at most so long, and reports whether it came.
func (s *Sender) within(ctx context.Context, over <-chan struct{}, most time.Duration) bool {
	late, release := s.cfg.Clock.After(most)
	defer release()
	select {
	case <-over:
		return true
	case <-late:
	case <-ctx.Done():
	}
	return false
}

// Stop begins no attempt any more, waits a while for those in flight, and records them. It gives up what is left then: the next owner
// attempts it again.
func (s *Sender) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.stop == nil {
		return nil
	}
	stop := s.stop
	s.stop = nil
	return stop(ctx)
}

// deliveryKey names a delivery.
type deliveryKey struct {
	webhook puntuale.WebhookID
	client  puntuale.ClientID
	seq     int64
}

func keyOf(d *puntuale.Delivery) deliveryKey { return deliveryKey{d.Webhook, d.Client, d.Seq} }

// endedAttempt is an attempt that came to its end.
type endedAttempt struct {
	delivery puntuale.Delivery
	begun    time.Time
	answer   answer
	cut      bool // by a stop, before its end
}

// attempt makes one attempt in a goroutine of its own.
func (s *Sender) attempt(ctx context.Context, t puntuale.WebhookTarget, d puntuale.DueDelivery, begun time.Time) {
	a := s.cfg.Caller.attempt(ctx, &t, &d.Event)
	s.ended <- endedAttempt{delivery: d.Delivery, begun: begun, answer: a, cut: a.status == 0 && ctx.Err() != nil}
}
