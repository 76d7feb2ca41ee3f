package dispatch

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"puntuale"
)

// pace limits how many messages a session sends. The limit for cold contacts is in the connector.
type pace struct {
	limits   puntuale.Pace
	limiter  *rate.Limiter // nil: no limit
	interval time.Duration // time between two messages according to the limiter
	network  float64       // the largest number of messages in a second that the network accepts; 0: no limit
	next     time.Time     // no message leaves before this time, because of the jitter
	departed []time.Time   // when the messages of the last 24 hours left, in order; never more entries than the daily limit
	unknown  bool          // true: the node does not know yet which messages left before it got the session
	asking   bool          // true: a call is running that asks the store for these messages
}

const oneDay = 24 * time.Hour

// setPace spaces messages evenly, according to the limit for a minute. Messages never leave faster than the network
// accepts them. If PerMinute is 0, only the network limits the session.
func (p *pace) setPace(to puntuale.Pace, now time.Time) {
	perSecond := float64(to.PerMinute) / 60
	if limit := p.network; limit > 0 && (perSecond <= 0 || perSecond > limit) {
		perSecond = limit
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
		p.unknown = true // the new limit needs more times than departed contains
	}
	p.limits, p.next = to, time.Time{}
}

// take counts one message if a message may leave now. If not, wait is the time to try again. A zero wait means that an
// event will wake the session.
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
		p.next = now.Add(p.interval + rand.N(time.Duration(p.limits.Jitter)*time.Second)) //nolint:gosec // a guessed number gives no advantage
	}
	if p.limits.PerDay > 0 {
		p.addDeparted(now)
	}
	return true, time.Time{}
}

// addDeparted records that a message left.
func (p *pace) addDeparted(now time.Time) {
	if past := len(p.departed) - p.limits.PerDay + 1; past > 0 {
		p.departed = slices.Delete(p.departed, 0, past)
	}
	p.departed = append(p.departed, now)
}

// setBack moves back the times for which the pace waits, because the clock was set back.
func (p *pace) setBack(jump time.Duration) {
	if !p.next.IsZero() {
		p.next = p.next.Add(-jump)
	}
}

// askDeparted asks the store which messages left in the last 24 hours, unless the node already knows this. The session
// waits for the answer.
func (s *scheduler) askDeparted(q *sessionQueue, now time.Time) {
	if !q.pace.unknown || q.pace.asking || q.pace.limits.PerDay == 0 {
		return
	}
	if s.cfg.Departed == nil {
		q.pace.unknown = false
		return
	}
	session, limit := q.session, q.pace.limits.PerDay
	q.pace.asking = true
	s.life.wg.Go(func() {
		ctx, cancel := context.WithTimeout(s.life.ctx, callWait)
		defer cancel()
		found, err := guarded(s, func() ([]time.Time, error) {
			return s.cfg.Departed(ctx, session.Client, session.ID, now.Add(-oneDay), limit)
		})
		s.mailbox.post(func() { s.gotDeparted(q, limit, found, err) })
	})
}

// gotDeparted adds the messages that left before this node got the session.
func (s *scheduler) gotDeparted(q *sessionQueue, limit int, found []time.Time, err error) {
	q.pace.asking = false
	if err != nil {
		if s.life.ctx.Err() == nil {
			s.cfg.Logger.Warn("counting what a session sent failed", "session_id", int64(q.session.ID), "error", err)
		}
		return // the next poll asks the store again
	}
	if q.pace.limits.PerDay > limit {
		return
	}
	q.pace.departed = found
	slices.SortFunc(q.pace.departed, time.Time.Compare)
	q.pace.unknown = false
	s.fair.activate(q)
}
