package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
	"puntuale/internal/httpkit"
)

// bodyMember is a member of an object in a body, as a field describes it. The type of a body documents the body, and says
// how it is read. Members are read in the order of the fields, because faults come in this order. An absent member and a
// null member are treated alike, and leave the field as it is. The tag "read" contains any of these words:
//
//	id       a text, or a number, which becomes a text as it is written
//	phone    as id, but a number must have only digits
//	strings  a list of texts; a wrong entry is a fault of the list
//	need     an absent member is a fault
//	given    an absent member is a fault, and null is a value
//	capped   if a list has more than maxItems entries, they are not read, because control refuses their number
//	-        the member is only documented; not for a body with a [closedCheck]
//
// A blank field whose type is a [bodyCheck] makes this check in its place.
type bodyMember struct {
	name  string // "": a check
	index []int  // of the field
	as    string // "id", "phone", "strings" or ""
	need  bool
	given bool
	most  int // the largest number of entries that are read; 0: any number
	check bodyCheck
}

// bodyCheck adds faults that concern several members of an object, or all of them. The argument to points to the struct
// into which the object is read.
type bodyCheck interface {
	check(o *object, to any)
}

// memberReader is a type with its own JSON form in bodies. readJSON is not called for null.
type memberReader interface {
	readJSON(o *object, name string, raw json.RawMessage)
}

// closedCheck makes an undocumented member of a body a fault.
type closedCheck struct{}

func (closedCheck) check(o *object, to any) {
	members := membersOf(reflect.TypeOf(to).Elem())
	for _, name := range slices.Sorted(maps.Keys(o.members)) {
		if !slices.ContainsFunc(members, func(m bodyMember) bool { return m.check == nil && m.name == name }) {
			o.refuse(name, faultCallUnknownMember, nil)
		}
	}
}

// nullableMember is a member for which null has a meaning of its own.
type nullableMember[T any] struct {
	Set bool // the member is present
	To  *T   // nil: null
}

func (n *nullableMember[T]) readNull() { n.Set = true }

func (n *nullableMember[T]) readJSON(o *object, name string, raw json.RawMessage) {
	n.Set, n.To = true, new(T)
	o.value(&bodyMember{name: name}, raw, reflect.ValueOf(n.To).Elem())
}

// Schema describes the value to huma.
func (nullableMember[T]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[T](), true, "")
}

// MarshalJSON writes the value, or null. A member that is not set needs the tag omitzero.
func (n nullableMember[T]) MarshalJSON() ([]byte, error) { return render(n.To) }

// orEmpty returns the value, or the empty value for null. It returns nil for an absent member.
func (n nullableMember[T]) orEmpty() *T {
	if n.Set && n.To == nil {
		return new(T)
	}
	return n.To
}

// jsonForms contains the types that document the JSON form of a type of package puntuale. Both have members with the same
// names.
var jsonForms = map[reflect.Type]reflect.Type{
	reflect.TypeFor[puntuale.Step]():           reflect.TypeFor[step](),
	reflect.TypeFor[puntuale.StepVariant]():    reflect.TypeFor[stepVariant](),
	reflect.TypeFor[puntuale.VariantText]():    reflect.TypeFor[variantText](),
	reflect.TypeFor[puntuale.Timing]():         reflect.TypeFor[timing](),
	reflect.TypeFor[puntuale.StepButton]():     reflect.TypeFor[stepButton](),
	reflect.TypeFor[puntuale.Interactive]():    reflect.TypeFor[interactive](),
	reflect.TypeFor[puntuale.ChoiceList]():     reflect.TypeFor[choiceList](),
	reflect.TypeFor[puntuale.ListSection]():    reflect.TypeFor[listSection](),
	reflect.TypeFor[puntuale.ListRow]():        reflect.TypeFor[listRow](),
	reflect.TypeFor[puntuale.LinkButton]():     reflect.TypeFor[linkButton](),
	reflect.TypeFor[puntuale.Offset]():         reflect.TypeFor[offset](),
	reflect.TypeFor[puntuale.Window]():         reflect.TypeFor[window](),
	reflect.TypeFor[puntuale.Validity]():       reflect.TypeFor[validity](),
	reflect.TypeFor[puntuale.Trigger]():        reflect.TypeFor[triggerBody](),
	reflect.TypeFor[puntuale.Conditions]():     reflect.TypeFor[conditionsBody](),
	reflect.TypeFor[puntuale.FieldCondition](): reflect.TypeFor[fieldConditionBody](),
	reflect.TypeFor[puntuale.Action]():         reflect.TypeFor[actionBody](),
	reflect.TypeFor[puntuale.Approved]():       reflect.TypeFor[approvedBody](),
	reflect.TypeFor[puntuale.Parameter]():      reflect.TypeFor[parameterBody](),
	reflect.TypeFor[puntuale.Button]():         reflect.TypeFor[buttonBody](),
	reflect.TypeFor[puntuale.DraftHeader]():    reflect.TypeFor[draftHeaderBody](),
	reflect.TypeFor[puntuale.DraftButton]():    reflect.TypeFor[draftButtonBody](),
}

