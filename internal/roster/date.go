package roster

import (
	"regexp"
	"slices"
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

// Codes of the questions about a column of dates: it has dates of both orders, cells that are no dates, or years of two
// digits.
const (
	QuestionDatesMixed puntuale.ReasonCode = "list.dates_mixed"
	QuestionDatesOther puntuale.ReasonCode = "list.dates_other"
	QuestionDatesShort puntuale.ReasonCode = "list.dates_short"
)

var (
	yearFirst = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.,]+(Z|[+-][0-9:]+)?)?$`)
	yearLast  = regexp.MustCompile(`^([0-9]{1,2})([/.-])([0-9]{1,2})([/.-])([0-9]{4}|[0-9]{2})( [0-9:]+)?$`)
	birth     = regexp.MustCompile(`(^|_)(birth|birthday|birthdate|bday|nascita|compleanno|nato|nata)(_|$)`)
)

// DateColumn judges the cells of one column as a whole: whether they are dates, and in which order.
type DateColumn struct {
	DatesOnly bool // true: a cell that is no date asks nothing, because its row will be refused

	filled, either           int
	day, month, other, short sample
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
	case !inYear(first, second):
		d.other.add(line, cell)
		return
	case first > 12:
		d.day.add(line, cell)
	case second > 12:
		d.month.add(line, cell)
	default:
		d.either++
	}
	if len(m[5]) == 2 {
		d.short.add(line, cell)
	}
}

// Order returns the order of the dates in the column, or "" if it is no column of dates. Dates that fit both orders have
// the day first, if no other date of the column says otherwise. question is set if a person must decide: some dates have
// the day first and others the month, some cells are no dates, or a year has two digits. If known is true, the column is
// one of dates; otherwise most of its cells must be dates.
func (d *DateColumn) Order(known bool) (order DateOrder, question puntuale.Reason) {
	dates := d.filled - d.other.n
	switch {
	case dates == 0, !known && 2*dates <= d.filled:
		return "", puntuale.Reason{}
	case d.day.n > 0 && d.month.n > 0:
		return "", puntuale.Because(QuestionDatesMixed, append(d.day.args(), d.month.args()...)...)
	case d.other.n > 0 && !d.DatesOnly:
		return "", puntuale.Because(QuestionDatesOther, d.other.args()...)
	case d.short.n > 0:
		return "", puntuale.Because(QuestionDatesShort, d.short.args()...)
	case d.month.n > 0:
		return MonthFirst, puntuale.Reason{}
	}
	return DayFirst, puntuale.Reason{}
}

// Certain reports whether the dates fit no other order.
func (d *DateColumn) Certain() bool { return d.either == 0 || d.day.n+d.month.n > 0 }

// IsDate reports whether a cell has the form of a date with a whole year.
func IsDate(cell string) bool {
	m := yearLast.FindStringSubmatch(cell)
	return yearFirst.MatchString(cell) || m != nil && len(m[5]) == 4
}

// MayBeDate reports whether a cell may be a date, also with a year of two digits: a number such as 02.33.4455 is none.
func MayBeDate(cell string) bool {
	m := yearLast.FindStringSubmatch(cell)
	if m == nil {
		return yearFirst.MatchString(cell)
	}
	first, _ := strconv.Atoi(m[1]) // the expression matches digits only
	second, _ := strconv.Atoi(m[3])
	return inYear(first, second) && (len(m[5]) == 2 || m[5] >= "1900" && m[5] < "2100")
}

// inYear reports whether two numbers are a day and a month, in any order.
func inYear(a, b int) bool { return a > 0 && b > 0 && max(a, b) <= 31 && min(a, b) <= 12 }

// Dates says how the dates of a field are written.
type Dates struct {
	Order  DateOrder     // "": the field has no dates
	Latest puntuale.Date // a year of two digits is the last one in which the date is not after this day
}

// yearsAhead is how far a date with a year of two digits may be after today.
const yearsAhead = 20

// DatesOf returns how the dates of a field are written. A year of two digits is at most 20 years ahead, and in a date of
// birth it is not ahead.
func DatesOf(field string, order DateOrder, today puntuale.Date) Dates {
	if !birth.MatchString(field) {
		today.Year += yearsAhead
	}
	return Dates{order, today}
}

// DayFirst returns a date with the day first and a whole year, or with the year first as it was.
func (d Dates) DayFirst(cell string) string {
	m := yearLast.FindStringSubmatch(cell)
	if m == nil || d.Order == "" {
		return cell
	}
	if d.Order == MonthFirst {
		m[1], m[3] = m[3], m[1]
	}
	if len(m[5]) == 2 && d.Latest.Year > 0 {
		m[5] = d.whole(m[1], m[3], m[5])
	}
	return strings.Join(m[1:], "")
}

// whole returns the year of a date whose year has two digits.
func (d Dates) whole(day, month, year string) string {
	var n [3]int
	for i, digits := range []string{year, month, day} {
		n[i], _ = strconv.Atoi(digits) // the expression matches digits only
	}
	n[0] += d.Latest.Year / 100 * 100
	if slices.Compare(n[:], []int{d.Latest.Year, int(d.Latest.Month), d.Latest.Day}) > 0 {
		n[0] -= 100
	}
	return strconv.Itoa(n[0])
}
