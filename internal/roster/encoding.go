package roster

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// encoding is what the rows until now show about the encoding of a list.
type encoding int8

const (
	ascii       encoding = iota // all rows until now are ASCII, so the list may still become utf8Text or windows1252
	utf8Text                    // there is a byte order mark, or a row that is valid UTF-8 and not ASCII
	windows1252                 // a row is not valid UTF-8
	utf16Text                   // the reader decodes the list before it splits rows
)

const (
	bom         = "\xEF\xBB\xBF"
	peeked      = 1024
	maxControls = 16                     // a file with more control characters among the first bytes is not a text
	undefined   = "\x81\x8D\x8F\x90\x9D" // these bytes have no character in Windows-1252
)

// replaced is what the decoder returns for bytes that are not valid UTF-16.
var replaced = []byte(string(utf8.RuneError))

// decoded returns a reader of the list's text after the byte order mark. It also returns what is known about the
// encoding.
func decoded(r io.Reader) (io.Reader, encoding, error) {
	in := bufio.NewReader(r)
	first, err := in.Peek(peeked)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	var order unicode.Endianness
	skipped, is := 0, utf16Text
	switch little, big := zeros(first); {
	case bytes.HasPrefix(first, []byte(bom)):
		skipped, is = len(bom), utf8Text
	case bytes.HasPrefix(first, []byte("\xFF\xFE")):
		skipped, order = 2, unicode.LittleEndian
	case bytes.HasPrefix(first, []byte("\xFE\xFF")):
		skipped, order = 2, unicode.BigEndian
	case little:
		order = unicode.LittleEndian
	case big:
		order = unicode.BigEndian
	default:
		is = ascii
	}
	if is != utf16Text && controls(first) > maxControls {
		return nil, 0, &FileError{Problem: NotAList}
	}
	if _, err := in.Discard(skipped); err != nil {
		return nil, 0, err
	}
	if is != utf16Text {
		return in, is, nil
	}
	return transform.NewReader(in, unicode.UTF16(order, unicode.IgnoreBOM).NewDecoder()), is, nil
}

// zeros recognises UTF-16 without a byte order mark. In the languages of our lists, the upper byte of most characters
// is zero, and the lower byte is almost never zero.
func zeros(first []byte) (little, big bool) {
	var lower, upper int
	pairs := len(first) / 2
	for i := range pairs {
		if first[2*i] == 0 {
			lower++
		}
		if first[2*i+1] == 0 {
			upper++
		}
	}
	return upper > pairs/2 && lower < pairs/8, lower > pairs/2 && upper < pairs/8
}

func controls(first []byte) (n int) {
	for _, b := range first {
		if b < ' ' && b != '\t' && b != '\n' && b != '\r' {
			n++
		}
	}
	return n
}

// takes reports whether a row is valid in the list's encoding. The first row that is not ASCII decides the encoding,
// because all rows before it are the same in every encoding. A later row in another encoding is refused, because its
// letters would be wrong.
func (e *encoding) takes(row []byte) bool {
	if *e == utf16Text {
		return !bytes.Contains(row, replaced)
	}
	if isASCII(row) {
		return true
	}
	valid := utf8.Valid(row)
	if *e == ascii {
		*e = windows1252
		if valid {
			*e = utf8Text
		}
	}
	if valid {
		return *e == utf8Text
	}
	return *e == windows1252 && !slices.ContainsFunc(row, func(b byte) bool { return strings.IndexByte(undefined, b) >= 0 })
}

func isASCII(row []byte) bool {
	for ; len(row) >= 8; row = row[8:] {
		if binary.LittleEndian.Uint64(row)&0x8080808080808080 != 0 {
			return false
		}
	}
	return !slices.ContainsFunc(row, func(b byte) bool { return b >= utf8.RuneSelf })
}
