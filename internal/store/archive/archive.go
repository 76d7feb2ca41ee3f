// Package archive is the format of an exported installation. Files with old rows that were moved out of an installation ([Folder]) have it,
// too. A file is one gzip stream of lines, readable with zcat. Its content is the same for both databases.
//
// The first line is the [Header]: what made the file, and each table with its columns and its number of rows. Then each table follows in
// that order. It has a line {"table": "client"} and its rows, each a JSON array of the columns' values. It ends with a line {"end":
// "client", "rows": 12, "digest": "…"}. The last line of all is {"end": "export", "rows": 3456, "sha256": "…"}.
//
// Values are integers, reals, texts, bytes (in base64), booleans and null. A row can be written in only one way (AppendRow). A table's
// digest is the sum, modulo 2^256, of the SHA-256 of each row's line without the line break. It does not depend on the order of the rows.
// So it tells whether two databases hold the same rows. The last line's sha256 covers all lines before it, so it covers everything.
package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/bits"
	"time"
)

// Version is the version of the form that [NewWriter] writes; [NewReader] reads it and earlier versions.
const Version = 1

// Format is the name of the format, in every file.
const (
	Format     = "puntuale export"
	PartFormat = "puntuale archive" // of a file that has a Part
)

// Errors of a file.
var (
	ErrForeign = errors.New("this is no export of Puntuale")
	ErrNewer   = errors.New("a newer program made this export; import it with that one")
	ErrDamaged = errors.New("the export is damaged")
)

// Header is the first line.
type Header struct {
	Format   string    `json:"format"`
	Version  int       `json:"version"`
	Schema   int64     `json:"schema"`           // version of the tables that the rows came from
	Program  string    `json:"program"`          // the program that made the file
	Database string    `json:"database"`         // kind: sqlite or postgres
	At       time.Time `json:"at"`               // when the export began, UTC
	Final    bool      `json:"final"`            // the exported installation sends no more
	Backup   bool      `json:"backup,omitempty"` // part of a backup: its due messages may have left since then
	Tables   []Table   `json:"tables"`
	Part     *Part     `json:"part,omitempty"` // nil: a whole installation
}

// Part describes the contents of one file of a [Folder].
type Part struct {
	Folder  string `json:"folder"` // its identifier
	Serial  int64  `json:"serial"`
	Clients []Span `json:"clients"` // sorted
}

// Span describes a client's rows in a file. Without messages First, Last, From and To are 0.
type Span struct {
	Client int64 `json:"client"`
	First  int64 `json:"first"` // least identifier of a message
	Last   int64 `json:"last"`  // greatest
	From   int64 `json:"from"`  // first moment that a message was due, in microseconds since 1970
	To     int64 `json:"to"`    // last one
}

// Rows is the number of rows of all tables.
func (h *Header) Rows() (n int64) {
	for _, t := range h.Tables {
		n += t.Rows
	}
	return n
}

// Table describes a table of the file.
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

// Kind is the type of a column's values, besides null.
type Kind string

const (
	Integer Kind = "integer" // int64
	Real    Kind = "real"    // float64, neither infinite nor NaN
	Text    Kind = "text"    // string of UTF-8
	Bytes   Kind = "bytes"   // []byte
	Boolean Kind = "boolean" // bool
)

// Digest is a table's digest. The zero value stands for no rows.
type Digest struct{ sum [4]uint64 } // the lowest 64 bits first

// Add adds a row's line, without its line break, to the digest.
func (d *Digest) Add(line []byte) {
	h := sha256.Sum256(line)
	var carry uint64
	for i := range d.sum {
		d.sum[i], carry = bits.Add64(d.sum[i], binary.BigEndian.Uint64(h[24-8*i:]), carry)
	}
}

// String is the digest in hexadecimal.
func (d *Digest) String() string {
	var b [32]byte
	for i, part := range d.sum {
		binary.BigEndian.PutUint64(b[24-8*i:], part)
	}
	return hex.EncodeToString(b[:])
}

// beginLine, end and last are the lines between the rows.
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

// lastEnd is the name in the last line.
const lastEnd = "export"
