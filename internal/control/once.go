package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"puntuale"
	"puntuale/internal/control/request"
)

// Once makes a repeat of a call that creates or sends give the first call's answer, as a [*puntuale.Replayed] error.
// The zero value does not.
type Once[T any] struct {
	Scope  string // method and path: "POST /api/sequences"
	Key    string // the caller's; "" is none
	Body   []byte
	Answer func(T) ([]byte, error) // makes the bytes that a repeat gets
}

// begin looks whether the call is a repeat. clash, a conflict, is to be answered after all that is wrong with the
// request itself; err may be the earlier answer. once is nil for a call without a key.
func (o Once[T]) begin(ctx context.Context, store puntuale.OnceStore, f *request.Faults) (once *puntuale.Once, clash, err error) {
	if o.Key == "" {
		return nil, nil, nil
	}
	if !sane(o.Key) {
		f.Add("header.Idempotency-Key", faultCallBadIdempotencyKey, nil, strconv.Itoa(maxIdempotencyKey))
		return nil, nil, nil
	}
	once = &puntuale.Once{Scope: o.Scope, Key: o.Key, Hash: hashOf(o.Body)}
	kept, err := store.Kept(ctx, *once)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeConflict:
		return once, err, nil
	case err != nil:
		return nil, nil, fmt.Errorf("look for an idempotent answer: %w", err)
	case kept != nil:
		return nil, nil, &puntuale.Replayed{Answer: kept}
	}
	return once, nil, nil
}

// keep says how the answer comes about from what the store returns.
func (o Once[T]) keep(once *puntuale.Once, result func(any) T) {
	if once != nil {
		once.Answer = func(stored any) ([]byte, error) { return o.Answer(result(stored)) }
	}
}

const faultCallBadIdempotencyKey puntuale.ReasonCode = "call.bad_idempotency_key"

// hashOf tells a repeat from another call under the same key.
func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
