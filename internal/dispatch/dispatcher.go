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

// Config is what a dispatcher needs. Durations left zero take the defaults below.
type Config struct {
	Queue puntuale.Queue
	Fleet puntuale.Fleet
	// Connector gives the way out of a session, nil where there is none: the session then never counts as online. It
	// must answer from memory, and the same for as long as the session exists.
	Connector func(puntuale.Session) puntuale.Connector

	// Elsewhere is told of hints that concern sessions of other nodes, for [Dispatcher.Heard] of those; nil: nobody is.
	// It must not block.
	Elsewhere puntuale.Hint

	// Departed returns when messages of a session left since a moment, latest first, at most so many: what its pace for a
	// day has to know. nil: nobody knows, and each node counts from when it has a session.
	Departed func(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, since time.Time, most int) ([]time.Time, error)

	// Mark is what stands for a phone in the blacklist of a client that erased persons. Asked for such clients only, by
	// many goroutines at once; nil: their messages wait.
	Mark func(client puntuale.ClientID, phone string) string

	Clock  clock.Clock            // nil: the system's
	Meter  puntuale.DispatchMeter // nil: none
	Logger *slog.Logger           // nil: slog.Default

	Lease          time.Duration // of the node, prolonged each Beat; default 6 s
	Beat           time.Duration // default a third of Lease
	Poll           time.Duration // between looks at all sessions; default 1 s
	Horizon        time.Duration // how far ahead messages are read and prepared; default 2 s
	UncertainAfter time.Duration // an attempt without an answer becomes FAILED; default 24 h

	Sessions Sessions // nil: nobody opens sessions, and connectors have theirs at once

	// Observe, if set, is told of each attempt's outcome once it is known, before it is recorded. Called by many
	// goroutines at once.
	Observe func(puntuale.DueMessage, puntuale.Content, puntuale.Outcome)
}

// Sessions is told which sessions the node owns, so that they are open while they are. Own and Release never block.
type Sessions interface {
	// Own says that the node owns exactly these sessions from now on. Those in leaving are about to go to another node:
	// they are closed by Release, not before, and not opened.
	Own(node puntuale.NodeID, sessions []puntuale.Session, leaving map[puntuale.SessionID]bool)
	// Release closes a session of which nothing is in flight, and calls done once another node may open it.
	Release(session puntuale.SessionID, done func())
	// ReleaseAll closes all sessions, before the node leaves. It returns once they are closed, or ctx ends.
	ReleaseAll(ctx context.Context)
}

const (
	stopWait  = 20 * time.Second // for what is in flight when stopping
	leaveWait = 5 * time.Second
	closeSoon = 500 * time.Millisecond // for all sessions to close: then those that did are free already
	callWait  = 15 * time.Second       // for one call of the store
	horizon   = 2 * time.Second
)

// Dispatcher sends what is due for the sessions that its node owns. Start and Stop may each be called more than once,
// also at the same time; a stopped dispatcher does not start again.
type Dispatcher struct {
	cfg      Config
	box      *mailbox
	sched    *scheduler
	member   *member
	mu       sync.Mutex
	started  bool
	stopOnce sync.Once
	stopErr  error
	cancel   context.CancelFunc // of all goroutines
	wg       sync.WaitGroup
}

// New prepares a dispatcher; it does nothing before Start.
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
	d := &Dispatcher{cfg: cfg, box: newMailbox()}
	d.sched = newScheduler(&d.cfg, d.box)
	d.member = newMember(&d.cfg, d.sched)
	d.sched.member = d.member
	return d
}

// Start joins the fleet, takes the node's sessions and begins to send. It returns once claiming is safe, or with the
// error that prevented it and nothing running; ctx bounds the start only.
func (d *Dispatcher) Start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.started {
		return nil
	}
	if err := d.member.join(ctx); err != nil {
		return fmt.Errorf("join the fleet: %w", err)
	}
	d.started = true
	run, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	d.sched.start(run, &d.wg)
	d.member.refresh(run)
	d.wg.Go(func() { d.member.keepLease(run) })
	d.wg.Go(func() { d.member.keepSessions(run) })
	return nil
}

