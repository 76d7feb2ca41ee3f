package delivery

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

// Config is the configuration of a [Sender]. Store, Caller and Node must be set.
type Config struct {
	Store  Store
	Caller *Caller
	Node   func() puntuale.NodeID // 0: the node has no lease
	Clock  clock.Clock            // nil: the system's clock
	Logger *slog.Logger           // nil: slog.Default
	Meter  Meter                  // nil: nothing is counted
	Random func() float64         // returns a number from 0 to 1 for jitter; nil: rand.Float64
}

// Meter counts the sender's results.
type Meter interface {
	Attempted(result string) // result is delivered, failed (another attempt will come), given_up or gone
	TaskDone(name string, at time.Time)
	TaskFailed(name string)
}

// Limits of one node.
const (
	poolSize      = 256  // the most attempts in flight to receivers that answer; slow receivers have another pool of the same size
	maxAtOnce     = 768  // the most attempts in flight; more than both pools together, because receivers may become slow during their attempts
	perFree       = 16   // a receiver gets at most a sixteenth of the free attempts of its pool, but at least one
	maxQueued     = 8192 // the most deliveries in memory
	maxUnrecorded = 256  // the most results that are not on disk yet; after a crash the events of these results are sent again
	maxRead       = 256  // the most webhooks in one read
	maxLook       = 512  // how many receivers the method look marks at most in one call, if no new deliveries were made
	perLook       = 200 * time.Microsecond
	ownEvery      = time.Second
	lookPoll      = 200 * time.Millisecond // time between two calls of look, if no new deliveries are made
	ownSoon       = lookPoll
	ownedFor      = 3 * time.Second // how long the answer of OwnWebhooks is valid; without a newer answer no attempt begins
	stopLongest   = 5 * time.Second // how long Stop waits for attempts in flight
	recordWithin  = 2 * time.Second // how long Stop then waits until the last results are on disk
)

// Sender delivers the events of the webhooks that its node owns. Start and Stop may be called more than once.
type Sender struct {
	cfg    Config
	health *health

	numbered chan struct{} // signals that deliveries were made
	ended    chan endedAttempt
	found    chan reading

	mu      sync.Mutex
	stop    func(context.Context) error // stops the goroutines; nil: they do not run
	stopped bool
}

// New returns a sender. The sender starts no work before Start.
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
	s := &Sender{cfg: cfg, numbered: make(chan struct{}, 1), ended: make(chan endedAttempt, maxAtOnce), found: make(chan reading, 1)}
	s.health = newHealth(&s.cfg)
	return s
}

type noMeter struct{}

func (noMeter) Attempted(string)           {}
func (noMeter) TaskDone(string, time.Time) {}
func (noMeter) TaskFailed(string)          {}

// Healthy returns nil while the sender's calls of the store succeed. The error describes calls that have failed for at
// least unhealthyAfter.
func (s *Sender) Healthy() error { return s.health.err() }

// Start begins to number events and to send them.
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
		recorder.Close()
		for range recorder.done { // wait until the last results are on disk
		}
	})
	s.stop = func(ctx context.Context) error {
		end()
		ended := make(chan struct{})
		go func() { parts.Wait(); close(ended) }()
		defer giveUp()
		defer cut()
		if s.within(ctx, ended, stopLongest) {
			return nil
		}
		cut()
		if s.within(context.WithoutCancel(ctx), ended, recordWithin) {
			return nil
		}
		giveUp()
		<-ended
		return fmt.Errorf("record what receivers answered: %w", context.DeadlineExceeded)
	}
}

// The method named within waits until the channel in the argument ended is closed, but at most maxWait. It reports
// whether the channel was closed.
func (s *Sender) within(ctx context.Context, ended <-chan struct{}, maxWait time.Duration) bool {
	late, release := s.cfg.Clock.After(maxWait)
	defer release()
	select {
	case <-ended:
		return true
	case <-late:
	case <-ctx.Done():
	}
	return false
}

// Stop begins no new attempts, waits a while for those in flight, and records their results. Then it cancels the
// attempts that are still in flight. The next owner makes these attempts again.
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

// deliveryKey identifies a delivery.
type deliveryKey struct {
	webhook puntuale.WebhookID
	client  puntuale.ClientID
	seq     int64
}

func keyOf(d *puntuale.Delivery) deliveryKey { return deliveryKey{d.Webhook, d.Client, d.Seq} }

// endedAttempt is an attempt that has ended, with its answer.
type endedAttempt struct {
	delivery puntuale.Delivery
	begun    time.Time
	answer   answer
	cut      bool // a stop ended the attempt
}

// attempt makes one attempt and sends its result to the scheduler. It runs in its own goroutine.
func (s *Sender) attempt(ctx context.Context, t puntuale.WebhookTarget, d puntuale.DueDelivery, begun time.Time) {
	a := s.cfg.Caller.attempt(ctx, &t, &d.Event, d.Attempts > 0)
	s.ended <- endedAttempt{delivery: d.Delivery, begun: begun, answer: a, cut: a.status == 0 && ctx.Err() != nil}
}
