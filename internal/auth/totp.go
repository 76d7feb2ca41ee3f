package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // authenticator apps use it (RFC 6238), and HMAC-SHA-1 is secure
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// A second factor follows RFC 6238, in the variant that every authenticator app supports: SHA-1, six digits, 30
// seconds.
const (
	totpSecret = 20 // the length of a secret in bytes, as RFC 4226 recommends
	totpStep   = 30 // the length of a time step, in seconds
	totpDigits = 1_000_000
	totpDrift  = 1 // how many time steps before and after the present one are accepted, because clocks differ
)

// NewSecret returns a new secret of a second factor.
func NewSecret() ([]byte, error) {
	secret := make([]byte, totpSecret)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("read random bytes for a second factor: %w", err)
	}
	return secret, nil
}

// SecretText returns a secret in the form that a person types into an app.
func SecretText(secret []byte) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret)
}

// SecretURL returns a secret in the form that an app scans.
func SecretURL(secret []byte, issuer, account string) string {
	label := url.PathEscape(issuer + ":" + account)
	query := url.Values{"secret": {SecretText(secret)}, "issuer": {issuer}}
	return "otpauth://totp/" + label + "?" + strings.ReplaceAll(query.Encode(), "+", "%20")
}

// Code returns the six digits for a time.
func Code(secret []byte, at time.Time) string { return code(secret, at.Unix()/totpStep) }

func code(secret []byte, step int64) string {
	mac := hmac.New(sha1.New, secret)
	mac.Write(binary.BigEndian.AppendUint64(nil, uint64(step)))
	sum := mac.Sum(nil)
	from := sum[len(sum)-1] & 15
	return fmt.Sprintf("%06d", (binary.BigEndian.Uint32(sum[from:])&0x7fffffff)%totpDigits)
}

// CheckCode compares digits with the codes around the time in the argument at, and returns the time step of the
// matching code. It refuses the time step in the argument last, and all earlier ones, because their codes were used or
// may have been seen.
func CheckCode(secret []byte, digits string, at time.Time, last int64) (step int64, ok bool) {
	now := at.Unix() / totpStep
	for s := now - totpDrift; s <= now+totpDrift; s++ {
		if subtle.ConstantTimeCompare([]byte(code(secret, s)), []byte(digits)) == 1 && s > last {
			step, ok = s, true
		}
	}
	return step, ok
}

// recoveryBytes is the size of a recovery code. Nobody can guess its 80 bits.
const recoveryBytes = 10

// NewRecoveryCode returns a new code of 16 characters in groups of four.
func NewRecoveryCode() string {
	raw := make([]byte, recoveryBytes)
	_, _ = rand.Read(raw) // Read never fails
	text := alphabet.EncodeToString(raw)
	return text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:]
}

// TidyCode returns a code without spaces and dashes, in small letters.
func TidyCode(text string) string {
	return strings.NewReplacer(" ", "", "-", "", "\t", "").Replace(strings.ToLower(strings.TrimSpace(text)))
}

// NewToken returns a text with 256 random bits.
func NewToken() string { return rand.Text() + rand.Text() }
