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

	Background bool // its tasks are nobody's call

	// Gather is how long a task may wait for others of its kind, counted from when the writer last took some. So a task that comes alone
	// does not wait.
	Gather time.Duration

	// prepare runs before the transaction begins; nil: nothing to prepare.
	Prepare func(ctx context.Context, w *Writer, tasks []*Task) error

	// run does the tasks' work inside a transaction. It may run several times for the same tasks (after a deadlock, or to find the one that
	// fails), so it sets every answer anew. An error undoes the work of all. A refusal of one task goes into its Refused. Then nothing of
	// that task may stay in the database.
	Run func(ctx context.Context, w *Writer, tasks []*Task) error

	// check tells whether the tasks' transaction committed, after its connection was lost during COMMIT; nil: nobody
	// can tell.
	Check func(ctx context.Context, w *Writer, tasks []*Task) (committed bool, err error)
}

// Class says which tasks share a transaction on SQLite, and which alternate there.
type Class int8

const (
	classMixed Class = iota // with all others of this class
	ClassClaim              // with nobody
	ClassFeed               // with nobody
	classes
)

const (
	taskWaiting int32 = iota
	taskBegun         // from now on the caller gets the true result
	taskDropped       // the caller left first
)

// Task is one caller's transaction, in a writer's queue.
type Task struct {
	Kind     *Kind
	priority Priority
	Owner    int64 // a client, or the negative of a partner; 0: nobody outside
	Weight   int   // messages, or the like; at least 1
	Body     any   // what a joining kind works on
	Run      func(ctx context.Context, a Querier) error
	Dated    bool // writes rows that are read in the order of the moments that they bear
	state    atomic.Int32
	Done     chan error
	taken    bool // out of the queue; the writer's lock guards it

	Refused error // set by run: the answer, while the transaction stands
	waited  int   // how often it was given up for a lock; such a task is not joined with others
	Later   bool  // set by run: not done in this transaction, to be queued again
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

// NewSingle is a kind whose tasks bring their own work.
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

// RunAgain makes a transaction run again whose commit is in doubt.
func RunAgain(context.Context, *Writer, []*Task) (bool, error) { return false, nil }
