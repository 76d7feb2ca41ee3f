package roster

import (
	"bytes"
	"mime"
	"slices"
)

// Format is the form of a list.
type Format int8

const (
	CSV Format = iota
	XLSX
)

const typeXLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

// typesCSV may be CSV. Windows calls a .csv file application/vnd.ms-excel where Excel is installed.
var typesCSV = []string{
	"", "application/octet-stream", "application/vnd.ms-excel",
	"text/csv", "application/csv", "text/plain", "text/tab-separated-values",
}

// How files begin: a zip archive, and the container of .xls and of encrypted workbooks.
var (
	magicZip = []byte("PK\x03\x04")
	magicOLE = []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")
)

// Detect says which form a list has, by its content type and its first bytes (eight are enough). Bytes that only a workbook
// begins with decide before the type does; [Open] then says whether it is one that can be read. The error is a [*FileError].
func Detect(contentType string, first []byte) (Format, error) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil && contentType != "" {
		kind = "unreadable"
	}
	switch {
	case bytes.HasPrefix(first, magicZip), bytes.HasPrefix(first, magicOLE), kind == typeXLSX:
		return XLSX, nil
	case slices.Contains(typesCSV, kind):
		return CSV, nil
	default:
		return 0, &FileError{Problem: UnknownFormat}
	}
}
