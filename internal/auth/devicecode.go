package auth

import (
	"crypto/rand"
	"strings"
)

// A code that links a device contains ten characters of the alphabet, which are 50 random bits, in two groups:
// "7K2QM-X04RD". A person types it within ten minutes, and calls without a token are limited. Therefore, nobody can
// guess a code.
const deviceCodeLength = 10

// NewDeviceCode returns a new one-time code.
func NewDeviceCode() string {
	var secret [deviceCodeLength]byte
	_, _ = rand.Read(secret[:]) // Read never fails
	text := strings.ToUpper(alphabet.EncodeToString(secret[:])[:deviceCodeLength])
	return text[:deviceCodeLength/2] + "-" + text[deviceCodeLength/2:]
}

// misread replaces letters that people type instead of similar digits. The alphabet does not contain these letters.
// misread also removes dashes and blanks.
var misread = strings.NewReplacer("O", "0", "I", "1", "L", "1", "-", "", " ", "")

// ParseDeviceCode parses a code that a person typed, and returns it in the form of [NewDeviceCode].
func ParseDeviceCode(typed string) (code string, ok bool) {
	if len(typed) > 4*deviceCodeLength {
		return "", false
	}
	text := misread.Replace(strings.ToUpper(strings.TrimSpace(typed)))
	if len(text) != deviceCodeLength || strings.Trim(text, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") != "" {
		return "", false
	}
	return text[:deviceCodeLength/2] + "-" + text[deviceCodeLength/2:], true
}
