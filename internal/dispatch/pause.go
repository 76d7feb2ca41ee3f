package dispatch

import (
	"sync/atomic"
	"time"
)

// pause is the time for which a connector wants to be left alone.
type pause struct {
	until   time.Time        // the end of the pause; change it with set only
	shared  atomic.Int64     // until in microseconds of the Unix epoch, for goroutines that prepare
	waiting []*queuedMessage // messages that are prepared once it is over
}

func (p *pause) set(until time.Time) {
	p.until = until
	p.shared.Store(until.UnixMicro())
}

func (p *pause) active(now time.Time) bool { return now.Before(p.until) }

// activeShared is active, for other goroutines.
func (p *pause) activeShared(now time.Time) bool { return p.shared.Load() > now.UnixMicro() }

// pause leaves a session's connector alone until a moment.
func (s *scheduler) pause(q *sessionQueue, until time.Time) {
	if until.After(q.pause.until) {
		q.pause.set(until)
		s.timers.set(&q.timer, until)
	}
}

// endPause prepares the messages that waited for the end of the pause.
func (s *scheduler) endPause(q *sessionQueue, now time.Time) {
	if !q.pause.active(now) && len(q.pause.waiting) > 0 {
		s.loader.add(q.pause.waiting...)
		q.pause.waiting = nil
	}
}
