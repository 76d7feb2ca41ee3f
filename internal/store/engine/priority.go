package engine

import (
	"cmp"
	"slices"
	"time"

	"puntuale"
)

// Priority says which waiting tasks of a writer run first.
type Priority int8

const (
	PrioritySend    Priority = iota // tasks that send messages or keep the node in the fleet; they do not wait for calls
	PriorityPrevent                 // calls that prevent messages from being sent, such as a stop
	PriorityCall                    // all other calls
	PriorityFeed                    // background work, such as chunks of campaigns, acts of automations, and events
)

// priorityOf returns the priority of a task. p is the admission deadline of its call, or nil.
func priorityOf(k *Kind, p *puntuale.AdmissionDeadline, urgent bool) Priority {
	switch {
	case urgent:
		return PrioritySend
	case p.Prevents():
		return min(k.Priority, PriorityPrevent)
	}
	return k.Priority
}

// call reports whether the task counts as a call: transactions give way to it, and campaigns slow down for it.
func (t *Task) call() bool {
	return !t.Kind.Background && (t.priority == PriorityCall || t.priority == PriorityPrevent)
}

// ownerTasks is the key of a group of tasks: they have the same owner and the same priority.
type ownerTasks struct {
	owner    int64
	priority Priority
}

// Bounds in bytes. A large task counts as several tasks of its owner, one for each turnBytes. A transaction has at most
// roundBytes, or one task.
const (
	turnBytes  = 16 << 10
	roundBytes = 1 << 20
)

// fairOrder returns the waiting tasks in the order in which they should run. Tasks are sorted by priority, then in
// rounds: each round has one task of each owner, or a part of a large task. So an owner with many tasks delays only its own tasks. Within a round,
// the owner that was served longest ago comes first. The tasks of one owner keep their order. The caller has locked
// w.mu.
func (w *Writer) fairOrder() []*Task {
	if noChoice(w.queue) {
		return w.queue
	}
	type ordered struct {
		*Task
		round, served int
	}
	rounds := make(map[ownerTasks]int, len(w.queue))
	all := make([]ordered, len(w.queue))
	for i, t := range w.queue {
		r := ownerTasks{t.Owner, t.priority}
		all[i] = ordered{t, rounds[r], w.served[r]}
		if t.priority != PrioritySend { // tasks of PrioritySend have no owner
			rounds[r] += 1 + t.Bytes/turnBytes
		}
	}
	slices.SortStableFunc(all, func(a, b ordered) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.round, b.round), cmp.Compare(a.served, b.served))
	})
	return Column(all, func(p *ordered) *Task { return p.Task })
}

// serve stores when the task's owner was served. The writer forgets this when no task waits. The caller has locked
// w.mu.
func (w *Writer) serve(t *Task) {
	if t.priority == PrioritySend {
		return
	}
	if w.served == nil || len(w.served) >= queueBound {
		w.served = map[ownerTasks]int{}
	}
	w.round++
	w.served[ownerTasks{t.Owner, t.priority}] = w.round + t.Bytes/turnBytes // as if the parts of a large task were served one after the other
}

// noChoice reports whether one set of statements can do all waiting tasks. Then their order does not matter. This is
// the usual case.
func noChoice(queue []*Task) bool {
	weight, bytes := 0, 0
	for _, t := range queue {
		if bytes += t.Bytes; bytes > roundBytes {
			return len(queue) == 1
		}
		if t.Kind != queue[0].Kind || t.waited > 0 {
			return false
		}
		if weight += t.Weight; weight > t.Kind.Limit {
			return len(queue) == 1
		}
	}
	return true
}

