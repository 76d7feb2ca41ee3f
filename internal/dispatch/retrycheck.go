package dispatch

import (
	"context"
	"time"

	"puntuale"
)

// A message in retry holds back later ones to its recipient, and is not in memory meanwhile. If it is stopped, nobody
// tells; so while it is in the way of one that is due, the store is asked whether it is still open.

// doubt is a recipient whose due message waits for one in retry.
type doubt struct {
	lane   *lane
	person person
}

const doubtMost = 1000 // recipients asked for at once, and again at each poll

type doubts struct {
	asking bool
	all    map[doubt]struct{}
	fresh  []doubt // to be asked for now
}

func (d *doubts) add(x doubt) {
	d.all[x] = struct{}{}
	d.fresh = append(d.fresh, x)
}

// known asks again at once, if the recipient is one of them.
func (d *doubts) known(x doubt) {
	if _, known := d.all[x]; known {
		d.fresh = append(d.fresh, x)
	}
}

// again has those asked for that still wait.
func (d *doubts) again() {
	if len(d.fresh) > 0 {
		return
	}
	for x := range d.all {
		if d.fresh = append(d.fresh, x); len(d.fresh) == doubtMost {
			return
		}
	}
}

// doubt asks the store for the messages that are in the way, one row each.
func (s *scheduler) doubt(now time.Time) {
	for !s.doubts.asking && len(s.doubts.fresh) > 0 {
		n := min(len(s.doubts.fresh), doubtMost)
		var asked []doubt
		var from []puntuale.Place
		var horizon time.Time
		for _, x := range s.doubts.fresh[:n] {
			r := x.lane.recipients[x.person]
			if r == nil || x.lane.gone || r.nextParked() == nil || !r.held(now) {
				delete(s.doubts.all, x)
				continue
			}
			for _, h := range r.holds {
				if now.Before(h.until) && !s.here(x.lane, h.turn.id) {
					asked = append(asked, x)
					from = append(from, puntuale.Place{Session: x.lane.session.ID, Campaign: x.person.campaign, Next: h.next, ID: h.turn.id - 1})
					horizon = later(horizon, h.next)
				}
			}
		}
		s.doubts.fresh = s.doubts.fresh[n:]
		if len(from) > 0 {
			s.askDoubts(asked, from, horizon)
		}
	}
}

// here tells whether a message is in flight, or being closed: then what is on disk is not the last word.
func (s *scheduler) here(l *lane, id puntuale.MessageID) bool {
	e := l.entries[id]
	return s.alive[id] != nil || e != nil && e.stage == settling
}

func (s *scheduler) askDoubts(asked []doubt, from []puntuale.Place, horizon time.Time) {
	s.doubts.asking = true
	s.wg.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, callWait)
		defer cancel()
		open, err := s.cfg.Queue.Due(ctx, from, horizon, 1)
		s.box.post(func() {
			s.doubts.asking = false
			if err == nil { // else it is asked again at the next poll
				s.gotDoubts(asked, from, open)
			}
		})
	})
}

// gotDoubts takes what is no longer open, or no longer where it was, out of the way.
func (s *scheduler) gotDoubts(asked []doubt, from []puntuale.Place, open []puntuale.DueMessage) {
	still := make(map[puntuale.MessageID]bool, len(open))
	for i := range open {
		still[open[i].ID] = true
	}
	for i, x := range asked {
		id := from[i].ID + 1
		r := x.lane.recipients[x.person]
		if r == nil || still[id] || s.here(x.lane, id) || !r.lift(id, from[i].Next) {
			continue
		}
		if e := x.lane.entries[id]; e != nil {
			s.forget(e) // it was read shortly before its next attempt
		}
		s.advance(x.lane, x.person)
	}
}
