package httpkit

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"puntuale"
)

// Share is a caller key: requests with the same one count together, so that no caller takes all that callers share. It
// is an account. For a caller that is not known yet it is an address.
type Share struct {
	Side    puntuale.Side
	ID      int64
	Address netip.Prefix
}

// AddressShare is the share of unknown callers. One line may have all addresses of an IPv6 network of 64 bits, so they
// count as one.
func AddressShare(from netip.Addr) Share {
	bits := from.BitLen()
	if from.Is6() {
		bits = 64
	}
	network, _ := from.Prefix(bits) // fails for the zero address only, whose prefix is the zero one
	return Share{Address: network}
}

// What a budget counts.
const (
	freeBytes  = 8 << 10  // of each request are not counted: most take less
	blockBytes = 16 << 10 // are taken at once
)

// Budget is the memory that bodies and answers may take, of all callers together: of the API, the dashboards and the
// webhooks. No caller takes more than is left for others. Safe for concurrent use; a nil Budget has no limit.
type Budget struct {
	most    int64
	refused func(reason string)

	mu     sync.Mutex
	held   int64
	shares map[Share]int64 // bytes of those who hold some
}

// NewBudget returns a budget of so many bytes. refused is called for each refusal; nil: not called.
func NewBudget(most int64, refused func(reason string)) *Budget {
	if refused == nil {
		refused = func(string) {}
	}
	return &Budget{most: most, refused: refused, shares: map[Share]int64{}}
}

// Held returns how many bytes are taken.
func (b *Budget) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// Account is one request's part of the budget. It is a [puntuale.Room]. Safe for concurrent use; its methods take nil,
// which a nil Budget gives.
type Account struct {
	budget     *Budget
	who        Share
	used, held int64 // held is what the budget knows of
}

// Open opens an account. It must be closed.
func (b *Budget) Open(who Share) *Account {
	if b == nil {
		return nil
	}
	return &Account{budget: b, who: who}
}

// Take counts so many bytes more, before they are made. Codes: overloaded; rate_limited when it is the same caller's other
// requests that hold too much.
func (a *Account) Take(bytes int64) error {
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
	free, own := b.most-b.held, b.shares[a.who]
	if missing > free || own+missing > max(MaxBody, free) {
		return b.refuse(own)
	}
	a.used += bytes
	a.held += missing
	b.held += missing
	b.shares[a.who] = own + missing
	return nil
}

const faultCallTooMuchMemory puntuale.ReasonCode = "call.too_much_memory"

// refuse makes the refusal of a caller that holds own bytes; b is locked.
func (b *Budget) refuse(own int64) error {
	err := puntuale.Overloaded(time.Duration(1+rand.IntN(3)) * time.Second) //nolint:gosec // spreads load, guards nothing
	reason := "bodies"
	if 2*own > b.held {
		err.Code, err.Reason = puntuale.CodeRateLimited, puntuale.Because(faultCallTooMuchMemory)
		reason = "caller"
	}
	b.refused(reason)
	return err
}

// Close gives everything back. The account can be used again.
func (a *Account) Close() {
	if a == nil {
		return
	}
	b := a.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= a.held
	if b.shares[a.who] -= a.held; b.shares[a.who] == 0 {
		delete(b.shares, a.who)
	}
	a.used, a.held = 0, 0
}
