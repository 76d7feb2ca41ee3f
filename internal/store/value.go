package store

import (
	"encoding/json"
	"fmt"
	"time"
)

// Instants are kept as microseconds since 1970, 0 for none.

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func instant(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// moment scans a column of microseconds.
type moment struct{ into *time.Time }

func (m moment) Scan(value any) error {
	switch us := value.(type) {
	case nil:
		*m.into = time.Time{}
	case int64:
		*m.into = instant(us)
	default:
		return fmt.Errorf("a moment is kept as %T", value)
	}
	return nil
}

// inJSON scans a column of JSON.
type inJSON struct{ into any }

func (j inJSON) Scan(value any) error {
	switch text := value.(type) {
	case string:
		return json.Unmarshal([]byte(text), j.into)
	case []byte:
		return json.Unmarshal(text, j.into)
	}
	return fmt.Errorf("JSON is kept as %T", value)
}

func toJSON(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("write JSON: %w", err)
	}
	return string(text), nil
}

// octets scans a column of bytes.
type octets struct{ into *string }

func (o octets) Scan(value any) error {
	b, ok := value.([]byte)
	if !ok {
		return fmt.Errorf("bytes are kept as %T", value)
	}
	*o.into = string(b)
	return nil
}

// flag scans a column of 0 or 1.
type flag struct{ into *bool }

func (f flag) Scan(value any) error {
	n, ok := value.(int64)
	if !ok {
		return fmt.Errorf("a flag is kept as %T", value)
	}
	*f.into = n != 0
	return nil
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
