package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
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

// object is a JSON object whose members are read one by one. An absent member and a null member are treated alike. A
// member of a wrong type is a fault. All faults are collected, including faults of inner objects. Names of members must
// match exactly, and each name may occur only once.
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

// text reads a string. It returns "" if the member is absent.
func (o *object) text(name string) string {
	raw, ok := o.member(name)
	if !ok {
		return ""
	}
	if raw[0] != '"' {
		o.addFault(name, faultCallMustBeString)
		return ""
	}
	return unquote(raw)
}

// id reads an identifier or a phone number: a string, or a number, which is returned as written. It returns "" if the
// member is absent.
func (o *object) id(name string) string {
	raw, ok := o.member(name)
	if !ok {
		return ""
	}
	text, ok := idText(raw)
	if !ok {
		o.addFault(name, faultCallMustBeStringOrNumber)
	}
	return text
}

// phone reads a recipient as id does. A JSON number must have only digits, because any other number cannot be a
// recipient.
func (o *object) phone(name string) string {
	text := o.id(name)
	if raw, ok := o.member(name); ok && !isPhone(raw) {
		o.refuse(name, faultCallNotPlainNumber, string(raw))
		return ""
	}
	return text
}

// phones reads a list of recipients.
func (o *object) phones(name string) []string {
	texts := o.ids(name)
	var raws []json.RawMessage
	if texts != nil {
		raws = o.list(name)
	}
	for i, raw := range raws {
		if !isPhone(raw) {
			o.refuse(name+"["+strconv.Itoa(i)+"]", faultCallNotPlainNumber, string(raw))
		}
	}
	return texts
}

// isPhone reports whether a value may be a phone number. A JSON number must consist of digits only.
func isPhone(raw json.RawMessage) bool {
	number := raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'
	return !number || strings.Trim(string(raw), "0123456789") == ""
}

// needIDs reads a required list of identifiers. If the list is missing, needIDs adds a fault and returns nil.
func (o *object) needIDs(name string) []string {
	o.need(name)
	return o.ids(name)
}

// has reports whether a member is present and not null.
func (o *object) has(name string) bool {
	_, ok := o.member(name)
	return ok
}

func (o *object) null(name string) bool {
	_, found := o.members[name]
	return found && !o.has(name)
}

// need reports whether a member is present. If it is absent, need adds a fault.
func (o *object) need(name string) bool {
	if o.members == nil { // the value is not an object, and this fault is already noted
		return false
	}
	_, ok := o.member(name)
	if !ok {
		o.refuse(name, puntuale.FaultRequired, nil)
	}
	return ok
}

// refuseUndocumented adds a fault for each undocumented member. The argument documented is a struct with one field for
// each documented member.
func (o *object) refuseUndocumented(documented any) {
	known := map[string]bool{}
	for _, field := range reflect.VisibleFields(reflect.TypeOf(documented)) { // this includes the fields of embedded types
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		known[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(o.members)) {
		if !known[name] {
			o.refuse(name, faultCallUnknownMember, nil)
		}
	}
}

// ids reads a list of identifiers. It returns nil if the member is absent, and an empty list if the list is empty.
func (o *object) ids(name string) []string {
	raws := o.list(name)
	if raws == nil {
		return nil
	}
	ids := make([]string, len(raws))
	for i, raw := range raws {
		text, ok := idText(raw)
		if !ok {
			o.addFault(name+"["+strconv.Itoa(i)+"]", faultCallMustBeStringOrNumber)
		}
		ids[i] = text
	}
	return ids
}

// flag reads true or false. It returns nil if the member is absent.
func (o *object) flag(name string) *bool {
	raw, ok := o.member(name)
	if !ok {
		return nil
	}
	switch string(raw) {
	case "true":
		return new(true)
	case "false":
		return new(false)
	}
	o.addFault(name, faultCallMustBeBool)
	return nil
}

// wholeNumber reads a whole number. It returns 0 if the member is absent.
func (o *object) wholeNumber(name string) int {
	raw, ok := o.member(name)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil {
		o.addFault(name, faultCallMustBeWhole)
	}
	return n
}

// wholeOrNil reads a whole number, and returns nil if the member is absent. It is for members whose absence has a
// meaning.
func (o *object) wholeOrNil(name string) *int {
	if _, ok := o.member(name); !ok {
		return nil
	}
	return new(o.wholeNumber(name))
}

// texts reads a list of strings.
func (o *object) texts(name string) []string {
	var all []string
	for i, raw := range o.list(name) {
		if raw[0] != '"' {
			o.addFault(name+"["+strconv.Itoa(i)+"]", faultCallMustBeString)
			continue
		}
		all = append(all, unquote(raw))
	}
	return all
}

// whole64 reads a whole number of up to 64 bits. It returns 0 if the member is absent.
func (o *object) whole64(name string) int64 {
	raw, ok := o.member(name)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		o.addFault(name, faultCallMustBeWhole)
	}
	return n
}

