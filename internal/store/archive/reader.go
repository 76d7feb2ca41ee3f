package archive

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
)

// maxLine is the length of the longest line, in bytes. A row contains at most a request of 1 MiB and the contents made
// from it.
const maxLine = 32 << 20

// Reader reads a file, table by table, and checks all counts and checksums. Only one goroutine may use it. The caller
// must not trust the rows before Close has returned nil.
type Reader struct {
	Header Header

	lines  *bufio.Reader
	all    hash.Hash
	before []byte // checksum of all lines before the current line
	long   []byte // buffer for a line that is longer than the reader's buffer
	line   int64
	table  int
	rows   int64
	total  int64
	digest Digest
}

// NewReader reads the header of a file. Errors wrap [ErrForeign], [ErrNewer] or [ErrDamaged].
func NewReader(from io.Reader) (*Reader, error) {
	zip, err := gzip.NewReader(from)
	switch {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w: %w", ErrForeign, err)
	case err != nil:
		return nil, fmt.Errorf("read the export: %w", err)
	}
	r := &Reader{lines: bufio.NewReaderSize(zip, 1<<20), all: sha256.New()}
	line, err := r.next()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(line, &r.Header); err != nil || r.Header.Format != formatOf(&r.Header) {
		return nil, fmt.Errorf("%w: its first line is no header", ErrForeign)
	}
	if r.Header.Version > Version {
		return nil, fmt.Errorf("%w: its form has version %d, this program knows up to %d", ErrNewer, r.Header.Version, Version)
	}
	return r, nil
}

// Next begins the next table. It returns false after the last table.
func (r *Reader) Next() (t Table, found bool, err error) {
	if r.table == len(r.Header.Tables) {
		return Table{}, false, nil
	}
	t = r.Header.Tables[r.table]
	line, err := r.next()
	if err != nil {
		return Table{}, false, err
	}
	var b beginLine
	if json.Unmarshal(line, &b) != nil || b.Table != t.Name {
		return Table{}, false, r.damaged("table %s should begin here", t.Name)
	}
	r.rows, r.digest = 0, Digest{}
	return t, true, nil
}

// Row reads the next row of the current table into row. row must have one element for each column. After the last row,
// Row checks the number and the digest of the rows, and returns false.
func (r *Reader) Row(row []any) (found bool, err error) {
	t := r.Header.Tables[r.table]
	line, err := r.next()
	if err != nil {
		return false, err
	}
	if len(line) > 0 && line[0] == '[' {
		if err := ParseRow(line, t.Columns, row); err != nil {
			return false, r.damaged("row %d of table %s: %w", r.rows+1, t.Name, err)
		}
		r.digest.Add(line)
		r.rows++
		return true, nil
	}
	var e endLine
	switch {
	case json.Unmarshal(line, &e) != nil || e.End != t.Name:
		return false, r.damaged("table %s should end here", t.Name)
	case r.rows != e.Rows || r.rows != t.Rows:
		return false, r.damaged("table %s has %d rows, and should have %d", t.Name, r.rows, t.Rows)
	case r.digest.String() != e.Digest:
		return false, r.damaged("the digest of table %s is %s, and should be %s", t.Name, &r.digest, e.Digest)
	}
	r.table++
	r.total += r.rows
	return false, nil
}

// Digest returns the digest of the last table that was read completely, in hexadecimal.
func (r *Reader) Digest() string { return r.digest.String() }

// Close reads the end of the file and checks the checksum of all lines. It does not close the source.
func (r *Reader) Close() error {
	line, err := r.next()
	if err != nil {
		return err
	}
	var l lastLine
	switch {
	case json.Unmarshal(line, &l) != nil || l.End != lastEnd:
		return r.damaged("it should end here")
	case l.Rows != r.total:
		return r.damaged("it has %d rows, and should have %d", r.total, l.Rows)
	case l.SHA256 != hex.EncodeToString(r.before):
		return r.damaged("its SHA-256 is %x, and should be %s", r.before, l.SHA256)
	}
	if _, err := r.lines.ReadByte(); !errors.Is(err, io.EOF) {
		if err == nil {
			return r.damaged("something follows its end")
		}
		return r.cut(err)
	}
	return nil
}

// next returns the next line without its line break. The line is valid until the next call.
func (r *Reader) next() ([]byte, error) {
	r.line++
	line, err := r.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.long = r.long[:0]
		for errors.Is(err, bufio.ErrBufferFull) && len(r.long) < maxLine {
			r.long = append(r.long, line...)
			line, err = r.lines.ReadSlice('\n')
		}
		r.long = append(r.long, line...)
		line = r.long
	}
	if err != nil {
		return nil, r.cut(err)
	}
	if line[0] == '{' { // only for lines between the rows: a checksum after each row would double the work
		r.before = r.all.Sum(r.before[:0])
	}
	r.all.Write(line)
	return bytes.TrimSuffix(line, lineBreak), nil
}

// cut returns the error for a file that cannot be read any further.
func (r *Reader) cut(err error) error {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return r.damaged("it ends in the middle: it was cut short, or never finished")
	case errors.Is(err, bufio.ErrBufferFull):
		return r.damaged("a line has more than %d bytes", maxLine)
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), corrupt:
		return r.damaged("what was compressed cannot be restored: %w", err)
	}
	return fmt.Errorf("read the export: %w", err)
}

func (r *Reader) damaged(format string, args ...any) error {
	return fmt.Errorf("%w at line %d: %w", ErrDamaged, r.line, fmt.Errorf(format, args...))
}
