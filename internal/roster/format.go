package roster

import (
	"bytes"
	"mime"
	"slices"
)

// form is the file format of a list.
type form int8

const (
	csv form = iota
	xlsx
)

const typeXLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

// typesCSV contains the content types that may be CSV. If Excel is installed, Windows sends a .csv file as
// application/vnd.ms-excel.
var typesCSV = []string{
	"", "application/octet-stream", "application/vnd.ms-excel",
	"text/csv", "application/csv", "text/plain", "text/tab-separated-values",
}

// First bytes of a zip archive, and of the container that .xls files and encrypted workbooks use.
var (
	magicZip = []byte("PK\x03\x04")
	magicOLE = []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")
)

// magicVCard is the beginning of a vCard, the form in which Apple exports contacts.
var magicVCard = []byte("BEGIN:VC")

// detect returns the form of a list. If the first bytes are those of a workbook, these bytes decide. Otherwise the
// content type decides. Only openWorkbook finds out whether the workbook is readable.
func detect(contentType string, first []byte) (form, error) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil && contentType != "" {
		kind = "unreadable"
	}
	switch {
	case bytes.EqualFold(first, magicVCard):
		return 0, &FileError{Problem: VCard}
	case bytes.HasPrefix(first, magicZip), bytes.HasPrefix(first, magicOLE), kind == typeXLSX:
		return xlsx, nil
	case slices.Contains(typesCSV, kind):
		return csv, nil
	default:
		return 0, &FileError{Problem: UnknownFormat}
	}
}
