package plan

import (
	"strconv"
	"time"

	"puntuale"
)

// Moment is a date as a caller wrote it: a day, with an optional time of day and an optional zone.
type Moment struct {
	Date    puntuale.Date
	Time    time.Duration // time since midnight, in whole microseconds
	HasTime bool
	Zone    *time.Location // zone in the text; nil: the run's zone
}

// DefaultTime is the time of day for a date without a time of day, if the step also has none.
const DefaultTime = 9 * time.Hour

// NotDateError means that a text is not a date. Text contains only about the first 80 bytes of a longer text.
type NotDateError struct{ Text string }

func (e *NotDateError) Error() string { return strconv.Quote(e.Text) + " is not a date" }

// ParseMoment parses a date in one of these two forms:
//
//   - ISO 8601: YYYY-MM-DD, optionally with "T" or a space and HH:MM, HH:MM:SS or a fraction of up to nine digits (kept to
//     the microsecond), optionally followed by Z, ±HH:MM, ±HHMM or ±HH;
//   - day first: d/m/YYYY, with / or - or . twice, optionally with a space and H:MM or H:MM:SS.
//
// Years have four digits. ParseMoment refuses any other text, and days and times that do not exist.
func ParseMoment(text string) (Moment, error) {
	r := reader{rest: text}
	var m Moment
	if len(text) >= 4 && isDigit(text[0]) && isDigit(text[1]) && isDigit(text[2]) && isDigit(text[3]) {
		m = r.iso()
	} else {
		m = r.dayFirst()
	}
	if r.bad || r.rest != "" || !exists(m.Date) {
		return Moment{}, &NotDateError{clip(text)}
	}
	return m, nil
}

// At returns the time in UTC. A moment without a zone is local time in loc. A moment without a time of day gets
// timeOfDay.
func (m Moment) At(timeOfDay time.Duration, loc *time.Location) time.Time {
	if m.HasTime {
		timeOfDay = m.Time
	}
	if m.Zone != nil {
		loc = m.Zone
	}
	return m.Date.At(timeOfDay, loc)
}

func exists(d puntuale.Date) bool {
	return d.Year >= 1 && d == puntuale.DateOf(time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC))
}

// reader parses a text from left to right. After the first error, bad is true.
type reader struct {
	rest string
	bad  bool
}

// iso parses YYYY-MM-DD and an optional time and zone.
func (r *reader) iso() (m Moment) {
	m.Date.Year = r.number(4, 4)
	r.take('-')
	m.Date.Month = time.Month(r.number(2, 2))
	r.take('-')
	m.Date.Day = r.number(2, 2)
	if r.rest == "" || r.bad {
		return m
	}
	if !r.skip('T') {
		r.take(' ')
	}
	m.HasTime = true
	if m.Time = r.clock(2); r.skippedSeconds() {
		m.Time += r.seconds()
		if r.skip('.') || r.skip(',') {
			m.Time += r.fraction()
		}
	}
	if r.rest != "" {
		m.Zone = r.zone()
	}
	return m
}

// dayFirst parses d/m/YYYY and an optional time.
func (r *reader) dayFirst() (m Moment) {
	m.Date.Day = r.number(1, 2)
	separator := byte('/')
	if r.rest != "" && (r.rest[0] == '-' || r.rest[0] == '.') {
		separator = r.rest[0]
	}
	r.take(separator)
	m.Date.Month = time.Month(r.number(1, 2))
	r.take(separator)
	m.Date.Year = r.number(4, 4)
	if r.rest == "" || r.bad {
		return m
	}
	r.take(' ')
	m.HasTime = true
	if m.Time = r.clock(1); r.skippedSeconds() {
		m.Time += r.seconds()
	}
	return m
}

// clock parses hours and minutes. The hours must have at least hourDigits digits.
func (r *reader) clock(hourDigits int) time.Duration {
	h := r.number(hourDigits, 2)
	r.take(':')
	m := r.number(2, 2)
	r.bad = r.bad || h > 23 || m > 59
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
}

func (r *reader) skippedSeconds() bool { return !r.bad && r.skip(':') }

func (r *reader) seconds() time.Duration {
	s := r.number(2, 2)
	r.bad = r.bad || s > 59
	return time.Duration(s) * time.Second
}

// fraction parses the digits of a fraction of a second. It ignores digits after the sixth.
func (r *reader) fraction() time.Duration {
	digits := 0
	var micros time.Duration
	for scale := 100 * time.Millisecond; digits < len(r.rest) && isDigit(r.rest[digits]); scale /= 10 {
		if scale >= time.Microsecond {
			micros += time.Duration(r.rest[digits]-'0') * scale
		}
		digits++
	}
	r.bad = r.bad || digits < 1 || digits > 9
	r.rest = r.rest[digits:]
	return micros
}

// zone parses Z, or an offset from UTC of less than a day.
func (r *reader) zone() *time.Location {
	if r.skip('Z') {
		return time.UTC
	}
	sign := 1
	if !r.skip('+') {
		r.take('-')
		sign = -1
	}
	h, m := r.number(2, 2), 0
	if r.rest != "" {
		r.skip(':')
		m = r.number(2, 2)
	}
	r.bad = r.bad || h > 23 || m > 59
	return time.FixedZone("", sign*(h*3600+m*60))
}

// number parses a number. least and maximum limit the number of its digits.
func (r *reader) number(least, maximum int) int {
	n, digits := 0, 0
	for digits < maximum && digits < len(r.rest) && isDigit(r.rest[digits]) {
		n = n*10 + int(r.rest[digits]-'0')
		digits++
	}
	r.bad = r.bad || digits < least
	r.rest = r.rest[digits:]
	return n
}

// take consumes the character c, and sets bad if the next character is not c. skip consumes c if it is the next
// character, and reports whether it was.
func (r *reader) take(c byte) { r.bad = !r.skip(c) || r.bad }

func (r *reader) skip(c byte) bool {
	if r.rest == "" || r.rest[0] != c {
		return false
	}
	r.rest = r.rest[1:]
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

var (
	dayNames   = [...]string{"domenica", "lunedì", "martedì", "mercoledì", "giovedì", "venerdì", "sabato"}
	monthNames = [...]string{"gennaio", "febbraio", "marzo", "aprile", "maggio", "giugno",
		"luglio", "agosto", "settembre", "ottobre", "novembre", "dicembre"}
)

// appendMoment appends a local time in one of the formats of a date field.
func appendMoment(buf []byte, t time.Time, format string) []byte {
	switch format {
	case formatDay:
		return t.AppendFormat(buf, "02/01/2006")
	case formatTime:
		return t.AppendFormat(buf, "15:04")
	case formatLong:
		buf = append(buf, dayNames[t.Weekday()]...)
		buf = t.AppendFormat(buf, " 2 ")
		return append(buf, monthNames[t.Month()-1]...)
	}
	return t.AppendFormat(buf, "02/01/2006 15:04")
}
