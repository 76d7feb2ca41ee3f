package dispatch

import (
	"context"
	"sync"

	"puntuale"
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

// guarded asks the store from a goroutine of its own. A panic is an error like any other: what was asked waits, and is asked
// again. It is in the log, because it is a defect.
func guarded[T any](s *scheduler, ask func() (T, error)) (answer T, err error) {
	err = puntuale.Recovered(func() (err error) {
		answer, err = ask()
		return err
	})
	if puntuale.Panicked(err) {
		s.cfg.Logger.Error("a call of the store panicked", "error", err)
	}
	return answer, err
}
