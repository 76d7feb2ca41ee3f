package admission

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"puntuale"
)

// RateLimiter bounds how many calls a second each caller makes. It remembers only callers that called recently: it
// forgets a caller that may again make as many calls as a new caller. Its methods may be called by many goroutines at
// once. A nil RateLimiter refuses nothing.
type RateLimiter[K comparable] struct {
	limit rate.Limit
	burst int
	now   func() time.Time

	mu      sync.Mutex
	callers map[K]*rate.Limiter
	maximum int // if more callers are remembered, forget runs
}

// How many callers are remembered.
const (
	leastCallers = 1024 // below this number no caller is forgotten
	mostCallers  = 1 << 16
)

// NewRateLimiter allows each caller callsPerSecond calls a second, and burst calls at once. It returns nil if
// callsPerSecond is 0 or less.
func NewRateLimiter[K comparable](callsPerSecond float64, burst int, now func() time.Time) *RateLimiter[K] {
	if callsPerSecond <= 0 {
		return nil
	}
	return &RateLimiter[K]{limit: rate.Limit(callsPerSecond), burst: max(1, burst), now: now, callers: map[K]*rate.Limiter{}, maximum: leastCallers}
}

// Take counts one call. Codes: rate_limited; then the call is not counted.
func (p *RateLimiter[K]) Take(caller K) error { return p.take(caller, 1) }

// Check reports whether Take would succeed, and counts nothing. Codes: rate_limited.
func (p *RateLimiter[K]) Check(caller K) error { return p.take(caller, 0) }

const faultCallTooFast puntuale.ReasonCode = "call.too_fast"

func (p *RateLimiter[K]) take(caller K, n int) error {
	if p == nil {
		return nil
	}
	now := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.limiter(caller, now)
	left := l.TokensAt(now)
	if left >= 1 {
		l.AllowN(now, n)
		return nil
	}
	wait := time.Duration((1 - left) / float64(p.limit) * float64(time.Second))
	return &puntuale.Error{Code: puntuale.CodeRateLimited, Reason: puntuale.Because(faultCallTooFast), RetryAfter: wait}
}

// limiter returns the limiter of a caller, and makes it if there is none. The caller of limiter holds p's lock.
func (p *RateLimiter[K]) limiter(caller K, now time.Time) *rate.Limiter {
	l := p.callers[caller]
	if l == nil {
		if len(p.callers) >= p.maximum {
			p.forget(now)
		}
		l = rate.NewLimiter(p.limit, p.burst)
		p.callers[caller] = l
	}
	return l
}

// forget drops callers that count as new again. If there are still too many, it drops any half of them. It runs again
// when twice as many callers are remembered as it left.
func (p *RateLimiter[K]) forget(now time.Time) {
	for caller, l := range p.callers {
		if l.TokensAt(now) >= float64(p.burst) {
			delete(p.callers, caller)
		}
	}
	for caller := range p.callers {
		if len(p.callers) <= mostCallers/2 {
			break
		}
		delete(p.callers, caller)
	}
	p.maximum = max(leastCallers, 2*len(p.callers))
}