// writerRound contains the tasks of one transaction, grouped into units. On PostgreSQL a round has one unit, because
// several units in one transaction would break the order of locks.
//
// On SQLite, rounds of three classes alternate. A claim has its own round, because its messages are due now. A chunk of
// a campaign has its own round, so that calls do not wait for it. All other tasks share rounds, up to roundBound tasks.
type writerRound struct {
	alone   bool // the round has only one unit
	units   []*taskGroup
	joining map[*Kind]*taskGroup
	unripe  []*Kind // kinds whose waiting tasks must not run yet, because of Linger
	tasks   int
	bytes   int
}

// join returns the unit for a task, which may be a new unit. It returns nil if the round has no room for the task.
func (r *writerRound) join(t *Task) *taskGroup {
	if r.tasks >= roundBound || r.tasks > 0 && r.bytes+t.Bytes > roundBytes {
		return nil
	}
	u := r.joining[t.Kind]
	switch {
	case t.waited > 0 || t.Kind.Limit == 0 || u == nil:
		if r.alone && len(r.units) > 0 || u != nil && t.Kind.Limit > 0 && t.waited == 0 {
			return nil
		}
		return &taskGroup{kind: t.Kind}
	case u.weight+t.Weight > t.Kind.Limit:
		return nil
	}
	return u
}

// add adds the task to its unit.
func (r *writerRound) add(t *Task, u *taskGroup) {
	r.tasks++
	r.bytes += t.Bytes
	if len(u.tasks) == 0 {
		r.units = append(r.units, u)
		if t.Kind.Limit > 0 && t.waited == 0 {
			r.joining[t.Kind] = u
		}
	}
	u.tasks = append(u.tasks, t)
	u.weight += t.Weight
}

// fill adds tasks of one class to the round as long as there is room.
func (r *writerRound) fill(tasks []*Task, class Class) {
	for _, t := range tasks {
		if t.Kind.Class != class || slices.Contains(r.unripe, t.Kind) {
			continue
		}
		u := r.join(t)
		if u == nil {
			continue
		}
		if t.taken = t.begin(); t.taken {
			r.add(t, u)
		}
	}
}

// unripe returns the kinds of waiting tasks that must still wait because of Linger. rest is the time until the first of
// these kinds may run. The caller has locked w.mu.
func (w *Writer) unripe() (kinds []*Kind, rest time.Duration) {
	if w.closing {
		return nil, 0
	}
	var now time.Time
	for _, t := range w.queue {
		if t.Kind.Linger == 0 || slices.Contains(kinds, t.Kind) {
			continue
		}
		if now.IsZero() {
			now = w.DB.LocalClock.Now()
		}
		age := now.Sub(w.took[t.Kind])
		if age < 0 || age >= t.Kind.Linger { // age is negative if the clock was set back
			continue
		}
		if left := t.Kind.Linger - age; rest == 0 || left < rest {
			rest = left
		}
		kinds = append(kinds, t.Kind)
	}
	return kinds, rest
}

// next takes the tasks of the next transaction from the queue. From then on, their callers wait for the result. If
// tasks of several classes wait, the classes take turns. If tasks wait but must all wait longer because of Linger, next
// returns no units, and rest is the remaining time.
func (w *Writer) next() (units []*taskGroup, rest time.Duration, closing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := writerRound{joining: map[*Kind]*taskGroup{}}
	r.unripe, rest = w.unripe()
	tasks := w.fairOrder()
	for i := range classes {
		round := (w.last + 1 + i) % classes
		r.alone = w.Conn.dialect.Postgres || round != classMixed
		if r.fill(tasks, round); len(r.units) > 0 {
			w.last = round
			break
		}
	}
	for _, u := range r.units {
		if u.kind.Linger > 0 {
			w.took[u.kind] = w.DB.LocalClock.Now()
		}
	}
	w.queue = slices.DeleteFunc(w.queue, func(t *Task) bool { return t.taken || t.state.Load() == taskDropped })
	if len(w.queue) == 0 {
		w.served = nil
		return r.units, rest, w.closing
	}
	for _, u := range r.units {
		for _, t := range u.tasks {
			w.serve(t)
		}
	}
	return r.units, rest, w.closing
}
