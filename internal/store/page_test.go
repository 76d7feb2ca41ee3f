package store

import (
	"testing"

	"puntuale"
	"puntuale/internal/store/engine"
)

// FuzzCursor reads any text as a cursor. An accepted text must give valid values. A refused text must give the error
// code CodeInvalid.
func FuzzCursor(f *testing.F) {
	rows := []int64{7, 8}
	_, cursor := engine.CutPage(rows, 1, "message", func(n *int64) int64 { return *n })
	for _, seed := range []string{"", cursor, "b3V0Y29tZToxOjI", "bWVzc2FnZTow", "=", "é", "bWVzc2FnZTotMQ"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		last, limit, err := engine.ReadCursor(puntuale.Page{Cursor: text}, "message")
		if err == nil && (limit != engine.DefaultLimit || last < 0 || last > puntuale.MaxID || (last == 0) != (text == "")) {
			t.Fatalf("%q: %d, %d", text, last, limit)
		}
		if err != nil && puntuale.CodeOf(err) != puntuale.CodeInvalid {
			t.Fatalf("%q: %v", text, err)
		}
		at, id, _, err := afterOutcome(puntuale.Page{Cursor: text})
		if err == nil && text != "" && (at < 0 || id < 1 || id > puntuale.MaxID) {
			t.Fatalf("%q: %d, %d", text, at, id)
		}
		if err != nil && puntuale.CodeOf(err) != puntuale.CodeInvalid {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
