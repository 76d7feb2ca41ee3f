package language

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/catalogue"
)

var (
	monthsShort = map[string][]string{
		"it": {"gen", "feb", "mar", "apr", "mag", "giu", "lug", "ago", "set", "ott", "nov", "dic"},
		"en": {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"},
	}
	months = map[string][]string{
		"it": {"gennaio", "febbraio", "marzo", "aprile", "maggio", "giugno", "luglio", "agosto", "settembre", "ottobre", "novembre", "dicembre"},
		"en": {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"},
	}
	weekdays = map[string][]string{
		"it": {"domenica", "lunedì", "martedì", "mercoledì", "giovedì", "venerdì", "sabato"},
		"en": {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"},
	}
	weekdaysShort = map[string][]string{
		"it": {"dom", "lun", "mar", "mer", "gio", "ven", "sab"},
		"en": {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"},
	}
)

// Day formats a day, such as "20 nov 2026". It returns a dash for the zero day.
func (l *Language) Day(d puntuale.Date) string {
	if d.IsZero() {
		return "–"
	}
	return fmt.Sprintf("%d %s %d", d.Day, monthsShort[l.Code][d.Month-1], d.Year)
}

// ListedDay formats a day with its weekday in a short form, such as "ven 20 nov 2026".
func (l *Language) ListedDay(d puntuale.Date) string {
	return l.ShortWeekday(time.Weekday(d.Weekday()%7)) + " " + l.Day(d)
}

// LongDay formats a day with its weekday, such as "venerdì 20 novembre 2026".
func (l *Language) LongDay(t time.Time) string {
	return fmt.Sprintf("%s %d %s %d", weekdays[l.Code][t.Weekday()], t.Day(), months[l.Code][t.Month()-1], t.Year())
}

// Month formats a month, such as "novembre 2026".
func (l *Language) Month(t time.Time) string {
	return fmt.Sprintf("%s %d", months[l.Code][t.Month()-1], t.Year())
}

// Weekday returns the name of a day of the week.
func (l *Language) Weekday(d time.Weekday) string { return weekdays[l.Code][d] }

// ShortWeekday returns the first three letters of a weekday's name.
func (l *Language) ShortWeekday(d time.Weekday) string { return weekdaysShort[l.Code][d] }

// Clock formats the time of day, such as "10:30".
func (l *Language) Clock(t time.Time) string { return t.Format("15:04") }

// Moment formats a time in t's zone in a short form: "10:30" for today, otherwise "ven 20 nov, 10:30". Moment adds the year
// if t is not in the present year.
func (l *Language) Moment(t, now time.Time) string {
	now = now.In(t.Location())
	switch day, today := puntuale.DateOf(t), puntuale.DateOf(now); {
	case day == today:
		return l.Clock(t)
	case day.Year == today.Year:
		return l.ShortWeekday(t.Weekday()) + " " + l.ShortDay(day) + ", " + l.Clock(t)
	default:
		return l.ShortWeekday(t.Weekday()) + " " + l.Day(day) + ", " + l.Clock(t)
	}
}

// FullMoment formats a time completely, with the offset of its zone, such as "venerdì 20 novembre 2026, 10:30:05
// (UTC+1)".
func (l *Language) FullMoment(t time.Time) string {
	return l.LongDay(t) + ", " + t.Format("15:04:05") + " (" + Offset(t) + ")"
}

// Offset returns the difference between t's zone and UTC at the time t, such as "UTC+1" or "UTC-3:30".
func Offset(t time.Time) string {
	_, seconds := t.Zone()
	sign := "+"
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	text := "UTC" + sign + strconv.Itoa(seconds/3600)
	if m := seconds % 3600 / 60; m > 0 {
		text += fmt.Sprintf(":%02d", m)
	}
	return text
}

// Ago formats the distance between t and now, such as "fra 2 ore" or "3 giorni fa".
func (l *Language) Ago(t, now time.Time) string {
	d := t.Sub(now)
	direction := "future"
	if d <= 0 {
		d, direction = -d, "past"
	}
	switch {
	case d < time.Minute:
		return l.T("ago." + direction + ".now")
	case d < time.Hour:
		return l.T("ago."+direction+".minutes", "N", int(d/time.Minute))
	case d < 24*time.Hour:
		return l.T("ago."+direction+".hours", "N", int(d/time.Hour))
	}
	return l.T("ago."+direction+".days", "N", int(d/(24*time.Hour)))
}

// Span formats a duration in its two largest units, such as "2 ore 5 minuti".
func (l *Language) Span(d time.Duration) string {
	type part struct {
		key string
		n   int
	}
	all := []part{{"span.days", int(d / (24 * time.Hour))}, {"span.hours", int(d/time.Hour) % 24}, {"span.minutes", int(d/time.Minute) % 60}, {"span.seconds", int(d/time.Second) % 60}}
	var words []string
	for _, p := range all {
		if p.n > 0 && len(words) < 2 {
			words = append(words, l.T(p.key, "N", p.n))
		}
	}
	if len(words) == 0 {
		return l.T("span.seconds", "N", 0)
	}
	return strings.Join(words, " ")
}

// Says returns the sentence of a reason in this language.
func (l *Language) Says(r puntuale.Reason) string {
	if l.Code == "en" {
		return catalogue.English.Sentence(r)
	}
	return catalogue.Italian.Sentence(r)
}

// Number formats a whole number with separators of thousands.
func (l *Language) Number(n int64) string {
	text := strconv.FormatInt(n, 10)
	sign := ""
	if text[0] == '-' {
		sign, text = "−", text[1:]
	}
	separator := "."
	if l.Code == "en" {
		separator = ","
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + separator + text[i:]
	}
	return sign + text
}

// ShortDay formats a day without its year, such as "20 nov".
func (l *Language) ShortDay(d puntuale.Date) string {
	return fmt.Sprintf("%d %s", d.Day, monthsShort[l.Code][d.Month-1])
}
