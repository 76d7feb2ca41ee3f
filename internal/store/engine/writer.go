package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"puntuale"
)

// Writer commits the tasks of many callers together. While one transaction is being written to disk, new tasks queue.
// They share the next transaction. The writer delays no task on purpose, except if the task's kind sets Linger. A
// writer is one goroutine. All calls of a client go to the same writer, so that the writers for calls do not wait for
// each other.
type Writer struct {
	DB   *DB
	Conn Conn
	IDs  idBlock

	mu      sync.Mutex
	queue   []*Task
	served  map[ownerTasks]int  // for each owner, the value of round when the owner was last served; nil while no task waits
	round   int                 // counts the tasks that were served
	last    Class               // class of the last round's tasks
	took    map[*Kind]time.Time // for each kind with Linger: when its tasks were last taken
	wake    chan struct{}       // has a value after queue or closing changed
	closing bool
	done    chan struct{}
}

const (
	queueBound = 4096 // if so many tasks are in the queue, the writer refuses further tasks of PriorityCall
	roundBound = 1024 // largest number of tasks in one round
	maxTries   = 10   // how often a transaction is tried if it fails for a reason that may pass
)

func (s *DB) startWriter(l Conn) *Writer {
	w := &Writer{DB: s, Conn: l, took: map[*Kind]time.Time{}, wake: make(chan struct{}, 1), done: make(chan struct{})}
	s.writers.all = append(s.writers.all, w)
	go w.loop()
	return w
}

// Do queues the task and waits for its result. If the caller's context or admission deadline ends before the task has
// begun, Do removes the task from the queue. After the task has begun, Do always waits for the result.
func (w *Writer) Do(ctx context.Context, t *Task, urgent bool) error {
	if err := ctx.Err(); err != nil {
		return PublicError(err)
	}
	deadline := puntuale.AdmissionDeadlineOf(ctx)
	t.priority = priorityOf(t.Kind, deadline, urgent)
	if t.call() {
		w.DB.LastCall.Store(new(w.DB.LocalClock.Now()))
	}
	if err := w.submit(t, urgent); err != nil {
		return err
	}
	var closed error
	select {
	case err := <-t.Done:
		deadline.Begin()
		return err
	case <-deadline.Ends():
		closed = puntuale.Overloaded(0)
	case <-ctx.Done():
		closed = PublicError(ctx.Err())
	}
	if t.state.CompareAndSwap(taskWaiting, taskDropped) {
		return closed
	}
	deadline.Begin()
	return <-t.Done
}

