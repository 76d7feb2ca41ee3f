package puntuale

import (
	"strings"
	"unicode"
)

// IsBlank reports whether a character shows nothing at the beginning or the end of a text: white space, characters
// without width such as U+200B, and marks of the direction of writing.
func IsBlank(r rune) bool {
	switch {
	case r >= 0x200B && r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060 && r <= 0x2064, r >= 0x2066 && r <= 0x2069:
		return true
	case r == 0xAD, r == 0x180E, r == 0xFEFF, r == 0x3164, r == 0x2800:
		return true
	}
	return unicode.IsSpace(r)
}

// Trimmed returns a text without blank characters at its beginning and end.
func Trimmed(text string) string { return strings.TrimFunc(text, IsBlank) }
