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
type recipientOrder struct {
	queue    []*queuedMessage // in memory and not yet claimed, in order
	busy     *queuedMessage   // being claimed or sent
	barriers []retryBarrier
}

// turn is a message's place in its recipient's order.
type orderKey struct {
	due  int64
	run  puntuale.RunID
	step int
	id   puntuale.MessageID
}

func orderKeyOf(row *puntuale.DueMessage) orderKey {
	return orderKey{row.Due.UnixMicro(), row.Run, row.Step, row.ID}
}

func (k orderKey) compare(o orderKey) int {
	switch {
	case k.due != o.due:
		return compare(k.due, o.due)
	case k.run != o.run:
		return compare(k.run, o.run)
	case k.step != o.step:
		return compare(k.step, o.step)
	}
	return compare(k.id, o.id)
}

func compare[T int | int64 | puntuale.RunID | puntuale.MessageID](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// hold is an earlier message in retry. It outlives the message's absence from memory.
type retryBarrier struct {
	key    orderKey
	until  time.Time // no longer in the way of others
	next   time.Time // of the message, on disk
	forget time.Time // forgotten
	tries  int       // preparations that failed
}

func (r *recipientOrder) idle() bool {
	return len(r.queue) == 0 && r.busy == nil && len(r.barriers) == 0
}

func (r *recipientOrder) add(m *queuedMessage) {
	k := orderKeyOf(&m.row)
	if n := len(r.queue); n == 0 || orderKeyOf(&r.queue[n-1].row).compare(k) < 0 {
		r.queue = append(r.queue, m)
		return
	}
	at, _ := slices.BinarySearchFunc(r.queue, k, func(other *queuedMessage, k orderKey) int { return orderKeyOf(&other.row).compare(k) })
	r.queue = slices.Insert(r.queue, at, m)
}

func (r *recipientOrder) remove(m *queuedMessage) {
	if len(r.queue) > 0 && r.queue[0] == m {
		r.queue[0] = nil
		r.queue = r.queue[1:]
		return
	}
	if at := slices.Index(r.queue, m); at >= 0 {
		r.queue = slices.Delete(r.queue, at, at+1)
	}
}

// turnFor tells whether it is e's turn; if not, wait is the moment after which to ask again, zero when an event will
// tell.
func (r *recipientOrder) mayGo(m *queuedMessage, now time.Time) (ok bool, wait time.Time) {
	if r.busy != nil {
		return false, time.Time{}
	}
	for _, other := range r.queue {
		if other == m {
			break
		}
		if other.due(now) || other.stage == settling {
			return false, time.Time{}
		}
	}
	if len(r.barriers) == 0 {
		return true, time.Time{}
	}
	mine := orderKeyOf(&m.row)
	for i := range r.barriers {
		h := &r.barriers[i]
		if h.key.compare(mine) < 0 && now.Before(h.until) && h.until.After(wait) {
			wait = h.until
		}
	}
	return wait.IsZero(), wait
}

// hold notes that a message went into retry at a moment and will not be looked at before next. Only the first time
// counts for those that wait. It returns how often its preparation failed, this time included if prepare is set.
func (r *recipientOrder) addBarrier(row *puntuale.DueMessage, since, next time.Time, prepare bool) (tries int) {
	k := orderKeyOf(row)
	at := slices.IndexFunc(r.barriers, func(h retryBarrier) bool { return h.key.id == k.id })
	if at < 0 {
		at = len(r.barriers)
		r.barriers = append(r.barriers, retryBarrier{key: k, until: since.Add(orderWait)})
	}
	h := &r.barriers[at]
	h.next = next
	if keep := next.Add(orderWait); keep.After(h.forget) {
		h.forget = keep
	}
	if prepare {
		h.tries++
	}
	return h.tries
}

// release forgets that a message was in retry.
func (r *recipientOrder) removeBarrier(id puntuale.MessageID) {
	if len(r.barriers) > 0 {
		r.barriers = slices.DeleteFunc(r.barriers, func(h retryBarrier) bool { return h.key.id == id })
	}
}

// held tells whether a message in retry is in the way of others.
func (r *recipientOrder) barred(now time.Time) bool {
	return slices.ContainsFunc(r.barriers, func(h retryBarrier) bool { return now.Before(h.until) })
}

// lift takes a message in retry out of the way, if it is still the one to be tried again at next. What is known of its
// preparations stays.
func (r *recipientOrder) lift(id puntuale.MessageID, next time.Time) bool {
	for i := range r.barriers {
		if h := &r.barriers[i]; h.key.id == id && h.next.Equal(next) {
			h.until = time.Time{}
			return true
		}
	}
	return false
}

// tries is how often the message's preparation failed.
func (r *recipientOrder) tries(id puntuale.MessageID) int {
	for i := range r.barriers {
		if r.barriers[i].key.id == id {
			return r.barriers[i].tries
		}
	}
	return 0
}

// sweep forgets holds that are over.
func (r *recipientOrder) sweep(now time.Time) {
	r.barriers = slices.DeleteFunc(r.barriers, func(h retryBarrier) bool { return !now.Before(h.forget) })
}

// nextParked is the first message that waits for its turn.
func (r *recipientOrder) nextParked() *queuedMessage {
	for _, other := range r.queue {
		if other.parked {
			return other
		}
	}
	return nil
}