// wholes reads a list of whole numbers.
func (o *object) wholes(name string) []int {
	var ns []int
	for i, raw := range o.list(name) {
		n, err := strconv.Atoi(string(raw))
		if err != nil {
			o.addFault(name+"["+strconv.Itoa(i)+"]", faultCallMustBeWhole)
		}
		ns = append(ns, n)
	}
	return ns
}

// number reads a number. It returns nil if the member is absent.
func (o *object) number(name string) *float64 {
	raw, ok := o.member(name)
	if !ok {
		return nil
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		o.addFault(name, faultCallMustBeNumber)
	}
	return &n
}

// object reads an inner object. It returns nil if the member is absent.
func (o *object) object(name string) *object {
	raw, ok := o.member(name)
	if !ok {
		return nil
	}
	return o.inner(name, raw)
}

// objects reads a list of inner objects.
func (o *object) objects(name string) []*object {
	var inner []*object
	for i, raw := range o.list(name) {
		inner = append(inner, o.inner(name+"["+strconv.Itoa(i)+"]", raw))
	}
	return inner
}

func (o *object) inner(name string, raw json.RawMessage) *object {
	inner := &object{at: o.at + "." + name, faults: o.faults, refused: o.refused}
	if raw[0] != '{' || json.Unmarshal(raw, &inner.members) != nil {
		o.addFault(name, faultCallMustBeObject)
	}
	return inner
}

// list reads an array. It returns nil if the member is absent.
func (o *object) list(name string) []json.RawMessage {
	raw, ok := o.member(name)
	if !ok {
		return nil
	}
	entries := []json.RawMessage{}
	if raw[0] != '[' || json.Unmarshal(raw, &entries) != nil {
		o.addFault(name, faultCallMustBeArray)
		return nil
	}
	return entries
}

// member returns a member that is neither absent nor null. The raw value has no white space around it, because the JSON
// decoder removes white space.
func (o *object) member(name string) (json.RawMessage, bool) {
	raw, ok := o.members[name]
	return raw, ok && len(raw) > 0 && raw[0] != 'n'
}

func (o *object) addFault(name string, code puntuale.ReasonCode) {
	*o.faults = append(*o.faults, puntuale.Fault{Location: o.at + "." + name, Code: code})
}

// blank adds the fault for a required member that is empty.
func (o *object) blank(name string) {
	if o.members != nil {
		o.refuse(name, puntuale.FaultRequired, nil)
	}
}

func (o *object) refuse(name string, code puntuale.ReasonCode, value any, args ...string) {
	*o.refused = append(*o.refused, puntuale.Because(code, args...).At(o.at+"."+name, value))
}

func idText(raw json.RawMessage) (string, bool) {
	switch c := raw[0]; {
	case c == '"':
		return unquote(raw), true
	case c == '-' || c >= '0' && c <= '9':
		return string(raw), true
	}
	return "", false
}

// unquote decodes a JSON string.
func unquote(raw json.RawMessage) string {
	var text string
	_ = json.Unmarshal(raw, &text) // the whole body was decoded before, so this string is valid
	return text
}
