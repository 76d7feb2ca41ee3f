package graphtest

import "sync"

// Held keeps answers back, so that messages are in flight when their sender dies. A zero Held answers all messages at
// once.
type Held struct {
	Reply func(n int) Reply // decides the answer to the nth message, counted from 1; nil: the peer takes each message

	mu    sync.Mutex
	seen  int
	most  int           // how many more messages are answered at once
	until chan struct{} // closed when the held answers may leave; nil: all messages are answered at once
}

// Answer decides the answer to one message. Tests pass it to [Peer.Answer].
func (h *Held) Answer(Message) Reply {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen++
	var reply Reply
	if h.Reply != nil {
		reply = h.Reply(h.seen)
	}
	if h.most--; h.most < 0 && h.until != nil {
		reply.Wait = h.until
	}
	return reply
}

// After answers the next n messages at once. It holds the answers to all further messages until release is called.
// After release the peer takes the held messages too, although no sender waits for their answers any more.
func (h *Held) After(n int) (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := make(chan struct{})
	h.most, h.until = n, until
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.until = nil
		close(until)
	}
}
