package control

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"puntuale"
	"puntuale/internal/control/request"
)

// Answers that hold a new API key are kept for repeats, but not readable. They are sealed under a key derived from the
// caller's own, which is stored nowhere. A reader of the database cannot open them, and neither can another key of the
// same partner.

// sealer seals and opens the answers of one caller.
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

// seal makes an answer unreadable. It belongs to its call: under another scope or key it does not open.
func (s sealer) seal(o *puntuale.Once, answer []byte) []byte {
	sealed := s.aead.Seal(nil, nil, answer, place(o)) //nolint:gosec // the cipher makes a random nonce itself
	return base64.StdEncoding.AppendEncode(nil, sealed)
}

const faultKeyOfAnother puntuale.ReasonCode = "fault.key_of_another"

// open is the inverse of seal. Codes: conflict when another key sealed it.
func (s sealer) open(o *puntuale.Once, sealed []byte) ([]byte, error) {
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

func place(o *puntuale.Once) []byte { return []byte(o.Scope + "\x00" + o.Key + "\x00" + o.Hash) }

// beginSealed is [Once.begin] for answers that hold a key.
func beginSealed[T any](ctx context.Context, p *Partner, o Once[T], f *request.Faults) (box sealer, once *puntuale.Once, clash, err error) {
	if o.Key == "" {
		return sealer{}, nil, nil, nil
	}
	if box, err = newSealer(p.plain); err != nil {
		return sealer{}, nil, nil, err
	}
	once, clash, err = o.begin(ctx, p.tenant, f)
	if err != nil {
		asked := &puntuale.Once{Scope: o.Scope, Key: o.Key, Hash: hashOf(o.Body)}
		return box, nil, nil, box.opened(asked, err)
	}
	return box, once, clash, nil
}

// keepSealed is [Once.keep] for answers that hold a key.
func keepSealed[T any](box sealer, o Once[T], once *puntuale.Once, result func(any) T) {
	if once == nil {
		return
	}
	once.Answer = func(stored any) ([]byte, error) {
		answer, err := o.Answer(result(stored))
		if err != nil {
			return nil, err
		}
		return box.seal(once, answer), nil
	}
}

// opened opens the earlier answer that a store gives instead of an effect; any other error stays as it is.
func (s sealer) opened(o *puntuale.Once, err error) error {
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
