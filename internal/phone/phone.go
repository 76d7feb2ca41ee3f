// Package phone decides whether a text is a phone number, and whether such a number reaches a person. It knows the
// numbering plans of all countries. Whether a caller's text is accepted is decided elsewhere: internal/control/request
// accepts more than what is valid, internal/calendar finds numbers in running text and accepts less.
package phone

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// Parse parses a number, and returns the number and its kind. The kind is UNKNOWN if, and only if, the library
// considers the number invalid. The number is nil if the text contains none.
func Parse(text, region string) (*phonenumbers.PhoneNumber, phonenumbers.PhoneNumberType) {
	number, err := phonenumbers.ParseAndKeepRawInput(text, region)
	if err != nil {
		return nil, phonenumbers.UNKNOWN
	}
	return number, phonenumbers.GetNumberType(number)
}

// Reaches reports whether a person may use WhatsApp on numbers of this kind. Companies use it on shared numbers (UAN),
// too.
func Reaches(kind phonenumbers.PhoneNumberType) bool {
	switch kind {
	case phonenumbers.FIXED_LINE, phonenumbers.MOBILE, phonenumbers.FIXED_LINE_OR_MOBILE, phonenumbers.TOLL_FREE,
		phonenumbers.VOIP, phonenumbers.PERSONAL_NUMBER, phonenumbers.UAN:
		return true
	}
	return false
}

// HasDigitTooMany reports whether the digits without the last one are a number of the region without calling code.
func HasDigitTooMany(digits, region string) bool {
	number, kind := Parse(digits[:max(0, len(digits)-1)], region)
	return Reaches(kind) && number.GetCountryCodeSource() == phonenumbers.PhoneNumber_FROM_DEFAULT_COUNTRY
}

// Strict returns the number in a text that has only digits and separators, as "+…". The number must be valid, and must
// reach a person. Without "+" or "00" it must be a number of the region. The region's calling code may come first, if
// this cannot be a number with a digit too many. ok is false if there is no such number.
func Strict(text, region string) (e164 string, ok bool) {
	if rest, international := strings.CutPrefix(strings.TrimLeft(text, "( "), "00"); international {
		text = "+" + rest
	}
	number, kind := Parse(text, region)
	if !Reaches(kind) || number.GetExtension() != "" {
		return "", false
	}
	cut := number.GetCountryCodeSource() == phonenumbers.PhoneNumber_FROM_NUMBER_WITHOUT_PLUS_SIGN
	if cut && HasDigitTooMany(phonenumbers.NormalizeDigitsOnly(text), region) {
		return "", false
	}
	return phonenumbers.Format(number, phonenumbers.E164), true
}
