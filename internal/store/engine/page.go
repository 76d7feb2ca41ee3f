package engine

import (
	"encoding/base64"
	"strings"

	"puntuale"
)

// DefaultLimit is the length of a page if the caller names none.
const DefaultLimit = 100

// ReadCursor reads a page's cursor: the identifier of the last row already given. The cursor also has the list's name, so that a cursor of
// another list is noticed.
func ReadCursor(p puntuale.Page, noun string) (last int64, limit int, err error) {
	limit = p.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	if p.Cursor == "" {
		return 0, limit, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	if err == nil {
		name, number, _ := strings.Cut(string(text), ":")
		if last, err = puntuale.ParseID[int64](number); err == nil && name == noun {
			return last, limit, nil
		}
	}
	return 0, 0, BadCursor(p)
}

const faultNotCursor puntuale.ReasonCode = "fault.not_cursor"

// BadCursor refuses a cursor that does not belong to the list.
func BadCursor(p puntuale.Page) error {
	return puntuale.Invalid(puntuale.Fault{Location: "query.cursor", Code: faultNotCursor, Value: p.Cursor})
}

// CutPage makes a page of the rows that were read. The caller reads one row more than the page shows. CutPage returns the next page's
// cursor, or "" at the end.
func CutPage[T any](rows []T, limit int, noun string, id func(*T) int64) ([]T, string) {
	if len(rows) <= limit {
		return rows, ""
	}
	rows = rows[:limit]
	return rows, CursorAt(noun, id(&rows[limit-1]))
}

// CursorAt makes the cursor of a list that continues after an identifier.
func CursorAt(noun string, id int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(noun + ":" + puntuale.MessageID(id).String()))
}
