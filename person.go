package puntuale

import "regexp"

// personID is what WhatsApp calls a business-scoped user id: a country, perhaps ENT, and letters and digits.
var personID = regexp.MustCompile(`^[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}$`)

// MaxPersonID is the length of the longest one, in bytes.
const MaxPersonID = 135

// IsPersonID reports whether a recipient is a person by an id that hides the number, as Official sessions can write to.
// It is another for each business, and another once the person's number changes.
func IsPersonID(recipient string) bool {
	return len(recipient) <= MaxPersonID && personID.MatchString(recipient)
}
