package dispatch

import (
	"context"
	"sync"
)

// lifetime is how the scheduler starts and stops.
type lifetime struct {
	ctx context.Context // bounds everything but sends
	wg  *sync.WaitGroup

	sendCtx  context.Context
	cutSends context.CancelFunc

	retiring bool          // nothing more is claimed
	idle     chan struct{} // closed once retiring and nothing is in flight
}

func newLifetime() lifetime {
	l := lifetime{idle: make(chan struct{})}
	l.sendCtx, l.cutSends = context.WithCancel(context.Background())
	return l
}

// retired is called when nothing is in flight any more. A second call does nothing.
func (l *lifetime) retired() {
	select {
	case <-l.idle:
	default:
		close(l.idle)
	}
}
