package puntuale

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// Code says what kind of failure an [Error] is. Package httpkit has the only table from codes to HTTP statuses.
type Code string

const (
	CodeUnauthorized Code = "unauthorized"  // the key is missing, unknown or revoked
	CodeForbidden    Code = "forbidden"     // the key is valid, but not for this call; or the client is suspended or expired
	CodeTooLarge     Code = "too_large"     // the body exceeds the limit
	CodeUnreadable   Code = "unreadable"    // the body is not JSON or not UTF-8, or a value has the wrong type
	CodeNotFound     Code = "not_found"     // the thing does not exist, or belongs to another tenant: the answer is the same
	CodeGone         Code = "gone"          // the thing existed before, such as a file that the network has deleted
	CodeInvalid      Code = "invalid"       // the call is readable, but a value is not allowed
	CodeConflict     Code = "conflict"      // the call contradicts stored data
	CodeStale        Code = "stale"         // the call is older than the stored data, as the caller's own order of changes says
	CodeBusy         Code = "busy"          // something that still runs prevents the call, such as an equal call; try again later
	CodeCapReached   Code = "cap_reached"   // the client's daily cap is used up
	CodeQuotaReached Code = "quota_reached" // the client already has as many things of this kind as its partner allows
	CodeRateLimited  Code = "rate_limited"  // the caller made too many calls or attempts; try again later
	CodeUnavailable  Code = "unavailable"   // the store, or another server that the call needs, cannot be reached
	CodeStoreFull    Code = "store_full"    // the disk under the store is full
	CodeStoreDamaged Code = "store_damaged" // the store's data on the disk are damaged
	CodeOverloaded   Code = "overloaded"    // more calls came than the server can answer in time; the call did nothing
	CodeInternal     Code = "internal"      // a defect of this program

	CodePrecondition Code = "precondition_failed" // the thing changed after the caller read it
)

// Fault is one error in a request, with its location. Examples of a Location: "body.steps[2].timing.offset",
// "query.timezone", "path.id_sequenza".
type Fault struct {
	Location string
	Code     ReasonCode
	Args     []string
	Value    any
}

// FaultOfField says of which field a fault is. {1}: the field, {2}: the fault, as [Reason.Stored] wrote it.
const FaultOfField ReasonCode = "campaign.field_fault"

// Reason returns the fault without its location.
func (f Fault) Reason() Reason { return Reason{Code: f.Code, Args: f.Args} }

// Error is an error that callers of the API and readers of the pages may see. Reason says why the call failed, and
// reveals no internals. internal/catalogue makes the sentence for a Reason. Err is for logs and says what was tried.
type Error struct {
	Code       Code
	Reason     Reason
	Faults     []Fault
	Usage      *Usage        // only with CodeCapReached: the present counters
	RetryAfter time.Duration // how long the caller must wait before the next try; 0: no such time is known, or another try does not help
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

// CodeOf returns the code of the first [Error] in err's chain. It returns CodeInternal for any other error, and ""
// for nil.
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

// NotFound returns the same answer for a thing that does not exist and for a thing of another tenant. The answer
// repeats no identifier.
func NotFound(missing ReasonCode) *Error {
	return &Error{Code: CodeNotFound, Reason: Because(missing)}
}

// Invalid returns one error for all faults of a request.
func Invalid(faults ...Fault) *Error {
	return &Error{Code: CodeInvalid, Reason: Because(FaultInvalid), Faults: faults}
}

// Conflict returns the error of a call that contradicts stored data.
func Conflict(code ReasonCode, args ...string) *Error {
	return &Error{Code: CodeConflict, Reason: Because(code, args...)}
}

// Unavailable wraps the error of a store that cannot be reached.
func Unavailable(err error) *Error {
	return &Error{Code: CodeUnavailable, Reason: Because(FaultStoreUnavailable), RetryAfter: time.Second, Err: err}
}

// StoreFull wraps the error of a write that failed because the disk was full. The write stored nothing. Reads still
// work.
func StoreFull(err error) *Error {
	return &Error{Code: CodeStoreFull, Reason: Because(FaultStoreFull), RetryAfter: fullRetry, Err: err}
}

// StoreDamaged wraps the error of a call that met a damaged file or page. Waiting does not help.
func StoreDamaged(err error) *Error {
	return &Error{Code: CodeStoreDamaged, Reason: Because(FaultStoreDamaged), RetryAfter: fullRetry, Err: err}
}

// fullRetry is how long callers should wait before the next try if an operator must act first.
const fullRetry = 30 * time.Second

// PanicError is the error of a function that panicked. The log writes every line that has one at level error, with its
// stack (see package logging).
type PanicError struct {
	Value any
	Stack []byte
}

// Error says what the function panicked with. Of a value that is neither a text nor an error it has only the type, because
// such a value may contain what people wrote.
func (p *PanicError) Error() string {
	switch v := p.Value.(type) {
	case string:
		return "a panic: " + v
	case error:
		return "a panic: " + v.Error()
	}
	return fmt.Sprintf("a panic with a %T", p.Value)
}

// StackText returns the stack for the log.
func (p *PanicError) StackText() string { return string(p.Stack) }

// Panicked reports whether err is, or wraps, a [*PanicError].
func Panicked(err error) bool {
	_, panicked := errors.AsType[*PanicError](err)
	return panicked
}

// Recovered calls do, and turns a panic into a [*PanicError]. Use it where background work reads what people, networks or rows
// contain: net/http recovers the panics of requests, but any other panic ends the server and the work of all clients.
func Recovered(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{v, debug.Stack()}
		}
	}()
	return do()
}

