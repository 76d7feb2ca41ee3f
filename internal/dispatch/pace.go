package dispatch

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"puntuale"
)

// pace is how much a session may send. The connector itself paces messages to cold contacts.
type pace struct {
	limits   puntuale.Pace
	limiter  *rate.Limiter // nil: no limit
	interval time.Duration // between two messages, by the limiter
	network  float64       // messages a second that the network takes; 0: no limit
	next     time.Time     // nothing leaves before, because of the jitter
	departed []time.Time   // when the messages of the last day left, in order; as many as the limit needs
	unknown  bool          // it is not known yet what left before this node had the session
	asking   bool          // the store is asked what left
}

const oneDay = 24 * time.Hour

// setPace spaces messages evenly: as the pace of a minute says, 0 for no limit, and never more than the network takes.
func (p *pace) setPace(to puntuale.Pace, now time.Time) {
	perSecond := float64(to.PerMinute) / 60
	if most := p.network; most > 0 && (perSecond <= 0 || perSecond > most) {
		perSecond = most
	}
	switch {
	case perSecond <= 0:
		p.limiter, p.interval = nil, 0
	case p.limiter == nil:
		p.limiter = rate.NewLimiter(rate.Limit(perSecond), 1)
	default:
		p.limiter.SetLimitAt(now, rate.Limit(perSecond))
	}
	if perSecond > 0 {
		p.interval = time.Duration(float64(time.Second) / perSecond)
	}
	if to.PerDay > p.limits.PerDay {
		p.unknown = true // more moments must be known than were kept
	}
	p.limits, p.next = to, time.Time{}
}

// take counts one message if it may leave now. If not, wait is the moment to ask again, zero if an event will wake the session.
func (p *pace) take(now time.Time) (ok bool, wait time.Time) {
	if p.limits.PerDay > 0 {
		if p.unknown {
			return false, time.Time{}
		}
		if n := len(p.departed) - p.limits.PerDay; n >= 0 && now.Sub(p.departed[n]) < oneDay {
			return false, p.departed[n].Add(oneDay)
		}
	}
	if now.Before(p.next) {
		return false, p.next
	}
	if p.limiter != nil {
		r := p.limiter.ReserveN(now, 1)
		if d := r.DelayFrom(now); d > 0 {
			r.CancelAt(now)
			return false, now.Add(d)
		}
	}
	if p.limits.Jitter > 0 {
		p.next = now.Add(p.interval + rand.N(time.Duration(p.limits.Jitter)*time.Second)) //nolint:gosec // nobody gains by guessing it
	}
	if p.limits.PerDay > 0 {
		p.addDeparted(now)
	}
	return true, time.Time{}
}

// addDeparted notes that a message left.
func (p *pace) addDeparted(now time.Time) {
	if past := len(p.departed) - p.limits.PerDay + 1; past > 0 {
		p.departed = slices.Delete(p.departed, 0, past)
	}
	p.departed = append(p.departed, now)
}

// setBack moves the moments for which the pace waits, when the clock was set back.
func (p *pace) setBack(by time.Duration) {
	if !p.next.IsZero() {
		p.next = p.next.Add(-by)
	}
}

// askDeparted asks the store what left in the last day, if the pace does not know it. The session waits until then.
func (s *scheduler) askDeparted(q *sessionQueue, now time.Time) {
	if !q.pace.unknown || q.pace.asking || q.pace.limits.PerDay == 0 {
		return
	}
	if s.cfg.Departed == nil {
		q.pace.unknown = false
		return
	}
	session, most := q.session, q.pace.limits.PerDay
	q.pace.asking = true
	s.life.wg.Go(func() {
		ctx, cancel := context.WithTimeout(s.life.ctx, callWait)
		defer cancel()
		found, err := s.cfg.Departed(ctx, session.Client, session.ID, now.Add(-oneDay), most)
		s.mailbox.post(func() { s.gotDeparted(q, most, found, err) })
	})
}

// gotDeparted takes the messages that left before this node had the session.
func (s *scheduler) gotDeparted(q *sessionQueue, most int, found []time.Time, err error) {
	q.pace.asking = false
	if err != nil {
		if s.life.ctx.Err() == nil {
			s.cfg.Logger.Warn("counting what a session sent failed", "session_id", int64(q.session.ID), "error", err)
		}
		return // asked again at the next poll
	}
	if q.pace.limits.PerDay > most {
		return
	}
	q.pace.departed = found
	slices.SortFunc(q.pace.departed, time.Time.Compare)
	q.pace.unknown = false
	s.fair.activate(q)
}