// Stop claims no more, waits for what is in flight and for its recording (20 s at most, then attempts are given up and
// count as unanswered), frees the node's sessions and leaves the fleet. The error says what was left unfinished.
func (d *Dispatcher) Stop(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.started {
		d.started = true // a dispatcher stopped before its start stays down
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
	// The caller's patience is for what is in flight; leaving is brief and spares the others a lease's wait.
	ctx = context.WithoutCancel(ctx)
	if d.cfg.Sessions != nil {
		d.release(ctx)
	}
	leave, cancel := context.WithTimeout(ctx, leaveWait)
	defer cancel()
	if err := d.member.leave(leave); err != nil {
		errs = append(errs, fmt.Errorf("leave the fleet: %w", err))
	} else {
		d.cfg.Elsewhere(0, time.Time{})
	}
	return errors.Join(errs...)
}

// release closes the node's sessions. While one hangs, those that closed are free already.
func (d *Dispatcher) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveWait)
	defer cancel()
	left := len(d.sched.lanes)
	closed := make(chan puntuale.SessionID, left)
	for id := range d.sched.lanes {
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
			d.member.giveUp(ctx, free)
		}
		break
	}
	d.cfg.Sessions.ReleaseAll(ctx)
}

// abandon cuts the attempts still under way and gives their outcomes a last chance to be recorded.
func (d *Dispatcher) abandon(idle <-chan struct{}) error {
	d.sched.cutSends()
	fired, release := d.cfg.Clock.After(leaveWait)
	defer release()
	select {
	case <-idle:
		return nil
	case <-fired:
		return errors.New("attempts were left without a recorded outcome")
	}
}

// Hint tells that the session has something due at a moment, or, with a zero moment, that sessions changed. It never
// blocks; hints that come together are one. One for a session that another node may have is passed on to it.
func (d *Dispatcher) Hint(session puntuale.SessionID, due time.Time) { d.hint(session, due, true) }

// Heard is Hint for what another node told. It goes no further; and of a session that is nobody's yet, only the node
// that should have it takes notice. Session 0: any may be free.
func (d *Dispatcher) Heard(session puntuale.SessionID, due time.Time) { d.hint(session, due, false) }

func (d *Dispatcher) hint(session puntuale.SessionID, due time.Time, here bool) {
	if !due.After(d.cfg.Clock.Now().Add(d.cfg.Horizon)) { // else the poll finds it in time
		d.box.hint(session, due, here)
	}
}

// Soon passes on to other nodes what their dispatchers would act on: what a node hints that has none of its own.
func Soon(c clock.Clock, elsewhere puntuale.Hint) puntuale.Hint {
	return func(session puntuale.SessionID, due time.Time) {
		if !due.After(c.Now().Add(horizon)) {
			elsewhere(session, due)
		}
	}
}

// Rest lets no new attempt of a session begin until a moment, when it goes on by itself. The channel is closed once
// nothing of it is in flight, every outcome being on disk; at once for a session that is not the node's.
func (d *Dispatcher) Rest(session puntuale.SessionID, until time.Time) <-chan struct{} {
	quiet := make(chan struct{})
	d.box.post(func() { d.sched.rest(session, until, quiet) })
	return quiet
}

// Resume ends a rest before its time.
func (d *Dispatcher) Resume(session puntuale.SessionID) {
	d.box.post(func() { d.sched.restEnds(d.sched.lanes[session]) })
}

// Node is the node that the sessions here belong to now, 0 for none.
func (d *Dispatcher) Node() puntuale.NodeID { return puntuale.NodeID(d.sched.owner.Load()) }

// Healthy returns nil while this node may claim and the store answers; the error says what is wrong.
func (d *Dispatcher) Healthy() error { return d.sched.health.err() }
