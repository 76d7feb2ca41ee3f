package admission

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"puntuale"
)

// RateLimiter bounds how many calls each caller makes in a second. It remembers only recent callers: it forgets a
// caller that may again make a full burst. Many goroutines may call its methods at the same time. A nil RateLimiter
// refuses nothing.
type RateLimiter[K comparable] struct {
	limit rate.Limit
	burst int
	now   func() time.Time

	mu      sync.Mutex
	callers map[K]*rate.Limiter
	maximum int // forget runs when the limiter remembers more callers than this
}

// Bounds of the number of remembered callers.
const (
	minCallers = 1024 // while the limiter remembers at most this many callers, it forgets none
	maxCallers = 1 << 16
)

// NewRateLimiter allows each caller callsPerSecond calls a second, and burst calls at the same time. It returns nil if
// callsPerSecond is 0 or less.
func NewRateLimiter[K comparable](callsPerSecond float64, burst int, now func() time.Time) *RateLimiter[K] {
	if callsPerSecond <= 0 {
		return nil
	}
	return &RateLimiter[K]{limit: rate.Limit(callsPerSecond), burst: max(1, burst), now: now, callers: map[K]*rate.Limiter{}, maximum: minCallers}
}

// Take counts one call. Codes: rate_limited; a refused call is not counted.
func (p *RateLimiter[K]) Take(caller K) error { return p.take(caller, 1) }

// Check reports whether Take would succeed, but counts no call. Codes: rate_limited.
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

// limiter returns the caller's limiter, and creates it if necessary. The caller of limiter must hold p's lock.
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

// forget removes callers that may again make a full burst. If too many callers remain, it removes arbitrary callers
// until half of maxCallers remain. It runs again when the number of callers has doubled and has become minCallers.
func (p *RateLimiter[K]) forget(now time.Time) {
	for caller, l := range p.callers {
		if l.TokensAt(now) >= float64(p.burst) {
			delete(p.callers, caller)
		}
	}
	for caller := range p.callers {
		if len(p.callers) <= maxCallers/2 {
			break
		}
		delete(p.callers, caller)
	}
	p.maximum = max(minCallers, 2*len(p.callers))
}
