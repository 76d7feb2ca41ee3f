package engine

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"puntuale"
)

// Micros returns the stored form of a time: microseconds since 1970, or 0 for the zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Instant returns the time for stored microseconds, in UTC. For 0 it returns the zero time.
func Instant(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// ScanTime scans a column that contains microseconds since 1970. 0 gives the zero time.
func ScanTime(target *time.Time) sql.Scanner { return scanTime{target} }

type scanTime struct{ into *time.Time }

func (m scanTime) Scan(value any) error {
	switch micros := value.(type) {
	case nil:
		*m.into = time.Time{}
	case int64:
		*m.into = Instant(micros)
	default:
		return fmt.Errorf("a moment is kept as %T", value)
	}
	return nil
}

// ScanJSON scans a column that contains JSON.
func ScanJSON(target any) sql.Scanner { return scanJSON{target} }

type scanJSON struct{ into any }

func (j scanJSON) Scan(value any) error {
	switch text := value.(type) {
	case string:
		return json.Unmarshal([]byte(text), j.into)
	case []byte:
		return json.Unmarshal(text, j.into)
	}
	return fmt.Errorf("JSON is kept as %T", value)
}

// ScanFaulty returns the same targets. But if a column cannot be decoded, only fault is set, and the query goes on. So
// one bad row does not hide all others from the background work of all clients.
func ScanFaulty(fault *error, targets ...any) []any {
	for i, t := range targets {
		if s, can := t.(sql.Scanner); can {
			targets[i] = scanWithFault{s, fault}
		}
	}
	return targets
}

type scanWithFault struct {
	into  sql.Scanner
	fault *error
}

func (f scanWithFault) Scan(value any) error {
	if err := f.into.Scan(value); err != nil {
		*f.fault = err
	}
	return nil
}

// ScanOptionalJSON scans a column that contains JSON into a new value. An empty column gives nil.
func ScanOptionalJSON[T any](target **T) sql.Scanner { return scanOptionalJSON[T]{target} }

type scanOptionalJSON[T any] struct{ into **T }

func (j scanOptionalJSON[T]) Scan(value any) error {
	*j.into = nil
	if text, ok := value.(string); ok && text == "" {
		return nil
	}
	if text, ok := value.([]byte); ok && len(text) == 0 {
		return nil
	}
	*j.into = new(T)
	return ScanJSON(*j.into).Scan(value)
}

// ToJSON returns the text to store in a JSON column.
func ToJSON(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("write JSON: %w", err)
	}
	return string(text), nil
}

// ScanReason scans a column that contains a reason in its stored form.
func ScanReason(target *puntuale.Reason) sql.Scanner { return scanReason{target} }

type scanReason struct{ into *puntuale.Reason }

func (r scanReason) Scan(value any) error {
	switch text := value.(type) {
	case string:
		*r.into = puntuale.ParseReason(text)
	case []byte:
		*r.into = puntuale.ParseReason(string(text))
	default:
		return fmt.Errorf("a reason is kept as %T", value)
	}
	return nil
}

// ScanBytes scans a column that contains bytes.
func ScanBytes(target *string) sql.Scanner { return scanBytes{target} }

type scanBytes struct{ into *string }

func (o scanBytes) Scan(value any) error {
	b, ok := value.([]byte)
	if !ok {
		return fmt.Errorf("bytes are kept as %T", value)
	}
	*o.into = string(b)
	return nil
}

// ScanBool scans a column that contains 0 or 1.
func ScanBool(target *bool) sql.Scanner { return scanBool{target} }

type scanBool struct{ into *bool }

func (f scanBool) Scan(value any) error {
	n, ok := value.(int64)
	if !ok {
		return fmt.Errorf("a flag is kept as %T", value)
	}
	*f.into = n != 0
	return nil
}

// Bit returns the stored form of a bool: 0 or 1.
func Bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
