package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// Config is the configuration of a [Dispatcher]. A duration of zero means the default that its comment names.
type Config struct {
	Queue puntuale.Queue
	Fleet puntuale.Fleet
	// Connector returns the connector of a session. nil means that there is none, and then the session is never online.
	// Connector must read only memory, and return the same connector as long as the session exists.
	Connector func(puntuale.Session) puntuale.Connector

	// Remote gets the wakeups for sessions of other nodes. It must deliver them to [Dispatcher.TakeWakeup] of the
	// other nodes, and must not block. If Remote is nil, other nodes get no wakeups.
	Remote puntuale.Wakeup

	// Departed returns when the messages of a session left after the time in since, latest first. It returns at most as
	// many times as limit says. The limit of a session for one day needs these times. If Departed is nil, a node counts
	// only the messages that left while it owned the session.
	Departed func(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, since time.Time, limit int) ([]time.Time, error)

	// Mark returns the keyed hash that replaces an erased person's number in a client's blacklist. It must be safe for
	// concurrent use. The dispatcher calls it only for clients that erased persons. If Mark is nil, the messages of
	// these clients wait.
	Mark func(client puntuale.ClientID, phone string) string

	Clock  clock.Clock  // nil: the system's clock
	Meter  Meter        // nil: figures are ignored
	Logger *slog.Logger // nil: slog.Default

	Lease          time.Duration // length of the node's lease, which is renewed every Beat; default 6 s
	Beat           time.Duration // default: a third of Lease
	Poll           time.Duration // time between two polls of all sessions; default 1 s
	Horizon        time.Duration // how long before their due times messages are read and prepared; default 2 s
	UncertainAfter time.Duration // time after which an attempt without an answer makes its message FAILED; default 24 h

	Sessions Sessions // nil: connectors open their sessions themselves

	// Observe gets the outcome of each attempt before the outcome is recorded. It may be nil. It must be safe for
	// concurrent use.
	Observe func(puntuale.DueMessage, puntuale.Content, puntuale.Outcome)
}

// Sessions opens and closes the sessions that the node owns. Own and Release must not block.
type Sessions interface {
	// Own receives all sessions that the node owns from now on. Sessions in the argument leaving will go to another
	// node. Own does not open them, and Release closes them.
	Own(node puntuale.NodeID, sessions []puntuale.Session, leaving map[puntuale.SessionID]bool)
	// Release closes a session that has no message in flight. It calls done when another node may open the session.
	Release(session puntuale.SessionID, done func())
	// ReleaseAll closes all sessions before the node leaves the fleet. It returns when they are closed, or when ctx
	// ends.
	ReleaseAll(ctx context.Context)
}

const (
	stopWait  = 20 * time.Second // how long Stop waits for messages in flight
	leaveWait = 5 * time.Second
	closeSoon = 500 * time.Millisecond // how long Stop waits for all sessions to close; after that, it frees the sessions that are closed
	callWait  = 15 * time.Second       // the longest time for one call of the store
	horizon   = 2 * time.Second
)

// Dispatcher sends the due messages of the sessions that its node owns. It is safe for concurrent use. Start and Stop
// may be called more than once. A dispatcher that was stopped cannot start again.
type Dispatcher struct {
	cfg        Config
	mailbox    *mailbox
	sched      *scheduler
	membership *membership
	mu         sync.Mutex
	started    bool
	stopOnce   sync.Once
	stopErr    error
	cancel     context.CancelFunc // ends all goroutines
	wg         sync.WaitGroup
}

