package price

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
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
func (a amount) String() string {
	const unit = 1_000_000
	fraction := fmt.Sprintf("%06d", a%unit)
	for len(fraction) > 2 && strings.HasSuffix(fraction, "0") {
		fraction = fraction[:len(fraction)-1]
	}
	return fmt.Sprintf("%d.%s", a/unit, fraction)
}
