package message

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/control"
)

// Codes of the faults that this file reports.
const (
	faultListNotCSVLine puntuale.ReasonCode = "list.not_csv_line"
	faultListRounded    puntuale.ReasonCode = "list.rounded"
)

// csvFault is the fault of one line of a list.
type csvFault struct {
	line int
	code puntuale.ReasonCode
}

// readNumbers reads a list of numbers in the forms that spreadsheets save. Commas, semicolons or tabs separate the
// columns. The text is UTF-8, UTF-16 or Windows-1252. The first line may contain names of columns. The number is in the
// column with one of phoneNames, or else in the first column. The reason is in the column with one of reasonNames, or
// else in the second column.
func readNumbers(content []byte) (lines []control.BlacklistLine, faults []csvFault) {
	text := textOf(content)
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.LazyQuotes, r.TrimLeadingSpace, r.ReuseRecord = separator(text), -1, true, true, true
	phone, reason := 0, 1
	for first := true; ; first = false {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			return lines, faults
		}
		if parse, ok := errors.AsType[*csv.ParseError](err); ok {
			return nil, append(faults, csvFault{parse.Line, faultListNotCSVLine})
		}
		line, _ := r.FieldPos(0)
		if first {
			if p := column(cells, phoneNames); p >= 0 {
				phone, reason = p, column(cells, reasonNames)
				continue
			}
		}
		if strings.Trim(strings.Join(cells, ""), " \u00a0") == "" {
			continue
		}
		l := control.BlacklistLine{Line: line, Phone: cell(cells, phone), Reason: cell(cells, reason)}
		if rounded.MatchString(l.Phone) {
			faults = append(faults, csvFault{line, faultListRounded})
		}
		lines = append(lines, l)
	}
}

// rounded matches a number that a spreadsheet has rounded because the number has many digits.
var rounded = regexp.MustCompile(`^[0-9]([.,][0-9]+)?[eE]\+?[0-9]+$`)

// Accepted names of columns. Upper and lower case are the same.
var (
	phoneNames  = []string{"phone", "telefono", "numero", "cellulare", "number", "mobile", "tel", "whatsapp"}
	reasonNames = []string{"reason", "motivo", "note", "nota", "motivazione"}
)

func column(cells, names []string) int {
	return slices.IndexFunc(cells, func(c string) bool { return slices.Contains(names, strings.ToLower(strings.TrimSpace(c))) })
}

// cell returns a cell's text, without the apostrophe that spreadsheets put before texts.
func cell(cells []string, i int) string {
	if i < 0 || i >= len(cells) {
		return ""
	}
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(cells[i]), "'"))
}

// separator returns the character between cells. The first line that contains a separator decides.
func separator(text string) rune {
	for line := range strings.Lines(text) {
		best, bestCount := ',', 0
		for _, s := range []rune{';', '\t', ','} {
			if n := strings.Count(line, string(s)); n > bestCount {
				best, bestCount = s, n
			}
		}
		if bestCount > 0 {
			return best
		}
	}
	return ','
}

// textOf decodes the text of a file. A byte order mark names the encoding. Without this mark, textOf tries UTF-8, and
// then Windows-1252.
func textOf(content []byte) string {
	if rest, ok := bytes.CutPrefix(content, []byte("\xef\xbb\xbf")); ok {
		return strings.ToValidUTF8(string(rest), "\uFFFD")
	}
	for mark, big := range map[string]bool{"\xff\xfe": false, "\xfe\xff": true} {
		if rest, ok := bytes.CutPrefix(content, []byte(mark)); ok {
			return wide(rest, big)
		}
	}
	if utf8.Valid(content) {
		return string(content)
	}
	var b strings.Builder
	for _, c := range content {
		switch {
		case c >= 0x80 && c < 0xa0:
			b.WriteRune(western[c-0x80])
		default:
			b.WriteRune(rune(c))
		}
	}
	return b.String()
}

func wide(content []byte, big bool) string {
	units := make([]uint16, len(content)/2)
	for i := range units {
		low, high := content[2*i], content[2*i+1]
		if big {
			low, high = high, low
		}
		units[i] = uint16(high)<<8 | uint16(low)
	}
	return string(utf16.Decode(units))
}

// western contains the characters of the bytes 0x80 to 0x9f in Windows-1252. All other bytes are the same as in
// Unicode.
var western = []rune("€\uFFFD‚ƒ„…†‡ˆ‰Š‹Œ\uFFFDŽ\uFFFD\uFFFD‘’“”•–—˜™š›œ\uFFFDžŸ")
