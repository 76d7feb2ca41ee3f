package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control/request"
)

// Once makes a call that creates or sends have its effect only once. A repeat gets the first call's answer, as a
// [*puntuale.Replayed] error. The zero Once does nothing.
type Once[T any] struct {
	Scope  string // method and path: "POST /api/sequences"
	Key    string // the caller's idempotency key; "": none
	Body   []byte
	Answer func(T) ([]byte, error) // makes the bytes that a repeat gets
}

// Keyed is one call with its idempotency key. A nil Keyed stands for a call without a key.
type Keyed[T any] struct {
	once   *puntuale.Idempotency
	answer func(T) ([]byte, error)
	sealer *sealer // nil: the answer is kept unsealed
}

// maxIdempotencyKey is the longest idempotency key that a caller may give, in bytes.
const maxIdempotencyKey = 255

const faultCallBadIdempotencyKey puntuale.ReasonCode = "call.bad_idempotency_key"

// sane reports whether every database keeps an idempotency key unchanged. It returns true for "", which means no key.
func sane(key string) bool {
	return len(key) <= maxIdempotencyKey && !strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' })
}

// hashOf hashes a call's body. A repeat has the same hash, and another call under the same key has another.
func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Begin finds out whether the call is a repeat. clash says that another call used the key. The caller returns clash
// only if the request itself has no fault. err may be a [*puntuale.Replayed] with the earlier answer.
func (o Once[T]) Begin(ctx context.Context, store puntuale.IdempotencyStore, f *request.Faults) (call *Keyed[T], clash, err error) {
	if !o.check(f) {
		return nil, nil, nil
	}
	return o.keyed().look(ctx, store)
}

// BeginSealed is [Once.Begin] for answers that hold a new API key. Only the API key of this call can read them.
func (o Once[T]) BeginSealed(ctx context.Context, store puntuale.IdempotencyStore, apiKey string, f *request.Faults) (call *Keyed[T], clash, err error) {
	if o.Key == "" {
		return nil, nil, nil
	}
	sealer, err := newSealer(apiKey)
	if err != nil {
		return nil, nil, err
	}
	if !o.check(f) {
		return nil, nil, nil
	}
	call = o.keyed()
	call.sealer = &sealer
	return call.look(ctx, store)
}

// check notes a fault if the store cannot look for the key. Then it returns false.
func (o Once[T]) check(f *request.Faults) bool {
	if !sane(o.Key) {
		f.Add("header.Idempotency-Key", faultCallBadIdempotencyKey, nil, strconv.Itoa(maxIdempotencyKey))
		return false
	}
	return o.Key != ""
}

// keyed returns the call with its key, before the key is looked up. It returns nil for a call without a key.
func (o Once[T]) keyed() *Keyed[T] {
	if o.Key == "" {
		return nil
	}
	return &Keyed[T]{once: &puntuale.Idempotency{Scope: o.Scope, Key: o.Key, Hash: hashOf(o.Body)}, answer: o.Answer}
}

// look finds the answer of an earlier call with the same key.
func (k *Keyed[T]) look(ctx context.Context, store puntuale.IdempotencyStore) (call *Keyed[T], clash, err error) {
	if k == nil || !sane(k.once.Key) {
		return k, nil, nil
	}
	kept, err := store.KeptAnswer(ctx, *k.once)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeConflict:
		return k, err, nil
	case err != nil:
		return nil, nil, fmt.Errorf("look for an idempotent answer: %w", err)
	case kept != nil:
		return nil, nil, k.Opened(&puntuale.Replayed{Answer: kept})
	}
	return k, nil, nil
}

// Keep returns the value that the store needs to keep the answer, or nil for a call without a key. result turns the
// store's result into the call's answer.
func (k *Keyed[T]) Keep(result func(stored any) T) *puntuale.Idempotency {
	if k == nil {
		return nil
	}
	k.once.Answer = func(stored any) ([]byte, error) {
		answer, err := k.answer(result(stored))
		if err != nil || k.sealer == nil {
			return answer, err
		}
		return k.sealer.seal(k.once, answer), nil
	}
	return k.once
}

// Opened returns the store's error. If the error holds an earlier answer that was sealed, Opened opens it. Codes:
// conflict if another API key sealed it.
func (k *Keyed[T]) Opened(err error) error {
	if k == nil || k.sealer == nil {
		return err
	}
	return k.sealer.opened(k.once, err)
}
