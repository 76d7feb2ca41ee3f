package plan

import (
	"strings"
	"unicode/utf8"

	"puntuale"
)

// Codes of the faults in this file.
const (
	faultSequenceDateFormat   puntuale.ReasonCode = "sequence.date_format"
	faultSequenceNestedField  puntuale.ReasonCode = "sequence.nested_field"
	faultSequenceReservedName puntuale.ReasonCode = "sequence.reserved_name"
	faultSequenceTimeNeeded   puntuale.ReasonCode = "sequence.time_needed"
	faultSequenceUnclosed     puntuale.ReasonCode = "sequence.unclosed"
)

// These names have a fixed meaning in a call's body. {{phone}} prints the recipient in the form of all answers: "+…",
// or the id of a group. A step cannot use {{timezone}}.
const (
	fieldPhone    = "phone"
	fieldTimezone = "timezone"
)

// Formats of a date field. Without a format, a placeholder prints day and time.
const (
	formatDay  = "data"
	formatTime = "ora"
	formatLong = "giorno"
)

const maxFieldName = 64

// placeholder is a parsed {{field}}, {{field:format}}, {{field|fallback}} or {{field:format|fallback}}.
type placeholder struct {
	name, format string
	fallback     string
	optional     bool // true: the placeholder has a fallback, which may be empty
}

// scanner reads a template part by part. Each call of next reads a literal text and the placeholder after it, or the
// fault in this placeholder. At the end of the template, there is only a literal text.
type scanner struct {
	rest    string
	literal string
	field   placeholder
	fault   puntuale.Reason
	found   bool // true: a placeholder follows the literal text, with or without a fault
}

func scan(template string) scanner { return scanner{rest: template} }

func (s *scanner) next() bool {
	if s.rest == "" {
		return false
	}
	s.fault, s.field = puntuale.Reason{}, placeholder{}
	var inside string
	s.literal, inside, s.found = strings.Cut(s.rest, "{{")
	if !s.found {
		s.rest = ""
		return true
	}
	inside, rest, closed := strings.Cut(inside, "}}")
	if !closed {
		s.fault, s.rest = puntuale.Because(faultSequenceUnclosed), ""
		return true
	}
	s.rest = rest
	s.field, s.fault = parsePlaceholder(inside)
	return true
}

// parsePlaceholder parses the text between {{ and }}.
func parsePlaceholder(inside string) (p placeholder, fault puntuale.Reason) {
	var head string
	head, p.fallback, p.optional = strings.Cut(inside, "|")
	name, format, formatted := strings.Cut(head, ":")
	p.name, p.format = name, format
	switch {
	case strings.Contains(inside, "{{"):
		return p, puntuale.Because(faultSequenceNestedField, clip(inside))
	case !IsFieldName(name):
		return p, puntuale.Because(puntuale.FaultSequenceNotField, clip(inside))
	case formatted && format != formatDay && format != formatTime && format != formatLong:
		return p, puntuale.Because(faultSequenceDateFormat, clip(inside))
	case name == fieldTimezone, name == fieldPhone && formatted:
		return p, puntuale.Because(faultSequenceReservedName, clip(inside), name)
	}
	return p, puntuale.Reason{}
}

// IsFieldName reports whether name has the form [A-Za-z_][A-Za-z0-9_]{0,63}.
func IsFieldName(name string) bool {
	if name == "" || len(name) > maxFieldName {
		return false
	}
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// isReserved reports whether a sequence's field cannot have this name.
func isReserved(name string) bool { return name == fieldPhone || name == fieldTimezone }

// clip shortens a text to at most 80 bytes, so that an error message can contain it.
func clip(text string) string {
	const limit = 80
	for i := range text {
		if i > limit {
			return text[:i] + "…"
		}
	}
	return text
}

// sole returns the name of the field if the whole template is one placeholder, and "" for any other template.
func sole(template string) string {
	s := scan(template)
	if s.next() && s.found && s.fault.IsZero() && s.literal == "" && s.rest == "" {
		return s.field.name
	}
	return ""
}

// render renders the template of a step. It returns false if there was a fault. Field values are not changed, even if
// they contain placeholders.
func (b *builder) render(i int, part, template string, t *timing) (string, bool) {
	if !strings.Contains(template, "{{") {
		return template, true
	}
	good := true
	b.buf = b.buf[:0]
	for s := scan(template); s.next(); {
		b.add(s.literal)
		switch {
		case !s.found:
		case !s.fault.IsZero():
			b.stepReason(i, part, s.fault)
			good = false
		default:
			good = b.print(s.field, t) && good
		}
	}
	return string(b.buf), good
}

// print appends the value of one field.
func (b *builder) print(p placeholder, t *timing) bool {
	if p.name == fieldPhone {
		b.add(b.in.Phone)
		return true
	}
	f := b.field(p.name)
	switch {
	case f.state == fieldBad:
		return false
	case f.state == fieldAbsent && p.optional:
		b.add(p.fallback)
	case f.state == fieldAbsent:
		b.missing(f)
		return false
	case f.date && p.format == formatTime && !f.moment.HasTime:
		if !p.optional { // the date has no time of day, and print must not invent one
			b.fieldFault(f, puntuale.Because(faultSequenceTimeNeeded, clip(p.name)), clip(f.text))
			return false
		}
		b.add(p.fallback)
	case f.date && p.format == "" && !f.moment.HasTime:
		b.buf = appendMoment(b.buf, f.moment.At(t.atFor(p.name), b.loc).In(b.loc), formatDay)
	case f.date:
		b.buf = appendMoment(b.buf, f.moment.At(t.atFor(p.name), b.loc).In(b.loc), p.format)
	default:
		b.add(f.text)
	}
	return true
}

// enough is a length in bytes. A text with more bytes exceeds every limit in characters.
const enough = utf8.UTFMax * puntuale.MaxText

// add appends a text to the rendered text, until the rendered text exceeds every limit. Without this bound, a short
// template that repeats a long value could fill the memory.
func (b *builder) add(text string) {
	if len(b.buf) <= enough {
		b.buf = append(b.buf, text...)
	}
}
