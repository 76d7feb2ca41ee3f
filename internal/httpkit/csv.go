package httpkit

import (
	"encoding/csv"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// ExportWriteTime is the longest time in which the reader must receive one part of an export.
const ExportWriteTime = 30 * time.Second

// CSV is the form of a table as CSV. The zero value is the form for programs.
type CSV struct {
	Spreadsheet bool // with the mark of UTF-8 and line ends by which spreadsheets recognise a table
	Semicolons  bool // where numbers contain commas, spreadsheets expect a semicolon between cells
}

// Writer returns a writer of rows, for which the mark of UTF-8 is written already.
func (c CSV) Writer(to io.Writer) *csv.Writer {
	w := csv.NewWriter(to)
	if c.Semicolons {
		w.Comma = ';'
	}
	if c.Spreadsheet {
		w.UseCRLF = true
		_, _ = io.WriteString(to, "\ufeff") // the first row meets the same error
	}
	return w
}

// Rows reads the rows after a cursor, and returns the cursor of the rows after these; "" means that there are none.
type Rows func(cursor string) (rows [][]string, next string, err error)

// Send answers with a table, page by page. The caller has read the first rows, so it could still answer with an error.
// Before each page is written, Send calls leave, because the reader may be slow. Send returns nil if all rows are
// written, or the reader closed the connection. After an error of read, the caller must break off the connection. The
// status was sent already, so nothing else can show that rows are missing.
func (c CSV) Send(w http.ResponseWriter, now func() time.Time, file string, header []string, rows [][]string, next string, leave func(), read Rows) error {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+file+`.csv"`)
	leave()
	out, connection := c.Writer(w), http.NewResponseController(w)
	_ = out.Write(header) // the writer keeps its first error
	for {
		_ = connection.SetWriteDeadline(now().Add(ExportWriteTime)) // this fails for a connection without deadlines
		if err := out.WriteAll(rows); err != nil || next == "" {
			return nil //nolint:nilerr // the reader closed the connection
		}
		_ = connection.Flush()
		var err error
		if rows, next, err = read(next); err != nil {
			return err
		}
		leave()
	}
}

// formula matches the beginning of a text that a spreadsheet may calculate. The text may begin at the beginning of the
// cell, of a line in the cell, or after a separator. White space may come before the text. Some programs treat a line
// break inside quotes as the end of a row, and make a cell of each line. A person may open a file with another separator
// than the file's, and each program guesses it.
var formula = regexp.MustCompile(`(^|[\n\r;,\t])([\p{Z}\t\v\f\x{85}\x{feff}]*[=+\-@|%＝＋－＠])`)

// InertCell changes a CSV cell so that no spreadsheet runs it as a formula.
func InertCell(cell string) string {
	cell = formula.ReplaceAllString(cell, "$1'$2")
	if cell != "" && strings.ContainsRune("\t\r\n", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
