package httpapi

import "time"

// stampLayout is the contract's form of an instant: UTC, six digits of a second.
const stampLayout = "2006-01-02T15:04:05.000000Z"

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

// stampOrNull is null for the zero time.
func stampOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(stamp(t))
}

// textOrNull is null for "".
func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
