package roster

import (
	"fmt"
	"strconv"
	"strings"

	"puntuale"
)

// Codes of the faults in this file.
const (
	faultListAtColumn       puntuale.ReasonCode = "list.at_column"
	faultListAtLine         puntuale.ReasonCode = "list.at_line"
	faultListBadCell        puntuale.ReasonCode = "list.bad_cell"
	faultListBadEncoding    puntuale.ReasonCode = "list.bad_encoding"
	faultListBareQuote      puntuale.ReasonCode = "list.bare_quote"
	faultListCellTooLong    puntuale.ReasonCode = "list.cell_too_long"
	faultListDamaged        puntuale.ReasonCode = "list.damaged"
	faultListDamagedFrom    puntuale.ReasonCode = "list.damaged_from"
	faultListEncrypted      puntuale.ReasonCode = "list.encrypted"
	faultListErrorValue     puntuale.ReasonCode = "list.error_value"
	faultListFormula        puntuale.ReasonCode = "list.formula"
	faultListLineTooLong    puntuale.ReasonCode = "list.line_too_long"
	faultListNoHeader       puntuale.ReasonCode = "list.no_header"
	faultListNotAList       puntuale.ReasonCode = "list.not_a_list"
	faultListNULByte        puntuale.ReasonCode = "list.nul_byte"
	faultListOldXLS         puntuale.ReasonCode = "list.old_xls"
	faultListOpenQuote      puntuale.ReasonCode = "list.open_quote"
	faultListPhoneHeader    puntuale.ReasonCode = "list.phone_header"
	faultListTooLarge       puntuale.ReasonCode = "list.too_large"
	faultListTooManyCells   puntuale.ReasonCode = "list.too_many_cells"
	faultListTooManyColumns puntuale.ReasonCode = "list.too_many_columns"
	faultListTooManyRows    puntuale.ReasonCode = "list.too_many_rows"
	faultListUnknownFormat  puntuale.ReasonCode = "list.unknown_format"
	faultListVCard          puntuale.ReasonCode = "list.vcard"
	faultListZipBomb        puntuale.ReasonCode = "list.zip_bomb"
)

// Problem is a code for a fault of a list or of one row. Programs may compare codes. A code never changes.
type Problem string

// Problems of one row. CellTooLong, Formula, ErrorValue and BadCell concern one cell; see [CellProblem].
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

// Problems of a whole list. If the header row has a fault, its problem is one of the row problems above.
const (
	UnknownFormat  Problem = "unknown_format"
	VCard          Problem = "vcard"
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

var reasons = map[Problem]puntuale.Reason{
	TooManyCells:   puntuale.Because(faultListTooManyCells),
	CellTooLong:    puntuale.Because(faultListCellTooLong, strconv.Itoa(MaxCell)),
	LineTooLong:    puntuale.Because(faultListLineTooLong, strconv.Itoa(MaxLine)),
	NULByte:        puntuale.Because(faultListNULByte),
	BadEncoding:    puntuale.Because(faultListBadEncoding),
	BareQuote:      puntuale.Because(faultListBareQuote),
	OpenQuote:      puntuale.Because(faultListOpenQuote, strconv.Itoa(MaxLine)),
	Formula:        puntuale.Because(faultListFormula),
	ErrorValue:     puntuale.Because(faultListErrorValue),
	BadCell:        puntuale.Because(faultListBadCell),
	UnknownFormat:  puntuale.Because(faultListUnknownFormat),
	VCard:          puntuale.Because(faultListVCard),
	NotAList:       puntuale.Because(faultListNotAList),
	NoHeader:       puntuale.Because(faultListNoHeader),
	PhoneHeader:    puntuale.Because(faultListPhoneHeader),
	TooManyColumns: puntuale.Because(faultListTooManyColumns, strconv.Itoa(MaxColumns)),
	TooManyRows:    puntuale.Because(faultListTooManyRows, strconv.Itoa(MaxRows)),
	TooLarge:       puntuale.Because(faultListTooLarge, strconv.Itoa(MaxBytes>>20)),
	ZipBomb:        puntuale.Because(faultListZipBomb, strconv.Itoa(maxUnpacked>>20), strconv.Itoa(maxRatio)),
	Encrypted:      puntuale.Because(faultListEncrypted),
	OldXLS:         puntuale.Because(faultListOldXLS),
	Damaged:        puntuale.Because(faultListDamaged),
}

// Reason returns the reason with the problem's sentence.
func (p Problem) Reason() puntuale.Reason { return reasons[p] }

// faulty is the beginning of a cell that was not read. After it comes the code of the cell's problem. U+FFFF is not a
// character, so no cell of a real list begins with it.
const faulty = "\uffff"

// CellProblem returns why a cell was not read: CellTooLong, Formula, ErrorValue or BadCell. It returns "" for a cell
// that was read. A caller that does not use the cell's column may ignore the problem.
func CellProblem(cell string) Problem {
	rest, ok := strings.CutPrefix(cell, faulty)
	if p := Problem(rest); ok && !reasons[p].IsZero() {
		return p
	}
	return ""
}

// RowError is a fault of one row. The reader can continue with the next row.
type RowError struct {
	Line    int // line of the file on which the row begins, from 1; in a workbook, the number of the row
	Column  int // the first column is 1; 0: the whole row has the fault
	Problem Problem
}

func (e *RowError) Error() string { return place(e.Line, e.Column) + string(e.Problem) }

// Reason returns the fault without the line.
func (e *RowError) Reason() puntuale.Reason {
	if e.Column == 0 {
		return e.Problem.Reason()
	}
	return puntuale.Because(faultListAtColumn, strconv.Itoa(e.Column), e.Problem.Reason().Stored())
}

// FileError is a fault of the whole list, or of the whole rest of the list.
type FileError struct {
	Problem Problem
	// Line is the header's line, if the header has a fault. In a damaged workbook, Line is the first row that could not
	// be read completely. In all other cases it is 0.
	Line int
	// Err is the reason why a workbook is damaged. It is only for developers, because it may contain a part of the
	// file. FileError does not unwrap to Err, because Err may be io.EOF.
	Err error
}

func (e *FileError) Error() string {
	if e.Problem == Damaged && e.Line > 0 {
		return fmt.Sprintf("from line %d on: %s", e.Line, e.Problem)
	}
	return place(e.Line, 0) + string(e.Problem)
}

// Reason returns the fault with its line.
func (e *FileError) Reason() puntuale.Reason {
	switch {
	case e.Line == 0:
		return e.Problem.Reason()
	case e.Problem == Damaged:
		return puntuale.Because(faultListDamagedFrom, strconv.Itoa(e.Line))
	default:
		return puntuale.Because(faultListAtLine, strconv.Itoa(e.Line), e.Problem.Reason().Stored())
	}
}

// TooLarge reports whether the problem is the size of the list.
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
