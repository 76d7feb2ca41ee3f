package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"puntuale"
)

// A key is "ck_", "pk_" or (for a device's token) "dk_", and then 36 bytes in base32. 32 of these bytes are random. The
// other 4 are the first bytes of the SHA-256 of the prefix and the random part. By this checksum, the server can refuse
// a mistyped or invented key without a database query.
const (
	partnerPrefix = "pk_"
	clientPrefix  = "ck_"
	devicePrefix  = "dk_"
	randomBytes   = 32
	sumBytes      = 4
	shownBytes    = 8 // characters after the prefix that are stored, so that people recognise a key
)

// alphabet contains no letters that look like digits.
var alphabet = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// KeyLength is the length of every key, in bytes.
var KeyLength = len(clientPrefix) + alphabet.EncodedLen(randomBytes+sumBytes)

// NewKey returns a new key with 256 random bits. Show plain only once; key is what a store contains.
func NewKey(side puntuale.Side, name string, now time.Time) (plain string, key puntuale.Key, err error) {
	prefix, err := prefixOf(side)
	if err != nil {
		return "", puntuale.Key{}, err
	}
	var secret [randomBytes]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return "", puntuale.Key{}, fmt.Errorf("read random bytes for a key: %w", err)
	}
	sum := checksum(prefix, secret[:])
	plain = prefix + alphabet.EncodeToString(append(secret[:], sum[:]...))
	return plain, puntuale.Key{
		Name:    name,
		Prefix:  plain[:len(prefix)+shownBytes],
		Hash:    sha256.Sum256([]byte(plain)),
		Created: now,
	}, nil
}

// ParseKey checks a key's form and checksum, and returns the hash by which a store finds the key. It takes the same
// time for every well-formed text, even if the checksum is wrong.
func ParseKey(plain string) (hash puntuale.KeyHash, side puntuale.Side, ok bool) {
	if len(plain) != KeyLength {
		return puntuale.KeyHash{}, "", false
	}
	prefix := plain[:len(clientPrefix)]
	switch prefix {
	case partnerPrefix:
		side = puntuale.PartnerSide
	case clientPrefix:
		side = puntuale.ClientSide
	case devicePrefix:
		side = puntuale.DeviceSide
	default:
		return puntuale.KeyHash{}, "", false
	}
	if !wellFormed(plain, prefix) {
		return puntuale.KeyHash{}, "", false
	}
	return sha256.Sum256([]byte(plain)), side, true
}

// wellFormed reports whether a text of [KeyLength] bytes begins with the prefix, and its checksum is right.
func wellFormed(plain, prefix string) bool {
	rest, ok := strings.CutPrefix(plain, prefix)
	if !ok {
		return false
	}
	// The decoder ignores line breaks, and the unused bits of the last character. Only the one canonical text is valid.
	raw, err := alphabet.DecodeString(rest)
	if err != nil || strings.ContainsAny(rest, "\r\n") || alphabet.EncodeToString(raw) != rest {
		return false
	}
	sum := checksum(prefix, raw[:randomBytes])
	return subtle.ConstantTimeCompare(sum[:], raw[randomBytes:]) == 1
}

// SameKey compares two keys in constant time.
func SameKey(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

func prefixOf(side puntuale.Side) (string, error) {
	switch side {
	case puntuale.PartnerSide:
		return partnerPrefix, nil
	case puntuale.ClientSide:
		return clientPrefix, nil
	case puntuale.DeviceSide:
		return devicePrefix, nil
	}
	return "", fmt.Errorf("%q is not a side a key can be made for", side)
}

func checksum(prefix string, secret []byte) [sumBytes]byte {
	h := sha256.New()
	h.Write([]byte(prefix))
	h.Write(secret)
	return [sumBytes]byte(h.Sum(nil)[:sumBytes])
}
