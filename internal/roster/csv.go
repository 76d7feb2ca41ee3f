package roster

import (
	"bytes"
	"errors"
	"io"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// csvBuffer is how many bytes of a CSV list are in memory. Two rows fit into the buffer, so a row can be parsed inside
// it.
const csvBuffer = 256 << 10

// sampled is how many rows the function delimiter reads.
const sampled = 10

// csvSource reads CSV. Lines end with \r\n, \n or \r, and a list may mix these line ends.
//
// encoding/csv is not used, because it would read from an open quote to the end of the file. It also does not recognise
// \r, and does not report the first line of a row with an open quote.
type csvSource struct {
	r          io.Reader // the list in UTF-8, or in an encoding that the rows reveal
	buf        []byte
	from, to   int // range of buf that is not parsed yet
	err        error
	line       int // number of the next line
	encoding   encoding
	row        rowScanner
	converting []byte
}

func openCSV(r io.Reader) (*csvSource, error) {
	c := &csvSource{buf: make([]byte, csvBuffer), line: 1}
	var err error
	if c.r, c.encoding, err = decoded(r); err != nil {
		return nil, err
	}
	if err := c.fill(); err != nil {
		return nil, err
	}
	c.row.delimiter = c.separator()
	if c.row.delimiter == 0 {
		c.row.delimiter = delimiter(c.unparsed())
	}
	return c, nil
}

func (c *csvSource) Close() error { return nil }

func (c *csvSource) unparsed() []byte { return c.buf[c.from:c.to] }

// fill reads more into the buffer. After that, the buffer contains either more than MaxLine bytes and the end of a
// line, or the rest of the list.
func (c *csvSource) fill() error {
	if c.to-c.from > MaxLine+2 || errors.Is(c.err, io.EOF) {
		return nil
	}
	c.to = copy(c.buf, c.unparsed())
	c.from = 0
	for c.to < len(c.buf) && c.err == nil {
		var n int
		n, c.err = c.r.Read(c.buf[c.to:])
		c.to += n
	}
	if errors.Is(c.err, io.EOF) {
		return nil
	}
	return c.err
}

func (c *csvSource) next() (record, error) {
	if err := c.fill(); err != nil {
		return record{}, err
	}
	if c.from == c.to {
		return record{}, io.EOF
	}
	line := c.line
	size, lines, problem := c.row.scan(c.unparsed())
	if problem != "" {
		// Skip only the first line of the row. The next line counts as the next row, even if it was inside the quotes.
		if err := c.skipLine(); err != nil {
			return record{}, err
		}
		return record{fault: &RowError{line, 0, problem}}, nil
	}
	raw := c.buf[c.from : c.from+size]
	c.from += size
	c.line += lines
	r := record{line: line, text: c.row.text, ends: c.row.ends}
	if !c.encoding.takes(raw) {
		return record{fault: &RowError{line, 0, BadEncoding}}, nil
	}
	if c.encoding == windows1252 {
		c.converting = r.fromWindows(c.converting[:0])
	}
	return r, nil
}

// skipLine skips a line of any length.
func (c *csvSource) skipLine() error {
	for {
		if i := bytes.IndexAny(c.unparsed(), "\r\n"); i >= 0 {
			c.from += i
			if err := c.fill(); err != nil {
				return err
			}
			c.from += lineEnd(c.unparsed())
			c.line++
			return nil
		}
		c.from = c.to
		if err := c.fill(); err != nil || c.from == c.to {
			return err
		}
	}
}

// separator reads a line such as "sep=;", which sets the delimiter in Excel. It returns 0 if there is no such line.
func (c *csvSource) separator() byte {
	b := c.unparsed()
	if len(b) < 5 || !bytes.EqualFold(b[:4], []byte("sep=")) || len(b) > 5 && lineEnd(b[5:]) == 0 {
		return 0
	}
	if d := b[4]; d != '\t' && (d <= ' ' || d == '"' || d >= unicode.MaxASCII || unicode.IsLetter(rune(d)) || unicode.IsDigit(rune(d))) {
		return 0
	}
	c.from += 5 + lineEnd(b[5:])
	c.line++
	return b[4]
}

// delimiter finds the character between cells. It is the character that splits most of the first rows into as many
// cells as the header. The comma is tried last, because lists with another delimiter may contain many commas: "Rossi,
// Anna;333".
func delimiter(b []byte) byte {
	best, bestCount := byte(','), 0
	for _, candidate := range []byte("\t;|,") {
		if same := countAlike(b, candidate); same > bestCount {
			best, bestCount = candidate, same
		}
	}
	return best
}

// countAlike counts how many of the first rows a delimiter splits into as many cells as the header. It returns 0 if the
// delimiter does not split the header.
func countAlike(b []byte, delimiter byte) (same int) {
	s, columns := rowScanner{delimiter: delimiter}, 0
	for n := 0; n < sampled && len(b) > 0; {
		size, _, problem := s.scan(b)
		if problem != "" {
			size = len(b)
			if i := bytes.IndexAny(b, "\r\n"); i >= 0 {
				size = i + lineEnd(b[i:])
			}
			n++
		} else if !(record{text: s.text}).blank() {
			if columns == 0 {
				columns = len(s.ends)
			}
			if columns > 1 && len(s.ends) == columns {
				same++
			}
			n++
		}
		b = b[size:]
	}
	return same
}

// rowScanner splits one row into cells. A cell is quoted if a quote is its first character after blanks. As in Excel, a
// later quote is part of the text.
type rowScanner struct {
	delimiter byte
	text      []byte
	ends      []int
}

// scan parses the row at the beginning of b. b must contain more than MaxLine bytes, or the whole rest of the list.
// scan returns how many bytes and lines the row has.
func (s *rowScanner) scan(b []byte) (size, lines int, problem Problem) {
	s.text, s.ends = s.text[:0], s.ends[:0]
	in, at := b[:min(len(b), MaxLine)], 0
	for {
		if quote := s.quote(in, at); quote < 0 {
			at = s.plain(in, at)
		} else if at, problem = s.quoted(in, quote+1, &lines); problem != "" {
			return 0, 0, problem
		}
		s.ends = append(s.ends, len(s.text))
		if at < len(in) && in[at] == s.delimiter {
			at++
			continue
		}
		end := lineEnd(b[at:])
		if end == 0 && at < len(b) {
			return 0, 0, LineTooLong
		}
		return at + end, lines + 1, ""
	}
}

// quote returns the offset of a cell's opening quote, or -1.
func (s *rowScanner) quote(in []byte, at int) int {
	if at = s.blanks(in, at); at < len(in) && in[at] == '"' {
		return at
	}
	return -1
}

func (s *rowScanner) blanks(in []byte, at int) int {
	for at < len(in) && (in[at] == ' ' || in[at] == '\t' && s.delimiter != '\t') {
		at++
	}
	return at
}

// plain parses a cell without quotes and returns the offset of its end.
func (s *rowScanner) plain(in []byte, at int) int {
	from := at
	for at < len(in) && in[at] != s.delimiter && in[at] != '\n' && in[at] != '\r' {
		at++
	}
	s.text = append(s.text, in[from:at]...)
	return at
}

// quoted parses a quoted cell and returns the offset of its end. at is the offset after the opening quote.
func (s *rowScanner) quoted(in []byte, at int, lines *int) (int, Problem) {
	for {
		n := bytes.IndexByte(in[at:], '"')
		if n < 0 {
			return 0, OpenQuote
		}
		*lines += s.multiline(in[at : at+n])
		at += n + 1
		if at == len(in) || in[at] != '"' {
			break
		}
		s.text = append(s.text, '"')
		at++
	}
	at = s.blanks(in, at)
	if at < len(in) && in[at] != s.delimiter && in[at] != '\n' && in[at] != '\r' {
		return 0, BareQuote
	}
	return at, ""
}

// multiline appends a part of a quoted cell, with each line end as \n, and returns the number of line ends.
func (s *rowScanner) multiline(part []byte) (lines int) {
	for {
		i := bytes.IndexByte(part, '\r')
		if i < 0 {
			s.text = append(s.text, part...)
			return lines + bytes.Count(part, []byte{'\n'})
		}
		lines += 1 + bytes.Count(part[:i], []byte{'\n'})
		s.text = append(append(s.text, part[:i]...), '\n')
		part = part[i+lineEnd(part[i:]):]
	}
}

// lineEnd returns the length of the line end at the beginning of b: 0 (none), 1 or 2.
func lineEnd(b []byte) int {
	switch {
	case len(b) > 1 && b[0] == '\r' && b[1] == '\n':
		return 2
	case len(b) > 0 && (b[0] == '\r' || b[0] == '\n'):
		return 1
	default:
		return 0
	}
}

// fromWindows converts a row from Windows-1252 to UTF-8. It appends the text to dst, and returns the result.
func (r *record) fromWindows(dst []byte) []byte {
	from := 0
	for i, to := range r.ends {
		for _, b := range r.text[from:to] {
			dst = utf8.AppendRune(dst, charmap.Windows1252.DecodeByte(b))
		}
		from, r.ends[i] = to, len(dst)
	}
	r.text = dst
	return dst
}
