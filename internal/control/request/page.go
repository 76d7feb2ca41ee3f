package request

import (
	"strconv"
	"strings"

	"puntuale"
)

// The size of a page of a list, in rows.
const (
	PageRows    = 100
	MaxPageRows = 1000
)

// Page asks for a part of a list, as a caller wrote it. Unknown are faults that the caller found in the request itself,
// such as a filter that the list does not have. They are answered together with the others.
type Page struct {
	Limit   string // "" for 100; at most 1000
	Cursor  string // "" from the beginning, else the next_cursor of the page before
	Unknown []puntuale.Fault
}

func (p Page) read() (puntuale.Page, error) {
	f := Faults(p.Unknown)
	rows := PageRows
	if p.Limit != "" {
		n, err := strconv.Atoi(p.Limit)
		if err != nil || n < 1 || n > MaxPageRows || strings.Trim(p.Limit, "0123456789") != "" {
			f.Add("query.limit", puntuale.FaultNotWholeInRange, p.Limit, "1", strconv.Itoa(MaxPageRows))
		}
		rows = n
	}
	f.Text("query.cursor", p.Cursor, puntuale.MaxName)
	return puntuale.Page{Limit: rows, Cursor: p.Cursor}, f.Err()
}

// List reads one page with one of the store's list verbs.
func List[T any](p Page, read func(puntuale.Page) ([]T, string, error)) ([]T, string, error) {
	page, err := p.read()
	if err != nil {
		return nil, "", err
	}
	rows, next, err := read(page)
	if err != nil {
		return nil, "", err
	}
	return rows, next, nil
}
