package dispatch

import (
	"cmp"
	"slices"
	"time"

	"puntuale"
)

// orderWait is how long a message in retry holds back later messages to the same recipient.
const orderWait = time.Minute

// recipientOrder contains the order of one session's messages to one recipient: by due time, run, step and id. A later
// message waits while an earlier message is in flight. If an earlier message is in retry, a later message waits for at
// most orderWait. Repeats are not part of the order.
type recipientOrder struct {
	queue    []*queuedMessage // messages in memory that are not claimed yet, in order
	busy     *queuedMessage   // the message that is being claimed or sent
	barriers []retryBarrier
}

// orderKey is the position of a message in its recipient order.
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
		return cmp.Compare(k.due, o.due)
	case k.run != o.run:
		return cmp.Compare(k.run, o.run)
	case k.step != o.step:
		return cmp.Compare(k.step, o.step)
	}
	return cmp.Compare(k.id, o.id)
}

// retryBarrier represents an earlier message in retry. It exists even while the message itself is not in memory.
type retryBarrier struct {
	key    orderKey
	end    time.Time // from this time on, the barrier holds back no messages
	next   time.Time // the time of the message's next attempt, as on disk
	forget time.Time // when the barrier is deleted
	tries  int       // number of failed preparations
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

// mayGo reports whether m is the next message. If not, wait is the time to check again. A zero wait means that an event
// will wake the message.
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
	key := orderKeyOf(&m.row)
	for i := range r.barriers {
		b := &r.barriers[i]
		if b.key.compare(key) < 0 && now.Before(b.end) && b.end.After(wait) {
			wait = b.end
		}
	}
	return wait.IsZero(), wait
}

// addBarrier records that a message went into retry at the time in since. Its next attempt may begin at the time in
// next. Later messages count their wait from the first retry of this message. prepare is true if the preparation failed.
func (r *recipientOrder) addBarrier(row *puntuale.DueMessage, since, next time.Time, prepare bool) {
	k := orderKeyOf(row)
	at := slices.IndexFunc(r.barriers, func(b retryBarrier) bool { return b.key.id == k.id })
	if at < 0 {
		at = len(r.barriers)
		r.barriers = append(r.barriers, retryBarrier{key: k, end: since.Add(orderWait)})
	}
	b := &r.barriers[at]
	b.next = next
	if keep := next.Add(orderWait); keep.After(b.forget) {
		b.forget = keep
	}
	if prepare {
		b.tries++
	}
}

// removeBarrier records that a message is no longer in retry.
func (r *recipientOrder) removeBarrier(id puntuale.MessageID) {
	if len(r.barriers) > 0 {
		r.barriers = slices.DeleteFunc(r.barriers, func(b retryBarrier) bool { return b.key.id == id })
	}
}

// barred reports whether a message in retry holds back other messages now.
func (r *recipientOrder) barred(now time.Time) bool {
	return slices.ContainsFunc(r.barriers, func(b retryBarrier) bool { return now.Before(b.end) })
}

// lift ends the barrier of a message in retry, if the barrier's time of the next attempt equals the argument next.
// Later messages to the recipient may then leave. The count of failed preparations does not change.
func (r *recipientOrder) lift(id puntuale.MessageID, next time.Time) bool {
	for i := range r.barriers {
		if b := &r.barriers[i]; b.key.id == id && b.next.Equal(next) {
			b.end = time.Time{}
			return true
		}
	}
	return false
}

// tries returns how many preparations of the message have failed.
func (r *recipientOrder) tries(id puntuale.MessageID) int {
	for i := range r.barriers {
		if r.barriers[i].key.id == id {
			return r.barriers[i].tries
		}
	}
	return 0
}

// sweep deletes old barriers.
func (r *recipientOrder) sweep(now time.Time) {
	r.barriers = slices.DeleteFunc(r.barriers, func(b retryBarrier) bool { return !now.Before(b.forget) })
}

// nextParked returns the first parked message, or nil.
func (r *recipientOrder) nextParked() *queuedMessage {
	for _, other := range r.queue {
		if other.parked {
			return other
		}
	}
	return nil
}
