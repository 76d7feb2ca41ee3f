package puntuale

import (
	"context"
	"sync/atomic"
	"time"
)

// AdmissionDeadline says how long a call may wait for something shared: a connection for reads, or a writer's queue.
// The server's own work, such as the dispatcher's, has no deadline and waits as long as necessary. When the deadline
// passes, the waiting call is refused and has done nothing. A call that has begun to write continues to its end.
type AdmissionDeadline struct {
	ends     <-chan struct{}
	prevents bool
	begun    atomic.Bool
	leave    func() // gives the call's seat back; nil: the call has none
}

// NewAdmissionDeadline returns a deadline that passes when the channel ends is closed. The argument prevents is true
// for a call that prevents sends, such as a cancellation. Writers execute such calls before other calls.
func NewAdmissionDeadline(ends <-chan struct{}, prevents bool) *AdmissionDeadline {
	return &AdmissionDeadline{ends: ends, prevents: prevents}
}

type admissionDeadlineKey struct{}

// WithAdmissionDeadline returns a context that contains the admission deadline of a call.
func WithAdmissionDeadline(ctx context.Context, p *AdmissionDeadline) context.Context {
	return context.WithValue(ctx, admissionDeadlineKey{}, p)
}

// AdmissionDeadlineOf returns the admission deadline that ctx contains. nil means that the call may wait as long as
// necessary. All methods accept a nil receiver.
func AdmissionDeadlineOf(ctx context.Context) *AdmissionDeadline {
	p, _ := ctx.Value(admissionDeadlineKey{}).(*AdmissionDeadline)
	return p
}

// Ends returns a channel that is closed when the call must stop waiting. The channel is nil if the call may wait for
// ever.
func (p *AdmissionDeadline) Ends() <-chan struct{} {
	if p == nil || p.begun.Load() {
		return nil
	}
	return p.ends
}

// WithSeat says how the call gives its seat back, and returns the same deadline.
func (p *AdmissionDeadline) WithSeat(leave func()) *AdmissionDeadline {
	p.leave = leave
	return p
}

// LeaveSeat gives the call's seat back, because the call begins to wait for something outside. From then on the call
// has no deadline.
func (p *AdmissionDeadline) LeaveSeat() {
	if p != nil && p.leave != nil {
		p.leave()
		p.Begin()
	}
}

// Begin notes that the call has begun to write. From then on, Ends returns nil.
func (p *AdmissionDeadline) Begin() {
	if p != nil {
		p.begun.Store(true)
	}
}

// Prevents reports whether the call keeps messages from being sent.
func (p *AdmissionDeadline) Prevents() bool { return p != nil && p.prevents }

// Overloaded returns the refusal of a call that would wait longer than its admission deadline. The call has done
// nothing.
func Overloaded(retryAfter time.Duration) *Error {
	return &Error{
		Code: CodeOverloaded, RetryAfter: retryAfter,
		Reason: Because(FaultCallOverloaded),
	}
}

// MemoryGrant is the memory that one call to the API may use for its answer. Before a method reads much data, it asks
// the grant for memory. Without this limit, slow readers of long answers could use up the server's memory. The memory
// is given back when the call ends.
type MemoryGrant interface {
	// Take asks for more memory, in bytes. Codes: overloaded; rate_limited if the same caller already uses too much.
	Take(bytes int64) error
}

type memoryGrantKey struct{}

// WithMemoryGrant returns a context that contains a call's memory grant.
func WithMemoryGrant(ctx context.Context, r MemoryGrant) context.Context {
	return context.WithValue(ctx, memoryGrantKey{}, r)
}

// TakeMemory asks the memory grant in ctx for more memory, in bytes. A call without a grant has no limit. Codes: see
// [MemoryGrant].
func TakeMemory(ctx context.Context, bytes int64) error {
	if r, ok := ctx.Value(memoryGrantKey{}).(MemoryGrant); ok {
		return r.Take(bytes)
	}
	return nil
}
