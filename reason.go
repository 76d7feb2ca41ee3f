package puntuale

import (
	"encoding/json"
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

// Because makes a reason.
func Because(code ReasonCode, args ...string) Reason { return Reason{Code: code, Args: args} }

// Quoted makes a reason of somebody else's words. "" gives the zero value.
func Quoted(words string) Reason {
	if words == "" {
		return Reason{}
	}
	return Reason{Args: []string{words}}
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

// Stored returns the form that stores keep: a JSON array of the code and the arguments. Quoted words stay as they are.
func (r Reason) Stored() string {
	if r.Code == "" {
		return strings.Join(r.Args, " ")
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

// ParseReason reads the stored form. Any other text is taken as quoted words: rows of earlier versions hold sentences.
func ParseReason(stored string) Reason {
	if strings.HasPrefix(stored, storedMark) {
		var parts []string
		if json.Unmarshal([]byte(stored), &parts) == nil && len(parts) > 0 {
			return Reason{Code: ReasonCode(parts[0]), Args: parts[1:]}
		}
	}
	return Quoted(stored)
}
