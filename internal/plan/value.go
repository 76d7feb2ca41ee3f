package plan

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"puntuale"
)

// Kind is the JSON type of a field in the call.
type Kind int8

const (
	Absent Kind = iota // the field is missing or null
	Text               // a string, decoded
	Number             // a number, as the caller wrote it
	Other              // an array, an object, true or false
)

// Value is the value of one field of the call. The zero value is an absent field.
type Value struct {
	Kind Kind
	Text string // set only if Kind is Text or Number
}

// FromJSON converts a member of a JSON object into a value. raw should be valid JSON; for any other bytes, Kind is
// Other.
func FromJSON(raw []byte) Value {
	raw = trimJSON(raw)
	if len(raw) == 0 {
		return Value{}
	}
	switch c := raw[0]; {
	case c == 'n':
		return Value{}
	case c == '"':
		var text string
		if json.Unmarshal(raw, &text) == nil {
			return Value{Text, text}
		}
	case c == '-' || c >= '0' && c <= '9':
		return Value{Number, string(raw)}
	}
	return Value{Kind: Other}
}

func trimJSON(raw []byte) []byte {
	space := func(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
	for len(raw) > 0 && space(raw[0]) {
		raw = raw[1:]
	}
	for len(raw) > 0 && space(raw[len(raw)-1]) {
		raw = raw[:len(raw)-1]
	}
	return raw
}

// blank reports whether a value counts as missing, because it is absent, null, empty, or only white space.
func (v Value) blank() bool {
	return v.Kind == Absent || v.Kind != Other && isBlank(v.Text)
}

func isBlank(text string) bool { return puntuale.Trimmed(text) == "" }

const faultMustNotHoldNUL puntuale.ReasonCode = "fault.must_not_hold_nul"

func hasNUL(text string) bool { return strings.IndexByte(text, 0) >= 0 }

// tooLong reports whether a text has more characters than the limit.
func tooLong(text string, limit int) bool {
	return len(text) > limit && utf8.RuneCountInString(text) > limit
}

// stepLocation returns the location of a part of a step, such as "steps[2].text", after a prefix.
func stepLocation(prefix string, step int, part string) string {
	location := prefix + "steps[" + strconv.Itoa(step) + "]"
	if part != "" {
		location += "." + part
	}
	return location
}
