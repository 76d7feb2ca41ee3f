package httpapi

import (
	"encoding/json"
	"strconv"
	"strings"

	"puntuale"
)

// maxFlaws is the largest number of reported flaws of one body.
const maxFlaws = 100

// flaws finds parts of valid JSON that different JSON readers understand differently. One kind is an object with the
// same member twice. Another kind is an escape of only one half of a surrogate pair. body must be valid JSON.
func flaws(body []byte) []puntuale.Fault {
	w := walker{text: body}
	w.value()
	return w.faults
}

// walker reads valid JSON once, from beginning to end.
type walker struct {
	text   []byte
	i      int
	path   []jsonStep // the steps from the body to the walker's current position
	faults []puntuale.Fault
}

// jsonStep is the step from a value to a member of an object, or to an entry of an array.
type jsonStep struct {
	name  string
	entry int // the index in an array; -1: the step leads to a member
}

// Codes of the faults that this file reports.
const (
	faultCallHalfCharacter     puntuale.ReasonCode = "call.half_character"
	faultCallHalfCharacterName puntuale.ReasonCode = "call.half_character_name"
	faultCallTwice             puntuale.ReasonCode = "call.twice"
)

func (w *walker) value() {
	w.space()
	switch w.text[w.i] {
	case '{':
		w.object()
	case '[':
		w.array()
	case '"':
		if _, whole := w.string(); !whole {
			w.flaw(faultCallHalfCharacter)
		}
	default: // a number, true, false or null: skip to the next token
		for w.i < len(w.text) && !strings.ContainsRune(",]} \t\r\n", rune(w.text[w.i])) {
			w.i++
		}
	}
	w.space()
}

func (w *walker) object() {
	seen := map[string]bool{}
	w.i++
	for w.space(); w.text[w.i] != '}'; w.space() {
		if w.text[w.i] == ',' {
			w.i++
			w.space()
		}
		name, whole := w.string()
		w.path = append(w.path, jsonStep{name, -1})
		switch {
		case !whole:
			w.flaw(faultCallHalfCharacterName)
		case seen[name]:
			w.flaw(faultCallTwice)
		}
		seen[name] = true
		w.space()
		w.i++ // skips the colon
		w.value()
		w.path = w.path[:len(w.path)-1]
	}
	w.i++
}

func (w *walker) array() {
	w.i++
	w.space()
	for n := 0; w.text[w.i] != ']'; n++ {
		if w.text[w.i] == ',' {
			w.i++
		}
		w.path = append(w.path, jsonStep{entry: n})
		w.value()
		w.path = w.path[:len(w.path)-1]
	}
	w.i++
}

// string reads a JSON string. whole is true if every escape in the string stands for a whole character.
func (w *walker) string() (text string, whole bool) {
	begin := w.i
	whole = true
	escaped := false
	for w.i++; w.text[w.i] != '"'; w.i++ {
		if w.text[w.i] != '\\' {
			continue
		}
		escaped = true
		w.i++
		if w.text[w.i] != 'u' {
			continue
		}
		unit := w.unit(w.i + 1)
		w.i += 4
		switch {
		case unit >= 0xDC00 && unit <= 0xDFFF:
			whole = false
		case unit >= 0xD800 && unit <= 0xDBFF:
			if low := w.secondHalfFollows(); low {
				w.i += 6
			} else {
				whole = false
			}
		}
	}
	w.i++
	if !escaped {
		return string(w.text[begin+1 : w.i-1]), whole
	}
	_ = json.Unmarshal(w.text[begin:w.i], &text) // the whole body is valid JSON, so this string is valid
	return text, whole
}

// secondHalfFollows reports whether an escape for the second half of a character follows the escape that ends at w.i.
func (w *walker) secondHalfFollows() bool {
	if w.text[w.i+1] != '\\' || w.text[w.i+2] != 'u' {
		return false
	}
	unit := w.unit(w.i + 3)
	return unit >= 0xDC00 && unit <= 0xDFFF
}

func (w *walker) unit(at int) uint64 {
	unit, _ := strconv.ParseUint(string(w.text[at:at+4]), 16, 16)
	return unit
}

func (w *walker) space() {
	for w.i < len(w.text) && strings.IndexByte(" \t\r\n", w.text[w.i]) >= 0 {
		w.i++
	}
}

// flaw adds a fault at the walker's location.
func (w *walker) flaw(code puntuale.ReasonCode) {
	if len(w.faults) >= maxFlaws {
		return
	}
	const limit = 200 // bytes; the fault shows a longer location without its deeper parts
	location := "body"
	for _, t := range w.path {
		if len(location) > limit {
			break
		}
		if t.entry >= 0 {
			location += "[" + strconv.Itoa(t.entry) + "]"
		} else {
			location += "." + t.name
		}
	}
	w.faults = append(w.faults, puntuale.Fault{Location: location, Code: code})
}
