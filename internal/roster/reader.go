package roster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// Limits of one list.
const (
	MaxBytes   = 100 << 20 // of the upload
	MaxRows    = 1_000_000 // rows with content, also faulty ones, without the header
	MaxColumns = 200
	MaxCell    = 4096     // bytes of one cell, as UTF-8
	MaxLine    = 64 << 10 // bytes of one row
)

// Row is one row with content.
type Row struct {
	Line  int      // where the row begins in the file, from 1; in a workbook, the row's number
	Cells []string // one for each column, without space around it, "" if the row has none; all cells share one piece of memory. See CellProblem
}

// Reader reads one list. It is for one goroutine.
type Reader struct {
	source  source
	columns []string
	rows    int
	err     error // what ended the list
}

// source reads the rows of one form of list. It knows no columns and no limits.
type source interface {
	// next returns the next row, or the error that ends the list.
	next() (record, error)
	Close() error
}

// record is a row as a source gives it. The next call of the source overwrites it.
type record struct {
	line int
	text []byte // all cells, one after the other
	ends []int  // where each ends in text

	fault *RowError   // nil: the row has no fault
	cells []cellFault // cells that were not read, from left to right
}

type cellFault struct {
	column  int // from 1
	problem Problem
}

// Open reads the header row of a list. The first bytes decide its form. If they do not, the content type decides. Open copies a workbook
// into a nameless file in dir, and the workbook's texts into another one. "" means the system's folder for such files. It does not copy
// CSV, but reads it from r until the end. It reads at most one byte more than MaxBytes. On success the caller calls Close.
//
// The end of ctx ends Open and every later Next, because a workbook can take minutes to read.
func Open(ctx context.Context, r io.Reader, contentType, dir string) (*Reader, error) {
	in := bufio.NewReader(&upload{ctx, r, MaxBytes})
	first, err := in.Peek(len(magicOLE))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	form, err := detect(contentType, first)
	if err != nil {
		return nil, err
	}
	var from source
	if form == xlsx {
		from, err = openWorkbook(ctx, in, dir)
	} else {
		from, err = openCSV(in)
	}
	if err != nil {
		return nil, err
	}
	l := &Reader{source: from}
	if err := l.header(); err != nil {
		_ = from.Close()
		return nil, err
	}
	return l, nil
}

// Columns returns the header's cells without space around them. It leaves out columns at the right end that have no name.
func (l *Reader) Columns() []string { return l.columns }

// Close removes the files that Open wrote. It does not close Open's reader.
func (l *Reader) Close() error { return l.source.Close() }

// Next returns the next row that is not blank. After a [*RowError] it may be called again. io.EOF, a [*FileError] or any other error ends
// the list, and every later call returns it again.
func (l *Reader) Next() (Row, error) {
	if l.err != nil {
		return Row{}, l.err
	}
	r, err := l.content()
	if err != nil {
		l.err = err
		return Row{}, err
	}
	if l.rows++; l.rows > MaxRows {
		l.err = &FileError{Problem: TooManyRows}
		return Row{}, l.err
	}
	if r.fault != nil {
		return Row{}, r.fault
	}
	return l.row(r)
}

// content returns the next row that is not blank. It leaves out faulty cells to the right of the header's columns.
func (l *Reader) content() (record, error) {
	for {
		r, err := l.source.next()
		if l.columns != nil {
			r.cells = slices.DeleteFunc(r.cells, func(f cellFault) bool { return f.column > len(l.columns) })
		}
		if err != nil || !r.blank() {
			return r, err
		}
	}
}

// row splits a record into the list's columns.
func (l *Reader) row(r record) (Row, error) {
	if p := r.problem(); p != "" {
		return Row{}, &RowError{r.line, 0, p}
	}
	cells := make([]string, len(l.columns))
	text, from := string(r.text), 0
	for i, to := range r.ends {
		switch {
		case i >= len(cells) && strings.TrimFunc(text[from:to], isSpace) != "":
			return Row{}, &RowError{r.line, 0, TooManyCells}
		case i >= len(cells):
		case to-from > MaxCell:
			cells[i] = faulty + string(CellTooLong)
		default:
			cells[i] = strings.TrimFunc(text[from:to], isSpace)
		}
		from = to
	}
	for _, f := range r.cells {
		cells[f.column-1] = faulty + string(f.problem)
	}
	return Row{r.line, cells}, nil
}

// header reads the columns' names from the first row with content.
func (l *Reader) header() error {
	r, err := l.content()
	if errors.Is(err, io.EOF) {
		return &FileError{Problem: NoHeader}
	}
	if err != nil {
		return err
	}
	if r.fault != nil {
		return &FileError{Problem: r.fault.Problem, Line: r.fault.Line}
	}
	if len(r.cells) > 0 {
		return &FileError{Problem: r.cells[0].problem, Line: r.line}
	}
	switch p := r.problem(); p {
	case "":
	case NULByte: // one row may be damaged, but a file that begins with a NUL is not a text
		return &FileError{Problem: NotAList}
	default:
		return &FileError{Problem: p, Line: r.line}
	}
	from := 0
	for _, to := range r.ends {
		if to-from > MaxCell {
			return &FileError{Problem: CellTooLong, Line: r.line}
		}
		l.columns = append(l.columns, strings.TrimFunc(string(r.text[from:to]), isSpace))
		from = to
	}
	for l.columns[len(l.columns)-1] == "" {
		l.columns = l.columns[:len(l.columns)-1]
	}
	if len(l.columns) > MaxColumns {
		return &FileError{Problem: TooManyColumns, Line: r.line}
	}
	for _, name := range l.columns {
		digits, ok := phoneDigits(name)
		if ok && digits > 8 || LostDigits(name) { // a date has eight digits
			return &FileError{Problem: PhoneHeader, Line: r.line} // otherwise the first recipient would be taken for the header, and would get nothing
		}
	}
	return nil
}

// isSpace also accepts byte order marks, which some tools leave in the middle when they join files.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' }

func (r record) blank() bool {
	return r.fault == nil && len(r.cells) == 0 && len(bytes.TrimFunc(r.text, isSpace)) == 0
}

// problem checks the row as a whole.
func (r record) problem() Problem {
	switch {
	case bytes.IndexByte(r.text, 0) >= 0:
		return NULByte
	case len(r.text) > MaxLine:
		return LineTooLong
	default:
		return ""
	}
}

// upload reads at most left bytes. It refuses a larger upload when it sees one byte more.
type upload struct {
	ctx  context.Context
	r    io.Reader
	left int64
}

func (u *upload) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	if int64(len(p)) > u.left+1 {
		p = p[:u.left+1]
	}
	n, err := u.r.Read(p)
	if u.left -= int64(n); u.left < 0 {
		u.left = 0
		return 0, &FileError{Problem: TooLarge}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("read the uploaded list: %w", err)
	}
	return n, err
}
