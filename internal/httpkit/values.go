package httpkit

// MaxValues is how many values a JSON body may hold, including the values inside arrays and objects. A value may be
// written in two bytes, and takes far more memory when it is decoded.
const MaxValues = 20_000

// TooManyValues reports whether a text has more than [MaxValues] values. The text need not be JSON. The function
// allocates no memory.
func TooManyValues(text []byte) bool { return MoreValues(text, MaxValues) }

// MoreValues reports whether a text has more than limit values, as TooManyValues does.
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
