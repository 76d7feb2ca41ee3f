package puntuale

import (
	"errors"
	"strings"
	"time"
)

// Code says what kind of failure an [Error] is; httpkit holds the only table from codes to HTTP statuses.
type Code string

const (
	CodeUnauthorized Code = "unauthorized"  // no key, an unknown or a revoked one
	CodeForbidden    Code = "forbidden"     // right key, wrong side; client suspended or expired
	CodeTooLarge     Code = "too_large"     // the body exceeds the limit
	CodeUnreadable   Code = "unreadable"    // not JSON, not UTF-8, wrong type
	CodeNotFound     Code = "not_found"     // missing, or another tenant's: the answer is the same
	CodeGone         Code = "gone"          // it existed before, such as a file that the network has deleted
	CodeInvalid      Code = "invalid"       // readable, but not allowed
	CodeConflict     Code = "conflict"      // contradicts what is stored
	CodeBusy         Code = "busy"          // an equal call is under way; try again
	CodeCapReached   Code = "cap_reached"   // the client's daily cap is used up
	CodeQuotaReached Code = "quota_reached" // the client has as many of these as its partner allows
	CodeRateLimited  Code = "rate_limited"  // too many calls at once
	CodeUnavailable  Code = "unavailable"   // the store cannot be reached
	CodeStoreFull    Code = "store_full"    // the disk under the store is full
	CodeStoreDamaged Code = "store_damaged" // the store's data on the disk are damaged
	CodeOverloaded   Code = "overloaded"    // more calls came than can be answered in time; nothing was done
	CodeInternal     Code = "internal"      // a defect of ours

	CodePrecondition Code = "precondition_failed" // the thing was changed since the caller read it
)

// Fault is one thing wrong with a request, and where. Location reads "body.steps[2].timing.offset", "query.timezone"
// or "path.id_sequenza".
type Fault struct {
	Location string
	Code     ReasonCode
	Args     []string
	Value    any
}

// Reason returns what is wrong, without the location.
func (f Fault) Reason() Reason { return Reason{Code: f.Code, Args: f.Args} }

// Error is the only error type that packages return to their callers on purpose. Reason is for the caller and holds no
// internals; internal/catalogue makes its sentence. The wrapped error says what was tried.
type Error struct {
	Code       Code
	Reason     Reason
	Faults     []Fault
	Usage      *Usage        // with CodeCapReached: the counters to show
	RetryAfter time.Duration // with CodeCapReached, CodeRateLimited, CodeBusy, CodeUnavailable, CodeOverloaded; 0 = not said
	Err        error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	b.WriteString(": ")
	b.WriteString(e.Reason.String())
	for _, f := range e.Faults {
		b.WriteString("; ")
		b.WriteString(f.Location)
		b.WriteString(": ")
		b.WriteString(f.Reason().String())
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the first [Error] in err's chain, CodeInternal for any other error, "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e := asError(err); e != nil {
		return e.Code
	}
	return CodeInternal
}

func asError(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}

// NotFound is the answer for something that is missing, and for something that belongs to another tenant. It repeats no identifier.
func NotFound(missing ReasonCode) *Error {
	return &Error{Code: CodeNotFound, Reason: Because(missing)}
}

// Invalid reports all faults of a request at once.
func Invalid(faults ...Fault) *Error {
	return &Error{Code: CodeInvalid, Reason: Because(FaultInvalid), Faults: faults}
}

// Conflict reports a contradiction with stored data.
func Conflict(code ReasonCode, args ...string) *Error {
	return &Error{Code: CodeConflict, Reason: Because(code, args...)}
}

// Unavailable wraps a failure to reach the store.
func Unavailable(err error) *Error {
	return &Error{Code: CodeUnavailable, Reason: Because(FaultStoreUnavailable), RetryAfter: time.Second, Err: err}
}

// StoreFull wraps a write that failed because the disk was full. Nothing was stored; reading still works.
func StoreFull(err error) *Error {
	return &Error{Code: CodeStoreFull, Reason: Because(FaultStoreFull), RetryAfter: fullRetry, Err: err}
}

// StoreDamaged wraps a failure that a damaged file or page caused. Waiting does not help.
func StoreDamaged(err error) *Error {
	return &Error{Code: CodeStoreDamaged, Reason: Because(FaultStoreDamaged), RetryAfter: fullRetry, Err: err}
}

// fullRetry tells callers when to try again if an operator must act first.
const fullRetry = 30 * time.Second

// StoreAway reports whether the store itself failed, so that every other call would fail too: it cannot be reached, is full, or is damaged.
func StoreAway(err error) bool {
	switch CodeOf(err) {
	case CodeUnavailable, CodeStoreFull, CodeStoreDamaged:
		return true
	default:
		return false
	}
}

// ErrStale refuses a start that was planned from old data: the client's revision has changed since. Nothing was stored or counted.
var ErrStale = errors.New("puntuale: the client changed since it was read")

// ErrFenced is returned to a node that lost its lease. The node must stop sending, and join again as a new incarnation.
var ErrFenced = errors.New("puntuale: the node's lease is gone")

// ErrUntrusted is wrapped by stores that refuse to open: a corrupt or emptied file, a newer schema, durability off.
var ErrUntrusted = errors.New("puntuale: the store cannot be trusted")
