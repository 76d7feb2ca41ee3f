package admission

import (
	"math/rand/v2"
	"sync"
	"time"

	"puntuale"
)

// Units in which a budget counts.
const (
	freeBytes  = 8 << 10  // this many bytes of each request are not counted, because most requests need less
	blockBytes = 16 << 10 // memory is counted in blocks of this many bytes
)

// MemoryBudget bounds the memory of bodies and answers for all callers of the API, the dashboards and the webhooks
// together. A caller may use up to [MaxBody] as long as memory is free. It may use more only if at least as much is left
// to other callers afterwards. Many goroutines may call its methods at the same time. A nil
// MemoryBudget has no limit.
type MemoryBudget struct {
	limit   int64
	refused func(reason string)

	mu      sync.Mutex
	held    int64
	callers map[CallerKey]int64 // how many bytes each caller uses; callers that use none are not in the map
}

// NewMemoryBudget returns a budget of maxBytes. refused is called for each refusal; it may be nil.
func NewMemoryBudget(maxBytes int64, refused func(reason string)) *MemoryBudget {
	if refused == nil {
		refused = func(string) {}
	}
	return &MemoryBudget{limit: maxBytes, refused: refused, callers: map[CallerKey]int64{}}
}

// Taken returns how many bytes are in use now.
func (b *MemoryBudget) Taken() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// MemoryGrant is one request's part of the budget. It implements [puntuale.MemoryGrant]. Many goroutines may call its
// methods at the same time. A nil MemoryBudget returns a nil MemoryGrant, and all methods accept a nil MemoryGrant.
type MemoryGrant struct {
	budget     *MemoryBudget
	caller     CallerKey
	used, held int64 // used is the request's memory; held is the part of used that is counted in the budget
}

// Open returns an empty grant for a request of the caller who. The caller of Open must close the grant.
func (b *MemoryBudget) Open(who CallerKey) *MemoryGrant {
	if b == nil {
		return nil
	}
	return &MemoryGrant{budget: b, caller: who}
}

// Take adds bytes to the grant, before the memory is allocated. Codes: overloaded; rate_limited if the same caller's
// other requests use too much.
func (a *MemoryGrant) Take(bytes int64) error {
	if a == nil {
		return nil
	}
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	missing := a.used + bytes - freeBytes - a.held
	if missing <= 0 {
		a.used += bytes
		return nil
	}
	missing = (missing + blockBytes - 1) / blockBytes * blockBytes
	free, own := b.limit-b.held, b.callers[a.caller]
	if missing > free || own+missing > max(MaxBody, free-missing) {
		return b.refuse(own)
	}
	a.used += bytes
	a.held += missing
	b.held += missing
	b.callers[a.caller] = own + missing
	return nil
}

const faultCallTooMuchMemory puntuale.ReasonCode = "call.too_much_memory"

// refuse returns the error for a refused request. The argument own is the number of bytes that the request's caller
// already uses. The lock b.mu must be held.
func (b *MemoryBudget) refuse(own int64) error {
	err := puntuale.Overloaded(time.Duration(1+rand.IntN(3)) * time.Second) //nolint:gosec // the random number only spreads load
	reason := "bodies"
	if 2*own > b.held {
		err.Code, err.Reason = puntuale.CodeRateLimited, puntuale.Because(faultCallTooMuchMemory)
		reason = "caller"
	}
	b.refused(reason)
	return err
}

// Close returns all memory to the budget. The grant can be used again.
func (a *MemoryGrant) Close() {
	if a == nil {
		return
	}
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= a.held
	if b.callers[a.caller] -= a.held; b.callers[a.caller] == 0 {
		delete(b.callers, a.caller)
	}
	a.used, a.held = 0, 0
}
