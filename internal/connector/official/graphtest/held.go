package graphtest

import "sync"

// Held delays answers, so that messages are in flight when their sender dies. A zero Held answers all messages without
// a wait.
type Held struct {
	Reply func(n int) Reply // returns the answer to the nth message, counted from 1; nil: the peer accepts each message

	mu    sync.Mutex
	seen  int
	most  int           // how many more messages are answered without a wait
	until chan struct{} // closed to release the held answers; nil: all messages are answered without a wait
}

// Answer returns the answer to one message, perhaps after a wait. Pass this method to [Peer.Answer].
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

// After answers the next n messages without a wait. It holds the answers to all further messages until release is
// called. Then the peer also accepts the held messages, even if no sender waits for their answers any more.
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
