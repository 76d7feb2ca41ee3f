package puntuale

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// ReasonCode names a sentence of the catalogue, such as "official.token_expired".
type ReasonCode string

// Reason says why something did not happen, or which fault something has. It is a code with arguments.
// internal/catalogue makes the sentence when a person reads it. The zero value says nothing. An argument may be
// another reason, in its stored form.
//
// A reason without a code has one argument: a text from outside, such as a network's words, or a sentence that an
// earlier version stored. Pages show this text unchanged.
type Reason struct {
	Code ReasonCode
	Args []string
}

// Results of messages for which the connector gives no reason.
const (
	ReasonPending     ReasonCode = "pending"
	ReasonCompleted   ReasonCode = "completed"
	ReasonCancelled   ReasonCode = "cancelled"
	ReasonBlacklisted ReasonCode = "blacklisted"
	ReasonNoConsent   ReasonCode = "no_consent"

	ReasonNumberChanged ReasonCode = "number_changed" // the person has another number now
	ReasonRescheduled   ReasonCode = "rescheduled"
	ReasonFailed        ReasonCode = "failed"
	ReasonNetwork       ReasonCode = "network" // words of the network, which were removed because they named a person

	ReasonExpired         ReasonCode = "expired"
	ReasonNotLinked       ReasonCode = "not_linked" // the session is not linked
	ReasonNotTaken        ReasonCode = "not_taken"  // no device took the message
	ReasonNoCredit        ReasonCode = "no_credit"
	ReasonAccountEnded    ReasonCode = "account_ended"
	ReasonSuspended       ReasonCode = "suspended" // the client is suspended
	ReasonHeld            ReasonCode = "held"      // a restore holds the client
	ReasonBudget          ReasonCode = "budget"    // marketing waits, because the budget of the month is used up
	ReasonUncertain       ReasonCode = "uncertain"
	ReasonUnrecoverable   ReasonCode = "unrecoverable"
	ReasonRefusedByDevice ReasonCode = "refused_by_device"
	ReasonInterrupted     ReasonCode = "interrupted" // the attempt was interrupted before the message left
	ReasonUnprepared      ReasonCode = "unprepared"
)

// Reasons of attempts whose answer was lost.
const (
	ReasonMaybeArrived ReasonCode = "maybe.arrived"
	ReasonMaybeBecause ReasonCode = "maybe.because"   // {1}: error of the attempt
	ReasonMaybeSecond  ReasonCode = "maybe.second"    // a repeat certainly failed; {1}: its reason, {2}: its detail
	ReasonArrived      ReasonCode = "maybe.confirmed" // the network has the message after all
)

// Reasons that several connectors use.
const (
	ReasonUnreachable      ReasonCode = "connector.unreachable"   // WhatsApp cannot be reached
	ReasonNotAccepted      ReasonCode = "connector.not_accepted"  // WhatsApp did not accept the message
	ReasonPaused           ReasonCode = "connector.paused"        // the session is paused, or not linked
	ReasonOnlyOfficial     ReasonCode = "connector.only_official" // only an Official session can send a template that Meta approved
	ReasonFileAddress      ReasonCode = "media.forbidden"         // the address of the file is not allowed
	ReasonNoFiles          ReasonCode = "connector.no_files"      // this server sends no files
	ReasonNoFetcher        ReasonCode = "connector.no_fetcher"    // this server has no component that downloads files
	ReasonNotUploaded      ReasonCode = "connector.not_uploaded"  // the file is not uploaded yet
	ReasonTooLarge         ReasonCode = "connector.too_large"     // the file is too large
	ReasonBeyondBytes      ReasonCode = "connector.beyond_bytes"  // {1}: kind of the file, {2}: largest size
	ReasonFileType         ReasonCode = "connector.file_type"     // the network does not accept files of this type
	ReasonOnlyOpus         ReasonCode = "connector.only_opus"     // an ogg file must contain opus audio
	ReasonNoOpus           ReasonCode = "connector.no_opus"       // the file contains no opus audio
	ReasonAudioAlone       ReasonCode = "connector.audio_alone"   // audio cannot have a text
	ReasonAudioUncaptioned ReasonCode = "connector.no_caption"
	ReasonUnsent           ReasonCode = "connector.unsent" // the request did not leave; {1}: why
)