// New returns a dispatcher. The dispatcher does nothing before Start.
func New(cfg Config) *Dispatcher {
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if cfg.Meter == nil {
		cfg.Meter = puntuale.NoMeter{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Connector == nil {
		cfg.Connector = func(puntuale.Session) puntuale.Connector { return nil }
	}
	if cfg.Remote == nil {
		cfg.Remote = func(puntuale.SessionID, time.Time) {}
	}
	defaults := []struct {
		setting *time.Duration
		value   time.Duration
	}{
		{&cfg.Lease, 6 * time.Second}, {&cfg.Poll, time.Second}, {&cfg.Horizon, horizon},
		{&cfg.UncertainAfter, 24 * time.Hour},
	}
	for _, d := range defaults {
		if *d.setting <= 0 {
			*d.setting = d.value
		}
	}
	if cfg.Beat <= 0 || cfg.Beat > cfg.Lease/2 {
		cfg.Beat = cfg.Lease / 3
	}
	d := &Dispatcher{cfg: cfg, mailbox: newMailbox()}
	d.sched = newScheduler(&d.cfg, d.mailbox)
	d.membership = newMembership(&d.cfg, d.sched)
	d.sched.membership = d.membership
	return d
}

// Start joins the fleet, takes the node's sessions and begins to send. It returns when the node may claim messages. If
// Start fails, no goroutine remains. ctx limits only Start itself, not the dispatcher.
func (d *Dispatcher) Start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.started {
		return nil
	}
	if err := d.membership.join(ctx); err != nil {
		return fmt.Errorf("join the fleet: %w", err)
	}
	d.started = true
	run, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	d.sched.start(run, &d.wg)
	d.membership.refresh(run)
	d.wg.Go(func() { d.membership.keepLease(run) })
	d.wg.Go(func() { d.membership.keepSessions(run) })
	return nil
}

// Retire ends claiming, so that nothing more begins to leave. What is in flight goes on until Stop.
func (d *Dispatcher) Retire() { d.sched.retire() }

// Stop ends claiming, waits until everything in flight is recorded, frees the node's sessions and leaves the fleet.
// After 20 s, or when ctx ends, it aborts the remaining attempts, which then count as unanswered. The error says which
// work was not finished.
func (d *Dispatcher) Stop(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.started {
		d.started = true // so that a later Start does nothing
		return nil
	}
	d.stopOnce.Do(func() {
		if d.cancel != nil {
			d.stopErr = d.stop(ctx)
		}
	})
	return d.stopErr
}

func (d *Dispatcher) stop(ctx context.Context) error {
	idle := d.sched.retire()
	fired, release := d.cfg.Clock.After(stopWait)
	defer release()
	var errs []error
	select {
	case <-idle:
	case <-fired:
		errs = append(errs, d.abandon(idle))
	case <-ctx.Done():
		errs = append(errs, d.abandon(idle))
	}
	d.cancel()
	d.wg.Wait()
	if d.cfg.Sessions != nil {
		d.release(ctx)
	}
	// Leave the fleet even if ctx has ended, because this is quick. If the node did not leave, other nodes would wait
	// for the end of its lease.
	ctx = context.WithoutCancel(ctx)
	leave, cancel := context.WithTimeout(ctx, leaveWait)
	defer cancel()
	if err := d.membership.leave(leave); err != nil {
		errs = append(errs, fmt.Errorf("leave the fleet: %w", err))
	} else {
		d.cfg.Remote(0, time.Time{})
	}
	return errors.Join(errs...)
}

// release closes the node's sessions. If a session does not close in time, release frees the closed sessions first, and
// then waits for the rest until ctx ends. It waits for 2*closeSoon in any case, and for leaveWait at most.
func (d *Dispatcher) release(ctx context.Context) {
	wait := leaveWait
	if end, has := ctx.Deadline(); has {
		wait = min(wait, max(2*closeSoon, end.Sub(d.cfg.Clock.Now())))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer cancel()
	left := len(d.sched.queues)
	closed := make(chan puntuale.SessionID, left)
	for id := range d.sched.queues {
		d.cfg.Sessions.Release(id, func() { closed <- id })
	}
	fired, release := d.cfg.Clock.After(closeSoon)
	defer release()
	var free []puntuale.SessionID
	for ; left > 0; left-- {
		select {
		case id := <-closed:
			free = append(free, id)
			continue
		case <-fired:
			d.membership.giveUp(ctx, free)
		}
		break
	}
	d.cfg.Sessions.ReleaseAll(ctx)
}

// abandon aborts the attempts that still run. It then waits a short time until their outcomes are recorded.
func (d *Dispatcher) abandon(idle <-chan struct{}) error {
	d.sched.life.cutSends()
	fired, release := d.cfg.Clock.After(leaveWait)
	defer release()
	select {
	case <-idle:
		return nil
	case <-fired:
		return errors.New("attempts were left without a recorded outcome")
	}
}

// Wake reports that a message of the session is due. The argument due is the message's due time. If due is zero, Wake
// reports that sessions changed. Wake never blocks. Several wakeups at the same time have the effect of one. If another
// node may own the session, Wake passes the wakeup on.
func (d *Dispatcher) Wake(session puntuale.SessionID, due time.Time) { d.wake(session, due, true) }

// TakeWakeup handles a wakeup that another node passed on. Unlike Wake, it does not pass the wakeup on again. If no
// node owns the session yet, only the node that should own it acts. Session 0 means that any session may be free.
func (d *Dispatcher) TakeWakeup(session puntuale.SessionID, due time.Time) {
	d.wake(session, due, false)
}

func (d *Dispatcher) wake(session puntuale.SessionID, due time.Time, local bool) {
	if !due.After(d.cfg.Clock.Now().Add(d.cfg.Horizon)) { // the poll finds later messages in time
		d.mailbox.addWakeup(session, due, local)
	}
}

// RemoteWakeup returns the Wakeup of a node without a dispatcher. It passes on a wakeup only if other nodes would act
// on it.
func RemoteWakeup(c clock.Clock, remote puntuale.Wakeup) puntuale.Wakeup {
	return func(session puntuale.SessionID, due time.Time) {
		if !due.After(c.Now().Add(horizon)) {
			remote(session, due)
		}
	}
}

// Drain prevents new attempts of a session until the time in the argument end. Then the session continues by itself.
// The channel is closed when nothing of the session is in flight and every outcome is on disk. If the node does not own
// the session, the channel is closed immediately.
func (d *Dispatcher) Drain(session puntuale.SessionID, end time.Time) <-chan struct{} {
	quiet := make(chan struct{})
	d.mailbox.post(func() { d.sched.drain(session, end, quiet) })
	return quiet
}

// Resume ends a drain early.
func (d *Dispatcher) Resume(session puntuale.SessionID) {
	d.mailbox.post(func() { d.sched.endDrain(d.sched.queues[session]) })
}

// Node returns the id of the node that owns this dispatcher's sessions now, or 0 if it owns none.
func (d *Dispatcher) Node() puntuale.NodeID { return puntuale.NodeID(d.sched.health.owner.Load()) }

// Healthy returns nil if this node may claim and the store answers. Otherwise the error explains the problem.
func (d *Dispatcher) Healthy() error { return d.sched.health.err() }
