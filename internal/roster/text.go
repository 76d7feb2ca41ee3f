package roster

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// text is a list in CSV.
type text struct {
	csv   *csv.Reader
	bound *recordBound
}

func openText(r io.Reader, first []byte) (*text, error) {
	if decoder := decoderOf(first); decoder != nil {
		r = decoder.Reader(r)
		decoded, err := decoder.Bytes(first[:len(first)&^1])
		if err != nil && len(decoded) == 0 {
			return nil, &FileError{Message: "the file's encoding cannot be read"}
		}
		first = decoded
	}
	mark := []byte("\xef\xbb\xbf")
	t := &text{bound: &recordBound{r: &lineEnds{r: r}}}
	first = bytes.TrimPrefix(first, mark)
	t.csv = csv.NewReader(&withoutMark{r: t.bound, mark: mark})
	t.csv.FieldsPerRecord, t.csv.ReuseRecord = -1, true
	var named bool
	if t.csv.Comma, named = delimiter(first); named {
		if _, err := t.csv.Read(); err != nil { // the line that names it
			return nil, &FileError{Message: "the first line cannot be read"}
		}
	}
	return t, nil
}

// decoderOf finds out how a text is encoded; nil is UTF-8.
func decoderOf(first []byte) *encoding.Decoder {
	switch {
	case bytes.HasPrefix(first, []byte("\xff\xfe")), halfNUL(first, 1):
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder()
	case bytes.HasPrefix(first, []byte("\xfe\xff")), halfNUL(first, 0):
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewDecoder()
	}
	whole := first
	for n := 0; n < utf8.UTFMax && len(whole) > 0 && !utf8.Valid(whole); n++ { // a character may be cut in two
		whole = whole[:len(whole)-1]
	}
	if !utf8.Valid(whole) {
		return charmap.Windows1252.NewDecoder()
	}
	return nil
}

// halfNUL reports a text of which nearly every second byte is NUL, as in UTF-16.
func halfNUL(first []byte, from int) bool {
	n := 0
	for i := from; i < len(first); i += 2 {
		if first[i] == 0 {
			n++
		}
	}
	return len(first) > 8 && n*10 > len(first)/2*8
}

// delimiter finds what stands between the cells of the header: the sign that is there most often outside of quotes. A first
// line "sep=;" names it.
func delimiter(first []byte) (sign rune, named bool) {
	line, _, _ := strings.Cut(strings.ReplaceAll(string(first), "\r", "\n"), "\n")
	if rest, ok := strings.CutPrefix(strings.ToLower(line), "sep="); ok && utf8.RuneCountInString(strings.TrimSpace(rest)) <= 1 && rest != "" {
		sign, _ = utf8.DecodeRuneInString(rest)
		if strings.ContainsRune(",;\t|", sign) {
			return sign, true
		}
	}
	count, quoted := map[rune]int{}, false
	for _, r := range line {
		switch {
		case r == '"':
			quoted = !quoted
		case !quoted && strings.ContainsRune(";,\t|", r):
			count[r]++
		}
	}
	sign = ','
	for _, r := range ";,\t|" {
		if count[r] > count[sign] {
			sign = r
		}
	}
	return sign, false
}

func (t *text) next() (line int, cells []string, err error) {
	cells, err = t.csv.Read()
	if e, ok := errors.AsType[*csv.ParseError](err); ok {
		t.bound.read = 0
		if errors.Is(e.Err, errRecord) {
			return 0, nil, &FileError{Message: fmt.Sprintf("the row that begins in line %d is longer than %d bytes; perhaps a quotation mark is not closed", e.StartLine, maxRecord)}
		}
		return 0, nil, &RowError{e.StartLine, "has quotation marks that do not fit together"}
	}
	if errors.Is(err, errRecord) {
		return 0, nil, &FileError{Message: fmt.Sprintf("a row is longer than %d bytes; perhaps a quotation mark is not closed", maxRecord)}
	}
	if err != nil {
		return 0, nil, err
	}
	t.bound.read = 0
	line, _ = t.csv.FieldPos(0)
	return line, cells, nil
}

// Close has nothing to close.
func (t *text) Close() error { return nil }

var errRecord = errors.New("a row is too long")

// recordBound bounds what is read for one row: a quotation mark that is never closed would take the whole file.
type recordBound struct {
	r    io.Reader
	read int
}

func (b *recordBound) Read(p []byte) (int, error) {
	if b.read > maxRecord {
		return 0, errRecord
	}
	n, err := b.r.Read(p)
	b.read += n
	return n, err
}

// withoutMark drops a byte order mark.
type withoutMark struct {
	r    io.Reader
	mark []byte
	past bool
}

func (w *withoutMark) Read(p []byte) (int, error) {
	if w.past || len(p) < len(w.mark) {
		return w.r.Read(p)
	}
	w.past = true
	n, err := io.ReadAtLeast(w.r, p, len(w.mark))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	if bytes.HasPrefix(p[:n], w.mark) {
		n = copy(p, p[len(w.mark):n])
	}
	return n, err
}

// lineEnds makes every end of a line "\n": files that several programs wrote have all three.
type lineEnds struct {
	r    io.Reader
	last byte
}

func (l *lineEnds) Read(p []byte) (int, error) {
	for {
		n, err := l.r.Read(p)
		kept := p[:0]
		for _, c := range p[:n] {
			before := l.last
			l.last = c
			switch {
			case c == '\r':
				kept = append(kept, '\n')
			case c == '\n' && before == '\r':
			default:
				kept = append(kept, c)
			}
		}
		if len(kept) > 0 || err != nil || n == 0 {
			return len(kept), err
		}
	}
}
