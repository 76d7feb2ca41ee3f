package store

import (
	"context"
	"errors"
	"sync"

	"puntuale"
)

// turns let each client read one list at a time, so that whoever asks for several slow ones keeps nobody else from the
// connections for lists.
type turns struct {
	mu sync.Mutex
	of map[puntuale.ClientID]*turn
}

type turn struct {
	place chan struct{} // holds one sign while somebody has the turn
	asked int           // callers that have it or wait for it
}

// take waits for the client's turn; done ends it.
func (t *turns) take(ctx context.Context, id puntuale.ClientID) (done func(), err error) {
	t.mu.Lock()
	if t.of == nil {
		t.of = map[puntuale.ClientID]*turn{}
	}
	own := t.of[id]
	if own == nil {
		own = &turn{place: make(chan struct{}, 1)}
		t.of[id] = own
	}
	own.asked++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.asked--; own.asked == 0 {
			delete(t.of, id)
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

// clientLists is the pool for lists, as one client may use it.
type clientLists struct{ tenant }

func (t tenant) lists() clientLists { return clientLists{t} }

func (l clientLists) each(ctx context.Context, text string, args []any, scan func(rows row) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.s.list.within)
	defer cancel()
	done, err := l.s.turns.take(ctx, l.id)
	if err != nil {
		return err
	}
	defer done()
	return l.s.list.each(ctx, text, args, scan)
}

func (l clientLists) later(ctx context.Context, text string, args []any, scan func(r row) error) error {
	return l.each(ctx, text, args, scan)
}

func (clientLists) exec(context.Context, string, ...any) (int64, error) {
	return 0, errors.New("lists do not write")
}
