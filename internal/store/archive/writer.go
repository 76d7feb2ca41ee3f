package archive

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
)

// Writer writes a file, table by table. Only one goroutine may use it.
type Writer struct {
	zip    *gzip.Writer
	all    hash.Hash
	header Header
	table  int // index of the current table, or of the next table if none has begun
	rows   int64
	digest Digest
	line   []byte
}

// NewWriter begins a file. It sets Format and Version in the header.
func NewWriter(to io.Writer, h Header) (*Writer, error) {
	h.Format, h.Version = formatOf(&h), Version
	zip, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	w := &Writer{zip: zip, all: sha256.New(), header: h}
	return w, w.mark(h)
}

// Begin begins the header's next table.
func (w *Writer) Begin() error {
	w.rows, w.digest = 0, Digest{}
	return w.mark(beginLine{w.header.Tables[w.table].Name})
}

// Row writes a row of the current table.
func (w *Writer) Row(row []any) error {
	var err error
	if w.line, err = AppendRow(w.line[:0], row); err != nil {
		return err
	}
	return w.Line(w.line)
}

// Line writes a row of the current table. The caller must have made the line with AppendRow.
func (w *Writer) Line(line []byte) error {
	if len(line) >= maxLine {
		return fmt.Errorf("a row has %d bytes, and %d are allowed", len(line), maxLine)
	}
	w.digest.Add(line)
	w.rows++
	return w.write(line)
}

// End ends the current table. The number of written rows must be equal to the number in the header.
func (w *Writer) End() error {
	t := w.header.Tables[w.table]
	if w.rows != t.Rows {
		return fmt.Errorf("table %s has %d rows, and %d were counted", t.Name, w.rows, t.Rows)
	}
	w.table++
	return w.mark(endLine{t.Name, w.rows, w.digest.String()})
}

// Close writes the end of the file. Readers refuse a file without an end.
func (w *Writer) Close() error {
	if err := w.mark(lastLine{lastEnd, w.header.Rows(), hex.EncodeToString(w.all.Sum(nil))}); err != nil {
		return err
	}
	if err := w.zip.Close(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func (w *Writer) mark(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return w.write(line)
}

var lineBreak = []byte{'\n'}

func (w *Writer) write(line []byte) error {
	for _, part := range [][]byte{line, lineBreak} {
		w.all.Write(part)
		if _, err := w.zip.Write(part); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

func formatOf(h *Header) string {
	if h.Part != nil {
		return PartFormat
	}
	return Format
}
