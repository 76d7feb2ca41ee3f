package page

import (
	"net/http"
	"regexp"
	"strings"
	"time"
)

// ExportAllows is the longest time for sending one part of a file.
const ExportAllows = 30 * time.Second

// ReadOn takes a seat again before the handler reads the next part of a file. Call it after the previous part was sent.
func (v *Request) ReadOn() error {
	v.Memory.Close()
	_, err := v.Pass.Return(v.Ctx())
	return err
}

// BreakOff ends a file early, so that the file does not look complete.
func (v *Request) BreakOff(err error) {
	if v.Ctx().Err() == nil { // if the context has ended, the reader closed the connection
		v.Site.logger.ErrorContext(v.Ctx(), "an export broke off", "request_id", v.Frame.Request, "error", err)
	}
	panic(http.ErrAbortHandler)
}

// formula matches the beginning of a text that a spreadsheet may calculate. The text may begin at the beginning of the
// cell, or of a line in the cell. White space may come before the text. Some programs treat a line break inside quotes
// as the end of a row, and make a cell of each line.
var formula = regexp.MustCompile(`(^|[\n\r])([\p{Z}\t\v\f\x{85}\x{feff}]*[=+\-@|%＝＋－＠])`)

// Inert changes a CSV cell so that no spreadsheet runs it as a formula.
func Inert(cell string) string {
	cell = formula.ReplaceAllString(cell, "$1'$2")
	if cell != "" && strings.ContainsRune("\t\r\n", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
