package icalendar

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// rule is an RRULE. The library computes its days, in wall times. So it needs no zone, and the first of two equal wall
// times is ours to choose.
type rule struct {
	option  rrule.ROption
	count   int       // 0: no limit
	until   timestamp // may have no time
	problem Problem
}

// Bounds of a rule. A list with more values, or a longer interval, is nonsense.
const (
	maxList     = 100
	maxInterval = 10_000
	maxCount    = 1_000_000
	maxTimes    = 48 // within one day
)

var errRule = errors.New("the rule cannot be read")

var frequencies = map[string]rrule.Frequency{"YEARLY": rrule.YEARLY, "MONTHLY": rrule.MONTHLY, "WEEKLY": rrule.WEEKLY, "DAILY": rrule.DAILY,
	"HOURLY": rrule.HOURLY, "MINUTELY": rrule.MINUTELY, "SECONDLY": rrule.SECONDLY}

// parseRule reads a rule such as FREQ=WEEKLY;BYDAY=MO,TH. Unlike the library, it accepts small letters, blanks, an empty
// part, and parts whose name begins with X-.
func parseRule(text string) (r rule) {
	found := false
	for part := range strings.SplitSeq(strings.ToUpper(text), ";") {
		key, value, _ := strings.Cut(part, "=")
		key, value = strings.TrimSpace(key), strings.ReplaceAll(value, " ", "")
		if key == "" || strings.HasPrefix(key, "X-") || key == "RSCALE" && value == "GREGORIAN" || key == "SKIP" && value == "OMIT" {
			continue
		}
		found = found || key == "FREQ"
		if err := r.part(key, value); err != nil {
			return rule{problem: ProblemRule, until: r.until}
		}
	}
	times := max(1, len(r.option.Byhour)) * max(1, len(r.option.Byminute)) * max(1, len(r.option.Bysecond))
	switch o := r.option; {
	case !found, !r.ordinalsFit():
		r.problem = ProblemRule
	case o.Freq > rrule.DAILY, times > maxTimes:
		r.problem = ProblemBusy
	}
	return r
}

// part reads one part of a rule.
func (r *rule) part(key, value string) (err error) {
	o := &r.option
	switch key {
	case "FREQ":
		frequency, known := frequencies[value]
		if !known {
			return errRule
		}
		o.Freq = frequency
	case "INTERVAL":
		o.Interval, err = number(value, 0, maxInterval)
	case "COUNT":
		r.count, err = number(value, 1, maxCount)
	case "UNTIL":
		if r.until = parseTimestamp(value, "", ""); r.until.kind == unreadable {
			return errRule
		}
	case "WKST":
		var days []rrule.Weekday
		if days, err = weekdays(value); err == nil {
			o.Wkst = days[0]
		}
	case "BYDAY":
		o.Byweekday, err = weekdays(value)
	case "BYMONTH":
		o.Bymonth, err = numbers(value, 1, 12)
	case "BYMONTHDAY":
		o.Bymonthday, err = numbers(value, -31, 31)
	case "BYYEARDAY":
		o.Byyearday, err = numbers(value, -366, 366)
	case "BYWEEKNO":
		o.Byweekno, err = numbers(value, -53, 53)
	case "BYSETPOS":
		o.Bysetpos, err = numbers(value, -366, 366)
	case "BYHOUR":
		o.Byhour, err = numbers(value, 0, 23)
	case "BYMINUTE":
		o.Byminute, err = numbers(value, 0, 59)
	case "BYSECOND":
		o.Bysecond, err = numbers(value, 0, 59)
	default:
		return errRule
	}
	return err
}

// number reads a number between two bounds.
func number(text string, low, high int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, errRule
	}
	return n, nil
}

// numbers reads a list. If it may have negative numbers, which count from the end, it must not have a zero.
func numbers(text string, low, high int) (list []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, err := number(part, low, high)
		if err != nil || n == 0 && low < 0 {
			return nil, errRule
		}
		if !slices.Contains(list, n) {
			list = append(list, n)
		}
		if len(list) > maxList {
			return nil, errRule
		}
	}
	slices.Sort(list)
	return list, nil
}

var weekdayNames = map[string]rrule.Weekday{"MO": rrule.MO, "TU": rrule.TU, "WE": rrule.WE, "TH": rrule.TH, "FR": rrule.FR, "SA": rrule.SA, "SU": rrule.SU}

// weekdays reads a list such as MO,2TU,-1FR.
func weekdays(text string) (list []rrule.Weekday, err error) {
	for part := range strings.SplitSeq(text, ",") {
		if len(part) < 2 {
			return nil, errRule
		}
		day, known := weekdayNames[part[len(part)-2:]]
		if !known {
			return nil, errRule
		}
		if ordinal := part[:len(part)-2]; ordinal != "" {
			n, err := number(ordinal, -53, 53)
			if err != nil {
				return nil, err
			}
			day = day.Nth(n)
		}
		if !slices.Contains(list, day) {
			list = append(list, day)
		}
		if len(list) > maxList {
			return nil, errRule
		}
	}
	return list, nil
}

