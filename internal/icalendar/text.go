package icalendar

import (
	"strings"
	"time"
	"unicode"
)

// plain removes the escapes of a text, and cuts it to a number of characters.
func plain(text []byte, limit int) string {
	var b strings.Builder
	escaped, n := false, 0
	for _, r := range string(text[:min(len(text), 8*limit)]) {
		if !escaped && r == '\\' {
			escaped = true
			continue
		}
		if n == limit {
			return cut(b.String())
		}
		if escaped {
			switch escaped = false; r {
			case 'n', 'N':
				r = '\n'
			case '\\', ';', ',', ':', '"':
			default:
				b.WriteByte('\\')
			}
		}
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			continue
		}
		b.WriteRune(r)
		n++
	}
	if len(text) > 8*limit {
		return cut(b.String())
	}
	return strings.TrimSpace(b.String())
}

// cut removes digits and separators from the end of a text that was cut, because the first digits of a phone number may
// be another valid number.
func cut(text string) string {
	return strings.TrimRight(text, "+0123456789 .-/()\u00a0\n\t")
}

// nameText removes the escapes of a person's name (RFC 6868), and those that some programs write like in a text.
func nameText(cn string) string {
	return plain([]byte(strings.NewReplacer("^n", " ", "^'", `"`, "^^", "^", "\n", " ").Replace(cn)), maxPersonText)
}

// maxRefresh bounds [Feed].Refresh.
const maxRefresh = 366 * 24 * time.Hour

// parseDuration reads a duration such as PT1H, P1DT12H or P2W. It returns 0 if the text is none, or negative.
func parseDuration(text string) time.Duration {
	text, ok := strings.CutPrefix(strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(text)), "+"), "P")
	if !ok {
		return 0
	}
	const longest = int(maxRefresh / time.Second)
	units := map[rune]int{'W': 7 * 24 * 3600, 'D': 24 * 3600, 'H': 3600, 'M': 60, 'S': 1}
	n, seconds := 0, 0
	for _, r := range text {
		switch unit := units[r]; {
		case r >= '0' && r <= '9' && n < 100_000_000:
			n = 10*n + int(r-'0')
		case r == 'T':
		case unit == 0:
			return 0
		default:
			seconds = min(longest, seconds+min(n, longest)*unit)
			n = 0
		}
	}
	return time.Duration(seconds) * time.Second
}
