package puntuale

import (
	"fmt"
	"time"
)

// Date is a day of the Gregorian calendar without a zone. The zero value is no day.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// DateOf returns t's day in t's location.
func DateOf(t time.Time) Date {
	y, m, d := t.Date()
	return Date{y, m, d}
}

// ParseDate reads YYYY-MM-DD.
func ParseDate(text string) (Date, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return Date{}, fmt.Errorf("%q is not a date of the form YYYY-MM-DD", text)
	}
	return DateOf(t), nil
}

func (d Date) IsZero() bool { return d == Date{} }

// String returns YYYY-MM-DD.
func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, int(d.Month), d.Day) }

// AddDays returns the day n days later.
func (d Date) AddDays(n int) Date {
	return DateOf(time.Date(d.Year, d.Month, d.Day+n, 0, 0, 0, 0, time.UTC))
}

// Before reports whether d is an earlier day than o.
func (d Date) Before(o Date) bool { return d.Int() < o.Int() }

// Int returns the day as the number YYYYMMDD, the form stores keep.
func (d Date) Int() int { return d.Year*10000 + int(d.Month)*100 + d.Day }

// DateFromInt is the inverse of Int.
func DateFromInt(n int) Date { return Date{n / 10000, time.Month(n / 100 % 100), n % 100} }

// Weekday counts from 1, Monday, to 7, Sunday.
func (d Date) Weekday() int {
	w := int(time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC).Weekday())
	if w == 0 {
		return 7
	}
	return w
}

// MarshalText and UnmarshalText use the form YYYY-MM-DD; the zero value is empty.
func (d Date) MarshalText() ([]byte, error) {
	if d.IsZero() {
		return nil, nil
	}
	return []byte(d.String()), nil
}

func (d *Date) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*d = Date{}
		return nil
	}
	*d, err = ParseDate(string(text))
	return err
}
