package graphtest

import "sync"

// Held keeps answers back, so that messages are in flight when their sender dies. Its zero value answers all.
type Held struct {
	Reply func(n int) Reply // decides the answer to the nth message, from 1; nil: each is taken

	mu    sync.Mutex
	seen  int
	most  int           // how many more are answered at once
	until chan struct{} // the others are answered once it is closed; nil: all are answered at once
}

// Answer is for [Peer.Answer].
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

// After answers the next n messages, and holds the answers to the others until release is called. Then the peer takes
// these, too, although nobody waits for an answer any more.
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
