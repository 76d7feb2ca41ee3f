package media

import (
	"context"
	"sync"
)

// gate limits, separately for each key, how many callers have a slot at the same time. The field limit is this number.
// The order of waiting callers is not defined.
type gate[K comparable] struct {
	limit int

	mu    sync.Mutex
	lines map[K]*line
}

// line contains the slots of one key, and the number of callers that have a slot or wait for one.
type line struct {
	slots chan struct{}
	users int
}

func newGate[K comparable](limit int) *gate[K] {
	return &gate[K]{limit: limit, lines: map[K]*line{}}
}

// enter waits for a slot, and returns the function that releases it. If the context ends first, enter returns the
// context's cause.
func (g *gate[K]) enter(ctx context.Context, key K) (leave func(), err error) {
	g.mu.Lock()
	l := g.lines[key]
	if l == nil {
		l = &line{slots: make(chan struct{}, g.limit)}
		g.lines[key] = l
	}
	l.users++
	g.mu.Unlock()
	forget := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(g.lines, key)
		}
	}
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, context.Cause(ctx)
	}
}
