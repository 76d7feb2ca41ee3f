package backup

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale/internal/objectstore"
)

// Schedule is a time of day at which a backup is due.
type Schedule struct {
	hour, minute int
	zone         *time.Location
}

// ParseSchedule reads a time of day, such as "03:10", in UTC. A time zone may follow: "03:10 Europe/Rome".
func ParseSchedule(text string) (Schedule, error) {
	fault := errors.New("must be a time of day such as 03:10, or 03:10 Europe/Rome")
	moment, zone, _ := strings.Cut(strings.TrimSpace(text), " ")
	at, err := time.Parse("15:04", moment)
	if err != nil || len(moment) != len("15:04") {
		return Schedule{}, fault
	}
	s := Schedule{at.Hour(), at.Minute(), time.UTC}
	if zone = strings.TrimSpace(zone); zone != "" {
		if zone == "Local" { // the zone of the machine may differ between nodes
			return Schedule{}, fault
		}
		if s.zone, err = time.LoadLocation(zone); err != nil {
			return Schedule{}, fault
		}
	}
	return s, nil
}

// Last returns the last planned moment that is not after now.
func (s Schedule) Last(now time.Time) time.Time {
	local := now.In(s.zone)
	for back := 0; ; back++ {
		at := time.Date(local.Year(), local.Month(), local.Day()-back, s.hour, s.minute, 0, 0, s.zone)
		if !at.After(now) {
			return at.UTC()
		}
	}
}

// Retention says how many backups are kept: of the last days, weeks and months that have any. The newest backup is always
// kept.
type Retention struct{ Days, Weeks, Months int }

// ParseRetention reads a list such as 7d, 4w, 12mo. What the list leaves out is not kept.
func ParseRetention(items []string) (r Retention, err error) {
	for _, item := range items {
		text := strings.TrimSpace(item)
		unit := strings.TrimLeft(text, "0123456789")
		n, err := strconv.Atoi(strings.TrimSuffix(text, unit))
		target := map[string]*int{"d": &r.Days, "w": &r.Weeks, "mo": &r.Months}[unit]
		if err != nil || target == nil || *target != 0 || n < 1 || n > 1000 {
			return Retention{}, fmt.Errorf("%q is not a number of days, weeks or months such as 7d, 4w or 12mo, each at most once", item)
		}
		*target = n
	}
	if r == (Retention{}) {
		return r, errors.New("must keep something, such as 7d,4w,12mo")
	}
	return r, nil
}

// stampForm is the form of the time in a file's name, in UTC.
const stampForm = "20060102T150405Z"

const (
	namePrefix      = "puntuale-"
	plainSuffix     = ".zip"
	encryptedSuffix = ".zip.age"
)

// Name returns the name of a backup's file.
func Name(at time.Time, encrypted bool) string {
	suffix := plainSuffix
	if encrypted {
		suffix = encryptedSuffix
	}
	return namePrefix + at.UTC().Format(stampForm) + suffix
}

// NameTime returns the time in the name of a backup's file. It returns false for every other file, which no schedule ever
// removes.
func NameTime(name string) (at time.Time, ok bool) {
	rest, found := strings.CutPrefix(name, namePrefix)
	stamp, whole := strings.CutSuffix(rest, encryptedSuffix)
	if !whole {
		stamp, whole = strings.CutSuffix(rest, plainSuffix)
	}
	at, err := time.Parse(stampForm, stamp)
	return at, found && whole && err == nil
}

// IsBackup reports whether a name is that of a backup's file.
func IsBackup(name string) bool {
	_, ours := NameTime(name)
	return ours
}

// Encrypted reports whether a file's name says that it is encrypted.
func Encrypted(name string) bool { return strings.HasSuffix(name, ".age") }

// untouched is how long nothing is removed. A server that was restored from the wrong file makes a backup at its start.
// This backup must not be a reason to remove the right one, from the same day.
const untouched = 48 * time.Hour

// removable returns the backups that the retention does not keep, oldest first. Of each day, week (from Monday) and month
// it keeps the newest backup, and everything that was made shortly before the newest one. Days are those of the schedule's
// time zone.
func (r Retention) removable(files []objectstore.File, zone *time.Location) (names []string) {
	type dated struct {
		name string
		at   time.Time
	}
	var all []dated
	for _, f := range files {
		if at, ok := NameTime(f.Name); ok {
			all = append(all, dated{f.Name, at.In(zone)})
		}
	}
	slices.SortFunc(all, func(a, b dated) int {
		if c := b.at.Compare(a.at); c != 0 {
			return c
		}
		return strings.Compare(b.name, a.name)
	})
	seen := map[string]bool{}
	periods := []struct {
		most int
		of   func(time.Time) string
		n    int
	}{
		{r.Days, func(t time.Time) string { return t.Format("2006-01-02") }, 0},
		{r.Weeks, func(t time.Time) string { y, w := t.ISOWeek(); return fmt.Sprintf("%d week %d", y, w) }, 0},
		{r.Months, func(t time.Time) string { return t.Format("2006-01") }, 0},
	}
	for i, d := range all {
		keep := i == 0 || all[0].at.Sub(d.at) < untouched
		for j := range periods {
			p := &periods[j]
			if key := p.of(d.at); !seen[key] && p.n < p.most {
				seen[key] = true
				p.n++
				keep = true
			}
		}
		if !keep {
			names = append(names, d.name)
		}
	}
	slices.Reverse(names)
	return names
}
