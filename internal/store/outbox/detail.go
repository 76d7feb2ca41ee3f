package outbox

import (
	"encoding/json"
	"fmt"
	"time"
)

// Detail returns the detail of a fact as JSON. members is a struct whose JSON names are those of the API. It should
// have few and short members.
func Detail(members any) (string, error) {
	text, err := json.Marshal(members)
	if err != nil {
		return "", fmt.Errorf("write a fact's detail: %w", err)
	}
	return string(text), nil
}

// Moment returns a time as the API shows it, for a detail. For the zero time it returns "".
func Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}
