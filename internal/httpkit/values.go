package httpkit

// MaxValues is how many values a JSON body may hold, including the values inside arrays and objects. Each takes far more memory than the
// two bytes that it may be written in.
const MaxValues = 20_000

// TooManyValues reports whether a text, which need not be JSON, holds more than [MaxValues] values. It takes no memory.
func TooManyValues(text []byte) bool { return MoreValues(text, MaxValues) }

// MoreValues is TooManyValues for another bound.
func MoreValues(text []byte, most int) bool {
	n, quoted := 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++ // whatever it is
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '{' || c == '['): // each begins one more value
			n++
		}
	}
	return n > most
}
