// Package roster reads lists of people that users upload for a campaign or as contacts. A list is CSV or XLSX. The
// package reads it row by row, with limited memory and disk.
//
// A list has a header row. A fault of one row is a [RowError], and the reader continues with the next row. A fault of
// the whole list is a [FileError], and ends the list. Any other error comes from the upload's connection, from the disk
// or from the caller's context.
//
// If an upload breaks off, or if a workbook is cut or damaged, the list never ends with io.EOF. Therefore, half a list
// never counts as a whole list. But a CSV file itself does not show whether it was cut.
//
// The text of an error never contains the content of a cell, so logs and answers contain no personal data.
package roster
