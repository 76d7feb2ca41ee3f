package control

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control/request"
)

// Once is the idempotency key of a call that creates or sends something. A repeat of the call does nothing, and gets
// the first call's answer as a [*puntuale.Replayed] error. The zero Once has no key, so every call has its effect.
type Once[T any] struct {
	Scope  string // method and path, such as "POST /api/sequences"
	Key    string // the caller's idempotency key; "": none
	Body   []byte
	Answer func(T) ([]byte, error) // encodes the answer that a repeat gets
}

// Keyed is one call with its idempotency key. A nil Keyed is a call without a key.
type Keyed[T any] struct {
	once   *puntuale.Idempotency
	answer func(T) ([]byte, error)
	sealer *sealer // nil: the answer is stored unsealed
}

// maxIdempotencyKey bounds an idempotency key, in bytes.
const maxIdempotencyKey = 255

const faultCallBadIdempotencyKey puntuale.ReasonCode = "call.bad_idempotency_key"

// sane reports whether every database stores an idempotency key unchanged. It returns true for "", which means no key.
func sane(key string) bool {
	return len(key) <= maxIdempotencyKey && !strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' })
}

// hashOf hashes a call's body. The server uses the hash to distinguish a repeat from a different call with the same
// key.
func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// Begin finds out whether the call is a repeat. A non-nil clash means that a call with a different body used the key.
// Return clash only if the request has no fault. err may be a [*puntuale.Replayed] with the earlier answer.
func (o Once[T]) Begin(ctx context.Context, store puntuale.IdempotencyStore, f *request.Faults) (call *Keyed[T], clash, err error) {
	if !o.check(f) {
		return nil, nil, nil
	}
	return o.keyed().look(ctx, store)
}

// BeginSealed is [Once.Begin] for answers that contain a new API key. Only the API key of this call can open the stored
// answer.
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

// check adds a fault and returns false if the store cannot look for the key.
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

// look looks for the answer of an earlier call with the same key.
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

// Keep returns the record in which the store keeps the answer, or nil for a call without a key. result converts the
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

// Opened returns the store's error. If the error contains an earlier sealed answer, Opened opens the answer. Codes:
// conflict if another API key sealed it.
func (k *Keyed[T]) Opened(err error) error {
	if k == nil || k.sealer == nil {
		return err
	}
	return k.sealer.opened(k.once, err)
}

// Answers that contain a new API key are stored for repeats, but nobody can read them in the database. They are sealed
// under a key that is derived from the caller's API key, and the database contains no API key. Another API key of the
// same partner cannot open them either.

// sealer seals and opens the answers for one API key.
type sealer struct{ aead cipher.AEAD }

func newSealer(plainKey string) (sealer, error) {
	secret, err := hkdf.Key(sha256.New, []byte(plainKey), nil, "puntuale: kept answers", 32)
	if err != nil {
		return sealer{}, fmt.Errorf("derive a key for answers: %w", err)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return sealer{}, fmt.Errorf("make a cipher for answers: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return sealer{}, fmt.Errorf("make a cipher for answers: %w", err)
	}
	return sealer{aead}, nil
}

// seal encrypts an answer. The answer can be opened only with the same scope and idempotency key.
func (s sealer) seal(o *puntuale.Idempotency, answer []byte) []byte {
	sealed := s.aead.Seal(nil, nil, answer, place(o)) //nolint:gosec // the cipher makes the random nonce
	return base64.StdEncoding.AppendEncode(nil, sealed)
}

const faultKeyOfAnother puntuale.ReasonCode = "fault.key_of_another"

// open decrypts a sealed answer. Codes: conflict if another API key sealed it.
func (s sealer) open(o *puntuale.Idempotency, sealed []byte) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(string(sealed))
	if err != nil {
		return nil, fmt.Errorf("decode a sealed answer: %w", err)
	}
	answer, err := s.aead.Open(nil, nil, raw, place(o))
	if err != nil {
		return nil, puntuale.Conflict(faultKeyOfAnother)
	}
	return answer, nil
}

func place(o *puntuale.Idempotency) []byte { return []byte(o.Scope + "\x00" + o.Key + "\x00" + o.Hash) }

// opened opens the sealed answer in a [*puntuale.Replayed] error. It returns any other error unchanged.
func (s sealer) opened(o *puntuale.Idempotency, err error) error {
	kept := &puntuale.Replayed{}
	if !errors.As(err, &kept) {
		return err
	}
	answer, err := s.open(o, kept.Answer)
	if err != nil {
		return err
	}
	return &puntuale.Replayed{Answer: answer}
}
