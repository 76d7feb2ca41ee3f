package puntuale

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Retention is how long what messages said is kept after they ended. The zero value is for ever.
type Retention struct {
	Months int // calendar months
	Days   int // of 24 hours
}

// keepNever is the word for no end.
const keepNever = "never"

// maxKeep is the most of one unit: far beyond any horizon, and far from where the arithmetic overflows.
const maxKeep = 36_500

// ParseKeep reads a whole number with its unit, d, w, mo or y (90d, 12w, 24mo, 2y), or the word never.
func ParseKeep(text string) (Retention, error) {
	if text == keepNever {
		return Retention{}, nil
	}
	digits := strings.TrimRight(text, "dwmoy")
	n, err := strconv.Atoi(digits)
	if err == nil && n >= 1 && n <= maxKeep && strconv.Itoa(n) == digits {
		switch text[len(digits):] {
		case "d":
			return Retention{Days: n}, nil
		case "w":
			return Retention{Days: 7 * n}, nil
		case "mo":
			return Retention{Months: n}, nil
		case "y":
			return Retention{Months: 12 * n}, nil
		}
	}
	return Retention{}, fmt.Errorf("%q is not a time such as 24mo, 90d, 12w or 2y, nor never", text)
}

// Before is the moment that divides: texts of messages that ended before it are removed. It is zero when everything is kept.
func (k Retention) Before(now time.Time) time.Time {
	if k == (Retention{}) {
		return time.Time{}
	}
	now = now.UTC()
	day := DateOf(now).AddMonths(-k.Months) // of a short month the last: never less than the months
	at := now.Sub(time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC))
	return time.Date(day.Year, day.Month, day.Day-k.Days, 0, 0, 0, 0, time.UTC).Add(at)
}

// String returns the form that ParseKeep reads.
func (k Retention) String() string {
	switch {
	case k.Months > 0:
		return strconv.Itoa(k.Months) + "mo"
	case k.Days > 0:
		return strconv.Itoa(k.Days) + "d"
	}
	return keepNever
}

// UnmarshalText is ParseKeep, for settings.
func (k *Retention) UnmarshalText(text []byte) (err error) {
	*k, err = ParseKeep(string(text))
	return err
}

// Erasure asks to forget the person behind a phone number, or a group.
type Erasure struct {
	Phone string
	Mark  string // what stands for the phone in the blacklist from now on: [MarkPrefix] and a keyed hash
	Day   Date   // the client's present day, in which one call is counted
	Now   time.Time
}

// ErasureResult counts what an erasure removed. It does not count what an earlier erasure had removed.
type ErasureResult struct {
	Cancelled   int  // messages that were pending, and are never sent
	Messages    int  // whose number and texts are gone, the cancelled ones among them
	Sandbox     int  // what the simulated network had received, without number and text from now on
	Answers     int  // answers kept for repeats of calls, without the number from now on
	Blacklisted bool // the number is in the blacklist, as a keyed hash from now on
}

// MarkPrefix begins the mark that replaces the number of an erased person in the blacklist. No recipient begins with it.
const MarkPrefix = "~"
