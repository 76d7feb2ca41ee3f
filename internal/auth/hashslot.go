package auth

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"puntuale"
)

// Hashing a password needs 19 MiB, and one core for tens of milliseconds. Many sign-ins at the same time must neither
// exhaust the memory nor delay messages, and unknown callers must not block known people. Therefore, only a few hashes
// are made at the same time. Other callers wait in a bounded queue that serves the callers in rotation.

// HashCaller is the caller that needs a hash. Callers are served in rotation, and known callers alternate with unknown
// ones.
type HashCaller struct {
	name  string
	known bool
}

// KnownAs returns a caller with a known identity: a user, a partner by its key, or a device that signed in before.
func KnownAs(name string) HashCaller { return HashCaller{name, true} }

// UnknownCallerAt returns an unknown caller at an address. An IPv6 network of 64 bits, the usual size for one
// household, counts as one address.
func UnknownCallerAt(a netip.Addr) HashCaller { return HashCaller{Network(a), false} }

// Network returns the text that identifies an address when callers are counted. For IPv6 it contains only the first 64
// bits.
func Network(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}

// Limits of the queue. With these limits, an unknown caller waits about two seconds at most.
const (
	maxUnknown   = 32   // how many calls of unknown callers may wait
	maxOfUnknown = 8    // how many of these may come from one address
	maxKnown     = 1024 // how many calls of known callers may wait
	maxOfKnown   = 64   // how many of these may come from one known caller
	retryAfter   = 2 * time.Second
)

const faultSigninTooMany puntuale.ReasonCode = "signin.too_many"

// errFull is the error for a caller that the queue refuses.
var errFull = &puntuale.Error{Code: puntuale.CodeRateLimited, Reason: puntuale.Because(faultSigninTooMany), RetryAfter: retryAfter}

// Queue gives callers slots for hashing passwords. It is safe for concurrent use.
type Queue struct {
	mu     sync.Mutex
	free   int // number of unused slots
	queues [2]hashQueue
	next   int // index of the queue that is served next if both have waiters
}

const (
	unknownCallers = iota
	knownCallers
)

// hashing is the queue in which all callers of this process wait for a slot.
var hashing = NewQueue(max(1, runtime.GOMAXPROCS(0)/2))

// NewQueue returns a queue. The argument slots is how many hashes may be made at the same time.
func NewQueue(slots int) *Queue {
	return &Queue{free: slots, queues: [2]hashQueue{
		unknownCallers: {limit: maxUnknown, limitOfOne: maxOfUnknown, waitersOf: map[string][]*waiter{}},
		knownCallers:   {limit: maxKnown, limitOfOne: maxOfKnown, waitersOf: map[string][]*waiter{}},
	}}
}

// hashQueue contains a queue of waiters for each caller. The callers are served in rotation.
type hashQueue struct {
	limit, limitOfOne int
	waiting           int
	order             []string // callers with waiters, in the order in which they are served
	waitersOf         map[string][]*waiter
}

// waiter waits for a slot. The channel receives nil if the waiter gets the slot, or the reason why it does not.
type waiter struct {
	name string
	done chan error
}

// Enter waits for a slot. Call leave to release the slot. Codes: rate_limited, with the time to wait, if too many
// callers wait, or too many calls of this caller. Any other error comes from the context.
func (q *Queue) Enter(ctx context.Context, a HashCaller) (leave func(), err error) {
	w, err := q.join(a)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return q.leave, nil
	}
	select {
	case err := <-w.done:
		if err != nil {
			return nil, err
		}
		return q.leave, nil
	case <-ctx.Done():
		q.giveUp(a, w)
		return nil, fmt.Errorf("wait to hash a password: %w", ctx.Err())
	}
}

// join takes a free slot and returns nil, or returns a waiter that it added to the queue.
func (q *Queue) join(a HashCaller) (*waiter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.free > 0 {
		q.free--
		return nil, nil
	}
	l := q.queueOf(a)
	if len(l.waitersOf[a.name]) >= l.limitOfOne || l.waiting >= l.limit && !l.displace(len(l.waitersOf[a.name])) {
		return nil, errFull
	}
	w := &waiter{a.name, make(chan error, 1)}
	if len(l.waitersOf[a.name]) == 0 {
		l.order = append(l.order, a.name)
	}
	l.waitersOf[a.name] = append(l.waitersOf[a.name], w)
	l.waiting++
	return w, nil
}

func (q *Queue) queueOf(a HashCaller) *hashQueue {
	if a.known {
		return &q.queues[knownCallers]
	}
	return &q.queues[unknownCallers]
}

// displace finds the caller with the most waiters. If this caller has at least n+2 waiters, displace refuses the latest
// of them and returns true. Otherwise it refuses none.
func (l *hashQueue) displace(n int) bool {
	longest := ""
	for name, all := range l.waitersOf {
		if len(all) > len(l.waitersOf[longest]) {
			longest = name
		}
	}
	all := l.waitersOf[longest]
	if len(all) < n+2 {
		return false
	}
	last := all[len(all)-1]
	l.remove(last)
	last.done <- errFull
	return true
}

// remove removes a waiter from the queue, and reports whether the waiter was in it.
func (l *hashQueue) remove(w *waiter) bool {
	all := l.waitersOf[w.name]
	for i, x := range all {
		if x != w {
			continue
		}
		l.waiting--
		if l.waitersOf[w.name] = append(all[:i:i], all[i+1:]...); len(l.waitersOf[w.name]) == 0 {
			delete(l.waitersOf, w.name)
			l.forget(w.name)
		}
		return true
	}
	return false
}

func (l *hashQueue) forget(name string) {
	for i, n := range l.order {
		if n == name {
			l.order = append(l.order[:i:i], l.order[i+1:]...)
			return
		}
	}
}

// pop removes and returns the next waiter, or returns nil if there is none.
func (l *hashQueue) pop() *waiter {
	if len(l.order) == 0 {
		return nil
	}
	name := l.order[0]
	w := l.waitersOf[name][0]
	if l.remove(w); len(l.waitersOf[name]) > 0 { // the caller goes to the end of the rotation
		l.forget(name)
		l.order = append(l.order, name)
	}
	return w
}

// leave gives the slot to the next waiter.
func (q *Queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.queues[q.next].pop()
	if w == nil {
		w = q.queues[1-q.next].pop()
	} else {
		q.next = 1 - q.next
	}
	if w == nil {
		q.free++
		return
	}
	w.done <- nil
}

// giveUp leaves the queue. If the waiter got a slot in the meantime, giveUp releases the slot.
func (q *Queue) giveUp(a HashCaller, w *waiter) {
	q.mu.Lock()
	removed := q.queueOf(a).remove(w)
	q.mu.Unlock()
	if !removed && <-w.done == nil {
		q.leave()
	}
}
