// Package semaphore has a semaphore that callers share fairly. There are levels of callers, such as partners, their
// clients, and the clients' devices. On each level, every caller has only a share of the slots and of the queue. So no
// caller can take what the others need.
package semaphore

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// FairShare allows a holder a further slot only while more slots are free than the holder has. So a holder alone gets
// half of the slots, and always leaves some for others.
const FairShare = -1

// Holder is one level of a caller: a partner, or one of its clients. Holders with the same Key and the same upper
// holders are the same holder.
type Holder struct {
	Key     any
	Slots   int // the most slots that it may have, with all its callers; 0: no bound of its own; or FairShare
	Waiters int // the most calls of it that may wait; 0: no bound
}

// ErrFull means that there is no free slot, or no free place in the queue.
var ErrFull = errors.New("too many callers")

// Semaphore gives slots to callers. It is safe for concurrent use. Waiting calls are served in rotation on each level.
// So the partners take turns, and within a partner's turns its clients do. The calls of one client keep their order.
type Semaphore struct {
	mu   sync.Mutex
	root node
}

// New returns a semaphore with this many slots; 0 means that only holders have bounds.
func New(slots int) *Semaphore { return &Semaphore{root: node{Holder: Holder{Slots: slots}}} }

// node contains the slots and the waiting calls of one holder. It is deleted when it has none.
type node struct {
	Holder
	above   *node
	below   []*node // the holder that is served next comes first
	held    int
	waiting int
	queue   []*waiter // the calls that wait at this node itself, and not below it
}

// waiter is a waiting call. The channel receives nil if the call gets its slot, or ErrFull if it loses its place.
type waiter struct {
	at   *node
	done chan error
}

// TryEnter takes a slot for a caller, without waiting. The path names the caller's holders, the highest first. The
// caller must call leave, and may call it again.
func (s *Semaphore) TryEnter(path ...Holder) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.find(path)
	if !s.fits(n) {
		n.forget()
		return nil, false
	}
	n.take()
	return s.leaver(n), true
}

// Enter waits for a slot. The caller must call leave, and may call it again. If too many calls wait, the holder with
// the most of them loses its latest place, or the caller gets ErrFull. Any other error is the cause of the context.
func (s *Semaphore) Enter(ctx context.Context, path ...Holder) (leave func(), err error) {
	s.mu.Lock()
	n := s.find(path)
	if s.fits(n) {
		defer s.mu.Unlock()
		n.take()
		return s.leaver(n), nil
	}
	if !n.makeRoom() {
		n.forget()
		s.mu.Unlock()
		return nil, ErrFull
	}
	w := &waiter{n, make(chan error, 1)}
	n.goLast(func(n *node) bool { return n.waiting == 0 })
	n.queue = append(n.queue, w)
	n.count(0, 1)
	s.mu.Unlock()
	select {
	case err = <-w.done:
	case <-ctx.Done():
		s.mu.Lock()
		waited := slices.Contains(n.queue, w)
		if waited {
			n.remove(w)
		}
		s.mu.Unlock()
		if waited {
			return nil, context.Cause(ctx)
		}
		err = <-w.done // the slot came just before the context ended
	}
	if err != nil {
		return nil, err
	}
	return s.leaver(n), nil
}

// find returns the node of a caller, and creates it if necessary.
func (s *Semaphore) find(path []Holder) *node {
	n := &s.root
	for _, h := range path {
		i := slices.IndexFunc(n.below, func(b *node) bool { return b.Key == h.Key })
		if i < 0 {
			i = len(n.below)
			n.below = append(n.below, &node{Holder: h, above: n})
		}
		n = n.below[i]
	}
	return n
}

// fits reports whether the holder, and every holder above it, may have one more slot.
func (s *Semaphore) fits(n *node) bool {
	for ; n != nil; n = n.above {
		switch free := s.root.Slots - s.root.held; {
		case n.Slots > 0 && n.held >= n.Slots, n.Slots == FairShare && s.root.Slots > 0 && n.held >= max(1, free):
			return false
		}
	}
	return true
}

// take takes a slot. The holders go to the end of their rotations.
func (n *node) take() {
	n.count(1, 0)
	n.goLast(func(*node) bool { return true })
}

// goLast moves this holder, and the holders above it, to the end of their rotations, as far as the condition holds.
func (n *node) goLast(moves func(*node) bool) {
	for ; n.above != nil && moves(n); n = n.above {
		all := n.above.below
		i := slices.Index(all, n)
		copy(all[i:], all[i+1:])
		all[len(all)-1] = n
	}
}

// leaver returns the function that returns a slot and serves the waiting calls. The holders had their turn, so they go
// to the end of their rotations.
func (s *Semaphore) leaver(n *node) func() {
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		n.count(-1, 0)
		n.goLast(func(*node) bool { return true })
		n.forget()
		for w := s.next(&s.root); w != nil; w = s.next(&s.root) {
			w.at.take()
			w.at.remove(w)
			w.done <- nil
		}
	})
}

// next returns the waiting call that is served next, or nil if no waiting call may have a slot.
func (s *Semaphore) next(n *node) *waiter {
	if n.waiting == 0 || !s.fits(n) {
		return nil
	}
	if len(n.queue) > 0 {
		return n.queue[0]
	}
	for _, b := range n.below {
		if w := s.next(b); w != nil {
			return w
		}
	}
	return nil
}

// makeRoom reports whether one more call of this holder may wait. If a level above is full, the longest queue there
// loses its latest place. It loses none if it would then be shorter than the queue of the new call's holder.
func (n *node) makeRoom() bool {
	if n.full() {
		return false
	}
	for ; n.above != nil; n = n.above {
		if !n.above.full() {
			continue
		}
		longest := n.above.longest()
		if longest.waiting < n.waiting+2 {
			return false
		}
		for len(longest.below) > 0 && len(longest.queue) == 0 {
			longest = longest.longest()
		}
		last := longest.queue[len(longest.queue)-1]
		longest.remove(last)
		last.done <- ErrFull
	}
	return true
}

func (n *node) full() bool { return n.Waiters > 0 && n.waiting >= n.Waiters }

// longest returns the holder below with the most waiting calls.
func (n *node) longest() *node {
	return slices.MaxFunc(n.below, func(a, b *node) int { return a.waiting - b.waiting })
}

// count adds to the numbers of this holder and of all holders above it.
func (n *node) count(held, waiting int) {
	for ; n != nil; n = n.above {
		n.held += held
		n.waiting += waiting
	}
}

// remove removes a call from the queue.
func (n *node) remove(w *waiter) {
	n.queue = slices.DeleteFunc(n.queue, func(other *waiter) bool { return other == w })
	n.count(0, -1)
	n.forget()
}

// forget deletes the nodes that have neither slots nor waiting calls.
func (n *node) forget() {
	for ; n.above != nil && n.held == 0 && n.waiting == 0; n = n.above {
		n.above.below = slices.DeleteFunc(n.above.below, func(b *node) bool { return b == n })
	}
}
