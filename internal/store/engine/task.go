package engine

import (
	"context"
	"sync/atomic"
	"time"
)

// Kind is a kind of task. Waiting tasks of a joining kind are done together by one set of statements.
type Kind struct {
	Name     string
	Limit    int // weight of the tasks that may be joined; 0: each task by itself
	Priority Priority
	Class    Class

	Background bool // no caller waits for its tasks

	// Gather is how long a task may wait for others of its kind, counted from when the writer last took some. So a task that comes alone
	// does not wait.
	Gather time.Duration

	// prepare runs before the transaction begins; nil: nothing to prepare.
	Prepare func(ctx context.Context, w *Writer, tasks []*Task) error

	// Run does the tasks' work inside a transaction. It may run several times for the same tasks (after a deadlock, or to find the one that
	// fails), so it sets every answer anew. An error undoes the work of all tasks. If one task is refused, Run sets its Refused. Then
	// nothing of that task may stay in the database.
	Run func(ctx context.Context, w *Writer, tasks []*Task) error

	// Check tells whether the tasks' transaction committed, after its connection was lost during COMMIT. nil: that cannot be found out.
	Check func(ctx context.Context, w *Writer, tasks []*Task) (committed bool, err error)
}

// Class says which tasks share a transaction on SQLite. Transactions of different classes alternate.
type Class int8

const (
	classMixed Class = iota // shares with all others of this class
	ClassClaim              // its unit is alone in a transaction
	ClassFeed               // its unit is alone in a transaction
	classes
)

const (
	taskWaiting int32 = iota
	taskBegun         // the caller now waits for the result
	taskDropped       // the caller left before the task began
)

// Task is one caller's transaction, in a writer's queue.
type Task struct {
	Kind     *Kind
	priority Priority
	Owner    int64 // a client, or the negative of a partner; 0: the service itself
	Weight   int   // how much work it is, for example messages; at least 1
	Body     any   // what a joining kind works on
	Run      func(ctx context.Context, a Querier) error
	Dated    bool // its rows have moments, and readers list them in that order
	state    atomic.Int32
	Done     chan error
	taken    bool // not in the queue any more; guarded by the writer's lock

	Refused error // Run sets it: the caller's answer, although the transaction commits
	waited  int   // how often it waited too long for a lock; such a task is not joined with others
	Later   bool  // Run sets it: not done in this transaction, so it is queued again
}

// begin reports whether the task may run: its caller still waits, or the task was begun before.
func (t *Task) begin() bool {
	return t.state.Load() == taskBegun || t.state.CompareAndSwap(taskWaiting, taskBegun)
}

// Of sets the owner of a task.
func (t *Task) Of(owner int64) *Task {
	t.Owner = owner
	return t
}

// Single makes a task that is a separate transaction (on SQLite a savepoint in a shared one).
func Single(k *Kind, do func(ctx context.Context, a Querier) error) *Task {
	return &Task{Kind: k, Weight: 1, Run: do, Done: make(chan error, 1)}
}

// SingleDated is Single for a task whose rows readers list in the order of their moments.
func SingleDated(k *Kind, do func(ctx context.Context, a Querier) error) *Task {
	t := Single(k, do)
	t.Dated = true
	return t
}

// Joined makes a task of a joining kind.
func Joined(k *Kind, weight int, body any) *Task {
	return &Task{Kind: k, Weight: max(1, weight), Body: body, Done: make(chan error, 1)}
}

// NewSingle makes a kind of tasks that have their own functions.
func NewSingle(name string, l Priority) *Kind {
	return &Kind{Name: name, Priority: l, Run: func(ctx context.Context, w *Writer, tasks []*Task) error {
		return tasks[0].Run(ctx, &w.Conn)
	}}
}

// taskGroup commits or fails as a whole: one task, or several of a joining kind.
type taskGroup struct {
	kind   *Kind
	tasks  []*Task
	weight int
	err    error
}

// RunAgain is a Check. If a COMMIT is in doubt, it makes the writer run the transaction again.
func RunAgain(context.Context, *Writer, []*Task) (bool, error) { return false, nil }
