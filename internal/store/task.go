package store

import (
	"context"
	"sync/atomic"
)

// kind is a kind of task. Tasks of a joining kind that wait together are done by one set of statements.
type kind struct {
	name  string
	limit int // weight of the tasks that may be joined; 0: each task by itself
	lane  lane
	class class

	background bool // its tasks are nobody's call

	// prepare runs before the transaction begins; nil: nothing to prepare.
	prepare func(ctx context.Context, w *writer, tasks []*task) error

	// run does the tasks' work inside a transaction. It may run several times for the same tasks (after a deadlock,
	// or to find the one that fails), so it sets every answer anew. An error undoes the work of all; a refusal that
	// concerns one task alone goes into its refused, and must leave nothing of that task behind.
	run func(ctx context.Context, w *writer, tasks []*task) error

	// check tells whether the tasks' transaction committed, after its connection was lost during COMMIT; nil: nobody
	// can tell.
	check func(ctx context.Context, w *writer, tasks []*task) (committed bool, err error)
}

// class says with whom a task shares a transaction on SQLite, and who takes turns there.
type class int8

const (
	classMixed class = iota // with all others of this class
	classClaim              // with nobody
	classFeed               // with nobody
	classes
)

const (
	taskWaiting int32 = iota
	taskBegun         // from now on the caller gets the true result
	taskDropped       // the caller left first
)

// task is one caller's wish, in a writer's queue.
type task struct {
	kind   *kind
	lane   lane
	owner  int64 // a client, or the negative of a partner; 0: nobody outside
	weight int   // messages, or the like; at least 1
	body   any   // what a joining kind works on
	do     func(ctx context.Context, a asker) error
	dated  bool // writes rows that are read in the order of the moments that they bear
	state  atomic.Int32
	done   chan error
	taken  bool // out of the queue; the writer's lock guards it

	refused error // set by run: the answer, while the transaction stands
	waited  int   // how often it was given up for a lock; such a task is not joined with others
	later   bool  // set by run: not done in this transaction, to be queued again
}

// begin reports whether the task may be done: its caller waits for it, or it was begun before.
func (t *task) begin() bool {
	return t.state.Load() == taskBegun || t.state.CompareAndSwap(taskWaiting, taskBegun)
}

// of names whose task it is.
func (t *task) of(owner int64) *task {
	t.owner = owner
	return t
}

// single makes a task that is a transaction by itself (on SQLite a savepoint in a shared one).
func single(k *kind, do func(ctx context.Context, a asker) error) *task {
	return &task{kind: k, weight: 1, do: do, done: make(chan error, 1)}
}

// dated is single for a task whose rows are read in the order of the moments that they bear.
func dated(k *kind, do func(ctx context.Context, a asker) error) *task {
	t := single(k, do)
	t.dated = true
	return t
}

// joined makes a task of a joining kind.
func joined(k *kind, weight int, body any) *task {
	return &task{kind: k, weight: max(1, weight), body: body, done: make(chan error, 1)}
}

// newSingle is a kind whose tasks bring their own work along.
func newSingle(name string, l lane) *kind {
	return &kind{name: name, lane: l, run: func(ctx context.Context, w *writer, tasks []*task) error {
		return tasks[0].do(ctx, &w.link)
	}}
}

// unit is what stands or falls as a whole: one task, or several of a joining kind.
type unit struct {
	kind   *kind
	tasks  []*task
	weight int
	err    error
}

// neverSure makes a transaction run again whose commit is in doubt.
func neverSure(context.Context, *writer, []*task) (bool, error) { return false, nil }
