package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
	"puntuale/internal/control"
)

// onceAnswer is either a new answer, or the exact bytes of an earlier call's answer.
type onceAnswer[T any] struct {
	value T
	kept  []byte
}

func (r onceAnswer[T]) MarshalJSON() ([]byte, error) {
	if r.kept != nil {
		return r.kept, nil
	}
	return render(r.value)
}

// Schema describes the value's type to huma.
func (onceAnswer[T]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[T](), true, "")
}

// onceAnswerOf turns a verb's result into an answer. If an earlier call already gave the answer, onceAnswerOf sets
// replayedHeader.
func onceAnswerOf[T any](in *call, value T, err error) (onceAnswer[T], error) {
	earlier := &puntuale.Replayed{}
	if errors.As(err, &earlier) {
		in.header.Set(replayedHeader, "true")
		return onceAnswer[T]{kept: earlier.Answer}, nil
	}
	return onceAnswer[T]{value: value}, err
}

// render returns an answer's bytes, in the form in which huma would write them.
func render(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// OnceInput documents the header of calls that have their effect only once.
type OnceInput struct {
	Key string `header:"Idempotency-Key" maxLength:"255" doc:"A repeat under the same key gives the first call's answer"`
}

// once returns the idempotency key and the request, for a verb that must have its effect only once. convert makes the
// answer from the verb's result.
func once[V, T any](in *call, p *OnceInput, convert func(V) T) control.Once[V] {
	return control.Once[V]{
		Scope: in.scope, Key: p.Key, Body: in.body,
		Answer: func(v V) ([]byte, error) { return render(convert(v)) },
	}
}

// stampLayout is the contract's form of a time: in UTC, with six digits after the second.
const stampLayout = "2006-01-02T15:04:05.000000Z"

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

// stampOrNull returns a time as text, or nil for the zero time, because nil becomes null in JSON.
func stampOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(stamp(t))
}

// textOrNull returns a text, or nil for "", because nil becomes null in JSON.
func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Things that people edit have a version, and answers show it in the header ETag. The header If-Match of a change may
// list the versions that the caller knows (RFC 9110, section 13.1.1). Without If-Match, the change replaces any
// version.

// changeInput documents the path and the headers of a call that changes a thing.
type changeInput struct {
	ID    string `path:"id" doc:"ID"`
	Match string `header:"If-Match" doc:"Entity tags, as ETag showed them: the change is made if what is stored has one of them, else the answer is 412. * or nothing: it is made in any case"`
}

// tagged sets the answer's header ETag to a version.
func (c *call) tagged(v puntuale.Version) { c.header.Set("ETag", `"`+string(v)+`"`) }

// knownVersions returns the versions in the header If-Match. It returns an empty list if there is no header, or if the
// header is *, which means any version. A weak tag matches no version, because If-Match compares strongly. An
// unreadable header is a fault.
func (c *call) knownVersions() (versions []puntuale.Version, faults []puntuale.Fault) {
	text := strings.Trim(strings.Join(c.match, ","), " \t")
	if len(c.match) == 0 || text == "*" {
		return nil, nil
	}
	for rest := text; rest != ""; {
		if rest[0] == ',' || rest[0] == ' ' || rest[0] == '\t' { // a list may have empty entries
			rest = rest[1:]
			continue
		}
		strong := strings.TrimPrefix(rest, "W/")
		tag, after, ok := opaque(strong)
		if !ok {
			return nil, badMatch
		}
		if len(strong) < len(rest) {
			tag = "" // no stored version is empty, so this tag matches nothing
		}
		versions, rest = append(versions, puntuale.Version(tag)), after
	}
	if len(versions) == 0 {
		return nil, badMatch
	}
	return versions, nil
}

const faultCallBadIfMatch puntuale.ReasonCode = "call.bad_if_match"

var badMatch = []puntuale.Fault{{Location: "header.If-Match", Code: faultCallBadIfMatch}}

// opaque reads a quoted tag at the beginning of a text. After the tag, perhaps with spaces between, only a comma or the
// end of the text may follow.
func opaque(text string) (tag, after string, ok bool) {
	inside, begins := strings.CutPrefix(text, `"`)
	tag, after, ends := strings.Cut(inside, `"`)
	if !begins || !ends || strings.ContainsFunc(tag, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "", "", false
	}
	next := strings.TrimLeft(after, " \t")
	return tag, after, next == "" || next[0] == ','
}

// documentTag describes the header ETag of an operation's answer.
func documentTag(documented *huma.Operation) {
	documented.Responses["200"].Headers = map[string]*huma.Param{"ETag": {
		Description: "Version of what can be changed; If-Match takes it", Schema: &huma.Schema{Type: huma.TypeString},
	}}
}

// changes returns the statuses with which an operation that accepts If-Match may refuse a call. These are the given
// statuses, and 412 for a version that does not match.
func changes(refusals ...int) []int { return append(refusals, http.StatusPreconditionFailed) }
