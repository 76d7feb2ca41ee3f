package httpapi

import "time"

// stampLayout is the contract's form of a moment: in UTC, with six digits after the second.
const stampLayout = "2006-01-02T15:04:05.000000Z"

func stamp(t time.Time) string { return t.UTC().Format(stampLayout) }

// stampOrNull returns a moment as text, or nil for the zero time, which becomes null in JSON.
func stampOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(stamp(t))
}

// textOrNull returns a text, or nil for "", which becomes null in JSON.
func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
