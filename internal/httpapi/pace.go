package httpapi

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"puntuale"
)

// pace keeps each key to so many calls a second, with twice as many at once. It knows only keys that called lately: one
// that may again make as many calls as a new one is forgotten. Safe for concurrent use.
type pace struct {
	limit rate.Limit
	burst int
	now   func() time.Time

	mu   sync.Mutex
	keys map[pacedKey]*rate.Limiter
	most int // keys; beyond it, those that can be are forgotten
}

type pacedKey struct {
	side puntuale.Side
	id   puntuale.KeyID
}

// leastKeys are known at once before any is forgotten.
const leastKeys = 1024

// newPace returns nil, which refuses nothing, for a rate of 0.
func newPace(callsPerSecond float64, now func() time.Time) *pace {
	if callsPerSecond <= 0 {
		return nil
	}
	return &pace{
		limit: rate.Limit(callsPerSecond), burst: max(1, int(2*callsPerSecond)), now: now,
		keys: map[pacedKey]*rate.Limiter{}, most: leastKeys,
	}
}

// take counts one call. Codes: rate_limited, and then it is not counted.
func (p *pace) take(side puntuale.Side, id puntuale.KeyID) error {
	if p == nil {
		return nil
	}
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.limiter(pacedKey{side, id}, now)
	if l.AllowN(now, 1) {
		return nil
	}
	wait := time.Duration((1 - l.TokensAt(now)) / float64(p.limit) * float64(time.Second))
	return &puntuale.Error{Code: puntuale.CodeRateLimited, Message: "too many calls with this key within a short time", RetryAfter: wait}
}

// limiter finds or makes a key's; p is locked.
func (p *pace) limiter(key pacedKey, now time.Time) *rate.Limiter {
	l := p.keys[key]
	if l == nil {
		if len(p.keys) >= p.most {
			p.forget(now)
		}
		l = rate.NewLimiter(p.limit, p.burst)
		p.keys[key] = l
	}
	return l
}

// forget drops the keys that are as new ones. The next time is when there are twice as many as stay.
func (p *pace) forget(now time.Time) {
	for key, l := range p.keys {
		if l.TokensAt(now) >= float64(p.burst) {
			delete(p.keys, key)
		}
	}
	p.most = max(leastKeys, 2*len(p.keys))
}
