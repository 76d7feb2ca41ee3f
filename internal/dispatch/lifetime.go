package dispatch

import (
	"context"
	"sync"
)

// lifetime is the state of start and stop.
type lifetime struct {
	ctx context.Context // the context of all work except sends
	wg  *sync.WaitGroup

	sendCtx  context.Context
	cutSends context.CancelFunc

	retiring bool          // true: the dispatcher is stopping, and claims nothing more
	idle     chan struct{} // closed when retiring is true and nothing is in flight
}

func newLifetime() lifetime {
	l := lifetime{idle: make(chan struct{})}
	l.sendCtx, l.cutSends = context.WithCancel(context.Background())
	return l
}

// retired closes idle when nothing is in flight any more. A second call does nothing.
func (l *lifetime) retired() {
	select {
	case <-l.idle:
	default:
		close(l.idle)
	}
}
