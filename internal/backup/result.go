package backup

import (
	"encoding/json"
	"fmt"
)

// ParseMade reads the result of a backup.
func ParseMade(text string) (m Made, err error) {
	err = parse(text, &m)
	return m, err
}

// ParseRehearsed reads the result of a rehearsal.
func ParseRehearsed(text string) (r Rehearsed, err error) {
	err = parse(text, &r)
	return r, err
}

func parse(text string, into any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("read the result of a backup job: %w", err)
	}
	return nil
}

// Bytes returns a size for people.
func Bytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", (n+1023)>>10)
}
