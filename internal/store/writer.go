package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"puntuale"
)

// writer commits what callers want, many at once: while one transaction is on its way to the disk the next tasks
// queue, and all of them share the following one. Nothing is delayed on purpose. One goroutine works; tasks that touch
// the same client go to the same writer, so that writers of one node do not wait for each other.
type writer struct {
	db   *DB
	link link
	ids  idBlock

	mu      sync.Mutex
	queue   []*task
	served  map[party]int // when the owners of what was taken had their last turn; nil while nothing waits
	turn    int           // counts them
	last    class         // of the last round
	wake    chan struct{} // holds one sign that the queue or closing changed
	closing bool
	done    chan struct{}
}

const (
	queueBound = 4096 // tasks; calls beyond it are turned away
	roundBound = 1024 // tasks taken at once
	maxTries   = 10   // of a transaction that fails for a passing reason
)

func (s *DB) startWriter(l link) *writer {
	w := &writer{db: s, link: l, wake: make(chan struct{}, 1), done: make(chan struct{})}
	s.writers.all = append(s.writers.all, w)
	go w.loop()
	return w
}

// perform queues the task and waits for its result. A caller whose context or patience ends before its task has begun
// takes it out again; after that it waits for the true result.
func (w *writer) perform(ctx context.Context, t *task, urgent bool) error {
	if err := ctx.Err(); err != nil {
		return outward(err)
	}
	patience := puntuale.PatienceOf(ctx)
	t.lane = laneOf(t.kind, patience, urgent)
	if t.call() {
		w.db.lastCall.Store(new(w.db.machine.Now()))
	}
	if err := w.submit(t, urgent); err != nil {
		return err
	}
	var gone error
	select {
	case err := <-t.done:
		patience.Begin()
		return err
	case <-patience.Ends():
		gone = puntuale.Overloaded(0)
	case <-ctx.Done():
		gone = outward(ctx.Err())
	}
	if t.state.CompareAndSwap(taskWaiting, taskDropped) {
		return gone
	}
	patience.Begin()
	return <-t.done
}

func (w *writer) submit(t *task, urgent bool) error {
	if err := w.db.Failure(); err != nil {
		return err
	}
	if err := w.db.watch.away(); err != nil {
		return puntuale.Unavailable(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closing:
		return puntuale.Unavailable(errors.New("the store is closed"))
	case urgent:
		w.queue = slices.Insert(w.queue, 0, t)
	case len(w.queue) >= queueBound && t.lane == laneCall:
		return puntuale.Overloaded(0)
	default:
		w.queue = append(w.queue, t)
	}
	w.signal()
	return nil
}

// signal wakes the loop; w.mu is held.
func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// close lets the loop finish what is queued, and waits for it.
func (w *writer) close() {
	w.mu.Lock()
	w.closing = true
	w.signal()
	w.mu.Unlock()
	<-w.done
}

func (w *writer) loop() {
	defer close(w.done)
	defer w.link.drop()
	for {
		all, closing := w.next()
		switch {
		case len(all) > 0:
			w.commit(all)
			w.db.checkpoints.committed(&w.link)
		case closing:
			return
		default:
			<-w.wake
		}
	}
}

// putBack queues tasks again, before all others.
func (w *writer) putBack(tasks []*task) {
	if len(tasks) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range tasks {
		t.taken = false
	}
	w.queue = slices.Insert(w.queue, 0, tasks...)
	w.signal()
}

// putLast queues a task again, after all others.
func (w *writer) putLast(t *task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.taken = false
	w.queue = append(w.queue, t)
	w.signal()
}

// commit brings the units to disk in one transaction and answers their tasks. Units that fail are tried again by
// themselves, and their tasks one by one, so that one bad task hurts nobody else.
func (w *writer) commit(all []*unit) {
	begun := w.db.cfg.Clock.Now()
	err := w.persist(all)
	took := w.db.cfg.Clock.Now().Sub(begun)
	for _, u := range all {
		if err != nil {
			u.err = err
		}
		switch {
		case u.err == nil:
			w.db.cfg.Meter.Batch(u.kind.name, len(u.tasks), took)
			w.answer(u)
		case len(u.tasks) == 1 && lockedOut(u.err) && u.tasks[0].waited < lockWaits-1:
			u.tasks[0].waited++
			w.putLast(u.tasks[0])
		case hopeless(u.err), len(u.tasks) == 1 && (len(all) == 1 || decided(u.err)):
			for _, t := range u.tasks {
				t.done <- outward(u.err)
			}
		case len(all) > 1:
			w.commit([]*unit{{kind: u.kind, tasks: u.tasks}})
		default:
			for _, t := range u.tasks {
				w.commit([]*unit{{kind: u.kind, tasks: []*task{t}}})
			}
		}
	}
}

// decided reports an error that is the answer: running again would give the same.
func decided(err error) bool {
	return errors.Is(err, puntuale.ErrFenced) || puntuale.CodeOf(err) != puntuale.CodeInternal
}

// hopeless reports an error that would meet every task alike.
func hopeless(err error) bool {
	return lost(err) || exhausted(err) || broken(err) || corrupt(err) || puntuale.StoreAway(err)
}

func (w *writer) answer(u *unit) {
	var later []*task
	for _, t := range u.tasks {
		if t.later {
			t.later = false
			later = append(later, t)
			continue
		}
		t.done <- outward(t.refused)
	}
	w.putBack(later)
}

// persist runs the units' transaction, again when it fails for a passing reason. After its error nothing of any unit
// is stored, or it says that nobody knows.
func (w *writer) persist(all []*unit) error {
	for try := 1; ; try++ {
		ctx, cancel := w.db.deadline()
		err := w.attempt(ctx, all, try)
		if err != nil && ctx.Err() != nil && puntuale.CodeOf(err) == puntuale.CodeInternal {
			err = fmt.Errorf("%w: %w", errAway, err) // our own limit, nobody's who called
		}
		cancel()
		switch {
		case err == nil:
			return nil
		case broken(err):
			w.db.fail(err)
			return err
		case corrupt(err):
			w.db.noticed(err)
			return err
		case puntuale.StoreAway(err) || try == maxTries:
			return err
		case lost(err):
			// Lost before COMMIT was sent, so nothing was stored. An old connection deserves one more try.
			w.link.drop()
			if try > 2 {
				return err
			}
		case passing(err) && (w.link.d.postgres || try < 3): // SQLite has waited busyTimeout each time
			if !errors.Is(err, errAgain) {
				w.db.cfg.Meter.Deadlock()
			}
		default:
			return err
		}
	}
}

// attempt is one transaction.
func (w *writer) attempt(ctx context.Context, all []*unit, try int) error {
	l := &w.link
	if err := l.connect(ctx); err != nil {
		return err
	}
	for _, u := range all {
		u.err = nil
		for _, t := range u.tasks {
			t.refused, t.later = nil, false
		}
		if u.kind.prepare != nil {
			if err := u.kind.prepare(ctx, w, u.tasks); err != nil {
				return err
			}
		}
	}
	if err := l.begin(ctx); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	begun := w.db.cfg.Clock.Now()
	for _, u := range all {
		if len(all) == 1 {
			if err := u.kind.run(ctx, w, u.tasks); err != nil {
				return errors.Join(fmt.Errorf("%s: %w", u.kind.name, err), l.rollback(ctx))
			}
			continue
		}
		if err := w.guarded(ctx, u); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", u.kind.name, err), l.rollback(ctx))
		}
	}
	if stale(all, begun, w.db.cfg.Clock.Now()) && try <= staleTries {
		return errors.Join(fmt.Errorf("its moments are too old to commit: %w", errAgain), l.rollback(ctx))
	}
	err := l.commit(ctx)
	if err == nil {
		return nil
	}
	if lost(err) || l.d.postgres && unsure(err) {
		l.drop()
		return w.resolve(all, err)
	}
	return errors.Join(fmt.Errorf("commit: %w", err), l.rollback(ctx))
}

