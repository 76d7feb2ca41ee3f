package store

import (
	"cmp"
	"slices"

	"puntuale"
)

// lane says who goes first of those who wait at a writer.
type lane int8

const (
	laneSend    lane = iota // what sends, and what keeps the server in its fleet: it waits for no call
	lanePrevent             // calls that keep messages from being sent
	laneCall                // all other calls
	laneFeed                // what campaigns feed
)

// laneOf is the lane of a task that is done for a call with the patience.
func laneOf(k *kind, p *puntuale.Patience, urgent bool) lane {
	switch {
	case urgent:
		return laneSend
	case p.Prevents():
		return min(k.lane, lanePrevent)
	}
	return k.lane
}

// call reports a task that a caller waits for.
func (t *task) call() bool {
	return !t.kind.background && (t.lane == laneCall || t.lane == lanePrevent)
}

// party is those of a lane who belong together.
type party struct {
	owner int64
	lane  lane
}

// inTurn returns the tasks in the order in which they are to be done: by lane, and within one everybody's first before
// anybody's second, so that whoever asks for much waits behind himself; of several firsts that of the owner who had his
// turn longest ago. An owner's own tasks keep their order. w.mu is held.
func (w *writer) inTurn() []*task {
	if noChoice(w.queue) {
		return w.queue
	}
	type placed struct {
		*task
		turn, served int
	}
	turns := make(map[party]int, len(w.queue))
	all := make([]placed, len(w.queue))
	for i, t := range w.queue {
		r := party{t.owner, t.lane}
		all[i] = placed{t, turns[r], w.served[r]}
		if t.lane != laneSend { // which is nobody's
			turns[r]++
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.lane, b.lane), cmp.Compare(a.turn, b.turn), cmp.Compare(a.served, b.served))
	})
	return pick(all, func(p *placed) *task { return p.task })
}

// serve notes that a task's owner had a turn, for as long as others wait. w.mu is held.
func (w *writer) serve(t *task) {
	if t.lane == laneSend {
		return
	}
	if w.served == nil || len(w.served) >= queueBound {
		w.served = map[party]int{}
	}
	w.turn++
	w.served[party{t.owner, t.lane}] = w.turn
}

// noChoice reports tasks that one set of statements does, in whatever order, as is usual.
func noChoice(queue []*task) bool {
	weight := 0
	for _, t := range queue {
		if t.kind != queue[0].kind || t.waited > 0 {
			return false
		}
		if weight += t.weight; weight > t.kind.limit {
			return len(queue) == 1
		}
	}
	return true
}

// round is what one transaction does. On PostgreSQL that is one unit, because mixed in one transaction they would break the lock order.
// On SQLite claims, chunks of campaigns and all else take turns. A claim is alone because its messages are due now, and a chunk because
// a call should not wait for it. All else that waits goes together, as far as it goes.
type round struct {
	alone   bool // one unit
	units   []*unit
	joining map[*kind]*unit
	tasks   int
}

// place returns the unit that a task belongs to, made anew or there already; nil when the round has no place for it.
func (r *round) place(t *task) *unit {
	if r.tasks >= roundBound {
		return nil
	}
	u := r.joining[t.kind]
	switch {
	case t.waited > 0 || t.kind.limit == 0 || u == nil:
		if r.alone && len(r.units) > 0 || u != nil && t.kind.limit > 0 && t.waited == 0 {
			return nil
		}
		return &unit{kind: t.kind}
	case u.weight+t.weight > t.kind.limit:
		return nil
	}
	return u
}

// add puts the task into its unit.
func (r *round) add(t *task, u *unit) {
	r.tasks++
	if len(u.tasks) == 0 {
		r.units = append(r.units, u)
		if t.kind.limit > 0 && t.waited == 0 {
			r.joining[t.kind] = u
		}
	}
	u.tasks = append(u.tasks, t)
	u.weight += t.weight
}

// fill takes the tasks of a class, as far as there is a place for them.
func (r *round) fill(tasks []*task, of class) {
	for _, t := range tasks {
		if t.kind.class != of {
			continue
		}
		u := r.place(t)
		if u == nil {
			continue
		}
		if t.taken = t.begin(); t.taken {
			r.add(t, u)
		}
	}
}

// next takes the tasks of the next transaction out of the queue; their callers now get the true result. Classes that wait have their
// turns one after the other.
func (w *writer) next() (units []*unit, closing bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := round{joining: map[*kind]*unit{}}
	tasks := w.inTurn()
	for i := range classes {
		turn := (w.last + 1 + i) % classes
		r.alone = w.link.d.postgres || turn != classMixed
		if r.fill(tasks, turn); len(r.units) > 0 {
			w.last = turn
			break
		}
	}
	w.queue = slices.DeleteFunc(w.queue, func(t *task) bool { return t.taken || t.state.Load() == taskDropped })
	if len(w.queue) == 0 {
		w.served = nil
		return r.units, w.closing
	}
	for _, u := range r.units {
		for _, t := range u.tasks {
			w.serve(t)
		}
	}
	return r.units, w.closing
}
