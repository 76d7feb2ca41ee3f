package person

import "puntuale"

// ImportedContacts says what an import did, or would do.
type ImportedContacts struct {
	Rows, Added, Changed, Consents int
	Columns                        []string
	Preview                        [][]string
	Refused                        []puntuale.RefusedGroup
	Lines                          []RefusedContact
}

// RefusedContact is a row that became no contact.
type RefusedContact struct {
	Line   int
	Reason string
	Value  puntuale.Reason
}
