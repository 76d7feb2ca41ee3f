package httpkit

// MaxValues is the largest number of values in a JSON body, including the values inside arrays and objects. The limit
// is necessary because a value of two bytes of JSON takes far more memory after decoding.
const MaxValues = 20_000

// TooManyValues reports whether a text has more than [MaxValues] values. The text need not be valid JSON. The function
// allocates no memory.
func TooManyValues(text []byte) bool { return MoreValues(text, MaxValues) }

// MoreValues reports whether a text has more than limit values. It counts like TooManyValues.
func MoreValues(text []byte, limit int) bool {
	n, quoted := 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++ // skip the escaped character
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '{' || c == '['): // each of these characters begins one more value
			n++
		}
	}
	return n > limit
}
