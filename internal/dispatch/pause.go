package dispatch

import (
	"sync/atomic"
	"time"
)

// pause is a time in which a session sends nothing, because its connector asked for this.
type pause struct {
	end     time.Time        // end of the pause; only set may change it
	shared  atomic.Int64     // the same time as end, in microseconds of the Unix epoch, for goroutines that prepare messages
	waiting []*queuedMessage // messages to prepare after the end of the pause
}

func (p *pause) set(pauseEnd time.Time) {
	p.end = pauseEnd
	p.shared.Store(pauseEnd.UnixMicro())
}

func (p *pause) active(now time.Time) bool { return now.Before(p.end) }

// activeShared returns the same as active. Any goroutine may call it.
func (p *pause) activeShared(now time.Time) bool { return p.shared.Load() > now.UnixMicro() }

// pause makes the dispatcher send nothing on a session until pauseEnd.
func (s *scheduler) pause(q *sessionQueue, pauseEnd time.Time) {
	if pauseEnd.After(q.pause.end) {
		q.pause.set(pauseEnd)
		s.timers.set(&q.timer, pauseEnd)
	}
}

// endPause prepares the messages that waited for the end of the pause.
func (s *scheduler) endPause(q *sessionQueue, now time.Time) {
	if !q.pause.active(now) && len(q.pause.waiting) > 0 {
		s.loader.add(q.pause.waiting...)
		q.pause.waiting = nil
	}
}
