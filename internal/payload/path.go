package payload

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Path is the position of a member in a payload. A path has one of two forms:
//
//	payload.responses.phone.value    names with dots, and the number of an entry: attendees[0].name or attendees.0.name
//	/payload/responses/phone/value   a JSON Pointer (RFC 6901), for names that contain dots or brackets
//
// In the first form, a condition may replace the number of an entry. For example, answers[field.ref=phone].phone_number
// is in the first entry of answers whose field.ref is phone. The zero value is the whole payload.
type Path struct{ steps []step }

// step is one part of a path.
type step struct {
	name   string // a member's name, or an entry's number
	within Path   // only if match is true: the path, inside an entry, of the member that is compared with value
	match  bool
	value  string
}

// MaxPath bounds a path, in characters.
const MaxPath = 200

// ErrPath means that a text is not a path.
var ErrPath = errors.New("not a path")

// ParsePath parses a path. The error is [ErrPath].
func ParsePath(text string) (Path, error) {
	text = strings.TrimSpace(text)
	if text == "" || utf8.RuneCountInString(text) > MaxPath || strings.ContainsRune(text, 0) {
		return Path{}, ErrPath
	}
	if text[0] == '/' {
		return pointer(text[1:]), nil
	}
	var p Path
	for rest := text; rest != ""; {
		var s step
		var err error
		if rest[0] == '[' {
			s, rest, err = bracket(rest[1:])
		} else {
			s, rest, err = plain(rest, len(p.steps) > 0)
		}
		if err != nil {
			return Path{}, err
		}
		p.steps = append(p.steps, s)
	}
	return p, nil
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

func pointer(text string) (p Path) {
	for _, name := range strings.Split(text, "/") {
		p.steps = append(p.steps, step{name: unescape.Replace(name)})
	}
	return p
}

// plain parses a name up to the next dot or bracket. If inside is true, the name must begin with a dot.
func plain(text string, inside bool) (step, string, error) {
	if inside {
		after, dotted := strings.CutPrefix(text, ".")
		if !dotted {
			return step{}, "", ErrPath
		}
		text = after
	}
	end := strings.IndexAny(text, ".[")
	if end < 0 {
		end = len(text)
	}
	if end == 0 || strings.ContainsRune(text[:end], ']') {
		return step{}, "", ErrPath
	}
	return step{name: text[:end]}, text[end:], nil
}

// bracket parses "0]" or "field.ref=phone]", and returns the rest after it.
func bracket(text string) (step, string, error) {
	inner, rest, closed := strings.Cut(text, "]")
	if !closed || rest != "" && rest[0] != '.' && rest[0] != '[' {
		return step{}, "", ErrPath
	}
	if _, err := strconv.ParseUint(inner, 10, 31); err == nil {
		return step{name: inner}, rest, nil
	}
	name, value, compared := strings.Cut(inner, "=")
	if !compared || strings.Contains(name, "[") {
		return step{}, "", ErrPath
	}
	within, err := ParsePath(name)
	if err != nil {
		return step{}, "", err
	}
	return step{within: within, match: true, value: value}, rest, nil
}

// lookUp returns the value at the path, or nil if there is none.
func (p Path) lookUp(value any) any {
	for _, s := range p.steps {
		switch v := value.(type) {
		case map[string]any:
			if s.match {
				return nil
			}
			value = v[s.name]
		case []any:
			value = s.entry(v)
		default:
			return nil
		}
	}
	return value
}

func (s step) entry(list []any) any {
	if s.match {
		if i := slices.IndexFunc(list, func(entry any) bool { return textOf(s.within.lookUp(entry)) == s.value }); i >= 0 {
			return list[i]
		}
		return nil
	}
	i, err := strconv.ParseUint(s.name, 10, 31)
	if err != nil || i >= uint64(len(list)) {
		return nil
	}
	return list[i]
}
