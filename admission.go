package puntuale

import (
	"context"
	"sync/atomic"
	"time"
)

// AdmissionDeadline says how long a call may wait for a shared thing: a connection to
// read on, or the queue of a writer. What nobody outside waits for, as the dispatcher's work, has none and waits as
// long as it takes. A call that is refused because its patience ended has done nothing: once it has begun to write it
// goes on to its end.
type AdmissionDeadline struct {
	ends     <-chan struct{}
	prevents bool
	begun    atomic.Bool
}

// NewPatience returns a patience that ends when the channel is closed. prevents marks calls that keep messages from being
// sent; they go before others.
func NewPatience(ends <-chan struct{}, prevents bool) *AdmissionDeadline {
	return &AdmissionDeadline{ends: ends, prevents: prevents}
}

type patienceKey struct{}

// WithPatience gives the call that ctx belongs to its patience.
func WithPatience(ctx context.Context, p *AdmissionDeadline) context.Context {
	return context.WithValue(ctx, patienceKey{}, p)
}

// PatienceOf returns the patience of the call that ctx belongs to, nil when it may wait as long as it takes. The methods
// take nil.
func PatienceOf(ctx context.Context) *AdmissionDeadline {
	p, _ := ctx.Value(patienceKey{}).(*AdmissionDeadline)
	return p
}

// Ends is closed when the wait must end; nil, which never is, where it need not.
func (p *AdmissionDeadline) Ends() <-chan struct{} {
	if p == nil || p.begun.Load() {
		return nil
	}
	return p.ends
}

// Begin notes that the call has begun to write.
func (p *AdmissionDeadline) Begin() {
	if p != nil {
		p.begun.Store(true)
	}
}

// Prevents reports a call that keeps messages from being sent.
func (p *AdmissionDeadline) Prevents() bool { return p != nil && p.prevents }

// Overloaded refuses a call that would have to wait longer than callers do. Nothing of it was done.
func Overloaded(retryAfter time.Duration) *Error {
	return &Error{
		Code: CodeOverloaded, RetryAfter: retryAfter,
		Reason: Because(FaultCallOverloaded),
	}
}

// MemoryGrant is the memory that one call from outside may take for its answer. What reads something long asks for room first,
// so that slow readers of long answers cannot take all memory there is. The room is given back when the call ends.
type MemoryGrant interface {
	// Take asks for so many bytes more. Codes: overloaded; rate_limited when the same caller holds too much already.
	Take(bytes int64) error
}

type roomKey struct{}

// WithRoom gives the call that ctx belongs to its room.
func WithRoom(ctx context.Context, r MemoryGrant) context.Context {
	return context.WithValue(ctx, roomKey{}, r)
}

// TakeRoom asks for so many bytes of the room of the call that ctx belongs to. Without a room there is no limit. Codes: as
// [MemoryGrant].
func TakeRoom(ctx context.Context, bytes int64) error {
	if r, ok := ctx.Value(roomKey{}).(MemoryGrant); ok {
		return r.Take(bytes)
	}
	return nil
}
