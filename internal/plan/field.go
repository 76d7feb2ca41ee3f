package plan

import (
	"slices"
	"strconv"
	"strings"

	"puntuale"
)

// Fields returns the fields in the steps of a sequence, in the order of first use. A field is a date if it is an
// anchor, or if a text prints it in a date format. It is a media address if it is the whole media of a step. Otherwise
// it is a text. A field is required if it is an anchor, or if a text prints it without a fallback.
func Fields(s puntuale.Sequence) []puntuale.Field {
	var l fieldList
	if s.Booking != "" {
		l.use(s.Booking, puntuale.FieldDate, true)
	}
	for _, step := range puntuale.Texts(s.Steps) {
		l.template(step.Text)
		if name := sole(step.Media); name != "" && !isReserved(name) {
			l.use(name, puntuale.FieldMedia, false)
		}
		l.template(step.Media)
		l.template(step.MediaName)
		for _, text := range slices.Concat(texts(step.Official), choiceTexts(step)) {
			l.template(text)
		}
		if anchor := step.Timing.Anchor; isFieldAnchor(anchor) {
			l.use(anchor, puntuale.FieldDate, true)
		}
	}
	if s.Booking != "" { // the server itself gives the address of the page
		return slices.DeleteFunc(l.fields, func(f puntuale.Field) bool { return f.Name == FieldPage })
	}
	return l.fields
}

// fieldList collects the uses of fields.
type fieldList struct {
	names  nameList
	fields []puntuale.Field
}

func (l *fieldList) template(text string) {
	for s := scan(text); s.next(); {
		if !s.found || !s.fault.IsZero() || s.field.name == fieldPhone {
			continue
		}
		kind := puntuale.FieldText
		if s.field.format != "" {
			kind = puntuale.FieldDate
		}
		l.use(s.field.name, kind, !s.field.optional)
	}
}

// use records one use of a field. If a field has uses of two kinds, the stricter kind applies.
func (l *fieldList) use(name string, kind puntuale.FieldKind, required bool) {
	i, known := l.names.number(name)
	if !known {
		l.fields = append(l.fields, puntuale.Field{Name: name, Kind: kind, Required: required})
		return
	}
	f := &l.fields[i]
	if kind == puntuale.FieldDate || f.Kind == puntuale.FieldText {
		f.Kind = kind
	}
	f.Required = f.Required || required
}

// nameList numbers names from 0, in the order of their first use. It searches a short list. For a long list, which is
// rare, it uses a map.
type nameList struct {
	list  []string
	index map[string]int
}

const shortList = 16

// number returns the number of a name, and whether the name was already in the list. It adds a new name to the list.
func (l *nameList) number(name string) (int, bool) {
	if l.index == nil {
		for i, known := range l.list {
			if known == name {
				return i, true
			}
		}
	} else if i, known := l.index[name]; known {
		return i, true
	}
	n := len(l.list)
	l.list = append(l.list, name)
	switch {
	case l.index != nil:
		l.index[name] = n
	case n == shortList:
		l.index = make(map[string]int, 4*shortList)
		for i, known := range l.list {
			l.index[known] = i
		}
	}
	return n, false
}

// field is the state of a field in one plan.
type field struct {
	name     string
	date     bool // true: at least one step uses the field as a date
	state    fieldState
	text     string
	moment   Moment
	reported bool // true: the field's fault is recorded
}

// fieldState says whether a field's value was read, and whether the value is usable.
type fieldState int8

const (
	fieldUnread fieldState = iota
	fieldAbsent            // the value is missing, null or blank
	fieldGood
	fieldBad
)

// entry returns the entry of a field, and adds the entry if there is none. The pointer is valid until the next call of
// entry.
func (b *builder) entry(name string) *field {
	i, known := b.names.number(name)
	if !known {
		b.fields = append(b.fields, field{name: name})
	}
	return &b.fields[i]
}

// Codes of the faults in this file.
const (
	faultSequenceTextOrNumber puntuale.ReasonCode = "sequence.text_or_number"
)

// field returns a field that a step needs. The first call reads the field's value.
func (b *builder) field(name string) *field {
	f := b.entry(name)
	if f.state != fieldUnread {
		return f
	}
	v := b.in.Fields[name]
	f.state = fieldBad
	switch {
	case v.blank():
		f.state = fieldAbsent
	case v.Kind == Other:
		b.fieldFault(f, puntuale.Because(faultSequenceTextOrNumber), nil)
	case tooLong(v.Text, puntuale.MaxField):
		b.fieldFault(f, puntuale.Because(puntuale.FaultLongerThanCharacters, strconv.Itoa(puntuale.MaxField)), nil)
	case hasNUL(v.Text):
		b.fieldFault(f, puntuale.Because(faultMustNotHoldNUL), nil)
	default:
		f.state, f.text = fieldGood, v.Text
	}
	if f.date && f.state == fieldGood {
		moment, err := ParseMoment(strings.TrimSpace(f.text))
		if f.moment = moment; err != nil { // a number is never a valid date
			b.fieldFault(f, puntuale.Because(puntuale.FaultSequenceMustBeDate), clip(f.text))
			f.state = fieldBad
		}
	}
	return f
}

// fieldFault records a fault of a field, unless the field already has a fault.
func (b *builder) fieldFault(f *field, reason puntuale.Reason, value any) {
	if f.reported {
		return
	}
	f.reported = true
	b.faults = append(b.faults, reason.At("body."+f.name, value))
}

// missing records that a required field has no value.
func (b *builder) missing(f *field) { b.fieldFault(f, puntuale.Because(puntuale.FaultRequired), nil) }
