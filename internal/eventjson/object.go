package eventjson

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"

	"puntuale"
)

// object is a JSON object with a fixed order of its members.
type object []pair

type pair struct {
	name  string
	value any // a text, a number, nil, an object, or any JSON value of a Detail
}

// truncated is the name of the member that is set if a text was cut.
const truncated = "text_truncated"

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	write := json.NewEncoder(&b)
	write.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := write.Encode(m.name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := write.Encode(m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// parse returns the members of a JSON object, sorted by name. If the text is not a JSON object, parse returns none.
func parse(text string) (all object) {
	if text == "" {
		return nil
	}
	var members map[string]any
	read := json.NewDecoder(bytes.NewReader([]byte(text)))
	read.UseNumber() // numbers stay exactly as they were written
	if read.Decode(&members) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		all = append(all, pair{name, members[name]})
	}
	return all
}

// bounded returns the JSON of the object that wrap makes from data. It cuts the longest texts of data, and sets
// other long values to null, until the JSON is at most [puntuale.MaxEvent] bytes long.
func bounded(data object, wrap func(object) object) []byte {
	for cut := false; ; cut = true {
		shown := data
		if cut {
			shown = append(slices.Clone(data), pair{truncated, true})
		}
		if text := encode(wrap(shown)); len(text) <= puntuale.MaxEvent {
			return text
		}
		shorten(data)
	}
}

func encode(o object) []byte {
	var b bytes.Buffer
	write := json.NewEncoder(&b)
	write.SetEscapeHTML(false)
	if err := write.Encode(o); err != nil {
		panic("write an event: " + err.Error()) // objects of texts and numbers can always be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// shorten cuts the member with the longest JSON. It cuts a text by a quarter, and replaces any other value by null.
func shorten(data object) {
	longest, bestCount := 0, 0
	for i, m := range data {
		if n := len(encode(object{m})); n > bestCount {
			longest, bestCount = i, n
		}
	}
	value := &data[longest].value
	text, ok := (*value).(string)
	if !ok {
		*value = nil
		return
	}
	end := len(text) * 3 / 4
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	*value = text[:end]
}