// StoreAway reports whether err says that the store cannot be reached, is full or is damaged. Then other writes would
// probably fail, too.
func StoreAway(err error) bool {
	switch CodeOf(err) {
	case CodeUnavailable, CodeStoreFull, CodeStoreDamaged:
		return true
	default:
		return false
	}
}

// ErrStale refuses a start that was planned from old data, because the client's revision has changed since. Nothing
// was stored or counted.
var ErrStale = errors.New("puntuale: the client changed since it was read")

// ErrFenced says that the calling node has lost its lease. The node must stop sending, and join again with a new
// [NodeID].
var ErrFenced = errors.New("puntuale: the node's lease is gone")

// ErrStopping refuses a call because the server is stopping. Another server, or the next start, can answer it.
var ErrStopping = &Error{Code: CodeUnavailable, Reason: Because(faultServerStopping), RetryAfter: time.Second}

const faultServerStopping ReasonCode = "server.stopping"

// ErrUntrusted says that a store refuses to open: its file is damaged or was emptied, its schema is too new, or
// durability is off.
var ErrUntrusted = errors.New("puntuale: the store cannot be trusted")

// Codes of faults that several packages report. internal/catalogue has their sentences.
const (
	FaultAutomationKindFixed             ReasonCode = "automation.kind_fixed"
	FaultAutomationNotOwnSequence        ReasonCode = "automation.not_own_sequence"
	FaultAutomationQuota                 ReasonCode = "automation.quota"
	FaultCallBodyTooLarge                ReasonCode = "call.body_too_large"
	FaultCallMethod                      ReasonCode = "call.method"
	FaultCallNoPath                      ReasonCode = "call.no_path"
	FaultCallOverloaded                  ReasonCode = "call.overloaded"
	FaultCallTooManyAtOnce               ReasonCode = "call.too_many_at_once"
	FaultCallerKeyNotValid               ReasonCode = "caller.key_not_valid"
	FaultCallerSuspended                 ReasonCode = "caller.suspended"
	FaultCampaignChangedSinceCheck       ReasonCode = "campaign.changed_since_check"
	FaultCampaignNoRecipients            ReasonCode = "campaign.no_recipients"
	FaultCampaignWrongState              ReasonCode = "campaign.wrong_state"
	FaultCommandFailed                   ReasonCode = "command.failed"
	FaultChangedSinceRead                ReasonCode = "fault.changed_since_read"
	FaultChangeTooOld                    ReasonCode = "contact.change_too_old"
	FaultContactQuota                    ReasonCode = "contact.quota"
	FaultContactTooManyFields            ReasonCode = "contact.too_many_fields"
	FaultContactTooManyTags              ReasonCode = "contact.too_many_tags"
	FaultGoesWithout                     ReasonCode = "fault.goes_without"
	FaultHasPassed                       ReasonCode = "fault.has_passed"
	FaultInvalid                         ReasonCode = "fault.invalid"
	FaultLongerThanBytes                 ReasonCode = "fault.longer_than_bytes"
	FaultLongerThanCharacters            ReasonCode = "fault.longer_than_characters"
	FaultMoreEntries                     ReasonCode = "fault.more_entries"
	FaultMustBeInRange                   ReasonCode = "fault.must_be_in_range"
	FaultMustBeInSeconds                 ReasonCode = "fault.must_be_in_seconds"
	FaultMustBeTime                      ReasonCode = "fault.must_be_time"
	FaultNameDiffers                     ReasonCode = "fault.name_differs"
	FaultNotDay                          ReasonCode = "fault.not_day"
	FaultNotEmail                        ReasonCode = "fault.not_email"
	FaultNotInRange                      ReasonCode = "fault.not_in_range"
	FaultNotNumber                       ReasonCode = "fault.not_number"
	FaultNotOneOf                        ReasonCode = "fault.not_one_of"
	FaultNotOwnSession                   ReasonCode = "fault.not_own_session"
	FaultNotOwnTemplate                  ReasonCode = "fault.not_own_template"
	FaultNotWhole                        ReasonCode = "fault.not_whole"
	FaultNotWholeInRange                 ReasonCode = "fault.not_whole_in_range"
	FaultNotWith                         ReasonCode = "fault.not_with"
	FaultNotZone                         ReasonCode = "fault.not_zone"
	FaultFileGone                        ReasonCode = "file.gone" // there is no such uploaded file
	FaultRequired                        ReasonCode = "fault.required"
	FaultListChanged                     ReasonCode = "list.changed"
	FaultListNothingAdded                ReasonCode = "list.nothing_added"
	FaultMediaGone                       ReasonCode = "media.gone"
	FaultMediaTooLarge                   ReasonCode = "media.too_large"
	FaultMediaUnavailable                ReasonCode = "media.unavailable"
	FaultPartnerHostTaken                ReasonCode = "partner.host_taken"
	FaultSequenceMediaWithLocation       ReasonCode = "sequence.media_with_location"
	FaultSequenceMomentPassed            ReasonCode = "sequence.moment_passed"
	FaultSequenceMustBeDate              ReasonCode = "sequence.must_be_date"
	FaultBookingErased                   ReasonCode = "booking.erased" // the person of the booking was erased
	FaultBookingForBookings              ReasonCode = "booking.for_bookings"
	FaultBookingNotForBookings           ReasonCode = "booking.not_for_bookings"
	FaultSequenceNotField                ReasonCode = "sequence.not_field"
	FaultSequenceNothingToShow           ReasonCode = "sequence.nothing_to_show"
	FaultSequenceNothingToShowOrTemplate ReasonCode = "sequence.nothing_to_show_or_template"
	FaultSessionLinkedAlready            ReasonCode = "session.linked_already"
	FaultSessionNoLinker                 ReasonCode = "session.no_linker"
	FaultSessionNotLinked                ReasonCode = "session.not_linked"
	FaultSessionSending                  ReasonCode = "session.sending"
	FaultSigninNobody                    ReasonCode = "signin.nobody"
	FaultStoreDamaged                    ReasonCode = "store.damaged"
	FaultStoreFull                       ReasonCode = "store.full"
	FaultStoreUnavailable                ReasonCode = "store.unavailable"
	FaultUserEmailTaken                  ReasonCode = "user.email_taken"
)

