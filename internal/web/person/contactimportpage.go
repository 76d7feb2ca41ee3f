package person

import "puntuale"

// ImportedContacts says what an import did, or would do.
type ImportedContacts struct {
	Rows, Added, Changed, Consents int
	Header, Hidden                 int // the line of the header, and how many rows the spreadsheet hides
	Columns                        []string
	Preview                        [][]string
	Refused                        []puntuale.RefusedGroup
	Lines                          []RefusedContact
}

// RefusedContact is a row of the file that the import refuses.
type RefusedContact struct {
	Line   int
	Reason string
	Value  puntuale.Reason
}