func (w *Writer) submit(t *Task, urgent bool) error {
	if err := w.DB.Failure(); err != nil {
		return err
	}
	if err := w.DB.Monitor.Unreachable(); err != nil {
		return puntuale.Unavailable(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closing:
		return puntuale.Unavailable(errors.New("the store is closed"))
	case urgent:
		w.queue = slices.Insert(w.queue, 0, t)
	case len(w.queue) >= queueBound && t.priority == PriorityCall:
		return puntuale.Overloaded(0)
	default:
		known := t.Kind.Linger > 0 && slices.ContainsFunc(w.queue, func(o *Task) bool { return o.Kind == t.Kind })
		if w.queue = append(w.queue, t); known {
			return nil // the loop waits until these tasks have waited long enough
		}
	}
	w.signal()
	return nil
}

// signal wakes the loop. The caller has locked w.mu.
func (w *Writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Waiting returns how many tasks wait in the queue.
func (w *Writer) Waiting() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.queue {
		if t.state.Load() == taskWaiting {
			n++
		}
	}
	return n
}

// close refuses new tasks, and waits until the loop has done the queued tasks.
func (w *Writer) close() {
	w.mu.Lock()
	w.closing = true
	w.signal()
	w.mu.Unlock()
	<-w.done
}

func (w *Writer) loop() {
	defer close(w.done)
	defer w.Conn.drop()
	for {
		all, rest, closing := w.next()
		switch {
		case len(all) > 0:
			w.commit(all)
			w.DB.checkpoints.committed(&w.Conn)
		case closing:
			return
		case rest > 0:
			ripe, stop := w.DB.LocalClock.After(rest)
			select {
			case <-ripe:
			case <-w.wake:
			}
			stop()
		default:
			<-w.wake
		}
	}
}

// putBack returns tasks to the front of the queue.
func (w *Writer) putBack(tasks []*Task) {
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

// putLast returns a task to the end of the queue.
func (w *Writer) putLast(t *Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.taken = false
	w.queue = append(w.queue, t)
	w.signal()
}

// commit writes the units to disk in one transaction, and sends the results to their callers. If the transaction fails,
// each unit is tried alone. Then each task of a failing unit is tried alone. So a bad task does not affect the others, even
// if it panics.
// Nothing is tried again after an error that all other tasks would get, too.
func (w *Writer) commit(all []*taskGroup) {
	begun := w.DB.Config.Clock.Now()
	err := w.persist(all)
	took := w.DB.Config.Clock.Now().Sub(begun)
	for _, u := range all {
		if err != nil {
			u.err = err
		}
		switch {
		case u.err == nil:
			w.DB.Config.Meter.Batch(u.kind.Name, len(u.tasks), took)
			w.answer(u)
		case len(u.tasks) == 1 && LockedOut(u.err) && u.tasks[0].waited < lockWaits-1:
			u.tasks[0].waited++
			w.putLast(u.tasks[0])
		case len(u.tasks) == 1 && errors.Is(u.err, errGaveWay):
			u.tasks[0].gaveWay++
			w.putLast(u.tasks[0])
		case hopeless(u.err), len(u.tasks) == 1 && (len(all) == 1 || decided(u.err)):
			for _, t := range u.tasks {
				t.Done <- PublicError(u.err)
			}
		case len(all) > 1:
			w.commit([]*taskGroup{{kind: u.kind, tasks: u.tasks}})
		default:
			for _, t := range u.tasks {
				w.commit([]*taskGroup{{kind: u.kind, tasks: []*Task{t}}})
			}
		}
	}
}

// decided reports whether an error is final, because the transaction would give the same error again.
func decided(err error) bool {
	return errors.Is(err, puntuale.ErrFenced) || puntuale.CodeOf(err) != puntuale.CodeInternal
}

// hopeless reports whether every other task would get the same error.
func hopeless(err error) bool {
	return lost(err) || exhausted(err) || broken(err) || corrupt(err) || puntuale.StoreAway(err)
}

func (w *Writer) answer(u *taskGroup) {
	var later []*Task
	for _, t := range u.tasks {
		if t.Later {
			t.Later = false
			later = append(later, t)
			continue
		}
		t.Done <- PublicError(t.Refused)
	}
	w.putBack(later)
}

// persist runs the transaction of the units. After a failure that may pass, it runs the transaction again. If it
// returns an error, either nothing of any unit is stored, or the error says that the result is unknown.
func (w *Writer) persist(all []*taskGroup) error {
	for try := 1; ; try++ {
		ctx, cancel := w.DB.deadline()
		err := w.attempt(ctx, all, try)
		if err != nil && ctx.Err() != nil && puntuale.CodeOf(err) == puntuale.CodeInternal {
			err = fmt.Errorf("%w: %w", errAway, err) // the writer's own time limit ended the transaction, not the limit of a caller
		}
		cancel()
		switch {
		case err == nil:
			return nil
		case broken(err):
			w.DB.fail(err)
			return err
		case corrupt(err):
			w.DB.noticed(err)
			return err
		case puntuale.StoreAway(err) || try == maxTries:
			return err
		case lost(err):
			// The connection was lost before COMMIT was sent, so nothing was stored. Try again, at most twice: perhaps
			// PostgreSQL only closed an old connection.
			w.Conn.drop()
			if try > 2 {
				return err
			}
		case passing(err) && (w.Conn.dialect.Postgres || try < 3): // on SQLite three tries are enough, because each has waited for busyTimeout
			if !errors.Is(err, ErrAgain) {
				w.DB.Config.Meter.Deadlock()
			}
		default:
			return err
		}
	}
}

// attempt runs one transaction.
func (w *Writer) attempt(ctx context.Context, all []*taskGroup, try int) error {
	l := &w.Conn
	if err := l.connect(ctx); err != nil {
		return err
	}
	for _, u := range all {
		u.err = nil
		for _, t := range u.tasks {
			t.Refused, t.Later = nil, false
		}
		if u.kind.Prepare != nil {
			if err := w.recovered(func() error { return u.kind.Prepare(ctx, w, u.tasks) }); err != nil {
				return err
			}
		}
	}
	if err := l.Begin(ctx); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if w.givesWay(all) {
		l.giveWay = w.callWaits
		defer func() { l.giveWay = nil }()
	}
	begun := w.DB.Config.Clock.Now()
	for _, u := range all {
		if len(all) == 1 {
			if err := w.run(ctx, u); err != nil {
				return errors.Join(fmt.Errorf("%s: %w", u.kind.Name, err), l.Rollback(ctx))
			}
			continue
		}
		if err := w.guarded(ctx, u); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", u.kind.Name, err), l.Rollback(ctx))
		}
	}
	if stale(all, begun, w.DB.Config.Clock.Now()) && try <= staleTries {
		return errors.Join(fmt.Errorf("its moments are too old to commit: %w", ErrAgain), l.Rollback(ctx))
	}
	err := l.Commit(ctx)
	if err == nil {
		return nil
	}
	if lost(err) || l.dialect.Postgres && Unsure(err) {
		l.drop()
		return w.resolve(all, err)
	}
	return errors.Join(fmt.Errorf("commit: %w", err), l.Rollback(ctx))
}

// maxGivenWay is how often a task gives way to calls. Afterwards its transaction runs to its end, because otherwise many
// calls could stop the task for ever.
const maxGivenWay = 5

// errGaveWay ends a transaction because a call arrived.
var errGaveWay = errors.New("the transaction gave way to a call")

// givesWay reports whether the transaction of the units gives way to calls.
func (w *Writer) givesWay(all []*taskGroup) bool {
	return !w.Conn.dialect.Postgres && len(all) == 1 && all[0].kind.GivesWay && all[0].tasks[0].gaveWay < maxGivenWay
}

// callWaits returns errGaveWay if a call waits in the queue.
func (w *Writer) callWaits() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.queue {
		if t.call() && t.state.Load() == taskWaiting {
			return errGaveWay
		}
	}
	return nil
}