// Who reads outcomes in the order of their moments goes on once the last he saw is two seconds old. So a transaction that
// waited for locks, and would commit moments older than datedMost, runs again with newer ones; but not more often than
// staleTries, because what is slow by itself must end, too.
const (
	datedMost  = time.Second
	staleTries = 2
)

func stale(all []*unit, begun, now time.Time) bool {
	return now.Sub(begun) > datedMost && slices.ContainsFunc(all, func(u *unit) bool {
		return slices.ContainsFunc(u.tasks, func(t *task) bool { return t.dated })
	})
}

// guarded runs one unit of several, so that its failure undoes its own work only.
func (w *writer) guarded(ctx context.Context, u *unit) error {
	if _, err := w.link.exec(ctx, "savepoint unit"); err != nil {
		return err
	}
	if u.err = u.kind.run(ctx, w, u.tasks); u.err == nil {
		_, err := w.link.exec(ctx, "release unit")
		return err
	}
	if hopeless(u.err) {
		return u.err
	}
	if _, err := w.link.exec(ctx, "rollback to unit"); err != nil {
		return err
	}
	_, err := w.link.exec(ctx, "release unit")
	return err
}

// resolve finds out, on a new connection, whether a transaction whose connection broke during COMMIT is on disk.
func (w *writer) resolve(all []*unit, cause error) error {
	ctx, cancel := w.db.deadline()
	defer cancel()
	for _, u := range all {
		if u.kind.check == nil {
			return inDoubt(cause)
		}
		if err := w.link.connect(ctx); err != nil {
			return inDoubt(errors.Join(cause, err))
		}
		committed, err := u.kind.check(ctx, w, u.tasks)
		for waited := 1; lockedOut(err) && waited < lockWaits; waited++ {
			if err = w.link.connect(ctx); err == nil { // the one it had may be gone by now
				committed, err = u.kind.check(ctx, w, u.tasks)
			}
		}
		switch {
		case err != nil:
			w.link.drop()
			return inDoubt(errors.Join(cause, err))
		case !committed:
			return fmt.Errorf("not committed: %w", errAgain)
		}
	}
	return nil
}

// deadline bounds one transaction: one that waits must not hold the queue for good.
func (s *DB) deadline() (context.Context, context.CancelFunc) {
	if s.d.postgres {
		return context.WithTimeout(s.watch.context(), 2*statementTimeout)
	}
	return context.Background(), func() {} // a context that can end costs the SQLite driver a goroutine a statement
}

const (
	statementTimeout = 15 * time.Second
	listTimeout      = 10 * time.Second // of what lists, unless Config says otherwise
	workTimeout      = 5 * time.Minute  // of what maintains the store
	lockTimeout      = 2 * time.Second  // for which a writer, and all who queue at it, stand still at a time
	lockWaits        = 5                // times that a task waits for a lock, with others let by in between
)

// tenantWriter is the writer of a client's calls, always the same of this node.
func (s *DB) tenantWriter(client int64) *writer {
	return s.tenants[uint64(client)%uint64(len(s.tenants))]
}
