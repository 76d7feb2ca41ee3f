package httpkit

import "puntuale/internal/payload"

// MaxValues is the largest number of values in a JSON body, including the values inside arrays and objects. The limit
// is necessary because a value of two bytes of JSON takes far more memory after decoding.
const MaxValues = 20_000

// TooManyValues reports whether a text has more than [MaxValues] values.
func TooManyValues(text []byte) bool { return payload.Exceeds(text, MaxValues, MaxValues) }
