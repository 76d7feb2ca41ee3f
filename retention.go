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

// Before returns the moment of the limit: texts of messages that ended before it are removed. It is zero when
// everything is kept.
func (k Retention) Before(now time.Time) time.Time {
	if k == (Retention{}) {
		return time.Time{}
	}
	now = now.UTC()
	day := DateOf(now).AddMonths(-k.Months) // in a shorter month the last day, so the time is never shorter than the months
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
	Cancelled   int  // pending messages that will never be sent
	Messages    int  // messages whose number and texts were removed, including the cancelled ones
	Sandbox     int  // ledger entries of the sandbox whose number and text were removed
	Answers     int  // stored answers for repeats whose numbers were removed
	Blacklisted bool // the number was in the blacklist, and is now there as a keyed hash
}

// MarkPrefix begins the mark that replaces the number of an erased person in the blacklist. No recipient begins with it.
const MarkPrefix = "~"
