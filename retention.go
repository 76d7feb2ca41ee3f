package puntuale

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Retention is how long a store keeps the texts of messages after the messages ended. The zero value means for ever.
// At most one field is set.
type Retention struct {
	Months int // calendar months
	Days   int // days of 24 hours
}

// keepNever is the setting's word for: never remove the texts.
const keepNever = "never"

// maxKeep is the largest number that [ParseKeep] accepts. With each unit it gives a longer time than anybody needs, and
// no sum overflows.
const maxKeep = 36_500

// ParseKeep reads a whole number with a unit, or the word never. The units are d, w, mo and y: 90d, 12w, 24mo, 2y.
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

// Cutoff returns the limit at the time now: texts of messages that ended before the limit are removed. It returns zero
// if texts are kept for ever.
func (k Retention) Cutoff(now time.Time) time.Time {
	if k == (Retention{}) {
		return time.Time{}
	}
	now = now.UTC()
	day := DateOf(now).AddMonths(-k.Months) // if that month has no such day, AddMonths returns its last day, so texts are never kept for less than k.Months
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

// UnmarshalText does the same as ParseKeep. The reader of settings calls it.
func (k *Retention) UnmarshalText(text []byte) (err error) {
	*k, err = ParseKeep(string(text))
	return err
}

// Erasure asks a store to forget a person or a group. Marks replace all names in the blacklist and in the ledger of
// consent.
type Erasure struct {
	Person

	Day Date // today in the client's time zone; one call is counted on this day
	Now time.Time
}

// ErasureResult counts what one erasure removed. It does not count what an earlier erasure had removed.
type ErasureResult struct {
	Cancelled   int  // pending messages that will never be sent
	Messages    int  // messages whose number and texts were removed, including cancelled ones
	Sandbox     int  // entries of the sandbox's ledger whose number and text were removed
	Answers     int  // stored answers for repeated calls; the number was removed from these answers
	Blacklisted bool // the blacklist had the number, and now has a keyed hash of it
}

// MarkPrefix is the beginning of every mark. A mark replaces the number of an erased person in the blacklist. No
// recipient begins with MarkPrefix.
const MarkPrefix = "~"
