package puntuale

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// ReasonCode names a sentence of the catalogue, such as "official.token_expired".
type ReasonCode string

// Reason says why something did not happen, or what is wrong, as a code with arguments. internal/catalogue makes the
// sentence where a person reads it. The zero value says nothing. An argument may be a reason itself, in its stored form.
//
// A reason without a code has one argument: words of somebody else, such as a network's, or of a row that an earlier version
// wrote. They are shown as they are.
type Reason struct {
	Code ReasonCode
	Args []string
}

// What became of a message, where no connector says more.
const (
	ReasonPending     ReasonCode = "pending"
	ReasonCompleted   ReasonCode = "completed"
	ReasonCancelled   ReasonCode = "cancelled"
	ReasonBlacklisted ReasonCode = "blacklisted"
	ReasonNoConsent   ReasonCode = "no_consent"
	ReasonRescheduled ReasonCode = "rescheduled"
	ReasonFailed      ReasonCode = "failed"

	ReasonExpired         ReasonCode = "expired"
	ReasonNotLinked       ReasonCode = "not_linked" // the session
	ReasonNotTaken        ReasonCode = "not_taken"  // by a device
	ReasonNoCredit        ReasonCode = "no_credit"
	ReasonAccountEnded    ReasonCode = "account_ended"
	ReasonSuspended       ReasonCode = "suspended" // the client
	ReasonHeld            ReasonCode = "held"      // since a restore
	ReasonUncertain       ReasonCode = "uncertain"
	ReasonUnrecoverable   ReasonCode = "unrecoverable"
	ReasonRefusedByDevice ReasonCode = "refused_by_device"
	ReasonInterrupted     ReasonCode = "interrupted" // the attempt was interrupted before anything left
	ReasonUnprepared      ReasonCode = "unprepared"
)

// The reasons of an attempt whose answer was lost.
const (
	ReasonMaybeArrived ReasonCode = "maybe.arrived"
	ReasonMaybeBecause ReasonCode = "maybe.because"   // {1}: the error of the attempt
	ReasonMaybeSecond  ReasonCode = "maybe.second"    // another attempt certainly failed; {1}: its reason, {2}: its detail
	ReasonArrived      ReasonCode = "maybe.confirmed" // the network has the message after all
)

// What several connectors say.
const (
	ReasonUnreachable      ReasonCode = "connector.unreachable"   // WhatsApp
	ReasonNotAccepted      ReasonCode = "connector.not_accepted"  // by WhatsApp
	ReasonPaused           ReasonCode = "connector.paused"        // or not linked
	ReasonOnlyOfficial     ReasonCode = "connector.only_official" // a template that Meta approved
	ReasonFileAddress      ReasonCode = "media.forbidden"         // of a file
	ReasonNoFiles          ReasonCode = "connector.no_files"      // this server sends none
	ReasonNoFetcher        ReasonCode = "connector.no_fetcher"    // nothing downloads them
	ReasonNotUploaded      ReasonCode = "connector.not_uploaded"  // the file, yet
	ReasonTooLarge         ReasonCode = "connector.too_large"     // the file
	ReasonBeyondBytes      ReasonCode = "connector.beyond_bytes"  // {1}: the kind of file, {2}: the limit
	ReasonFileType         ReasonCode = "connector.file_type"     // the network does not take it
	ReasonOnlyOpus         ReasonCode = "connector.only_opus"     // of ogg audio
	ReasonNoOpus           ReasonCode = "connector.no_opus"       // in the file
	ReasonAudioAlone       ReasonCode = "connector.audio_alone"   // audio cannot have a text
	ReasonAudioUncaptioned ReasonCode = "connector.no_caption"
	ReasonUnsent           ReasonCode = "connector.unsent" // the request did not leave; {1}: why
)

// Forms of two reasons together.
const (
	ReasonColon    ReasonCode = "form.colon"    // {1}: {2}
	ReasonBrackets ReasonCode = "form.brackets" // {1} ({2})
)

// An uncertain outcome as stores hold it. Rows that an earlier version wrote hold the sentence. Statements that look for
// uncertain outcomes must name both.
const (
	StoredUncertain = `["uncertain"]`
	FormerUncertain = "Esito incerto"
)

// Because makes a reason.
func Because(code ReasonCode, args ...string) Reason { return Reason{Code: code, Args: args} }

// Quoted makes a reason of somebody else's words. "" gives the zero value.
func Quoted(words string) Reason {
	if words == "" {
		return Reason{}
	}
	return Reason{Args: []string{words}}
}

// Colon joins two reasons with a colon. One that says nothing is left out.
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

// At makes a fault of the reason.
func (r Reason) At(location string, value any) Fault {
	return Fault{Location: location, Code: r.Code, Args: r.Args, Value: value}
}

// Equal compares codes and arguments.
func (r Reason) Equal(other Reason) bool {
	return r.Code == other.Code && slices.Equal(r.Args, other.Args)
}

// storedMark begins the stored form of a reason with a code.
const storedMark = `["`

// Stored returns the form that stores keep: a JSON array of the code and the arguments. Quoted words stay as they are, but
// for bytes that no database takes.
func (r Reason) Stored() string {
	if r.Code == "" {
		words := strings.ReplaceAll(strings.ToValidUTF8(strings.Join(r.Args, " "), "\uFFFD"), "\x00", "")
		if !strings.HasPrefix(words, storedMark) { // otherwise they would be read as a code
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

// String returns the code with its arguments, for logs.
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

// ParseReason reads the stored form. Any other text is taken as quoted words: rows of earlier versions hold sentences.
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

// ReasonError is an error that a person may read.
type ReasonError struct {
	Reason Reason
	Err    error // the wrapped error; nil: none
}

func (e *ReasonError) Error() string { return e.Reason.String() }

func (e *ReasonError) Unwrap() error { return e.Err }

// ReasonOf returns what an error says to people: a [ReasonError]'s reason, a [SendError]'s reason and detail, or the words of
// any other error.
func ReasonOf(err error) Reason {
	if said, ok := errors.AsType[*ReasonError](err); ok {
		return said.Reason
	}
	if refusal := AsSendError(err); refusal != nil {
		return Because(ReasonBrackets, refusal.Reason.Stored(), refusal.Detail.Stored())
	}
	return Quoted(err.Error())
}