// ordinalsFit reports whether a month can have as many weeks as an ordinal says. The library would panic.
func (r *rule) ordinalsFit() bool {
	if r.option.Freq > rrule.MONTHLY || r.option.Freq == rrule.YEARLY && len(r.option.Bymonth) == 0 {
		return true
	}
	return !slices.ContainsFunc(r.option.Byweekday, func(day rrule.Weekday) bool { return day.N() > 5 || day.N() < -5 })
}

// effort bounds the work of following rules, in days that the library examines.
type effort struct{ left int }

// Bounds of the work for one series, and for a feed. A rule that never matches costs at most 400 years of days.
const (
	maxSeriesEffort = 400_000 // a rule without positions costs at most 146,097
	maxFeedEffort   = 10_000_000
)

// lastYear is the last year that the library knows.
const lastYear = 9999

// each calls visit with the occurrences of the rule, until visit returns false or the wall time last has passed. It may
// leave out those before the wall time first. The beginning of the series is always an occurrence, and the first that
// counts. The caller observes [rule].until.
//
// The library looks for the next occurrence up to the year 9999, which takes long if there is none. The days of 400
// years repeat exactly. Therefore each moves the series as far as possible towards that year, by multiples of 400.
func (r *rule) each(start, first, last time.Time, work *effort, visit func(time.Time) bool) Problem {
	switch {
	case r.problem != "":
		return r.problem
	case work.left < 0:
		return ProblemBusy
	}
	o := r.explicit(start)
	o.Dtstart = start
	if r.count == 0 {
		o.Dtstart = forward(o, first)
	}
	years := max(0, (lastYear-2-last.Year())/400*400)
	end := time.Date(lastYear, time.December, 31, 0, 0, 0, 0, time.UTC)
	o.Dtstart, o.Until = o.Dtstart.AddDate(years, 0, 0), end
	library, err := rrule.NewRRule(o)
	if err != nil {
		return ProblemRule
	}
	if !visit(start) {
		return ""
	}
	next, series, before := guarded(library), maxSeriesEffort, o.Dtstart
	for n := 1; ; {
		found, ok, broken := next()
		if broken {
			return ProblemRule
		}
		if !ok {
			found = end
		}
		days := int(found.Sub(before).Hours()/24)/o.Interval + 1
		days += days * len(o.Bysetpos) / 2 // the library collects the days of each position anew
		before = found
		series -= days
		work.left -= days
		switch wall := found.AddDate(-years, 0, 0); {
		case !ok, wall.After(last):
			return ""
		case series < 0, work.left < 0:
			return ProblemBusy
		case !wall.After(start):
		case r.count > 0 && n >= r.count:
			return ""
		default:
			n++
			if !visit(wall) {
				return ""
			}
		}
	}
}

// guarded returns the library's iterator. The library indexes arrays with numbers of the rule, so a rule that nobody
// thought of may make it panic. Then broken is true.
func guarded(library *rrule.RRule) func() (found time.Time, ok, broken bool) {
	var next rrule.Next
	return func() (found time.Time, ok, broken bool) {
		defer func() { broken = recover() != nil }()
		if next == nil {
			next = library.Iterator()
		}
		found, ok = next()
		return found, ok, false
	}
}

// explicit returns the options of the rule with the parts that follow from the start of the series.
func (r *rule) explicit(start time.Time) rrule.ROption {
	o := r.option
	o.Interval = max(1, o.Interval)
	days := [...]rrule.Weekday{rrule.SU, rrule.MO, rrule.TU, rrule.WE, rrule.TH, rrule.FR, rrule.SA}
	weekday := []rrule.Weekday{days[start.Weekday()]}
	switch {
	case len(o.Byyearday)+len(o.Bymonthday)+len(o.Byweekday) > 0:
	case o.Freq == rrule.WEEKLY, len(o.Byweekno) > 0:
		o.Byweekday = weekday
	case o.Freq == rrule.YEARLY:
		if len(o.Bymonth) == 0 {
			o.Bymonth = []int{int(start.Month())}
		}
		o.Bymonthday = []int{start.Day()}
	case o.Freq == rrule.MONTHLY:
		o.Bymonthday = []int{start.Day()}
	}
	return o
}

// forward returns a later start of the same series, some intervals before the time first, so that the library need not
// begin years ago. It needs explicit options, because the day may change.
func forward(o rrule.ROption, first time.Time) time.Time {
	start := o.Dtstart
	days := int((first.Unix() - start.Unix()) / 86400)
	months := 12*(first.Year()-start.Year()) + int(first.Month()) - int(start.Month())
	length, unit := days, 1
	switch o.Freq {
	case rrule.WEEKLY:
		unit = 7
	case rrule.MONTHLY:
		length = months
	case rrule.YEARLY:
		length, unit = months, 12
	}
	unit *= o.Interval
	n := (length/unit - 2) * unit
	if n <= 0 {
		return start
	}
	year, month, _ := start.Date()
	clock := start.Sub(start.Truncate(24 * time.Hour))
	switch o.Freq {
	case rrule.YEARLY:
		return time.Date(year+n/12, time.January, 1, 0, 0, 0, 0, time.UTC).Add(clock)
	case rrule.MONTHLY:
		return time.Date(year, month+time.Month(n), 1, 0, 0, 0, 0, time.UTC).Add(clock)
	}
	return start.AddDate(0, 0, n)
}
