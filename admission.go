package puntuale

import (
	"context"
	"sync/atomic"
	"time"
)

// AdmissionDeadline says how long a call may wait for a shared thing: a connection to read on, or the queue of a writer. The server's own
// work, such as the dispatcher's, has no deadline and waits as long as it takes. A call that is refused because its deadline passed has
// done nothing. Once a call has begun to write, it goes on to its end.
type AdmissionDeadline struct {
	ends     <-chan struct{}
	prevents bool
	begun    atomic.Bool
}

// NewAdmissionDeadline returns an admission deadline that passes when the channel is closed. prevents marks calls that keep messages from being
// sent: they go before others.
func NewAdmissionDeadline(ends <-chan struct{}, prevents bool) *AdmissionDeadline {
	return &AdmissionDeadline{ends: ends, prevents: prevents}
}

type admissionDeadlineKey struct{}

// WithAdmissionDeadline gives the call that ctx belongs to its admission deadline.
func WithAdmissionDeadline(ctx context.Context, p *AdmissionDeadline) context.Context {
	return context.WithValue(ctx, admissionDeadlineKey{}, p)
}

// AdmissionDeadlineOf returns the admission deadline of the call that ctx belongs to. nil means that the call may wait as long as it takes. The
// methods accept a nil receiver.
func AdmissionDeadlineOf(ctx context.Context) *AdmissionDeadline {
	p, _ := ctx.Value(admissionDeadlineKey{}).(*AdmissionDeadline)
	return p
}

// Ends returns a channel that is closed when the wait must end. It is nil, and never closed, if the call may wait for ever.
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

// Prevents reports whether the call keeps messages from being sent.
func (p *AdmissionDeadline) Prevents() bool { return p != nil && p.prevents }

// Overloaded refuses a call that would have to wait longer than its admission deadline. The call has done nothing.
func Overloaded(retryAfter time.Duration) *Error {
	return &Error{
		Code: CodeOverloaded, RetryAfter: retryAfter,
		Reason: Because(FaultCallOverloaded),
	}
}

// MemoryGrant is the memory that one call from outside may take for its answer. A method that reads something long asks for memory first,
// so that slow readers of long answers cannot take all memory there is. The memory is given back when the call ends.
type MemoryGrant interface {
	// Take asks for so many bytes more. Codes: overloaded; rate_limited when the same caller holds too much already.
	Take(bytes int64) error
}

type memoryGrantKey struct{}

// WithMemoryGrant gives a memory grant to the call that ctx belongs to.
func WithMemoryGrant(ctx context.Context, r MemoryGrant) context.Context {
	return context.WithValue(ctx, memoryGrantKey{}, r)
}

// TakeMemory asks for so many bytes of the memory grant of the call that ctx belongs to. A call without a grant has no limit. Codes: as
// [MemoryGrant].
func TakeMemory(ctx context.Context, bytes int64) error {
	if r, ok := ctx.Value(memoryGrantKey{}).(MemoryGrant); ok {
		return r.Take(bytes)
	}
	return nil
}
