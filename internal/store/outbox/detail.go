package outbox

import (
	"encoding/json"
	"fmt"
	"time"
)

// Detail writes the detail of a fact from a struct with the names of the wire. Its members are few, and short.
func Detail(members any) (string, error) {
	text, err := json.Marshal(members)
	if err != nil {
		return "", fmt.Errorf("write a fact's detail: %w", err)
	}
	return string(text), nil
}

// Moment is a moment in a detail, as the API shows it; "" for the zero time.
func Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}
