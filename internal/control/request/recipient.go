package request

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/nyaruka/phonenumbers"

	"puntuale"
	"puntuale/internal/phone"
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

var (
	// groupShapes matches the contract's three forms of a group id. The server does not change a group id in one of
	// these forms.
	groupShapes = regexp.MustCompile(`^(?:[0-9]+(?:-[0-9]+)?@g\.us|[0-9]+@lid|[A-Za-z0-9_-]{22})$`)

	// decimals and exponent match the forms in which spreadsheets and programs write a number that is not a text.
	decimals = regexp.MustCompile(`^\s*(\+?[1-9][0-9]{6,14})[.,]0{1,2}\s*$`)
	exponent = regexp.MustCompile(`^\s*(\+?[1-9])[.,]([0-9]{6,14})[Ee]\+?([0-9]{1,2})\s*$`)
)

// maxRecipient bounds a recipient, in bytes. Real recipients are far shorter.
const maxRecipient = puntuale.MaxPersonID

// ParseRecipient parses a recipient. It returns a group id, or a network's id of a person, unchanged. It returns a
// phone number as "+…". region is a country code with two letters. A number of a person in the region gets the region's
// calling code. Any other number gets a "+" before its digits. If a number begins with "+" or "00", only its length is
// checked, because countries open new ranges before the library knows them. Landline and toll-free numbers are
// accepted. Numbers that reach no person, such as premium-rate and voicemail numbers, are refused. The error is a
// [*RecipientError].
func ParseRecipient(text, region string) (string, error) {
	if len(text) <= maxRecipient && (groupShapes.MatchString(text) || puntuale.IsPersonID(text) || puntuale.IsNetworkGroup(text)) {
		return text, nil
	}
	return ParsePhone(text, region)
}

// ParsePhone parses a recipient that is a phone number, in the way of [ParseRecipient].
func ParsePhone(text, region string) (string, error) {
	if len(text) > maxRecipient {
		return "", &RecipientError{faultRecipientTooLong}
	}
	text, err := phoneText(wholeNumber(text))
	if err != nil {
		return "", err
	}
	number, kind := phone.Parse(text, region)
	digits, withCountry := phoneDigits(text)
	if kind == phonenumbers.UNKNOWN && withCountry {
		number, kind = phone.Parse("+"+digits, phonenumbers.UNKNOWN_REGION)
	}
	if kind == phonenumbers.UNKNOWN && withCountry && isPossible(number) {
		return "+" + digits, nil
	}
	if !withCountry && isDoubtful(number, kind, digits, region) {
		number, kind = foreignPhone(text, digits, region, kind)
	}
	switch {
	case kind == phonenumbers.PREMIUM_RATE:
		return "", &RecipientError{faultRecipientPremiumRate}
	case kind == phonenumbers.SHARED_COST:
		return "", &RecipientError{faultRecipientSharedCost}
	case !phone.Reaches(kind):
		return "", &RecipientError{faultRecipientNotValid}
	case number.GetExtension() != "":
		return "", &RecipientError{faultRecipientExtension}
	}
	return phonenumbers.Format(number, phonenumbers.E164), nil
}

// Readings returns the forms under which the recipient in a text may be stored. The first is the one of
// [ParseRecipient]. Earlier versions took some foreign numbers for voicemail numbers of the region, and the ".0" of a
// spreadsheet for a digit. If they made another number of this text, it follows. ParseRecipient refuses such a number
// even with its calling code. Readings accepts it with "+", so that a caller reaches what is stored under it.
func Readings(text, region string) ([]string, error) {
	recipient, err := ParseRecipient(text, region)
	former, withCountry := formerReading(text, region)
	switch {
	case former == "" || former == recipient:
	case err == nil:
		return []string{recipient, former}, nil
	case withCountry:
		return []string{former}, nil
	}
	return []string{recipient}, err
}

// formerReading returns the number that earlier versions made of a text, and whether the text contained its calling
// code. It returns "" if they refused the text, or if the text is an id.
func formerReading(text, region string) (former string, withCountry bool) {
	if len(text) > maxRecipient || groupShapes.MatchString(text) {
		return "", false
	}
	text, err := phoneText(text)
	if err != nil {
		return "", false
	}
	number, kind := phone.Parse(text, region)
	digits, withCountry := phoneDigits(text)
	if kind == phonenumbers.UNKNOWN {
		number, kind = phone.Parse("+"+digits, phonenumbers.UNKNOWN_REGION)
	}
	if kind == phonenumbers.UNKNOWN || kind == phonenumbers.PREMIUM_RATE || kind == phonenumbers.SHARED_COST {
		return "", false
	}
	return phonenumbers.Format(number, phonenumbers.E164), withCountry
}

// isDoubtful reports whether a number without "+" may belong to another country than the region. If the library
// removed the region's calling code, that code may be the beginning of a number with a digit too many.
func isDoubtful(number *phonenumbers.PhoneNumber, kind phonenumbers.PhoneNumberType, digits, region string) bool {
	cut := number.GetCountryCodeSource() == phonenumbers.PhoneNumber_FROM_NUMBER_WITHOUT_PLUS_SIGN
	return !phone.Reaches(kind) || cut && phone.HasDigitTooMany(digits, region)
}

// foreignPhone reads a text without "+" as a number with a calling code. kind is the kind of the region's numbers with
// these digits. The text is doubtful if the region has such numbers, or if the last digit may be one too many. In a
// doubtful text the spaces must fit the calling code. So 333 123 45678 is not the French number +33 3 12 34 56 78. If
// no space follows the code, and the last digit may be one too many, the number must be a mobile one.
func foreignPhone(text, digits, region string, kind phonenumbers.PhoneNumberType) (*phonenumbers.PhoneNumber, phonenumbers.PhoneNumberType) {
	number, foreign := phone.Parse("+"+digits, phonenumbers.UNKNOWN_REGION)
	tooMany := phone.HasDigitTooMany(digits, region)
	switch {
	case foreign == phonenumbers.UNKNOWN, !phone.Reaches(foreign) && kind != phonenumbers.UNKNOWN:
		return nil, kind
	case kind == phonenumbers.UNKNOWN && !tooMany:
		return number, foreign
	}
	code := strconv.Itoa(int(number.GetCountryCode()))
	group := phonenumbers.NormalizeDigitsOnly(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsDigit(r) })[0])
	mobile := foreign == phonenumbers.MOBILE || foreign == phonenumbers.FIXED_LINE_OR_MOBILE
	if group == code || (mobile || !tooMany) && len(group) >= len(code)+3 {
		return number, foreign
	}
	return nil, phonenumbers.UNKNOWN
}

// wholeNumber removes the decimals that a spreadsheet added to a number, as in 3331234567.0. It also writes out a
// number with an exponent, if no digit is missing: 3.331234567E9, but not 3.33E+09.
func wholeNumber(text string) string {
	if m := decimals.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	if m := exponent.FindStringSubmatch(text); m != nil && strconv.Itoa(len(m[2])) == strings.TrimLeft(m[3], "0") {
		return m[1] + m[2]
	}
	return text
}

// RecipientError says why a text is not a recipient.
type RecipientError struct{ Code puntuale.ReasonCode }

func (e *RecipientError) Error() string { return string(e.Code) }

// IsNoRecipient reports whether a text is neither a number nor a group.
func (e *RecipientError) IsNoRecipient() bool {
	return e.Code == faultRecipientNotValid || e.Code == faultRecipientLetters
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
