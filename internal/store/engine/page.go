package engine

import (
	"encoding/base64"
	"strings"

	"puntuale"
)

// DefaultLimit is the number of rows on a page if the caller sets no limit.
const DefaultLimit = 100

// ReadCursor reads the cursor of a page. The cursor contains the identifier of the previous page's last row. It also
// contains the name of the list, so that the cursor of another list is refused.
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

// BadCursor returns the error for a cursor that does not belong to the list.
func BadCursor(p puntuale.Page) error {
	return puntuale.Invalid(puntuale.Fault{Location: "query.cursor", Code: faultNotCursor, Value: p.Cursor})
}

// CutPage makes a page from rows. The caller must read one row more than the page may show. CutPage returns the cursor
// of the next page, or "" if there is none.
func CutPage[T any](rows []T, limit int, noun string, id func(*T) int64) ([]T, string) {
	if len(rows) <= limit {
		return rows, ""
	}
	rows = rows[:limit]
	return rows, CursorAt(noun, id(&rows[limit-1]))
}

// CursorAt returns the cursor of a page that begins after the row with this id. noun is the name of the list.
func CursorAt(noun string, id int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(noun + ":" + puntuale.MessageID(id).String()))
}
