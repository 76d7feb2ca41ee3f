package engine

import (
	"context"
	"errors"
	"sync"
)

// listSlots lets each client read only one list at a time. So a client that reads several slow lists does not occupy
// the connections that other clients need.
type listSlots struct {
	mu    sync.Mutex
	slots map[int64]*listSlot
}

type listSlot struct {
	taken chan struct{} // has a value while a caller has the slot
	asked int           // number of callers that have the slot or wait for it
}

// Take waits until the client's list slot is free, and takes it. done returns the slot.
func (t *listSlots) Take(ctx context.Context, client int64) (done func(), err error) {
	t.mu.Lock()
	if t.slots == nil {
		t.slots = map[int64]*listSlot{}
	}
	own := t.slots[client]
	if own == nil {
		own = &listSlot{taken: make(chan struct{}, 1)}
		t.slots[client] = own
	}
	own.asked++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.asked--; own.asked == 0 {
			delete(t.slots, client)
		}
	}
	select {
	case own.taken <- struct{}{}:
		return func() { <-own.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// ownerLists reads lists for one client. It takes the client's list slot for each list.
type ownerLists struct {
	s     *DB
	owner int64
}

// Lists returns a Querier that reads lists for one client. It takes the client's list slot for each list.
func (s *DB) Lists(client int64) Querier { return ownerLists{s, client} }

func (l ownerLists) Query(ctx context.Context, text string, args []any, scan func(rows Row) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.s.ListReads.Timeout)
	defer cancel()
	done, err := l.s.ListSlots.Take(ctx, l.owner)
	if err != nil {
		return err
	}
	defer done()
	return l.s.ListReads.Query(ctx, text, args, scan)
}

func (l ownerLists) Queue(ctx context.Context, text string, args []any, scan func(r Row) error) error {
	return l.Query(ctx, text, args, scan)
}

func (ownerLists) Exec(context.Context, string, ...any) (int64, error) {
	return 0, errors.New("lists do not write")
}