// Readers list outcomes in the order of their timestamps. They continue after the last outcome that they saw, as soon
// as this outcome is two seconds old. So a transaction that waited for locks must not commit timestamps older than
// maxTimestampAge. If they are older, the transaction runs again with newer timestamps. It runs again at most staleTries
// times, because even a slow transaction must end.
const (
	maxTimestampAge = time.Second
	staleTries      = 2
)

func stale(all []*taskGroup, begun, now time.Time) bool {
	return now.Sub(begun) > maxTimestampAge && slices.ContainsFunc(all, func(u *taskGroup) bool {
		return slices.ContainsFunc(u.tasks, func(t *Task) bool { return t.Timestamped })
	})
}

// guarded runs one of several units in a savepoint, so that a failure undoes only this unit's work.
func (w *Writer) guarded(ctx context.Context, u *taskGroup) error {
	if _, err := w.Conn.Exec(ctx, "savepoint unit"); err != nil {
		return err
	}
	if u.err = w.run(ctx, u); u.err == nil {
		_, err := w.Conn.Exec(ctx, "release unit")
		return err
	}
	if hopeless(u.err) || w.Conn.conn == nil { // after a panic, the transaction is gone
		return u.err
	}
	if _, err := w.Conn.Exec(ctx, "rollback to unit"); err != nil {
		return err
	}
	_, err := w.Conn.Exec(ctx, "release unit")
	return err
}

func (w *Writer) run(ctx context.Context, u *taskGroup) error {
	return w.recovered(func() error { return u.kind.Run(ctx, w, u.tasks) })
}

// recovered calls a function of a task's kind. A panic is an error of this task, because the writer works for all clients.
// recovered then closes the connection: the panic may have left it in the middle of a statement, and closing it is certain
// to undo the transaction.
func (w *Writer) recovered(do func() error) error {
	err := puntuale.Recovered(do)
	if puntuale.Panicked(err) {
		w.Conn.drop()
	}
	return err
}

// resolve is called after a connection broke during COMMIT. It uses a new connection to find out whether the
// transaction is on disk.
func (w *Writer) resolve(all []*taskGroup, cause error) error {
	ctx, cancel := w.DB.deadline()
	defer cancel()
	for _, u := range all {
		if u.kind.Check == nil {
			return inDoubt(cause)
		}
		if err := w.Conn.connect(ctx); err != nil {
			return inDoubt(errors.Join(cause, err))
		}
		committed, err := u.kind.Check(ctx, w, u.tasks)
		for waited := 1; LockedOut(err) && waited < lockWaits; waited++ {
			if err = w.Conn.connect(ctx); err == nil { // the old connection may be lost by now
				committed, err = u.kind.Check(ctx, w, u.tasks)
			}
		}
		switch {
		case err != nil:
			w.Conn.drop()
			return inDoubt(errors.Join(cause, err))
		case !committed:
			return fmt.Errorf("not committed: %w", ErrAgain)
		}
	}
	return nil
}

// deadline returns the context for one transaction, with a time limit. Without the limit, a waiting transaction could
// block the queue for ever.
func (s *DB) deadline() (context.Context, context.CancelFunc) {
	if s.Dialect.Postgres {
		return context.WithTimeout(s.Monitor.context(), 2*statementTimeout)
	}
	return context.Background(), func() {} // no limit on SQLite, where a context that can end would cost one goroutine for each statement
}

const (
	statementTimeout = 15 * time.Second
	listTimeout      = 10 * time.Second // time limit for reading a list, unless Config sets another value
	workTimeout      = 5 * time.Minute  // time limit for a read of maintenance
	lockTimeout      = 2 * time.Second  // longest wait of a writer for one lock; meanwhile all tasks in the writer's queue wait
	lockWaits        = 5                // how often a task waits for a lock; between two waits, other tasks run first
)

// TenantWriter returns the writer for an owner's calls. On one node, an owner always gets the same writer. The first
// writer serves partners, whose owner is negative, and owner 0.
func (s *DB) TenantWriter(owner int64) *Writer {
	return s.TenantWriters[uint64(max(0, owner))%uint64(len(s.TenantWriters))]
}
