package dispatch

import (
	"slices"
	"time"

	"puntuale"
)

// orderWait is how long a message in retry holds back later ones to the same recipient.
const orderWait = time.Minute

// recipient keeps the order of one session's messages to one phone: by (due, run, step), a later one waits while an
// earlier is in flight, and at most orderWait while it is in retry. Repeats of unanswered attempts stand outside of it.
type recipient struct {
	queue []*entry // in memory and not yet claimed, in order
	busy  *entry   // being claimed or sent
	holds []hold
}

// hold is an earlier message in retry. It outlives the message's absence from memory.
type hold struct {
	turn  turn
	until time.Time // no longer in the way of others
	next  time.Time // of the message, on disk
	keep  time.Time // forgotten
	tries int       // preparations that failed
}

func (r *recipient) idle() bool { return len(r.queue) == 0 && r.busy == nil && len(r.holds) == 0 }

func (r *recipient) add(e *entry) {
	t := turnOf(&e.m)
	if n := len(r.queue); n == 0 || turnOf(&r.queue[n-1].m).compare(t) < 0 {
		r.queue = append(r.queue, e)
		return
	}
	at, _ := slices.BinarySearchFunc(r.queue, t, func(x *entry, t turn) int { return turnOf(&x.m).compare(t) })
	r.queue = slices.Insert(r.queue, at, e)
}

func (r *recipient) remove(e *entry) {
	if len(r.queue) > 0 && r.queue[0] == e {
		r.queue[0] = nil
		r.queue = r.queue[1:]
		return
	}
	if at := slices.Index(r.queue, e); at >= 0 {
		r.queue = slices.Delete(r.queue, at, at+1)
	}
}

// turnFor tells whether it is e's turn; if not, wait is the moment after which to ask again, zero when an event will
// tell.
func (r *recipient) turnFor(e *entry, now time.Time) (ok bool, wait time.Time) {
	if r.busy != nil {
		return false, time.Time{}
	}
	for _, x := range r.queue {
		if x == e {
			break
		}
		if x.due(now) || x.stage == settling {
			return false, time.Time{}
		}
	}
	if len(r.holds) == 0 {
		return true, time.Time{}
	}
	mine := turnOf(&e.m)
	for i := range r.holds {
		h := &r.holds[i]
		if h.turn.compare(mine) < 0 && now.Before(h.until) && h.until.After(wait) {
			wait = h.until
		}
	}
	return wait.IsZero(), wait
}

// hold notes that a message went into retry at a moment and will not be looked at before next. Only the first time
// counts for those that wait. It returns how often its preparation failed, this time included if prepare is set.
func (r *recipient) hold(m *puntuale.DueMessage, since, next time.Time, prepare bool) (tries int) {
	t := turnOf(m)
	at := slices.IndexFunc(r.holds, func(h hold) bool { return h.turn.id == t.id })
	if at < 0 {
		at = len(r.holds)
		r.holds = append(r.holds, hold{turn: t, until: since.Add(orderWait)})
	}
	h := &r.holds[at]
	h.next = next
	if keep := next.Add(orderWait); keep.After(h.keep) {
		h.keep = keep
	}
	if prepare {
		h.tries++
	}
	return h.tries
}

// release forgets that a message was in retry.
func (r *recipient) release(id puntuale.MessageID) {
	if len(r.holds) > 0 {
		r.holds = slices.DeleteFunc(r.holds, func(h hold) bool { return h.turn.id == id })
	}
}

// held tells whether a message in retry is in the way of others.
func (r *recipient) held(now time.Time) bool {
	return slices.ContainsFunc(r.holds, func(h hold) bool { return now.Before(h.until) })
}

// lift takes a message in retry out of the way, if it is still the one to be tried again at next. What is known of its
// preparations stays.
func (r *recipient) lift(id puntuale.MessageID, next time.Time) bool {
	for i := range r.holds {
		if h := &r.holds[i]; h.turn.id == id && h.next.Equal(next) {
			h.until = time.Time{}
			return true
		}
	}
	return false
}

// tries is how often the message's preparation failed.
func (r *recipient) tries(id puntuale.MessageID) int {
	for i := range r.holds {
		if r.holds[i].turn.id == id {
			return r.holds[i].tries
		}
	}
	return 0
}

// sweep forgets holds that are over.
func (r *recipient) sweep(now time.Time) {
	r.holds = slices.DeleteFunc(r.holds, func(h hold) bool { return !now.Before(h.keep) })
}

// nextParked is the first message that waits for its turn.
func (r *recipient) nextParked() *entry {
	for _, x := range r.queue {
		if x.parked {
			return x
		}
	}
	return nil
}
