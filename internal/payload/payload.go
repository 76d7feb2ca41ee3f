// Package payload reads the data that other programs post to a hook, and finds members in it by their paths. It
// supports JSON and the two encodings of forms. It stores nothing.
package payload

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a payload. The caller limits its bytes.
const (
	// MaxValues bounds the values of a payload, including values inside objects and lists.
	MaxValues = 10_000
	// MaxDepth bounds how deeply objects and lists may be nested.
	MaxDepth = 32
	// maxParts bounds the fields of a form.
	maxParts = 1000
)

// Errors about a payload that cannot be read.
var (
	ErrEmpty    = errors.New("the payload is empty")
	ErrEncoding = errors.New("the payload is not UTF-8")
	ErrForm     = errors.New("the payload is neither JSON nor a form")
	ErrTooMany  = errors.New("the payload holds too many values, or lies too deep")
)

// Payload is a parsed payload. It does not change, and is safe for concurrent use.
type Payload struct{ root any }

// Parse parses a payload. If the content type is multipart/form-data, body is a multipart form. Otherwise, a body that
// begins with { or [ is JSON, and any other body is a URL-encoded form. Names such as "fields[phone][value]" become
// nested objects, as in PHP. The error is ErrEmpty, ErrEncoding, ErrForm or ErrTooMany, or wraps one of them.
func Parse(contentType string, body []byte) (Payload, error) {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	text := bytes.TrimLeft(body, " \t\r\n")
	kind, params, _ := mime.ParseMediaType(contentType) // an invalid content type is ignored
	switch {
	case len(text) == 0:
		return Payload{}, ErrEmpty
	case kind == "multipart/form-data":
		return readMultipart(body, params["boundary"])
	case !utf8.Valid(body):
		return Payload{}, ErrEncoding
	case text[0] == '{' || text[0] == '[':
		return readJSON(text)
	}
	return readForm(text)
}

func readJSON(text []byte) (Payload, error) {
	if Exceeds(text, MaxValues, MaxDepth) {
		return Payload{}, ErrTooMany
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var root any
	if err := decoder.Decode(&root); err != nil {
		return Payload{}, errors.Join(ErrForm, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Payload{}, ErrForm
	}
	return Payload{root}, nil
}

// Exceeds reports whether a JSON text has more values, or is nested more deeply, than the limits allow. The text need not
// be valid JSON. Exceeds allocates no memory.
func Exceeds(text []byte, values, depth int) bool {
	n, level, quoted := 1, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++ // skip the escaped character
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			n++
		case c == '}' || c == ']':
			level--
		case c == ',':
			n++
		}
		if n > values || level > depth {
			return true
		}
	}
	return false
}

func readForm(text []byte) (Payload, error) {
	if bytes.Count(text, []byte("&")) >= maxParts {
		return Payload{}, ErrTooMany
	}
	fields, err := url.ParseQuery(strings.TrimSpace(string(text)))
	if err != nil {
		return Payload{}, errors.Join(ErrForm, err)
	}
	for name, values := range fields {
		if !utf8.ValidString(name + strings.Join(values, "")) {
			return Payload{}, ErrEncoding
		}
	}
	return nest(fields)
}

// readMultipart reads the fields of a form. It ignores files.
func readMultipart(body []byte, boundary string) (Payload, error) {
	if boundary == "" {
		return Payload{}, ErrForm
	}
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	fields := url.Values{}
	for n := 0; ; n++ {
		part, err := r.NextPart()
		if err == io.EOF { //nolint:errorlint // an error that wraps io.EOF means that the body was cut off
			break
		}
		if err != nil {
			return Payload{}, errors.Join(ErrForm, err)
		}
		if n >= maxParts {
			return Payload{}, ErrTooMany
		}
		if part.FileName() != "" || part.FormName() == "" {
			continue
		}
		value, err := io.ReadAll(part)
		switch {
		case err != nil:
			return Payload{}, errors.Join(ErrForm, err)
		case !utf8.Valid(value) || !utf8.ValidString(part.FormName()):
			return Payload{}, ErrEncoding
		}
		fields.Add(part.FormName(), string(value))
	}
	return nest(fields)
}

// nest builds nested objects from the names of a form. It adds the names with the most parts first. So if a form has both
// a[b] and a, the result has the object a, and not the value of a.
func nest(fields url.Values) (Payload, error) {
	type field struct {
		name string
		keys []string
	}
	all := make([]field, 0, len(fields))
	for name := range fields {
		keys := keysOf(name)
		if len(keys) > MaxDepth {
			return Payload{}, ErrTooMany
		}
		all = append(all, field{name, keys})
	}
	slices.SortFunc(all, func(a, b field) int {
		return cmp.Or(cmp.Compare(len(b.keys), len(a.keys)), strings.Compare(a.name, b.name))
	})
	root := map[string]any{}
	for _, f := range all {
		put(root, f.keys, valueOf(fields[f.name]))
	}
	return Payload{root}, nil
}

// put adds a value, unless an object has the same place: the object contains more information. Each part of the name except
// the last is an object or is missing, because names with more parts were added before.
func put(at map[string]any, keys []string, value any) {
	last := len(keys) - 1
	for _, key := range keys[:last] {
		inner, ok := at[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			at[key] = inner
		}
		at = inner
	}
	if _, object := at[keys[last]].(map[string]any); !object {
		at[keys[last]] = value
	}
}

// valueOf returns a field's value: a text, or a list of texts if the field occurred several times.
func valueOf(values []string) any {
	if len(values) == 1 {
		return values[0]
	}
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
	}
	return list
}

// keysOf splits "fields[phone][value]" into its parts. "names[]" is the list "names". Any other name is one part.
func keysOf(name string) []string {
	first, rest, nested := strings.Cut(name, "[")
	if !nested || first == "" || !strings.HasSuffix(rest, "]") {
		return []string{name}
	}
	keys := []string{first}
	for _, key := range strings.Split(strings.TrimSuffix(rest, "]"), "][") {
		if strings.ContainsAny(key, "[]") {
			return []string{name}
		}
		if key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// Text returns the value at a path: a text, a number as it was written, true or false. A list of such values becomes
// one text, with commas between the values. For anything else, and if there is no value, Text returns "".
func (p Payload) Text(path Path) string { return textOf(path.lookUp(p.root)) }

func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	case []any:
		texts := make([]string, 0, len(v))
		for _, entry := range v {
			if _, list := entry.([]any); list {
				return ""
			}
			if text := textOf(entry); text != "" {
				texts = append(texts, text)
			}
		}
		return strings.Join(texts, ", ")
	}
	return ""
}

// JSON returns the payload as JSON, even if it was posted as a form.
func (p Payload) JSON() []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(p.root) != nil {
		return nil // cannot happen, because the value was parsed from a text
	}
	return bytes.TrimSpace(b.Bytes())
}
