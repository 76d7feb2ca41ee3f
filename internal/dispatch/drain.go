package dispatch

import (
	"time"

	"puntuale"
)

// A session may be asked to rest, so that it can be unlinked or deleted with nothing in flight. A rest always ends by
// itself: whoever asked for it may be gone.

// restMost bounds it, by whatever clock its end was told.
const restMost = 40 * time.Second

// rest has a lane begin nothing new until a moment; quiet is closed once nothing of it is in flight.
func (s *scheduler) rest(session puntuale.SessionID, until time.Time, quiet chan struct{}) {
	l := s.lanes[session]
	if l == nil {
		close(quiet)
		return
	}
	if most := s.cfg.Clock.Now().Add(restMost); until.After(most) {
		until = most
	}
	l.resting = until
	s.clear(l)
	l.quiet = append(l.quiet, quiet)
	s.isQuiet(l)
}

// restEnds lets a lane, which may be nil, go on.
func (s *scheduler) restEnds(l *lane) {
	if l == nil || l.resting.IsZero() {
		return
	}
	l.resting = time.Time{}
	s.resume(l)
}

// isQuiet tells those who wait for it that nothing of the lane is in flight, nor of an earlier one of its session.
func (s *scheduler) isQuiet(l *lane) {
	if len(l.quiet) == 0 || l.open > 0 && !l.gone {
		return
	}
	for _, e := range s.alive {
		if e.m.Session == l.session.ID && !l.gone {
			return
		}
	}
	for _, quiet := range l.quiet {
		close(quiet)
	}
	l.quiet = nil
}
