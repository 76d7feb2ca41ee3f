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

	"puntuale"
)

// Limits of one list.
const (
	MaxBytes   = 100 << 20 // largest size of the upload, in bytes
	MaxRows    = 1_000_000 // largest number of rows with content; faulty rows count, and the header does not
	MaxColumns = 200
	MaxCell    = 4096     // largest size of one cell, in bytes of UTF-8
	MaxLine    = 64 << 10 // largest size of one row, in bytes
)

// MaybeHeader is the line of the header of a list that may have none: if the first row contains a phone number, it is
// the first row of the list. Then the columns have no names, and [Reader.Header] returns 0. The last column has all that
// follows the phone numbers, because without a header nobody can say where a row must end.
const MaybeHeader = -1

// Row is one row that has content.
type Row struct {
	Line int // line of the file on which the row begins, from 1; in a workbook, the number of the row
	// Cells contains one cell for each column, without surrounding space, or "" if the row has no such cell. A cell
	// that was not read contains a problem; see [CellProblem]. All cells share one piece of memory.
	Cells []string
}

// Reader reads one list. It is not safe for concurrent use.
type Reader struct {
	source  source
	columns []string
	line    int // the line of the header
	rows    int
	hidden  int
	err     error // the error that ended the list; nil: the list has not ended

	ahead []record // rows that were read before the header was chosen
	ended error    // the error that ended these rows; nil: there are more
}

// source reads the rows of one file format. It depends neither on the columns nor on the limits of lists.
type source interface {
	// next returns the next row, or the error that ends the list.
	next() (record, error)
	Close() error
}

// record is a row from a source. The next call of the source overwrites it.
type record struct {
	line   int
	hidden bool   // a spreadsheet does not show the row
	text   []byte // the texts of all cells, without anything between them
	ends   []int  // where each cell ends in text

	fault *RowError   // nil: the row has no fault
	cells []cellFault // cells that were not read, from left to right
}

type cellFault struct {
	column  int // number of the column, from 1
	problem Problem
}

// Open reads the header row of a list. If the first bytes are those of a workbook, these bytes decide the form.
// Otherwise the content type decides. Open copies a workbook into a file without a name in dir, and the workbook's
// shared texts into another such file. dir "" means the system's temporary folder. Open does not copy CSV, but reads
// from r until the end. It reads at most MaxBytes and one more byte. If it succeeds, the caller must call Close.
//
// When ctx ends, Open and every later Next end, because a workbook can take minutes to read.
//
// header is the line of the header row; 0 means that Open looks for it. It may stand below a title. [MaybeHeader] means
// that the list may have none.
func Open(ctx context.Context, r io.Reader, contentType, dir string, header int) (*Reader, error) {
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
	if err := l.header(header); err != nil {
		_ = from.Close()
		return nil, err
	}
	return l, nil
}

// Columns returns the cells of the header without surrounding space. It omits columns without a name at the right end.
func (l *Reader) Columns() []string { return l.columns }

// Header returns the line of the header.
func (l *Reader) Header() int { return l.line }

// Hidden returns how many of the rows that were read are hidden in the spreadsheet, for example by a filter.
func (l *Reader) Hidden() int { return l.hidden }

// Close removes the files that Open wrote. It does not close the reader that Open got.
func (l *Reader) Close() error { return l.source.Close() }

// Next returns the next row that is not blank. After a [*RowError] the caller may continue. io.EOF, a [*FileError] or
// any other error ends the list, and every later call returns the same error.
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
	if r.hidden {
		l.hidden++
	}
	if r.fault != nil {
		return Row{}, r.fault
	}
	return l.row(r)
}

// content returns the next row that is not blank. It ignores faults in cells to the right of the header's columns.
func (l *Reader) content() (record, error) {
	for {
		r, err := l.read()
		if l.columns != nil {
			r.cells = slices.DeleteFunc(r.cells, func(f cellFault) bool { return f.column > len(l.columns) })
		}
		if err != nil || !r.blank() {
			return r, err
		}
	}
}

