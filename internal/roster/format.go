package roster

import (
	"bytes"
	"mime"
	"slices"
)

// form is the kind of file that a list is.
type form int8

const (
	csv form = iota
	xlsx
)

const typeXLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

// typesCSV are content types that may be CSV. With Excel installed, Windows calls a .csv file application/vnd.ms-excel.
var typesCSV = []string{
	"", "application/octet-stream", "application/vnd.ms-excel",
	"text/csv", "application/csv", "text/plain", "text/tab-separated-values",
}

// The first bytes of files: of a zip archive, and of the container of .xls and of encrypted workbooks.
var (
	magicZip = []byte("PK\x03\x04")
	magicOLE = []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")
)

// detect says which form a list has. The first bytes of a workbook decide before the content type does. openWorkbook then
// says whether it can read the workbook.
func detect(contentType string, first []byte) (form, error) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil && contentType != "" {
		kind = "unreadable"
	}
	switch {
	case bytes.HasPrefix(first, magicZip), bytes.HasPrefix(first, magicOLE), kind == typeXLSX:
		return xlsx, nil
	case slices.Contains(typesCSV, kind):
		return csv, nil
	default:
		return 0, &FileError{Problem: UnknownFormat}
	}
}
