package request

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/nyaruka/phonenumbers"

	"puntuale"
)

// Codes of the faults that this file reports.
const (
	faultRecipientExtension   puntuale.ReasonCode = "recipient.extension"
	faultRecipientLetters     puntuale.ReasonCode = "recipient.letters"
	faultRecipientNotValid    puntuale.ReasonCode = "recipient.not_valid"
	faultRecipientPlusSign    puntuale.ReasonCode = "recipient.plus_sign"
	faultRecipientPremiumRate puntuale.ReasonCode = "recipient.premium_rate"
	faultRecipientSharedCost  puntuale.ReasonCode = "recipient.shared_cost"
	faultRecipientTooLong     puntuale.ReasonCode = "recipient.too_long"
)

// groupShapes matches the contract's three forms of a group id. The server does not change a group id in one of these
// forms.
var groupShapes = regexp.MustCompile(`^(?:[0-9]+(?:-[0-9]+)?@g\.us|[0-9]+@lid|[A-Za-z0-9_-]{22})$`)

// maxRecipient bounds a recipient, in bytes. Real recipients are far shorter.
const maxRecipient = puntuale.MaxPersonID

// ParseRecipient parses a recipient. It returns a group id, or a network's id of a person, unchanged. It returns a
// phone number as "+…". region is a country code with two letters. A number that is valid in the region gets the
// region's calling code. Any other number gets a "+" before its digits. If a number begins with "+" or "00", only its
// length is checked, because countries open new ranges before the library knows them. Landline and toll-free numbers
// are accepted. Premium-rate and shared-cost numbers are refused. The error is a [*RecipientError].
func ParseRecipient(text, region string) (string, error) {
	if len(text) > maxRecipient {
		return "", &RecipientError{faultRecipientTooLong}
	}
	if groupShapes.MatchString(text) || puntuale.IsPersonID(text) || puntuale.IsNetworkGroup(text) {
		return text, nil
	}
	text, err := phoneText(text)
	if err != nil {
		return "", err
	}
	number, kind := parsePhone(text, region)
	digits, withCountry := phoneDigits(text)
	if kind == phonenumbers.UNKNOWN {
		number, kind = parsePhone("+"+digits, phonenumbers.UNKNOWN_REGION)
	}
	switch {
	case kind == phonenumbers.UNKNOWN && withCountry && isPossible(number):
		return "+" + digits, nil
	case kind == phonenumbers.UNKNOWN:
		return "", &RecipientError{faultRecipientNotValid}
	case kind == phonenumbers.PREMIUM_RATE:
		return "", &RecipientError{faultRecipientPremiumRate}
	case kind == phonenumbers.SHARED_COST:
		return "", &RecipientError{faultRecipientSharedCost}
	case number.GetExtension() != "":
		return "", &RecipientError{faultRecipientExtension}
	}
	return phonenumbers.Format(number, phonenumbers.E164), nil
}

// RecipientError says why a text is not a recipient.
type RecipientError struct{ Code puntuale.ReasonCode }

func (e *RecipientError) Error() string { return string(e.Code) }

// IsNoRecipient reports whether a text is neither a number nor a group.
func (e *RecipientError) IsNoRecipient() bool {
	return e.Code == faultRecipientNotValid || e.Code == faultRecipientLetters
}

// parsePhone parses a number, and returns the number and its kind. The kind is UNKNOWN if, and only if, the library
// considers the number invalid. The number is nil if the text contains none.
func parsePhone(text, region string) (*phonenumbers.PhoneNumber, phonenumbers.PhoneNumberType) {
	number, err := phonenumbers.Parse(text, region)
	if err != nil {
		return nil, phonenumbers.UNKNOWN
	}
	return number, phonenumbers.GetNumberType(number)
}

// phoneDigits returns a number's digits including the calling code, and reports whether the text itself contained this
// code.
func phoneDigits(text string) (digits string, withCountry bool) {
	digits = phonenumbers.NormalizeDigitsOnly(text)
	if strings.HasPrefix(text, "+") || strings.HasPrefix(text, "＋") {
		return digits, true
	}
	return strings.CutPrefix(digits, "00")
}

// isPossible reports whether the country has numbers of this length. Mexico removed the 1 from its mobile numbers (+52
// 1 …) in 2019. But people still write this 1, and the network still uses it for old numbers. Therefore, such numbers
// are possible, too.
func isPossible(number *phonenumbers.PhoneNumber) bool {
	if number == nil {
		return false
	}
	const mexico, mobile = 52, 1_00_0000_0000
	if n := number.GetNationalNumber(); number.GetCountryCode() == mexico && n >= mobile && n < 2*mobile {
		return true
	}
	return phonenumbers.IsPossibleNumberWithReason(number) == phonenumbers.IS_POSSIBLE
}

// phoneText removes invisible characters, and refuses characters that no phone number contains. Therefore, the library
// gets only digits and separators. Without this check, the library would convert letters into digits, and would treat
// the digits after some characters as an extension.
func phoneText(text string) (string, error) {
	var kept strings.Builder
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Cf, r): // a number that was copied from a contact may contain invisible direction marks
		case unicode.IsDigit(r), unicode.IsSpace(r), unicode.Is(unicode.Pd, r), strings.ContainsRune("+＋.()/", r):
			kept.WriteRune(r)
		default:
			return "", &RecipientError{faultRecipientLetters}
		}
	}
	number := strings.TrimSpace(kept.String())
	if inside, ok := strings.CutPrefix(number, "("); ok { // the plus sign is inside brackets, as in (+39) 333 1234567
		if inside = strings.TrimSpace(inside); strings.HasPrefix(inside, "+") || strings.HasPrefix(inside, "＋") {
			number = inside
		}
	}
	if strings.LastIndexAny(number, "+＋") > 0 {
		return "", &RecipientError{faultRecipientPlusSign}
	}
	return number, nil
}

// ParseBeginning parses the beginning of a phone number, as a person types it, and returns it with "+". If the text has
// no calling code, it gets the region's code.
func ParseBeginning(text, region string) (string, bool) {
	text, err := phoneText(text)
	digits, withCountry := phoneDigits(text)
	if err != nil || digits == "" && !withCountry || len(digits) > maxDigits {
		return "", false
	}
	if !withCountry {
		digits = strconv.Itoa(phonenumbers.GetCountryCodeForRegion(region)) + digits
	}
	return "+" + digits, true
}

// maxDigits is the length of the longest phone number.
const maxDigits = 15
