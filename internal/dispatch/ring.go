package dispatch

import "puntuale"

// share is a client's part in the round robin: each round one message of each client that has something to send.
type share struct {
	client puntuale.ClientID
	lanes  fifo[*lane] // with something to send, each in turn
	inRing bool
	count  int                 // lanes this node has of the client
	held   bool                // the client may not send now
	why    puntuale.ReasonCode // once it is known
	erased bool                // it erased persons: claims need marks
}

// fifo is a queue that reuses its memory.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }

func (f *fifo[T]) push(x T) {
	if f.head > 0 && len(f.items) == cap(f.items) && f.head*2 >= len(f.items) {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, x)
}

func (f *fifo[T]) peek() T { return f.items[f.head] }

func (f *fifo[T]) pop() T {
	var zero T
	x := f.items[f.head]
	f.items[f.head] = zero
	f.head++
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	}
	return x
}

// activate puts a lane with something to send into the round.
func (s *scheduler) activate(l *lane) {
	if l.active || l.gone || l.ready.len()+l.second.ready.len()+l.again.len() == 0 {
		return
	}
	l.active = true
	l.share.lanes.push(l)
	if !l.share.inRing {
		l.share.inRing = true
		s.ring.push(l.share)
	}
}

// nextTurn takes the lane whose turn it is, nil when no lane has anything to send.
func (s *scheduler) nextTurn() *lane {
	for s.ring.len() > 0 {
		sh := s.ring.pop()
		if sh.lanes.len() == 0 {
			sh.inRing = false
			continue
		}
		l := sh.lanes.pop()
		l.active = false
		if sh.lanes.len() > 0 {
			s.ring.push(sh)
		} else {
			sh.inRing = false
		}
		return l
	}
	return nil
}