// withBody returns a verb that reads the call's body, and then calls verb with it.
func withBody[C, B, I, T any](verb func(context.Context, C, *call, *I, *B) (T, error)) func(context.Context, C, *call, *I) (T, error) {
	return func(ctx context.Context, c C, in *call, p *I) (out T, err error) {
		body, err := decode[B](in, httpkit.MaxValues)
		if err != nil {
			return out, err
		}
		return verb(ctx, c, in, p, body)
	}
}

// withOptionalBody does the same for an operation whose body may be absent: then verb gets an empty body.
func withOptionalBody[C, B, I, T any](verb func(context.Context, C, *call, *I, *B) (T, error)) func(context.Context, C, *call, *I) (T, error) {
	read := withBody(verb)
	return func(ctx context.Context, c C, in *call, p *I) (T, error) {
		if in.body == nil {
			return verb(ctx, c, in, p, new(B))
		}
		return read(ctx, c, in, p)
	}
}

// decode reads a call's body, which may have so many JSON values. Codes: unreadable.
func decode[B any](in *call, values int) (*B, error) {
	o, err := readObject(in.body, values)
	if err != nil {
		return nil, err
	}
	body := new(B)
	o.into(body)
	in.refused = *o.refused
	return body, o.err()
}

// into reads all members of an object into the struct to which the argument points.
func (o *object) into(to any) {
	fields := reflect.ValueOf(to).Elem()
	members := membersOf(fields.Type())
	for i := range members {
		if m := &members[i]; m.check != nil {
			m.check.check(o, to)
		} else {
			o.readMember(m, fields.FieldByIndex(m.index))
		}
	}
}

// read reads one member, as a field with this tag.
func (o *object) read(name, tag string, to any) {
	o.readMember(new(memberOf(name, tag)), reflect.ValueOf(to).Elem())
}

func (o *object) readMember(m *bodyMember, to reflect.Value) {
	raw, found := o.members[m.name]
	switch {
	case found && raw[0] != 'n':
		o.value(m, raw, to)
	case m.need || m.given && !found:
		o.required(m.name)
	case found:
		if n, ok := to.Addr().Interface().(interface{ readNull() }); ok {
			n.readNull()
		}
	}
}

// value reads a JSON value.
func (o *object) value(m *bodyMember, raw json.RawMessage, to reflect.Value) {
	if r, ok := to.Addr().Interface().(memberReader); ok {
		r.readJSON(o, m.name, raw)
		return
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		o.value(m, raw, to.Elem())
	case reflect.String:
		to.SetString(o.text(m, raw))
	case reflect.Bool:
		if raw[0] != 't' && raw[0] != 'f' {
			o.addFault(m.name, faultCallMustBeBool)
		}
		to.SetBool(raw[0] == 't')
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(string(raw), 10, to.Type().Bits())
		if err != nil {
			o.addFault(m.name, faultCallMustBeWhole)
		}
		to.SetInt(n)
	case reflect.Float64:
		n, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			o.addFault(m.name, faultCallMustBeNumber)
		}
		to.SetFloat(n)
	case reflect.Struct:
		o.inner(m.name, raw).into(to.Addr().Interface())
	case reflect.Map:
		to.Set(reflect.ValueOf(o.inner(m.name, raw).texts()))
	case reflect.Slice:
		o.list(m, raw, to)
	default:
		panic("a body has a member of the kind " + to.Kind().String())
	}
}

