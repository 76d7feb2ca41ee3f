package engine

import (
	"context"
	"sync"
)

// listSlots let each client read one list at a time. So a client that asks for several slow lists leaves connections to
// others.
type listSlots struct {
	mu sync.Mutex
	of map[int64]*listSlot
}

type listSlot struct {
	place chan struct{} // holds one sign while somebody has the turn
	asked int           // callers that have it or wait for it
}

// Take waits for the client's turn; done ends it.
func (t *listSlots) Take(ctx context.Context, client int64) (done func(), err error) {
	t.mu.Lock()
	if t.of == nil {
		t.of = map[int64]*listSlot{}
	}
	own := t.of[client]
	if own == nil {
		own = &listSlot{place: make(chan struct{}, 1)}
		t.of[client] = own
	}
	own.asked++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.asked--; own.asked == 0 {
			delete(t.of, client)
		}
	}
	select {
	case own.place <- struct{}{}:
		return func() { <-own.place; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
