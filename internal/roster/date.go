package roster

import (
	"regexp"
	"strconv"
	"strings"

	"puntuale"
)

// DateOrder says in which order the numbers of a date stand. A date that begins with the year is the same in each order.
type DateOrder string

const (
	DayFirst   DateOrder = "dmy"
	MonthFirst DateOrder = "mdy"
)

// Codes of the questions about a column of dates: it has dates of both orders, or cells that are no dates.
const (
	QuestionDatesMixed puntuale.ReasonCode = "list.dates_mixed"
	QuestionDatesOther puntuale.ReasonCode = "list.dates_other"
)

var (
	yearFirst = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.,]+(Z|[+-][0-9:]+)?)?$`)
	yearLast  = regexp.MustCompile(`^([0-9]{1,2})([/.-])([0-9]{1,2})([/.-])([0-9]{4})( [0-9:]+)?$`)
)

// DateColumn judges the cells of one column as a whole: whether they are dates, and in which order.
type DateColumn struct {
	filled, year, either int
	day, month, other    sample
}

// sample counts cells of one kind, and keeps the first.
type sample struct {
	n, line int
	cell    string
}

func (s *sample) add(line int, cell string) {
	if s.n++; s.n == 1 {
		s.line, s.cell = line, cell[:min(len(cell), 40)]
	}
}

func (s sample) args() []string { return []string{strconv.Itoa(s.line), strconv.Quote(s.cell)} }

// Add judges one more cell. It ignores a blank cell.
func (d *DateColumn) Add(line int, cell string) {
	if cell == "" {
		return
	}
	d.filled++
	if yearFirst.MatchString(cell) {
		d.year++
		return
	}
	m := yearLast.FindStringSubmatch(cell)
	if m == nil {
		d.other.add(line, cell)
		return
	}
	first, _ := strconv.Atoi(m[1]) // the expression matches digits only
	second, _ := strconv.Atoi(m[3])
	switch {
	case first == 0 || second == 0 || first > 31 || second > 31 || first > 12 && second > 12:
		d.other.add(line, cell)
	case first > 12:
		d.day.add(line, cell)
	case second > 12:
		d.month.add(line, cell)
	default:
		d.either++
	}
}

// Order returns the order of the dates in the column, or "" if it is no column of dates. Dates that fit both orders have
// the day first, if no other date of the column says otherwise. question is set if a person must decide: some dates have
// the day first and others the month, or most cells are dates and some are none.
func (d *DateColumn) Order() (order DateOrder, question puntuale.Reason) {
	dates := d.filled - d.other.n
	switch {
	case 2*dates <= d.filled:
		return "", puntuale.Reason{}
	case d.day.n > 0 && d.month.n > 0:
		return "", puntuale.Because(QuestionDatesMixed, append(d.day.args(), d.month.args()...)...)
	case d.other.n > 0:
		return "", puntuale.Because(QuestionDatesOther, d.other.args()...)
	case d.month.n > 0:
		return MonthFirst, puntuale.Reason{}
	}
	return DayFirst, puntuale.Reason{}
}

// Certain reports whether the dates fit no other order.
func (d *DateColumn) Certain() bool { return d.either == 0 || d.day.n+d.month.n > 0 }

// IsDate reports whether a cell has the form of a date.
func IsDate(cell string) bool { return yearFirst.MatchString(cell) || yearLast.MatchString(cell) }

// DayFirstOf returns a date with the day first, or with the year first as it was. order is the order of the cell.
func DayFirstOf(cell string, order DateOrder) string {
	m := yearLast.FindStringSubmatch(cell)
	if m == nil || order != MonthFirst {
		return cell
	}
	return strings.Join([]string{m[3], m[2], m[1], m[4], m[5], m[6]}, "")
}
