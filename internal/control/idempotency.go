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

// Once makes a repeat of a call that creates or sends give the first call's answer, as a [*puntuale.Replayed] error.
// The zero value does not.
type Once[T any] struct {
	Scope  string // method and path: "POST /api/sequences"
	Key    string // the caller's; "" is none
	Body   []byte
	Answer func(T) ([]byte, error) // makes the bytes that a repeat gets
}

// Keyed is one call under its idempotency key. A nil Keyed is a call without a key.
type Keyed[T any] struct {
	once   *puntuale.Idempotency
	answer func(T) ([]byte, error)
	sealer *sealer // nil: the answer is kept as it is
}

// maxIdempotencyKey is the length of a caller's idempotency key, in bytes.
const maxIdempotencyKey = 255

const faultCallBadIdempotencyKey puntuale.ReasonCode = "call.bad_idempotency_key"

// sane reports an idempotency key that every database keeps as it is; "" is none, and fine.
func sane(key string) bool {
	return len(key) <= maxIdempotencyKey && !strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' })
}

// hashOf tells a repeat from another call under the same key.
func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Begin looks whether the call is a repeat. clash, a conflict, is to be answered after all that is wrong with the
// request itself; err may be the earlier answer.
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

// check reports whether the key can be looked for.
func (o Once[T]) check(f *request.Faults) bool {
	if !sane(o.Key) {
		f.Add("header.Idempotency-Key", faultCallBadIdempotencyKey, nil, strconv.Itoa(maxIdempotencyKey))
		return false
	}
	return o.Key != ""
}

// keyed is the call under its key, which nobody has looked for yet; nil for a call without one.
func (o Once[T]) keyed() *Keyed[T] {
	if o.Key == "" {
		return nil
	}
	return &Keyed[T]{once: &puntuale.Idempotency{Scope: o.Scope, Key: o.Key, Hash: hashOf(o.Body)}, answer: o.Answer}
}

// look looks for the answer of an earlier call.
func (k *Keyed[T]) look(ctx context.Context, store puntuale.IdempotencyStore) (call *Keyed[T], clash, err error) {
	if k == nil || !sane(k.once.Key) {
		return k, nil, nil
	}
	kept, err := store.Kept(ctx, *k.once)
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

// Keep returns what the store takes, nil for a call without a key. result makes the call's result of what the store
// returns.
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

// Opened returns the store's error. An earlier answer that was sealed is opened. Codes: conflict when another API key
// sealed it.
func (k *Keyed[T]) Opened(err error) error {
	if k == nil || k.sealer == nil {
		return err
	}
	return k.sealer.opened(k.once, err)
}
