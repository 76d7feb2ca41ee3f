package roster

import (
	"bytes"
	"encoding/xml"
	"math"
	"strconv"
	"strings"
	"time"
)

// readCell appends the value of a cell to the record. The caller has just read the cell's start tag.
func (w *workbook) readCell(start xml.StartElement) (Problem, error) {
	from, outside := len(w.record.text), w.sheet.depth-1
	formula, value, inValue := false, false, false
	for w.sheet.depth > outside {
		t, err := w.sheet.token()
		if err != nil {
			return "", err
		}
		switch t := t.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "f":
				formula = true
			case "v":
				value, inValue = true, true
			case "is":
				if w.record.text, err = w.sheet.text(w.record.text); err != nil {
					return "", err
				}
			}
		case xml.EndElement:
			inValue = false
		case xml.CharData:
			if inValue {
				w.record.text = appendCell(w.record.text, from, t)
			}
		}
	}
	kind := attribute(start, "t")
	if formula && (!value || kind != "str" && len(w.record.text) == from) {
		return Formula, nil
	}
	return w.convert(start, kind, from)
}

// convert replaces the raw text of a cell by the cell's value, which depends on the cell's kind and style.
func (w *workbook) convert(start xml.StartElement, kind string, from int) (Problem, error) {
	raw := string(bytes.TrimSpace(w.record.text[from:]))
	meant := raw
	switch {
	case kind == "inlineStr":
		return "", nil
	case kind == "str":
		w.record.text = unescaped(w.record.text, from)
		return "", nil
	case raw == "":
	case kind == "s":
		number, err := strconv.Atoi(raw)
		if err != nil {
			number = -1
		}
		text, ok, err := w.shared.appendTo(w.record.text[:from], number)
		if err != nil || !ok {
			return BadCell, err
		}
		w.record.text = text
		return "", nil
	case kind == "b":
		meant = "FALSE"
		if isTrue(raw) {
			meant = "TRUE"
		}
	case kind == "e":
		return ErrorValue, nil
	case kind == "d":
		meant = isoDay(raw)
	case kind == "" || kind == "n":
		style, _ := strconv.Atoi(attribute(start, "s")) // a cell without a style has style 0
		meant = w.since.number(raw, style >= 0 && style < len(w.dates) && w.dates[style])
	default:
		return BadCell, nil
	}
	w.record.text = append(w.record.text[:from], meant...)
	return "", nil
}

// place ends the cell of a column in the record. To limit memory, it puts all cells after the last allowed column
// into one extra column, and ignores blank cells.
func (w *workbook) place(column, from int) {
	r := &w.record
	if column > MaxColumns {
		if len(r.ends) > MaxColumns || len(bytes.TrimSpace(r.text[from:])) == 0 {
			r.text = r.text[:from]
			return
		}
		column = MaxColumns + 1
	}
	for len(r.ends) < column-1 {
		r.ends = append(r.ends, from)
	}
	r.ends = append(r.ends, len(r.text))
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name && a.Name.Space == "" {
			return a.Value
		}
	}
	return ""
}

// epoch is the day that a workbook counts as 0.
type epoch time.Time

// Excel counts 29 February 1900, a day that did not exist. With this epoch, day numbers are right from 1 March 1900
// on.
var (
	since1900 = epoch(time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC))
	since1904 = epoch(time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC))
)

const lastDay = 2958465 // 31 December 9999, the last day that Excel shows

// number writes the number of a cell as people write it: without an exponent, and with all digits of an integer. A
// fraction has at most 15 digits, as in Excel. A date is YYYY-MM-DD, followed by HH:MM if it has a time. A time of
// day is HH:MM. Seconds are written only if they are not zero.
func (e epoch) number(raw string, isDate bool) string {
	if strings.Trim(raw, "0123456789+-.eE") != "" {
		return raw
	}
	n, err := strconv.ParseFloat(raw, 64)
	switch {
	case err != nil:
		return raw
	case isDate && n >= 0 && n < lastDay+1:
		return e.moment(n)
	case strings.Trim(raw, "0123456789") == "":
		return raw
	case n != math.Trunc(n):
		n, _ = strconv.ParseFloat(strconv.FormatFloat(n, 'g', 15, 64), 64) // always succeeds, because FormatFloat writes numbers that ParseFloat reads
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

func (e epoch) moment(n float64) string {
	days := math.Floor(n)
	seconds := time.Duration(math.Round((n-days)*86400)) * time.Second
	if days == 0 {
		return timeOfDay(time.Time(e).Add(seconds))
	}
	if days < 60 && e == since1900 {
		days++
	}
	return dayAndTime(time.Time(e).AddDate(0, 0, int(days)).Add(seconds))
}

func dayAndTime(at time.Time) string {
	if h, m, s := at.Clock(); h+m+s == 0 {
		return at.Format(time.DateOnly)
	}
	return at.Format(time.DateOnly) + " " + timeOfDay(at)
}

func timeOfDay(at time.Time) string {
	if at.Second() == 0 {
		return at.Format("15:04")
	}
	return at.Format(time.TimeOnly)
}

// isoDay rewrites an ISO 8601 date in the form that number writes. A cell may contain such a date as text.
func isoDay(text string) string {
	for _, layout := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return dayAndTime(at)
		}
	}
	return text
}

// isDateNumber reports whether a built-in format shows days or times. Format 46 is missing, because it shows a
// duration.
func isDateNumber(format int) bool {
	return format >= 14 && format <= 22 || format >= 27 && format <= 36 || format == 45 || format == 47 || format >= 50 && format <= 58
}

// isDateFormat reports whether the code of a format shows days or times. Such a code has a letter for days or times
// outside of a literal. [h]:mm shows a duration, which is not a time of day.
func isDateFormat(code string) bool {
	code, _, _ = strings.Cut(code, ";") // later sections are for negative numbers and for texts
	for i := 0; i < len(code); i++ {
		switch c := code[i] | 0x20; {
		case code[i] == '\\' || code[i] == '_' || code[i] == '*':
			i++
		case code[i] == '"':
			quoted, _, _ := strings.Cut(code[i+1:], `"`)
			i += 1 + len(quoted)
		case code[i] == '[':
			inside, _, _ := strings.Cut(code[i+1:], "]")
			if strings.Trim(strings.ToLower(inside), "hms") == "" {
				return false
			}
			i += 1 + len(inside)
		case c == 'y' || c == 'm' || c == 'd' || c == 'h' || c == 's':
			return true
		}
	}
	return false
}