// text reads a string, or a number if the member may be one.
func (o *object) text(m *bodyMember, raw json.RawMessage) string {
	switch {
	case raw[0] == '"':
		return unquote(raw)
	case m.as == "strings":
		o.addFault(m.name, faultCallMustBeStrings)
	case m.as == "":
		o.addFault(m.name, faultCallMustBeString)
	case !isNumber(raw):
		o.addFault(m.name, faultCallMustBeStringOrNumber)
	case m.as == "phone" && strings.Trim(string(raw), "0123456789") != "": // no other number can be a recipient
		o.refuse(m.name, faultCallNotPlainNumber, string(raw))
	default:
		return string(raw)
	}
	return ""
}

// texts returns the members of an object, which must all be strings.
func (o *object) texts() map[string]string {
	all := make(map[string]string, len(o.members))
	for _, name := range slices.Sorted(maps.Keys(o.members)) {
		var text string
		o.read(name, "", &text)
		all[name] = text
	}
	return all
}

// list reads an array. The list is not nil, even if the array is empty.
func (o *object) list(m *bodyMember, raw json.RawMessage, to reflect.Value) {
	if to.Type() == reflect.TypeFor[json.RawMessage]() {
		to.SetBytes(raw)
		return
	}
	var entries []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &entries) != nil {
		o.addFault(m.name, faultCallMustBeArray)
		return
	}
	to.Set(reflect.MakeSlice(to.Type(), len(entries), len(entries)))
	if m.most > 0 && len(entries) > m.most {
		return
	}
	names := make([]string, len(entries))
	objects := to.Type().Elem().Kind() == reflect.Struct || to.Type().Elem().Kind() == reflect.Map
	for i, raw := range entries {
		names[i] = m.name + "[" + strconv.Itoa(i) + "]"
		if objects && raw[0] != '{' { // these faults come before the faults inside of the other entries
			o.addFault(names[i], faultCallMustBeObject)
		}
	}
	for i, raw := range entries {
		if m.as == "strings" {
			names[i] = m.name
		}
		if !objects || raw[0] == '{' {
			o.value(&bodyMember{name: names[i], as: m.as}, raw, to.Index(i))
		}
	}
}

var knownMembers sync.Map // the members of each type that was read, as []bodyMember

// membersOf returns the members that are read into a type, in their order.
func membersOf(t reflect.Type) []bodyMember {
	if known, ok := knownMembers.Load(t); ok {
		return known.([]bodyMember)
	}
	members := findMembers(t)
	knownMembers.Store(t, members)
	return members
}

func findMembers(t reflect.Type) (members []bodyMember) {
	form := cmp.Or(jsonForms[t], t)
	for i := range form.NumField() {
		f := form.Field(i)
		switch tag := f.Tag.Get("read"); {
		case tag == "-":
		case f.Anonymous:
			for _, m := range findMembers(f.Type) {
				if m.check == nil { // a check of the embedded type does not know the other members
					m.index = append([]int{i}, m.index...)
					members = append(members, m)
				}
			}
		case f.Name == "_":
			if check, ok := reflect.Zero(f.Type).Interface().(bodyCheck); ok {
				members = append(members, bodyMember{check: check})
			}
		default:
			m := memberOf(jsonName(f), tag)
			m.index = fieldNamed(t, m.name)
			if slices.Contains(strings.Split(tag, ","), "capped") {
				m.most, _ = strconv.Atoi(f.Tag.Get("maxItems"))
			}
			members = append(members, m)
		}
	}
	return members
}

// memberOf returns a member whose field has this tag.
func memberOf(name, tag string) bodyMember {
	m := bodyMember{name: name}
	for word := range strings.SplitSeq(tag, ",") {
		switch word {
		case "need":
			m.need = true
		case "given":
			m.given = true
		case "capped":
		default:
			m.as = word
		}
	}
	return m
}

// fieldNamed returns the field that has a name in JSON.
func fieldNamed(t reflect.Type, name string) []int {
	for i := range t.NumField() {
		if f := t.Field(i); jsonName(f) == name {
			return f.Index
		}
	}
	panic(t.String() + " has no member " + name)
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
