package backup

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// ParseResult reads the result of a backup.
func ParseResult(text string) (m Result, err error) {
	err = parse(text, &m)
	return m, err
}

// ParseRehearsalResult reads the result of a rehearsal.
func ParseRehearsalResult(text string) (r RehearsalResult, err error) {
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

// String describes a backup for the log and for pages.
func (m Result) String() string {
	return fmt.Sprintf("%s: %s, %s rows, %s messages", m.Name, Bytes(m.Bytes), Grouped(m.Rows), Grouped(m.Messages))
}

// String describes a rehearsal for the log and for pages.
func (r RehearsalResult) String() string {
	return fmt.Sprintf("%s was restored into %s: %s rows, %s messages, equal", r.Name, r.Where, Grouped(r.Rows), Grouped(r.Messages))
}

// Grouped returns a number with commas between thousands.
func Grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
