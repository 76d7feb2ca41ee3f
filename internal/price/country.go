package price

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// shared lists the calling codes that several countries share and for which Meta's prices differ between these
// countries. For any other code, the code's main country is used, because Meta's prices depend on calling codes.
var shared = []int{1, 7}

// Country returns the country of a phone number as two letters. It returns "" for a number without a country, and for
// any other text.
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
	if slices.Contains(shared, code) { // for other codes, the slow search in the ranges of numbers is not needed
		if n, err := phonenumbers.Parse(phone, ""); err == nil {
			if country := phonenumbers.GetRegionCodeForNumber(n); letters(country, 2) {
				return country
			}
		}
	}
	if !letters(main, 2) { // 001 is the code for numbers without a country
		return ""
	}
	return main
}
