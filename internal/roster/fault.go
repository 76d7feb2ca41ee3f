package roster

import (
	"fmt"
	"strings"
)

// Problem is a code for a fault of a list or of one row. Programs may compare it; it never changes.
type Problem string

// Problems of one row. CellTooLong, Formula, ErrorValue and BadCell are of one cell, as CellProblem tells them.
const (
	TooManyCells Problem = "too_many_cells"
	CellTooLong  Problem = "cell_too_long"
	LineTooLong  Problem = "line_too_long"
	NULByte      Problem = "nul_byte"
	BadEncoding  Problem = "bad_encoding"
	BareQuote    Problem = "bare_quote"
	OpenQuote    Problem = "open_quote"
	Formula      Problem = "formula"
	ErrorValue   Problem = "error_value"
	BadCell      Problem = "bad_cell"
)

// Problems of a list as a whole. Where its header row is faulty, it is one of the above.
const (
	UnknownFormat  Problem = "unknown_format"
	NotAList       Problem = "not_a_list"
	NoHeader       Problem = "no_header"
	PhoneHeader    Problem = "phone_header"
	TooManyColumns Problem = "too_many_columns"
	TooManyRows    Problem = "too_many_rows"
	TooLarge       Problem = "too_large"
	ZipBomb        Problem = "zip_bomb"
	Encrypted      Problem = "encrypted"
	OldXLS         Problem = "old_xls"
	Damaged        Problem = "damaged"
)

var sentences = map[Problem]string{
	TooManyCells:   "the row has a value to the right of the last column that the header names",
	CellTooLong:    fmt.Sprintf("a cell is longer than %d bytes", MaxCell),
	LineTooLong:    fmt.Sprintf("the row is longer than %d bytes", MaxLine),
	NULByte:        "the row has a NUL byte, which no text has",
	BadEncoding:    "the row is not in the encoding of the rows above; save the list as UTF-8",
	BareQuote:      "text follows a closing quotation mark; inside of a quoted cell a quotation mark is written twice",
	OpenQuote:      fmt.Sprintf("a quotation mark opens a cell and none closes it within %d bytes", MaxLine),
	Formula:        "a cell has a formula without its result; open the workbook and save it again, or replace formulas with their values",
	ErrorValue:     "a formula gives an error, such as #N/A, instead of a value",
	BadCell:        "a cell of the workbook cannot be read",
	UnknownFormat:  "the file is neither CSV (text/csv) nor XLSX",
	NotAList:       "this is neither text nor an XLSX workbook",
	NoHeader:       "the list has no header; its first row must name the columns",
	PhoneHeader:    "the header holds a phone number; put a row above it that names the columns",
	TooManyColumns: fmt.Sprintf("the list has more than %d columns", MaxColumns),
	TooManyRows:    fmt.Sprintf("the list has more than %d rows", MaxRows),
	TooLarge:       fmt.Sprintf("the list is larger than %d MiB", MaxBytes>>20),
	ZipBomb:        fmt.Sprintf("the workbook unpacks to more than %d MiB, or to more than %d times its size", maxUnpacked>>20, maxRatio),
	Encrypted:      "the workbook is protected by a password; save it without one",
	OldXLS:         "this is a workbook of the old form .xls; save it as .xlsx or CSV",
	Damaged:        "the workbook is damaged or was cut off",
}

// Sentence names the fault. Where the remedy is not obvious, it names that, too.
func (p Problem) Sentence() string { return sentences[p] }

// faulty begins a cell that was not read; its problem follows. It is no character, and lists have none that begin so.
const faulty = "\uffff"

// CellProblem says why a cell was not read: CellTooLong, Formula, ErrorValue or BadCell; "" for one that was. Such a cell is no fault of
// its row where nothing asks for its column.
func CellProblem(cell string) Problem {
	rest, ok := strings.CutPrefix(cell, faulty)
	if p := Problem(rest); ok && sentences[p] != "" {
		return p
	}
	return ""
}

// RowError is what is wrong with one row. The rows behind it can be read.
type RowError struct {
	Line    int // where the row begins in the file, from 1; in a workbook the row's number
	Column  int // from 1; 0: the row as a whole
	Problem Problem
}

func (e *RowError) Error() string { return place(e.Line, e.Column) + e.Problem.Sentence() }

// Message is the error without the line.
func (e *RowError) Message() string { return place(0, e.Column) + e.Problem.Sentence() }

// FileError is the fault of a list as a whole: it cannot be read, or not any further.
type FileError struct {
	Problem Problem
	Line    int   // the header's, where the header is faulty; in a damaged workbook the first row that was not read whole; or 0
	Err     error // why a workbook is damaged, for developers alone: it may repeat a part of the file. It is not wrapped, for it may be io.EOF
}

func (e *FileError) Error() string {
	if e.Problem == Damaged && e.Line > 0 {
		return fmt.Sprintf("from line %d on: %s", e.Line, e.Problem.Sentence())
	}
	return place(e.Line, 0) + e.Problem.Sentence()
}

// TooLarge reports whether the list is refused for its size.
func (e *FileError) TooLarge() bool {
	return e.Problem == TooLarge || e.Problem == TooManyRows || e.Problem == ZipBomb
}

func place(line, column int) string {
	switch {
	case line == 0 && column == 0:
		return ""
	case line == 0:
		return fmt.Sprintf("column %d: ", column)
	case column == 0:
		return fmt.Sprintf("line %d: ", line)
	default:
		return fmt.Sprintf("line %d, column %d: ", line, column)
	}
}
