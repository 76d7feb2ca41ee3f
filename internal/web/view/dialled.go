package view

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// apart separates the groups of a phone number. It is a space at which a line cannot break. When somebody copies a
// number from a page, app.js removes these spaces.
const apart = "\u00a0"

// Grouped formats a phone number in the groups that are usual in its country, such as "+39 333 123 4567". A line cannot
// break at the spaces. The digits do not change. If the text is not "+" and digits, such as a group's id, Grouped
// returns it unchanged.
func Grouped(phone string) string {
	digits, plus := strings.CutPrefix(phone, "+")
	if !plus || strings.Trim(digits, "0123456789") != "" {
		return phone
	}
	number, err := phonenumbers.Parse(phone, phonenumbers.UNKNOWN_REGION)
	if err != nil {
		return phone
	}
	groups := strings.FieldsFunc(phonenumbers.Format(number, phonenumbers.INTERNATIONAL), func(r rune) bool { return r != '+' && (r < '0' || r > '9') })
	if strings.Join(groups, "") != phone { // grouping added or removed a digit, as it may in some countries; use the number unchanged
		return phone
	}
	return strings.Join(groups, apart)
}
