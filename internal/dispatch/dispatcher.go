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

// Config is what a dispatcher needs. Durations that are zero get the defaults below.
type Config struct {
	Queue puntuale.Queue
	Fleet puntuale.Fleet
	// Connector gives the way out of a session. It is nil if there is none: the session is never online then. It must answer from memory,
	// and the same for as long as the session exists.
	Connector func(puntuale.Session) puntuale.Connector

	// Elsewhere gets the wakeups for sessions of other nodes, so that their [Dispatcher.TakeWakeup] gets them. It must not block. nil: no other
	// node is told.
	Elsewhere puntuale.Wakeup

	// Departed returns the moments when messages of a session left since a moment, latest first, and at most most of
	// them. The pace for a day needs it. nil: each node counts from the moment when it gets a session.
	Departed func(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, since time.Time, most int) ([]time.Time, error)

	// Mark returns the mark that replaces an erased person's number in a client's blacklist. The dispatcher calls it only for clients that
	// erased persons, from many goroutines at once. nil: their messages wait.
	Mark func(client puntuale.ClientID, phone string) string

	Clock  clock.Clock            // nil: the system's
	Meter  puntuale.DispatchMeter // nil: none
	Logger *slog.Logger           // nil: slog.Default

	Lease          time.Duration // of the node, prolonged each Beat; default 6 s
	Beat           time.Duration // default a third of Lease
	Poll           time.Duration // between looks at all sessions; default 1 s
	Horizon        time.Duration // how far ahead messages are read and prepared; default 2 s
	UncertainAfter time.Duration // an attempt without an answer becomes FAILED; default 24 h

	Sessions Sessions // nil: connectors have their sessions open at once

	// Observe, if set, gets each attempt's outcome when it is known, before it is recorded. Many goroutines call it at once.
	Observe func(puntuale.DueMessage, puntuale.Content, puntuale.Outcome)
}

// Sessions opens and closes what the node owns. Own and Release must not block.
type Sessions interface {
	// Own says that the node owns exactly these sessions from now on. Those in leaving are about to go to another node:
	// Own does not open them, and Release closes them.
	Own(node puntuale.NodeID, sessions []puntuale.Session, leaving map[puntuale.SessionID]bool)
	// Release closes a session that has nothing in flight. It calls done once another node may open the session.
	Release(session puntuale.SessionID, done func())
	// ReleaseAll closes all sessions, before the node leaves. It returns once they are closed, or ctx ends.
	ReleaseAll(ctx context.Context)
}

const (
	stopWait  = 20 * time.Second // how long Stop waits for messages in flight
	leaveWait = 5 * time.Second
	closeSoon = 500 * time.Millisecond // how long all sessions may take to close; then those that closed are freed
	callWait  = 15 * time.Second       // how long one call of the store may take
	horizon   = 2 * time.Second
)

// Dispatcher sends what is due for the sessions that its node owns. Start and Stop may be called more than once, also at
// the same time. A dispatcher that was stopped does not start again.
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

// New returns a dispatcher. It does nothing before Start.
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
	if cfg.Elsewhere == nil {
		cfg.Elsewhere = func(puntuale.SessionID, time.Time) {}
	}
	defaults := []struct {
		of   *time.Duration
		want time.Duration
	}{
		{&cfg.Lease, 6 * time.Second}, {&cfg.Poll, time.Second}, {&cfg.Horizon, horizon},
		{&cfg.UncertainAfter, 24 * time.Hour},
	}
	for _, d := range defaults {
		if *d.of <= 0 {
			*d.of = d.want
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

// Start joins the fleet, takes the node's sessions and begins to send. It returns once it is safe to claim. If it fails,
// it returns the error and leaves nothing running. ctx bounds the start only.
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

// Stop claims no more, waits until everything in flight is recorded, frees the node's sessions and leaves the fleet. After
// 20 s, or when ctx ends, it gives up the attempts that are left: they count as unanswered. The error says what was left
// unfinished.
func (d *Dispatcher) Stop(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.started {
		d.started = true // so a Start that comes after this Stop does nothing
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
	// The caller may stop waiting for messages in flight. Leaving is brief, and spares the other nodes a wait for the lease.
	ctx = context.WithoutCancel(ctx)
	if d.cfg.Sessions != nil {
		d.release(ctx)
	}
	leave, cancel := context.WithTimeout(ctx, leaveWait)
	defer cancel()
	if err := d.membership.leave(leave); err != nil {
		errs = append(errs, fmt.Errorf("leave the fleet: %w", err))
	} else {
		d.cfg.Elsewhere(0, time.Time{})
	}
	return errors.Join(errs...)
}

// release closes the node's sessions. While one session hangs, the others are already free.
func (d *Dispatcher) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveWait)
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

// abandon cuts the attempts that are still under way. Their outcomes have a last chance to be recorded.
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

// Wake says that the session has something due at a moment, or, with a zero moment, that sessions changed. It never blocks. Several wakeups
// at once count as one. A wakeup for a session that another node may own is passed on.
func (d *Dispatcher) Wake(session puntuale.SessionID, due time.Time) { d.wake(session, due, true) }

// TakeWakeup is Wake for a wakeup of another node. It does not pass the wakeup on. If no node has the session yet, only the node that should
// have it acts. Session 0: any session may be free.
func (d *Dispatcher) TakeWakeup(session puntuale.SessionID, due time.Time) {
	d.wake(session, due, false)
}

func (d *Dispatcher) wake(session puntuale.SessionID, due time.Time, here bool) {
	if !due.After(d.cfg.Clock.Now().Add(d.cfg.Horizon)) { // else the poll finds it in time
		d.mailbox.addWakeup(session, due, here)
	}
}

// Soon returns the Wakeup of a node without a dispatcher. It passes on the wakeups that other nodes would act on.
func Soon(c clock.Clock, elsewhere puntuale.Wakeup) puntuale.Wakeup {
	return func(session puntuale.SessionID, due time.Time) {
		if !due.After(c.Now().Add(horizon)) {
			elsewhere(session, due)
		}
	}
}

// Drain stops new attempts of a session until a moment. Then the session continues by itself. The channel is closed once nothing of it is
// in flight and every outcome is on disk. It is closed at once if the session is not the node's.
func (d *Dispatcher) Drain(session puntuale.SessionID, until time.Time) <-chan struct{} {
	quiet := make(chan struct{})
	d.mailbox.post(func() { d.sched.drain(session, until, quiet) })
	return quiet
}

// Resume ends a drain before its time.
func (d *Dispatcher) Resume(session puntuale.SessionID) {
	d.mailbox.post(func() { d.sched.endDrain(d.sched.queues[session]) })
}

// Node is the node that owns the sessions here now, 0 for none.
func (d *Dispatcher) Node() puntuale.NodeID { return puntuale.NodeID(d.sched.health.owner.Load()) }

// Healthy returns nil while this node may claim and the store answers. The error says what is wrong.
func (d *Dispatcher) Healthy() error { return d.sched.health.err() }
