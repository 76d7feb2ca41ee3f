package control

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"puntuale"
)

// Answers that hold a new API key are kept for repeats, but nobody can read them in the database. They are sealed under
// a key that is derived from the caller's API key, and no API key is stored. Even another API key of the same partner
// cannot open them.

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

// seal makes an answer unreadable. The answer can be opened only with the same scope and idempotency key.
func (s sealer) seal(o *puntuale.Idempotency, answer []byte) []byte {
	sealed := s.aead.Seal(nil, nil, answer, place(o)) //nolint:gosec // the cipher makes the random nonce
	return base64.StdEncoding.AppendEncode(nil, sealed)
}

const faultKeyOfAnother puntuale.ReasonCode = "fault.key_of_another"

// open is the inverse of seal. Codes: conflict if another API key sealed it.
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

// opened opens the earlier answer that a store returned as an error. It returns any other error unchanged.
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
