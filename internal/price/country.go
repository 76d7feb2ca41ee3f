package price

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// shared are calling codes with several countries that have different prices at Meta. For all other codes the main country counts, because
// Meta's prices go by calling codes.
var shared = []int{1, 7}

// Country returns the country of a phone number as two letters. It returns "" for a number of no country, and for every other text.
func Country(phone string) string {
	digits, ok := strings.CutPrefix(phone, "+")
	if !ok {
		return ""
	}
	for n := 1; n <= min(3, len(digits)); n++ {
		code, err := strconv.Atoi(digits[:n])
		if err != nil {
			return ""
		}
		if main := phonenumbers.GetRegionCodeForCountryCode(code); main != phonenumbers.UNKNOWN_REGION {
			return ofCode(phone, code, main)
		}
	}
	return ""
}

func ofCode(phone string, code int, main string) string {
	if slices.Contains(shared, code) { // the others need no look at their ranges, which takes long
		if n, err := phonenumbers.Parse(phone, ""); err == nil {
			if country := phonenumbers.GetRegionCodeForNumber(n); letters(country, 2) {
				return country
			}
		}
	}
	if !letters(main, 2) { // 001 is for numbers of no country
		return ""
	}
	return main
}
