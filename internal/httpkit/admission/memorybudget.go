package admission

import (
	"math/rand/v2"
	"sync"
	"time"

	"puntuale"
)

// What a budget counts.
const (
	freeBytes  = 8 << 10  // of each request are not counted: most take less
	blockBytes = 16 << 10 // are taken at once
)

// MemoryBudget bounds the memory of bodies and answers for all callers of the API, the dashboards and the webhooks together. No caller may
// take more than is left for others. Safe for concurrent use; a nil MemoryBudget has no limit.
type MemoryBudget struct {
	most    int64
	refused func(reason string)

	mu      sync.Mutex
	held    int64
	callers map[CallerKey]int64 // bytes of those who hold some
}

// NewMemoryBudget returns a budget of so many bytes. refused is called for each refusal; nil: not called.
func NewMemoryBudget(most int64, refused func(reason string)) *MemoryBudget {
	if refused == nil {
		refused = func(string) {}
	}
	return &MemoryBudget{most: most, refused: refused, callers: map[CallerKey]int64{}}
}

// Taken returns how many bytes are taken.
func (b *MemoryBudget) Taken() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// MemoryGrant is one request's part of the budget. It is a [puntuale.MemoryGrant]. Safe for concurrent use. Its methods accept a nil
// receiver, which a nil MemoryBudget returns.
type MemoryGrant struct {
	budget     *MemoryBudget
	who        CallerKey
	used, held int64 // held is what the budget knows of
}

// Open begins a request's grant, which is empty. It must be closed.
func (b *MemoryBudget) Open(who CallerKey) *MemoryGrant {
	if b == nil {
		return nil
	}
	return &MemoryGrant{budget: b, who: who}
}

// Take counts so many bytes more, before they are made. Codes: overloaded; rate_limited when the same caller's other requests hold too
// much.
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
	free, own := b.most-b.held, b.callers[a.who]
	if missing > free || own+missing > max(MaxBody, free) {
		return b.refuse(own)
	}
	a.used += bytes
	a.held += missing
	b.held += missing
	b.callers[a.who] = own + missing
	return nil
}

const faultCallTooMuchMemory puntuale.ReasonCode = "call.too_much_memory"

// refuse makes the refusal of a caller that holds own bytes; b is locked.
func (b *MemoryBudget) refuse(own int64) error {
	err := puntuale.Overloaded(time.Duration(1+rand.IntN(3)) * time.Second) //nolint:gosec // spreads load, guards nothing
	reason := "bodies"
	if 2*own > b.held {
		err.Code, err.Reason = puntuale.CodeRateLimited, puntuale.Because(faultCallTooMuchMemory)
		reason = "caller"
	}
	b.refused(reason)
	return err
}

// Close gives everything back. The grant can be used again.
func (a *MemoryGrant) Close() {
	if a == nil {
		return
	}
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= a.held
	if b.callers[a.who] -= a.held; b.callers[a.who] == 0 {
		delete(b.callers, a.who)
	}
	a.used, a.held = 0, 0
}
