package web

import (
	"net/http"
	"regexp"
	"strings"
	"time"
)

// exportAllows is how long each part of a file may take to be sent.
const exportAllows = 30 * time.Second

// readOn takes a place again for the next part of a file, once the part before was taken by its reader.
func (v *Request) readOn() error {
	v.Memory.Close()
	_, err := v.pass.Return(v.ctx())
	return err
}

// breakOff ends a file early, which must not look whole.
func (v *Request) breakOff(err error) {
	if v.ctx().Err() == nil { // else it is the reader who is gone
		v.site.logger.ErrorContext(v.ctx(), "an export broke off", "request_id", v.frame.Request, "error", err)
	}
	panic(http.ErrAbortHandler)
}

// formula is what a spreadsheet may reckon with: at the beginning of a cell, or of a line in it, behind white space too. A
// program that takes a line break within quotes for the end of a row makes a cell of each line.
var formula = regexp.MustCompile(`(^|[\n\r])([\p{Z}\t\v\f\x{85}\x{feff}]*[=+\-@|%＝＋－＠])`)

// inert is a cell of a CSV file that no spreadsheet takes for a formula.
func inert(cell string) string {
	cell = formula.ReplaceAllString(cell, "$1'$2")
	if cell != "" && strings.ContainsRune("\t\r\n", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
