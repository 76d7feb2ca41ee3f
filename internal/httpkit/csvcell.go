package httpkit

import (
	"regexp"
	"strings"
)

// formula matches the beginning of a text that a spreadsheet may calculate. The text may begin at the beginning of the
// cell, or of a line in the cell. White space may come before the text. Some programs treat a line break inside quotes
// as the end of a row, and make a cell of each line.
var formula = regexp.MustCompile(`(^|[\n\r])([\p{Z}\t\v\f\x{85}\x{feff}]*[=+\-@|%＝＋－＠])`)

// InertCell changes a CSV cell so that no spreadsheet runs it as a formula.
func InertCell(cell string) string {
	cell = formula.ReplaceAllString(cell, "$1'$2")
	if cell != "" && strings.ContainsRune("\t\r\n", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}
