package media

import (
	"context"
	"sync"
)

// gate lets up to limit callers pass at once for each key, in no particular order.
type gate[K comparable] struct {
	limit int

	mu    sync.Mutex
	lines map[K]*line
}

// line has the callers that pass, and those that wait, under one key.
type line struct {
	slots chan struct{}
	users int
}

func newGate[K comparable](limit int) *gate[K] {
	return &gate[K]{limit: limit, lines: map[K]*line{}}
}

// enter waits for a slot, and returns the function that gives it back. If the context ends first, it returns the context's cause.
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
