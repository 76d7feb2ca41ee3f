package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
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
