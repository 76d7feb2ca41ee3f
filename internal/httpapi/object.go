package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/payload"
)

// Codes of the faults that this file reports.
const (
	faultCallEmpty                puntuale.ReasonCode = "call.empty"
	faultCallMustBeArray          puntuale.ReasonCode = "call.must_be_array"
	faultCallMustBeBool           puntuale.ReasonCode = "call.must_be_bool"
	faultCallMustBeNumber         puntuale.ReasonCode = "call.must_be_number"
	faultCallMustBeObject         puntuale.ReasonCode = "call.must_be_object"
	faultCallMustBeString         puntuale.ReasonCode = "call.must_be_string"
	faultCallMustBeStringOrNumber puntuale.ReasonCode = "call.must_be_string_or_number"
	faultCallMustBeWhole          puntuale.ReasonCode = "call.must_be_whole"
	faultCallNotJSON              puntuale.ReasonCode = "call.not_json"
	faultCallNotObject            puntuale.ReasonCode = "call.not_object"
	faultCallNotUTF8              puntuale.ReasonCode = "call.not_utf8"
	faultCallUnknownMember        puntuale.ReasonCode = "call.unknown_member"
	faultCallNotPlainNumber       puntuale.ReasonCode = "call.not_plain_number"
	faultCallTooManyValues        puntuale.ReasonCode = "call.too_many_values"
)

// object is a JSON object of a body, with its members as they were written. Names of members must match exactly, and each
// name may occur only once. All faults are collected, including faults of inner objects.
type object struct {
	at      string // where the object is in the body, such as "body" or "body.steps[2]"
	members map[string]json.RawMessage
	faults  *[]puntuale.Fault // the faults of members that have a wrong type
	refused *[]puntuale.Fault // members that can be read but are not allowed; control returns these faults together with its own faults
}

// readObject reads a body. The argument values is the largest number of JSON values in the body. Codes: unreadable.
func readObject(body []byte, values int) (*object, error) {
	text := bytes.TrimLeft(body, " \t\r\n")
	switch {
	case len(text) == 0:
		return nil, unreadable(puntuale.Fault{Location: "body", Code: faultCallEmpty})
	case !utf8.Valid(body):
		return nil, unreadable(puntuale.Fault{Location: "body", Code: faultCallNotUTF8})
	}
	if payload.Exceeds(body, values, values) {
		return nil, unreadable(puntuale.Fault{Location: "body", Code: faultCallTooManyValues, Args: []string{strconv.Itoa(values)}})
	}
	o := &object{at: "body", faults: &[]puntuale.Fault{}, refused: &[]puntuale.Fault{}}
	err := json.Unmarshal(body, &o.members)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		reason := puntuale.Because(faultCallNotJSON, syntax.Error(), strconv.FormatInt(syntax.Offset, 10))
		return nil, unreadable(reason.At("body", nil))
	}
	if err != nil || text[0] != '{' {
		return nil, unreadable(puntuale.Fault{Location: "body", Code: faultCallNotObject})
	}
	if found := flaws(body); len(found) > 0 {
		return nil, unreadable(found...)
	}
	return o, nil
}

// err returns the faults of members with a wrong type, or nil if there are none.
func (o *object) err() error {
	if len(*o.faults) == 0 {
		return nil
	}
	return unreadable(*o.faults...)
}

// has reports whether a member is present and not null.
func (o *object) has(name string) bool {
	_, ok := o.member(name)
	return ok
}

func (o *object) inner(name string, raw json.RawMessage) *object {
	inner := &object{at: o.at + "." + name, faults: o.faults, refused: o.refused}
	if raw[0] != '{' || json.Unmarshal(raw, &inner.members) != nil {
		o.addFault(name, faultCallMustBeObject)
	}
	return inner
}

// member returns a member that is neither absent nor null. The raw value has no white space around it, because the JSON
// decoder removes white space.
func (o *object) member(name string) (json.RawMessage, bool) {
	raw, ok := o.members[name]
	return raw, ok && raw[0] != 'n'
}

func (o *object) addFault(name string, code puntuale.ReasonCode) {
	*o.faults = append(*o.faults, puntuale.Fault{Location: o.at + "." + name, Code: code})
}

// required adds the fault for a member that is missing or empty.
func (o *object) required(name string) {
	if o.members != nil { // nil: the value is not an object, and this fault is already noted
		o.refuse(name, puntuale.FaultRequired, nil)
	}
}

func (o *object) refuse(name string, code puntuale.ReasonCode, value any, args ...string) {
	*o.refused = append(*o.refused, puntuale.Because(code, args...).At(o.at+"."+name, value))
}

func isNumber(raw json.RawMessage) bool { return raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' }

// unquote decodes a JSON string.
func unquote(raw json.RawMessage) string {
	var text string
	_ = json.Unmarshal(raw, &text) // the whole body was decoded before, so this string is valid
	return text
}
