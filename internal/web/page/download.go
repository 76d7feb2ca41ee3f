package page

import (
	"net/http"
	"regexp"
	"strings"
	"time"
)

// ExportAllows is how long the sending of each part of a file may take.
const ExportAllows = 30 * time.Second

// ReadOn takes a seat again for the next part of a file, after the reader took the part before.
func (v *Request) ReadOn() error {
	v.Memory.Close()
	_, err := v.Pass.Return(v.Ctx())
	return err
}

// BreakOff ends a file early, so that the file does not look complete.
func (v *Request) BreakOff(err error) {
	if v.Ctx().Err() == nil { // else it is the reader who is gone
		v.Site.logger.ErrorContext(v.Ctx(), "an export broke off", "request_id", v.Frame.Request, "error", err)
	}
	panic(http.ErrAbortHandler)
}

// formula finds text that a spreadsheet may calculate: at the beginning of a cell, or of a line in it, also after white space. Some
// programs take a line break within quotes for the end of a row, and make a cell of each line.
var formula = regexp.MustCompile(`(^|[\n\r])([\p{Z}\t\v\f\x{85}\x{feff}]*[=+\-@|%＝＋－＠])`)

// Inert changes a CSV cell so that no spreadsheet takes it for a formula.
func Inert(cell string) string {
	cell = formula.ReplaceAllString(cell, "$1'$2")
	if cell != "" && strings.ContainsRune("\t\r\n", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