// row splits a record into the columns of the list.
func (l *Reader) row(r record) (Row, error) {
	if p := r.problem(); p != "" {
		return Row{}, &RowError{r.line, 0, p}
	}
	cells := make([]string, len(l.columns))
	text, from := string(r.text), 0
	for i, to := range r.ends {
		switch {
		case i >= len(cells) && strings.TrimFunc(text[from:to], isSpace) == "":
		case i >= len(cells) && l.line > 0:
			return Row{}, &RowError{r.line, 0, TooManyCells}
		case i >= len(cells):
			joinLast(cells, strings.TrimFunc(text[from:to], isSpace))
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

// joinLast adds a text to the last cell of a row, as a value of its own; see [Values].
func joinLast(cells []string, text string) {
	const between = " " + joint + " "
	last := &cells[len(cells)-1]
	switch {
	case CellProblem(*last) != "":
	case *last == "" && len(text) <= MaxCell:
		*last = text
	case len(*last)+len(between)+len(text) > MaxCell:
		*last = faulty + string(CellTooLong)
	default:
		*last += between + text
	}
}

// read returns the next row of the source, or one that was read before.
func (l *Reader) read() (record, error) {
	if len(l.ahead) > 0 {
		r := l.ahead[0]
		l.ahead = l.ahead[1:]
		return r, nil
	}
	if l.ended != nil {
		return record{}, l.ended
	}
	return l.source.next()
}

// titleRows is how many rows may stand above the header.
const titleRows = 10

// header reads the names of the columns. They are in the row on the given line. If this line is 0, they are in the first
// of the first rows that looks like a header, or else in the first row. [MaybeHeader] means the same, unless the first
// row contains a phone number.
func (l *Reader) header(line int) error {
	maybe := line == MaybeHeader
	line = max(line, 0)
	first, err := l.content()
	for line > 0 && err == nil && first.line < line {
		first, err = l.content()
	}
	if errors.Is(err, io.EOF) || line > 0 && err == nil && first.line > line {
		return &FileError{Problem: NoHeader}
	}
	if err != nil {
		return err
	}
	if maybe && slices.ContainsFunc(first.texts(), looksLikePhone) {
		return l.unnamed(first)
	}
	chosen := first
	if line == 0 && titleOf(first) {
		first = first.copied()
		chosen = first
		for len(l.ahead) < titleRows {
			r, err := l.source.next()
			if err != nil {
				l.ended = err
				break
			}
			if r.blank() {
				continue
			}
			if headerOf(r) {
				chosen, l.ahead = r, nil
				break
			}
			if l.ahead = append(l.ahead, r.copied()); !titleOf(r) {
				break
			}
		}
	}
	return l.name(chosen)
}

// unnamed reads the number of columns of a list without a header from its first rows: those up to the last one with a
// phone number, and one more. It keeps these rows.
func (l *Reader) unnamed(first record) error {
	l.ahead = []record{first.copied()}
	for len(l.ahead) < titleRows && l.ended == nil {
		r, err := l.source.next()
		if l.ended = err; err == nil {
			l.ahead = append(l.ahead, r.copied())
		}
	}
	n := 0
	for _, r := range l.ahead {
		from := 0
		for i, to := range r.ends {
			if LooksLikePhone(strings.TrimFunc(string(r.text[from:to]), isSpace)) {
				n = max(n, i+2)
			}
			from = to
		}
	}
	n = max(n, 2)
	if n > MaxColumns {
		return &FileError{Problem: TooManyColumns, Line: first.line}
	}
	l.columns = make([]string, n)
	return nil
}

// copied returns a record that the source does not overwrite.
func (r record) copied() record {
	r.text, r.ends, r.cells = slices.Clone(r.text), slices.Clone(r.ends), slices.Clone(r.cells)
	return r
}

// texts returns the cells of a row that are not blank.
func (r record) texts() (all []string) {
	from := 0
	for _, to := range r.ends {
		if text := strings.TrimFunc(string(r.text[from:to]), isSpace); text != "" {
			all = append(all, text)
		}
		from = to
	}
	return all
}

// titleOf reports whether a row may be a title: it has one or two cells, and none of them is the name of a usual column
// or a phone number.
func titleOf(r record) bool {
	texts := r.texts()
	if r.fault != nil || len(r.cells) > 0 || r.problem() != "" || len(texts) == 0 || len(texts) > 2 {
		return false
	}
	return !slices.ContainsFunc(texts, func(text string) bool { return namesColumn(text) || looksLikePhone(text) })
}

// headerOf reports whether a row below a title looks like a header: a cell names a usual column, and none is a phone
// number.
func headerOf(r record) bool {
	texts := r.texts()
	return r.fault == nil && len(r.cells) == 0 && r.problem() == "" && slices.ContainsFunc(texts, namesColumn) && !slices.ContainsFunc(texts, looksLikePhone)
}

// name reads the names of the columns from a row.
func (l *Reader) name(r record) error {
	if r.fault != nil {
		return &FileError{Problem: r.fault.Problem, Line: r.fault.Line}
	}
	if len(r.cells) > 0 {
		return &FileError{Problem: r.cells[0].problem, Line: r.line}
	}
	switch p := r.problem(); p {
	case "":
	case NULByte: // a NUL in one row may be damage, but a file that begins with such a row is not a text
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
		if ok && digits > 8 || LostDigits(name) { // a date has only eight digits
			return &FileError{Problem: PhoneHeader, Line: r.line} // without this error, the first recipient would count as the header and get no message
		}
	}
	l.line = r.line
	return nil
}

// isSpace reports whether r shows nothing. Some tools leave byte order marks in the middle of a list when they join
// files, and some pages copy spaces without width.
func isSpace(r rune) bool { return puntuale.IsBlank(r) }

func (r record) blank() bool {
	return r.fault == nil && len(r.cells) == 0 && len(bytes.TrimFunc(r.text, isSpace)) == 0
}

// problem returns the problem of the whole row.
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

// upload reads at most left bytes. If the upload has one more byte, it returns an error.
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
