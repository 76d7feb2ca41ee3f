package archive

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// AppendRow appends the line of a row, without a line break. Each value is an int64, float64, string, []byte, bool or
// nil.
func AppendRow(line []byte, row []any) ([]byte, error) {
	line = append(line, '[')
	for i, value := range row {
		if i > 0 {
			line = append(line, ',')
		}
		switch v := value.(type) {
		case nil:
			line = append(line, "null"...)
		case int64:
			line = strconv.AppendInt(line, v, 10)
		case float64:
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("value %d is %v", i+1, v)
			}
			line = strconv.AppendFloat(line, v, 'g', -1, 64)
		case bool:
			line = strconv.AppendBool(line, v)
		case []byte:
			line = append(line, '"')
			line = base64.StdEncoding.AppendEncode(line, v)
			line = append(line, '"')
		case string:
			if !utf8.ValidString(v) {
				return nil, fmt.Errorf("value %d is no UTF-8", i+1)
			}
			line = appendText(line, v)
		default:
			return nil, fmt.Errorf("value %d is a %T", i+1, value)
		}
	}
	return append(line, ']'), nil
}

// appendText appends a JSON string with as few escapes as JSON allows.
func appendText(line []byte, text string) []byte {
	const digits = "0123456789abcdef"
	line = append(line, '"')
	from := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		line = append(line, text[from:i]...)
		if c < ' ' {
			line = append(line, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		} else {
			line = append(line, '\\', c)
		}
		from = i + 1
	}
	line = append(line, text[from:]...)
	return append(line, '"')
}

// ParseRow is the inverse of AppendRow: it reads a line into row. row must have one element for each column. ParseRow
// returns an error unless the line is a JSON array of values whose number and kinds match the columns.
func ParseRow(line []byte, columns []Column, row []any) error {
	if len(line) < 2 || line[0] != '[' || line[len(line)-1] != ']' {
		return fmt.Errorf("%.20q is no row", line)
	}
	rest := line[1:] // each value ends at a comma or at the closing bracket
	for i, c := range columns {
		n := valueEnd(rest)
		want := byte(',')
		if i == len(columns)-1 {
			want = ']'
		}
		if n < 0 || rest[n] != want {
			return fmt.Errorf("it has other than %d values", len(columns))
		}
		var err error
		if row[i], err = parseValue(rest[:n], c.Kind); err != nil {
			return fmt.Errorf("column %s: %w", c.Name, err)
		}
		rest = rest[n+1:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("something follows its %d values", len(columns))
	}
	return nil
}

// valueEnd returns where the first value in text ends, or -1 if it has no end.
func valueEnd(text []byte) int {
	if len(text) > 0 && text[0] == '"' {
		for i := 1; i < len(text)-1; i++ {
			switch text[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return -1
	}
	return bytes.IndexAny(text, ",]")
}

func parseValue(text []byte, kind Kind) (any, error) {
	quoted := len(text) >= 2 && text[0] == '"'
	switch {
	case string(text) == "null":
		return nil, nil
	case kind == Integer:
		return strconv.ParseInt(string(text), 10, 64)
	case kind == Boolean:
		if b := string(text); b != "true" && b != "false" {
			return nil, fmt.Errorf("%.20q is neither true nor false", text)
		}
		return text[0] == 't', nil
	case kind == Real:
		f, err := strconv.ParseFloat(string(text), 64)
		if err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
			err = fmt.Errorf("%q is no number", text)
		}
		return f, err
	case !quoted:
		return nil, fmt.Errorf("%.20q is not quoted", text)
	case kind == Bytes:
		return base64.StdEncoding.AppendDecode([]byte{}, text[1:len(text)-1])
	case bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text):
		return string(text[1 : len(text)-1]), nil
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("read a text: %w", err)
	}
	return s, nil
}