// Codes of texts that combine two reasons.
const (
	ReasonColon    ReasonCode = "form.colon"    // the text is "{1}: {2}"
	ReasonBrackets ReasonCode = "form.brackets" // the text is "{1} ({2})"
)

// Stored forms of an uncertain outcome. Rows of an earlier version contain the sentence FormerUncertain. A statement
// that looks for uncertain outcomes must look for both.
const (
	StoredUncertain = `["uncertain"]`
	FormerUncertain = "Esito incerto"
)

// Because makes a reason from a code and its arguments.
func Because(code ReasonCode, args ...string) Reason { return Reason{Code: code, Args: args} }

// Quoted makes a reason from a text that comes from outside. For "" it returns the zero value.
func Quoted(words string) Reason {
	if words == "" {
		return Reason{}
	}
	return Reason{Args: []string{words}}
}

// Colon joins two reasons with a colon. It leaves out a reason that is zero.
func Colon(first, second Reason) Reason {
	switch {
	case first.IsZero():
		return second
	case second.IsZero():
		return first
	}
	return Because(ReasonColon, first.Stored(), second.Stored())
}

// IsZero reports whether the reason says nothing.
func (r Reason) IsZero() bool { return r.Code == "" && len(r.Args) == 0 }

// At makes a fault from the reason: the value at the location is wrong.
func (r Reason) At(location string, value any) Fault {
	return Fault{Location: location, Code: r.Code, Args: r.Args, Value: value}
}

// Equal compares codes and arguments.
func (r Reason) Equal(other Reason) bool {
	return r.Code == other.Code && slices.Equal(r.Args, other.Args)
}

// storedMark is the beginning of every stored reason that has a code.
const storedMark = `["`

// Stored returns the form that the store writes: a JSON array of the code and the arguments. A quoted text stays a
// plain text, unless it begins like such an array. Bytes that no database accepts are replaced or removed.
func (r Reason) Stored() string {
	if r.Code == "" {
		words := strings.ReplaceAll(strings.ToValidUTF8(strings.Join(r.Args, " "), "\uFFFD"), "\x00", "")
		if !strings.HasPrefix(words, storedMark) { // [ParseReason] would read a text with this beginning as a code
			return words
		}
		r.Args = []string{words}
	}
	text, err := json.Marshal(append([]string{string(r.Code)}, r.Args...))
	if err != nil {
		return string(r.Code) // strings always marshal
	}
	return string(text)
}

// String returns the code and its arguments, for logs.
func (r Reason) String() string {
	if r.Code == "" {
		return strings.Join(r.Args, " ")
	}
	return strings.Join(append([]string{string(r.Code)}, r.Args...), " ")
}

// MarshalText returns the stored form.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.Stored()), nil }

// UnmarshalText reads the stored form.
func (r *Reason) UnmarshalText(stored []byte) error {
	*r = ParseReason(string(stored))
	return nil
}

// ParseReason reads the stored form. It treats any other text as a quoted text, because rows of earlier versions
// contain sentences.
func ParseReason(stored string) Reason {
	if stored == FormerUncertain {
		return Because(ReasonUncertain)
	}
	if strings.HasPrefix(stored, storedMark) {
		var parts []string
		if json.Unmarshal([]byte(stored), &parts) == nil && len(parts) > 0 {
			r := Reason{Code: ReasonCode(parts[0])}
			if len(parts) > 1 {
				r.Args = parts[1:]
			}
			return r
		}
	}
	return Quoted(stored)
}

// ReasonError is an error with a reason that people may read.
type ReasonError struct {
	Reason Reason
	Err    error // the wrapped error; nil: none
}

func (e *ReasonError) Error() string { return e.Reason.String() }

func (e *ReasonError) Unwrap() error { return e.Err }

// ReasonOf returns what people may read of an error. For a [ReasonError] this is its reason, and for a [SendError]
// its reason and detail. For any other error it is the error's text.
func ReasonOf(err error) Reason {
	if said, ok := errors.AsType[*ReasonError](err); ok {
		return said.Reason
	}
	if refusal := AsSendError(err); refusal != nil {
		return Because(ReasonBrackets, refusal.Reason.Stored(), refusal.Detail.Stored())
	}
	return Quoted(err.Error())
}
