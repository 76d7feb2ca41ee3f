package icalendar

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// maxLine bounds a line after unfolding, in bytes. The rest of a longer line, mostly a picture, is not read.
const maxLine = 64 << 10

// lineReader reads lines and joins folded ones. A fold may be inside a character, so it joins bytes.
type lineReader struct {
	in   *bufio.Reader
	line []byte
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(r, 32<<10)}
}

// next returns the next line that is not empty, as UTF-8. The line is valid until the next call. At the end, the error
// is io.EOF.
func (l *lineReader) next() ([]byte, error) {
	for {
		l.line = l.line[:0]
		for folded := true; folded; {
			if err := l.physical(); err != nil {
				return nil, err
			}
			next, err := l.in.Peek(1)
			if folded = err == nil && (next[0] == ' ' || next[0] == '\t'); folded {
				_, _ = l.in.Discard(1)
			}
		}
		if len(bytes.TrimSpace(l.line)) > 0 {
			return utf8Line(l.line), nil
		}
		if _, err := l.in.Peek(1); err != nil {
			return nil, ended(err)
		}
	}
}

// physical appends a line of the file, without its end. It returns nil at the end of the file if there was any byte.
func (l *lineReader) physical() error {
	var any bool
	for {
		part, err := l.in.ReadSlice('\n')
		any = any || len(part) > 0
		l.line = append(l.line, part[:min(len(part), maxLine-min(maxLine, len(l.line)))]...)
		switch {
		case err == nil, errors.Is(err, io.EOF) && any:
			l.line = bytes.TrimRight(l.line, "\r\n")
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return ended(err)
		}
	}
}

// ended returns io.EOF only if the file really ended.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return err
}

// windows1252 has the characters of the bytes 0x80 to 0x9f. All other bytes are characters of Latin-1.
const windows1252 = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"

// utf8Line reads a line that is not valid UTF-8 as Windows-1252, which old programs write. If the line was cut, its
// last character may be incomplete.
func utf8Line(line []byte) []byte {
	if utf8.Valid(line) {
		return line
	}
	if len(line) >= maxLine {
		for i := 1; i < utf8.UTFMax; i++ {
			if utf8.Valid(line[:len(line)-i]) {
				return line[:len(line)-i]
			}
		}
	}
	var b bytes.Buffer
	high := []rune(windows1252)
	for _, c := range line {
		if c >= 0x80 && c < 0xa0 {
			b.WriteRune(high[c-0x80])
		} else {
			b.WriteRune(rune(c))
		}
	}
	return b.Bytes()
}

// property is a line: NAME;PARAMETER=value;…:value. Of the parameters, only some matter.
type property struct {
	name  string // in capitals
	value []byte
	tzid  string
	kind  string // VALUE, in capitals
	cn    string
	span  string // RANGE, in capitals
}

// split returns the name of a line and the rest, which begins with ';' or ':'. It returns "" if the line is not a
// property.
func split(line []byte) (name string, rest []byte) {
	end := bytes.IndexAny(line, ";:")
	if end < 0 {
		return "", nil
	}
	word := bytes.TrimSpace(line[:end])
	if len(word) == 0 || len(word) > 64 {
		return "", nil
	}
	for _, c := range word {
		if c != '-' && c != '_' && c != '.' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return "", nil
		}
	}
	if i := bytes.LastIndexByte(word, '.'); i >= 0 { // a group, as in a vCard
		word = word[i+1:]
	}
	return strings.ToUpper(string(word)), line[end:]
}

// parse reads the parameters of a property and its value. A quote opens a quoted text only after "=" or ",", and closes
// it only before a separator, because names contain quotes, as in CN=Mario "il" Rossi. The colon of "://" is in a parameter: Outlook writes
// TZID=tzone://Microsoft/Utc without quotes.
func parse(name string, rest []byte) (p property, ok bool) {
	p.name = name
	for len(rest) > 0 && rest[0] == ';' {
		end, quoted := 1, false
		for ; end < len(rest) && (quoted || rest[end] != ';' && (rest[end] != ':' || bytes.HasPrefix(rest[end:], []byte("://")))); end++ {
			switch {
			case rest[end] != '"':
			case quoted:
				quoted = end+1 < len(rest) && !bytes.ContainsRune([]byte(`;:,`), rune(rest[end+1]))
			case rest[end-1] == '=' || rest[end-1] == ',':
				quoted = closes(rest[end+1:])
			}
		}
		key, value, _ := bytes.Cut(rest[1:end], []byte("="))
		p.set(strings.ToUpper(string(bytes.TrimSpace(key))), string(value))
		rest = rest[end:]
	}
	if len(rest) == 0 {
		return p, false
	}
	p.value = bytes.TrimSpace(rest[1:])
	return p, true
}

// closes reports whether a quoted text ends before the end of the line.
func closes(rest []byte) bool {
	for i, c := range rest {
		if c == '"' && i+1 < len(rest) && bytes.IndexByte([]byte(`;:,`), rest[i+1]) >= 0 {
			return true
		}
	}
	return false
}

func (p *property) set(key, value string) {
	value = strings.TrimSpace(value)
	if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
		value = value[1 : len(value)-1]
	}
	switch key {
	case "TZID":
		p.tzid = strings.TrimSpace(value)
	case "VALUE":
		p.kind = strings.ToUpper(value)
	case "CN":
		p.cn = value
	case "RANGE":
		p.span = strings.ToUpper(value)
	}
}
