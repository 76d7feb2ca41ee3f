// Package payload reads what other programs post to a hook, and finds members in it by their paths. It knows JSON and the two encodings of
// forms. It stores nothing.
package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a payload. Its bytes are bounded by the caller.
const (
	// MaxValues is how many values a payload may hold, including those inside objects and lists.
	MaxValues = 10_000
	// MaxDepth is how deep objects and lists may lie in each other.
	MaxDepth = 32
	// maxParts bounds the fields of a form.
	maxParts = 1000
)

// Why a payload cannot be read.
var (
	ErrEmpty    = errors.New("the payload is empty")
	ErrEncoding = errors.New("the payload is not UTF-8")
	ErrForm     = errors.New("the payload is neither JSON nor a form")
	ErrTooMany  = errors.New("the payload holds too many values, or lies too deep")
)

// Payload is a payload that was read. It does not change. Many goroutines may use it at once.
type Payload struct{ root any }

// Parse reads a payload. Bytes that begin with { or [ are JSON, whatever the content type says. Anything else is a form: multipart if the
// content type says so, else URL-encoded. Names such as "fields[phone][value]" become objects in each other, as in PHP. The error is one of
// the four above, or wraps it.
func Parse(contentType string, body []byte) (Payload, error) {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	text := bytes.TrimLeft(body, " \t\r\n")
	kind, params, _ := mime.ParseMediaType(contentType) // what cannot be read is taken as a form
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
	if tooMany(text) {
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

// tooMany reports whether a JSON text goes beyond the bounds. It takes no memory.
func tooMany(text []byte) bool {
	values, depth, quoted := 1, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++ // whatever it is
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			values++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
		if values > MaxValues || depth > MaxDepth {
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
	f := form{root: map[string]any{}}
	for name, values := range fields {
		if !utf8.ValidString(name + strings.Join(values, "")) {
			return Payload{}, ErrEncoding
		}
		f.put(name, values)
	}
	return Payload{f.root}, f.err
}

// readMultipart reads the fields of a form. It leaves out files.
func readMultipart(body []byte, boundary string) (Payload, error) {
	if boundary == "" {
		return Payload{}, ErrForm
	}
	f := form{root: map[string]any{}}
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	fields := url.Values{}
	for n := 0; ; n++ {
		part, err := r.NextPart()
		if err == io.EOF { //nolint:errorlint // a body that was cut off wraps it
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
	for name, values := range fields {
		f.put(name, values)
	}
	return Payload{f.root}, f.err
}

// form makes a tree of the names of a form.
type form struct {
	root map[string]any
	err  error
}

// put places a field. A name that stands where an object is already goes to the top, as it is written.
func (f *form) put(name string, values []string) {
	keys := keysOf(name)
	if len(keys) > MaxDepth {
		f.err = ErrTooMany
		return
	}
	at := f.root
	for _, key := range keys[:len(keys)-1] {
		inner, found := at[key]
		if !found {
			made := map[string]any{}
			at[key], at = made, made
			continue
		}
		deeper, ok := inner.(map[string]any)
		if !ok {
			f.root[name] = valueOf(values)
			return
		}
		at = deeper
	}
	last := keys[len(keys)-1]
	if _, object := at[last].(map[string]any); object {
		return // parts of it came, which say more
	}
	at[last] = valueOf(values)
}

// valueOf is a field's value: a text, or a list of texts if the field came several times.
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

// keysOf splits "fields[phone][value]" into its parts. "names[]" is the list "names". A name of another form is one key.
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

// Text returns what stands at a path: a text, a number as it is written, true or false. A list of such values is one text, with commas
// between them. It is "" for anything else, and where nothing stands.
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

// JSON is the payload as JSON, also if it came as a form.
func (p Payload) JSON() []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(p.root) != nil {
		return nil // it was read from text, and always becomes text
	}
	return bytes.TrimSpace(b.Bytes())
}
