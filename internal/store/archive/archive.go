package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/bits"
	"time"
)

// Version is the version of the format that [NewWriter] writes. [NewReader] reads this version and all earlier
// versions.
const Version = 1

// Format and PartFormat are the values of Header.Format.
const (
	Format     = "puntuale export"
	PartFormat = "puntuale archive" // the format of a file whose header has a Part
)

// Errors of files that cannot be read.
var (
	ErrForeign = errors.New("this is no export of Puntuale")
	ErrNewer   = errors.New("a newer program made this export; import it with that one")
	ErrDamaged = errors.New("the export is damaged")
)

// Header is the first line of a file.
type Header struct {
	Format   string    `json:"format"`
	Version  int       `json:"version"`
	Schema   int64     `json:"schema"`   // version of the tables from which the rows come
	Program  string    `json:"program"`  // program that made the file
	Database string    `json:"database"` // sqlite or postgres
	At       time.Time `json:"at"`       // when the export began, UTC
	Final    bool      `json:"final"`    // true: the exported installation sends nothing any more
	// Backup says that the file is part of a backup. Messages that are pending in the file may have been sent after the
	// backup was made.
	Backup bool    `json:"backup,omitempty"`
	Tables []Table `json:"tables"`
	Part   *Part   `json:"part,omitempty"` // nil: the file contains a whole installation
}

// Part describes the content of one file of a [Folder].
type Part struct {
	Folder  string `json:"folder"` // identifier of the folder
	Serial  int64  `json:"serial"`
	Clients []Span `json:"clients"` // one span for each client, sorted by client
}

// Span describes a client's rows in a file. If the file contains no messages of the client, First, Last, From and To
// are 0.
type Span struct {
	Client int64 `json:"client"`
	First  int64 `json:"first"` // smallest identifier of a message
	Last   int64 `json:"last"`  // largest identifier of a message
	From   int64 `json:"from"`  // earliest due time of a message, in microseconds since 1970
	To     int64 `json:"to"`    // latest due time of a message
}

// Rows returns the number of rows in all tables.
func (h *Header) Rows() (n int64) {
	for _, t := range h.Tables {
		n += t.Rows
	}
	return n
}

// RowsOf returns the number of rows of one table; 0 if the file does not contain the table.
func (h *Header) RowsOf(table string) (n int64) {
	for _, t := range h.Tables {
		if t.Name == table {
			n += t.Rows
		}
	}
	return n
}

// Table describes one table of the file.
type Table struct {
	Name    string   `json:"name"`
	Columns []Column `json:"columns"`
	Rows    int64    `json:"rows"`
}

// Column describes a column of a table.
type Column struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"`
}

// Kind is the type of a column's values. Any value may also be null.
type Kind string

const (
	Integer Kind = "integer" // an int64
	Real    Kind = "real"    // a float64, neither infinite nor NaN
	Text    Kind = "text"    // a string in UTF-8
	Bytes   Kind = "bytes"   // a []byte
	Boolean Kind = "boolean" // a bool
)

// Digest is the digest of a table. The zero value is the digest of an empty table.
type Digest struct{ sum [4]uint64 } // the 256 bits of the sum; the lowest 64 bits are first

// Add adds a row's line, without its line break, to the digest.
func (d *Digest) Add(line []byte) {
	h := sha256.Sum256(line)
	var carry uint64
	for i := range d.sum {
		d.sum[i], carry = bits.Add64(d.sum[i], binary.BigEndian.Uint64(h[24-8*i:]), carry)
	}
}

// String returns the digest in hexadecimal.
func (d *Digest) String() string {
	var b [32]byte
	for i, part := range d.sum {
		binary.BigEndian.PutUint64(b[24-8*i:], part)
	}
	return hex.EncodeToString(b[:])
}

// The types below are the lines between the rows.
type beginLine struct {
	Table string `json:"table"`
}

type endLine struct {
	End    string `json:"end"`
	Rows   int64  `json:"rows"`
	Digest string `json:"digest"`
}

type lastLine struct {
	End    string `json:"end"`
	Rows   int64  `json:"rows"`
	SHA256 string `json:"sha256"`
}

// lastEnd is the value of "end" in the last line.
const lastEnd = "export"
