package price

import (
	"errors"
	"strconv"
	"strings"

	"puntuale"
)

// amount is an amount of money in millionths of the currency.
type amount int64

const decimals = 6

// parseAmount parses a decimal number with a point, below 1,000.
func parseAmount(text string) (amount, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if whole == "" || len(whole) > 3 || len(fraction) > decimals || strings.Trim(whole+fraction, "0123456789") != "" || strings.HasSuffix(text, ".") {
		return 0, errors.New("is not a number such as 0.0658: below 1000, with a point and at most six decimals")
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", decimals-len(fraction)), 10, 64)
	return amount(n), err
}

// String returns the exact decimal number, with at least two decimals.
func (a amount) String() string { return puntuale.Money(int64(a)) }

// Of returns the price of n messages of a kind, as an exact decimal number. known is false if the table has no price for
// the kind. n may be negative.
func (t *Table) Of(kind puntuale.MessageKind, n int) (price string, known bool) {
	each, known := t.prices[kind]
	return (each * amount(n)).String(), known
}

// Each returns the price of one message of a kind, in millionths of the currency. known is false if the table has no price
// for the kind.
func (t *Table) Each(kind puntuale.MessageKind) (millionths int64, known bool) {
	each, known := t.prices[kind]
	return int64(each), known
}

// Check returns an error if a text is no price: a decimal number with a point, below 1,000, with at most six decimals.
func Check(text string) error {
	_, err := parseAmount(text)
	return err
}

// Times returns the price of n messages, each at a price that [Check] accepts. n may be negative.
func Times(each string, n int) string {
	a, _ := parseAmount(each)
	return (a * amount(n)).String()
}

// Share returns the price of n messages, if that of so many is known. n may be negative. It returns "" for texts that are no
// prices, such as "".
func Share(price string, of, n int) string {
	total, known := parseSum(price)
	if !known || of == 0 {
		return ""
	}
	return (total / amount(of) * amount(n)).String()
}

// Sum adds prices. It ignores texts that are no prices, such as "".
func Sum(prices ...string) string {
	var total amount
	for _, text := range prices {
		if n, known := parseSum(text); known {
			total += n
		}
	}
	return total.String()
}

// parseSum parses a sum of prices, which may be negative.
func parseSum(text string) (amount, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	if len(fraction) > decimals {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", decimals-len(fraction)), 10, 64)
	if negative {
		n = -n
	}
	return amount(n), err == nil && whole != ""
}
