// Package roster reads lists of recipients as people have them: CSV from any spreadsheet, in any usual encoding, and XLSX.
// It reads row by row, within bounds of bytes, rows and columns, and knows nothing of what the columns mean.
package roster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Limits of one list.
const (
	MaxBytes   = 100 << 20
	MaxRows    = 1_000_000
	MaxColumns = 200
	MaxCell    = 4096     // bytes
	maxRecord  = 64 << 10 // bytes of one row
)

// Row is one row of a list. Cells has as many entries as the list has columns.
type Row struct {
	Line  int // of the file, from 1; where the row begins
	Cells []string
}

// RowError says what is wrong with one row. Reading may go on behind it.
type RowError struct {
	Line    int
	Message string
}

func (e *RowError) Error() string { return fmt.Sprintf("line %d %s", e.Line, e.Message) }

// FileError says why a file cannot be read at all, or not any further.
type FileError struct {
	Message  string
	TooLarge bool
}

func (e *FileError) Error() string { return e.Message }

var (
	errLarge    = &FileError{Message: fmt.Sprintf("the file is longer than %d MiB", MaxBytes>>20), TooLarge: true}
	errRows     = &FileError{Message: fmt.Sprintf("the file has more than %d rows", MaxRows), TooLarge: true}
	errHeader   = &FileError{Message: "the file has no header row"}
	errNoHeader = &FileError{Message: "the first row is no header: it holds a phone number"}
	errColumns  = &FileError{Message: fmt.Sprintf("the header has more than %d columns", MaxColumns)}
)

// source gives rows as the format has them.
type source interface {
	next() (line int, cells []string, err error) // io.EOF at the end
	Close() error
}

// Reader reads a list. It may be used by one goroutine at a time.
type Reader struct {
	source
	columns []string
	rows    int
}

// Open reads the header row. The content type decides the format; where it says nothing, the first bytes do. An XLSX file is
// copied to the folder, "" for the system's, until Close. Errors: a [*FileError].
func Open(r io.Reader, contentType, folder string) (*Reader, error) {
	r = &bounded{r: r, left: MaxBytes}
	first := make([]byte, sniffed)
	n, err := io.ReadFull(r, first)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	first = first[:n]
	rest := io.MultiReader(bytes.NewReader(first), r)
	var s source
	switch format(contentType, first) {
	case "xlsx":
		s, err = openSheet(rest, folder)
	case "xls":
		err = &FileError{Message: "the file is of the old Excel format; save it as XLSX or CSV"}
	case "csv":
		s, err = openText(rest, first)
	default:
		err = &FileError{Message: "the file is neither CSV nor XLSX"}
	}
	if err != nil {
		return nil, err
	}
	list := &Reader{source: s}
	if err := list.header(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return list, nil
}

// sniffed is how many bytes decide the format, the encoding and the delimiter.
const sniffed = 64 << 10

const sheetType = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

func format(contentType string, first []byte) string {
	kind, _, _ := strings.Cut(contentType, ";")
	switch {
	case bytes.HasPrefix(first, []byte("PK\x03\x04")):
		return "xlsx"
	case bytes.HasPrefix(first, []byte("\xd0\xcf\x11\xe0")):
		return "xls"
	}
	switch strings.ToLower(strings.TrimSpace(kind)) {
	case sheetType:
		return ""
	case "", "text/csv", "text/plain", "application/csv", "application/octet-stream", "application/vnd.ms-excel", "text/tab-separated-values":
		return "csv"
	}
	return ""
}

// header reads the first row that is not empty.
func (r *Reader) header() error {
	_, cells, err := r.next()
	if errors.Is(err, io.EOF) {
		return errHeader
	}
	if err != nil {
		if row, ok := errors.AsType[*RowError](err); ok {
			return &FileError{Message: "the header " + row.Message}
		}
		return err
	}
	for len(cells) > 0 && strings.TrimSpace(cells[len(cells)-1]) == "" {
		cells = cells[:len(cells)-1]
	}
	switch {
	case len(cells) == 0:
		return errHeader
	case len(cells) > MaxColumns:
		return errColumns
	}
	if slices.ContainsFunc(cells, dialled) { // its recipient would be forgotten
		return errNoHeader
	}
	for _, cell := range cells {
		r.columns = append(r.columns, strings.TrimSpace(strings.ToValidUTF8(cell, "\uFFFD")))
	}
	return nil
}

// dialled reports a cell that reads as a phone number.
func dialled(cell string) bool {
	digits := 0
	for _, c := range strings.TrimSpace(cell) {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case !strings.ContainsRune("+ ()./-", c):
			return false
		}
	}
	return digits >= 9
}

// Columns are the cells of the header row.
func (r *Reader) Columns() []string { return r.columns }

// Next returns the next row that holds something, io.EOF at the end, a [*RowError] for a row that cannot be read, or a
// [*FileError] when nothing more can be read.
func (r *Reader) Next() (Row, error) {
	for {
		line, cells, err := r.next()
		if err != nil {
			return Row{}, err
		}
		if blank(cells) {
			continue
		}
		if r.rows++; r.rows > MaxRows {
			return Row{}, errRows
		}
		kept, err := r.fit(line, cells)
		if err != nil {
			return Row{}, err
		}
		return Row{line, kept}, nil
	}
}

// fit copies a row's cells into as many as there are columns.
func (r *Reader) fit(line int, cells []string) ([]string, error) {
	if len(cells) > len(r.columns) && !blank(cells[len(r.columns):]) {
		return nil, &RowError{line, fmt.Sprintf("has %d cells, and the header has %d", len(cells), len(r.columns))}
	}
	kept := make([]string, len(r.columns))
	for i := range kept {
		if i >= len(cells) {
			break
		}
		switch cell := strings.TrimSpace(cells[i]); {
		case len(cell) > MaxCell:
			return nil, &RowError{line, fmt.Sprintf("has a cell that is longer than %d bytes", MaxCell)}
		case strings.ContainsRune(cell, 0):
			return nil, &RowError{line, "holds a NUL character"}
		case cell != strings.ToValidUTF8(cell, ""):
			return nil, &RowError{line, "is not in the encoding of the rows before"}
		default:
			kept[i] = cell
		}
	}
	return kept, nil
}

func blank(cells []string) bool {
	for _, cell := range cells {
		if strings.TrimSpace(cell) != "" {
			return false
		}
	}
	return true
}

// bounded refuses what is longer than a list may be.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, errLarge
	}
	return n, err
}
