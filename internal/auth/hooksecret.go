package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"puntuale"
)

const hookPrefix = "hk_"

// NewHookSecret returns a new secret part of a hook's address: 256 random bits in the form of a key. A store contains
// only its hash.
func NewHookSecret() (plain string, hash puntuale.KeyHash, err error) {
	var secret [randomBytes]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return "", puntuale.KeyHash{}, fmt.Errorf("read random bytes for a hook: %w", err)
	}
	sum := checksum(hookPrefix, secret[:])
	plain = hookPrefix + alphabet.EncodeToString(append(secret[:], sum[:]...))
	return plain, sha256.Sum256([]byte(plain)), nil
}

// ParseHookSecret checks the form and the checksum of a hook's secret, like [ParseKey] for keys, and returns its hash.
func ParseHookSecret(plain string) (hash puntuale.KeyHash, ok bool) {
	if len(plain) != KeyLength || !wellFormed(plain, hookPrefix) {
		return puntuale.KeyHash{}, false
	}
	return sha256.Sum256([]byte(plain)), true
}
