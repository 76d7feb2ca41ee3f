package engine

import (
	"context"
	"sync/atomic"
	"time"
)

// Kind is a task kind. If its tasks can be joined, one set of statements does several waiting tasks together.
type Kind struct {
	Name     string
	Limit    int // largest total weight of joined tasks; 0: tasks of this kind are not joined
	Priority Priority
	Class    Class

	// Background says that tasks of this kind do not count as calls. So other transactions do not give way to these tasks,
	// and campaigns do not slow down for them.
	Background bool

	// GivesWay: if a call arrives before the transaction's COMMIT, the writer undoes the transaction, does the call,
	// and runs the transaction again. Each task gives way at most maxGivenWay times. The kind must not join tasks. On
	// PostgreSQL this has no effect, because calls have writers of their own.
	GivesWay bool

	// Linger is how long tasks of this kind may wait for more tasks. The time counts from when the writer last took
	// tasks of this kind. So a task that comes long after the previous ones does not wait.
	Linger time.Duration

	// Prepare runs before the transaction begins. nil: nothing to prepare.
	Prepare func(ctx context.Context, w *Writer, tasks []*Task) error

	// Run does the work of the tasks inside a transaction. It may run several times for the same tasks: after a
	// deadlock, or to find the task that fails. So each execution must set every answer. If Run returns an error, the
	// work of all tasks is undone. To refuse one task, Run sets the task's Refused. Then Run must leave nothing of this
	// task in the database.
	Run func(ctx context.Context, w *Writer, tasks []*Task) error

	// Check finds out whether the transaction of the tasks committed, after the connection was lost during COMMIT. If
	// Check is nil, this cannot be found out.
	Check func(ctx context.Context, w *Writer, tasks []*Task) (committed bool, err error)
}

// Class says which tasks may share a transaction on SQLite. Transactions of different classes alternate.
type Class int8

const (
	classMixed Class = iota // tasks of this class share transactions
	ClassClaim              // a unit of this class has a transaction of its own
	ClassFeed               // a unit of this class has a transaction of its own
	classes
)

const (
	taskWaiting int32 = iota
	taskBegun         // the task has begun; its caller waits for the result
	taskDropped       // the caller stopped waiting before the task began
)

// Task is one caller's transaction in a writer's queue.
type Task struct {
	Kind        *Kind
	priority    Priority
	Owner       int64 // id of a client, or the negative id of a partner; 0: the service itself
	Bytes       int   // size of the data that the task writes; 0: not known, and small
	Weight      int   // amount of work, for example the number of messages; at least 1
	Body        any   // input for Run, if the kind joins tasks
	Run         func(ctx context.Context, a Querier) error
	Timestamped bool // readers list the task's rows in the order of their timestamps
	state       atomic.Int32
	Done        chan error
	taken       bool // true: the task is not in the queue any more; the writer's lock guards this field

	Refused error // set by Run: the error for this caller, although the transaction commits
	gaveWay int   // how often the task gave way to a call
	waited  int   // how often the task waited too long for a lock; after the first time, the task is not joined with others
	Later   bool  // set by Run: the task was not done in this transaction and must be queued again
}

// begin reports whether the task may run: its caller still waits, or the task has already begun.
func (t *Task) begin() bool {
	return t.state.Load() == taskBegun || t.state.CompareAndSwap(taskWaiting, taskBegun)
}

// ForOwner sets the owner of a task.
func (t *Task) ForOwner(owner int64) *Task {
	t.Owner = owner
	return t
}

// Single returns a task that has its own transaction. On SQLite, this is a savepoint in a shared transaction.
func Single(k *Kind, do func(ctx context.Context, a Querier) error) *Task {
	return &Task{Kind: k, Weight: 1, Run: do, Done: make(chan error, 1)}
}

// SingleTimestamped does the same as Single, for a task that writes rows with timestamps. Readers list these rows in
// the order of their timestamps.
func SingleTimestamped(k *Kind, do func(ctx context.Context, a Querier) error) *Task {
	t := Single(k, do)
	t.Timestamped = true
	return t
}

// Joined returns a task of a kind that joins tasks. weight is at least 1.
func Joined(k *Kind, weight int, body any) *Task {
	return &Task{Kind: k, Weight: max(1, weight), Body: body, Done: make(chan error, 1)}
}

// NewSingle returns a kind whose tasks each contain their own function.
func NewSingle(name string, l Priority) *Kind {
	return &Kind{Name: name, Priority: l, Run: func(ctx context.Context, w *Writer, tasks []*Task) error {
		return tasks[0].Run(ctx, &w.Conn)
	}}
}

// taskGroup is a unit that commits or fails as a whole: one task, or several joined tasks.
type taskGroup struct {
	kind   *Kind
	tasks  []*Task
	weight int
	err    error
}

// RunAgain is a Check for kinds whose tasks may run twice. If the result of a COMMIT is in doubt, the writer runs the
// transaction again.
func RunAgain(context.Context, *Writer, []*Task) (bool, error) { return false, nil }
