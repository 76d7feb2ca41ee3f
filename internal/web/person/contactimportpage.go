package person

import "puntuale/internal/web/view"

// ImportedContacts says what an import did, or would do.
type ImportedContacts struct {
	view.ImportedTable
	Rows, Added, Changed, Consents int
}
