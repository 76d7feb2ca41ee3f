package auth

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"puntuale"
	"puntuale/internal/semaphore"
)

// Hashing a password needs 19 MiB, and one core for tens of milliseconds. Many sign-ins at the same time must neither
// exhaust the memory nor delay messages, and unknown callers must not block known people. Therefore, only a few hashes
// are made at the same time. Other callers wait in a bounded queue that serves the callers in rotation.

// HashCaller is the caller that needs a hash. Callers are served in rotation, and known callers alternate with unknown
// ones.
type HashCaller struct {
	name  string
	known bool
}

// KnownAs returns a caller with a known identity: a user, a partner by its key, or a device that signed in before.
func KnownAs(name string) HashCaller { return HashCaller{name, true} }

// UnknownCallerAt returns an unknown caller at an address. An IPv6 network of 64 bits, the usual size for one
// household, counts as one address.
func UnknownCallerAt(a netip.Addr) HashCaller { return HashCaller{Network(a), false} }

// Network returns the text that identifies an address when callers are counted. For IPv6 it contains only the first 64
// bits.
func Network(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}

// Limits of the queue. With these limits, an unknown caller waits about two seconds at most.
const (
	maxUnknown   = 32   // how many calls of unknown callers may wait
	maxOfUnknown = 8    // how many of these may come from one address
	maxKnown     = 1024 // how many calls of known callers may wait
	maxOfKnown   = 64   // how many of these may come from one known caller
	retryAfter   = 2 * time.Second
)

const faultSigninTooMany puntuale.ReasonCode = "signin.too_many"

// errFull is the error for a caller that the queue refuses.
var errFull = &puntuale.Error{Code: puntuale.CodeRateLimited, Reason: puntuale.Because(faultSigninTooMany), RetryAfter: retryAfter}

// Queue gives callers slots for hashing passwords. It is safe for concurrent use.
type Queue struct{ slots *semaphore.Semaphore }

// hashing is the queue in which all callers of this process wait for a slot.
var hashing = NewQueue(max(1, runtime.GOMAXPROCS(0)/2))

// NewQueue returns a queue. The argument slots is how many hashes may be made at the same time.
func NewQueue(slots int) *Queue { return &Queue{semaphore.New(slots)} }

// Enter waits for a slot. Call leave to release the slot. Codes: rate_limited, with the time to wait, if too many
// callers wait, or too many calls of this caller. Any other error comes from the context.
func (q *Queue) Enter(ctx context.Context, a HashCaller) (leave func(), err error) {
	all, own := semaphore.Holder{Key: a.known, Waiters: maxUnknown}, semaphore.Holder{Key: a.name, Waiters: maxOfUnknown}
	if a.known {
		all.Waiters, own.Waiters = maxKnown, maxOfKnown
	}
	leave, err = q.slots.Enter(ctx, all, own)
	switch {
	case errors.Is(err, semaphore.ErrFull):
		return nil, errFull
	case err != nil:
		return nil, fmt.Errorf("wait to hash a password: %w", err)
	}
	return leave, nil
}