// Codes that name the missing thing, for [NotFound].
const (
	NoAutomation ReasonCode = "automation.not_found"
	NoBlacklist  ReasonCode = "blacklist.not_found"
	NoBooking    ReasonCode = "missing.booking"
	NoCampaign   ReasonCode = "campaign.not_found"
	NoClient     ReasonCode = "client.not_found"
	NoCode       ReasonCode = "code.not_found"
	NoCommand    ReasonCode = "command.not_found"
	NoContact    ReasonCode = "contact.not_found"
	NoChange     ReasonCode = "contact.no_change" // of a number
	NoDelivery   ReasonCode = "delivery.not_found"
	NoDevice     ReasonCode = "device.not_found"
	NoHost       ReasonCode = "host.not_found"
	NoInvitation ReasonCode = "invitation.not_found"
	NoKey        ReasonCode = "key.not_found"
	NoList       ReasonCode = "list.not_found"
	NoMessage    ReasonCode = "message.not_found"
	NoPage       ReasonCode = "page.not_found"
	NoPartner    ReasonCode = "partner.not_found"
	NoPlan       ReasonCode = "plan.not_found"
	NoReply      ReasonCode = "reply.not_found"
	NoSequence   ReasonCode = "sequence.not_found"
	NoSession    ReasonCode = "session.not_found"
	NoTemplate   ReasonCode = "template.not_found"
	NoFile       ReasonCode = "file.not_found"
	NoTicket     ReasonCode = "ticket.not_found"
	NoUser       ReasonCode = "user.not_found"
	NoChatwoot   ReasonCode = "chatwoot.not_found"
	NoWebhook    ReasonCode = "webhook.not_found"
)

// Replayed contains the answer of an earlier call. Methods that have an argument Idempotency return a Replayed as their
// error, but this is no failure.
type Replayed struct{ Answer []byte }

func (*Replayed) Error() string { return "the answer of an earlier call stands" }
