package auth

import (
	"crypto/rand"
	"strings"
)

// A code that links a device has ten characters of the alphabet, 50 random bits, shown in two groups: "7K2QM-X04RD". A person types it
// within ten minutes, and calls without a token are limited. So nobody can guess a code.
const deviceCodeLength = 10

// NewDeviceCode makes a one-time code.
func NewDeviceCode() string {
	var secret [deviceCodeLength]byte
	_, _ = rand.Read(secret[:]) // never fails
	text := strings.ToUpper(alphabet.EncodeToString(secret[:])[:deviceCodeLength])
	return text[:deviceCodeLength/2] + "-" + text[deviceCodeLength/2:]
}

// misread are letters that people type instead of digits that look alike. The alphabet has none of them.
var misread = strings.NewReplacer("O", "0", "I", "1", "L", "1", "-", "", " ", "")

// ParseDeviceCode reads a code as a person types it, and returns it as [NewDeviceCode] made it.
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
