package request

import (
	"strconv"
	"strings"

	"puntuale"
)

// How many rows a page of a list has: PageRows by default, and MaxPageRows at most.
const (
	PageRows    = 100
	MaxPageRows = 1000
)

// Page is a request for a part of a list, as a caller wrote it. Unknown contains the faults that the calling package
// already found in the request, such as a filter that the list does not have. The error reports them together with the
// other faults.
type Page struct {
	Limit   string // the largest number of rows, at most 1,000; "": 100
	Cursor  string // "": from the beginning; otherwise the next_cursor of the previous page
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

// List reads one page of a list with read, which is a method of the store.
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
