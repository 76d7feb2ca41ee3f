package roster

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
)

const (
	maxShared  = 10_000_000 // largest number of shared texts; each needs four bytes of memory
	endsPage   = 64 << 10
	windowSize = 16 << 10 // how many bytes one read of the file returns; every text is shorter
)

// sharedTexts contains the texts that cells refer to by number. The texts are in a file, because a large list has
// millions of texts.
type sharedTexts struct {
	file *os.File
	// ends contains the end of each text in the file. The file is smaller than maxUnpacked. The ends are in pages,
	// because one long slice would be copied each time it grows.
	ends   [][]uint32
	count  int
	window []byte // the bytes that were read last; usually they also contain the text of the next cell
	at     int64  // the offset of window in the file
}

// openShared reads the part with the shared texts. It stores at most MaxCell+1 bytes of each text. The extra byte shows
// that the text is too long.
func openShared(p *part, dir string) (*sharedTexts, error) {
	f, err := openTemporary(dir)
	if err != nil {
		return nil, err
	}
	s := &sharedTexts{file: f}
	if err := s.read(p); err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

func (s *sharedTexts) read(p *part) error {
	out := bufio.NewWriterSize(s.file, 64<<10)
	end := uint32(0)
	var text []byte
	for {
		t, err := p.token()
		if err != nil {
			return err
		}
		if t == nil {
			if err := out.Flush(); err != nil {
				return fmt.Errorf("keep a list on disk: %w", err)
			}
			return p.finish()
		}
		if item, ok := t.(xml.StartElement); !ok || item.Name.Local != "si" {
			continue
		}
		if text, err = p.text(text[:0]); err != nil {
			return err
		}
		if s.count == maxShared {
			return damaged(errors.New("too many shared texts"))
		}
		if _, err := out.Write(text); err != nil {
			return fmt.Errorf("keep a list on disk: %w", err)
		}
		end += uint32(len(text))
		if s.count%endsPage == 0 {
			s.ends = append(s.ends, make([]uint32, 0, endsPage))
		}
		page := &s.ends[s.count/endsPage]
		*page = append(*page, end)
		s.count++
	}
}

func (s *sharedTexts) end(number int) int64 { return int64(s.ends[number/endsPage][number%endsPage]) }

// appendTo appends the text with this number to b. It returns false if there is no such text.
func (s *sharedTexts) appendTo(b []byte, number int) ([]byte, bool, error) {
	if s == nil || number < 0 || number >= s.count {
		return b, false, nil
	}
	from, to := int64(0), s.end(number)
	if number > 0 {
		from = s.end(number - 1)
	}
	if from < s.at || to > s.at+int64(len(s.window)) {
		size := min(windowSize, s.end(s.count-1)-from)
		if s.window == nil {
			s.window = make([]byte, 0, windowSize)
		}
		s.window, s.at = s.window[:size], from
		if _, err := s.file.ReadAt(s.window, from); err != nil {
			return nil, false, damaged(err)
		}
	}
	return append(b, s.window[from-s.at:to-s.at]...), true, nil
}

// text appends the text of an element until the element's end. The caller must have read the start tag. The element is
// a shared text, or a text inside a cell. A text may consist of parts in different fonts. The pronunciation of Japanese
// characters (rPh) is not part of the text.
func (p *part) text(b []byte) ([]byte, error) {
	from, outside, reading, inText := len(b), p.depth-1, 0, false
	for p.depth > outside {
		t, err := p.token()
		if err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			inText = t.Name.Local == "t"
			if t.Name.Local == "rPh" {
				reading = p.depth
			}
		case xml.EndElement:
			inText = false
			if p.depth < reading {
				reading = 0
			}
		case xml.CharData:
			if inText && reading == 0 {
				b = appendCell(b, from, t)
			}
		}
	}
	return unescaped(b, from), nil
}

// appendCell appends the bytes in more to the cell that begins at the offset from. It drops the bytes after the first
// longestCell bytes.
func appendCell(b []byte, from int, more []byte) []byte {
	return append(b, more[:min(len(more), max(0, longestCell-(len(b)-from)))]...)
}

// longestCell is the largest size of a cell before the call of unescaped, if the cell has MaxCell+1 bytes after the
// call. One byte may be written as 14 bytes, because _x000D__x000A_ becomes \n.
const longestCell = 14 * (MaxCell + 1)

// escapes matches escapes of characters that XML cannot contain, such as _x000D_ for \r.
var escapes = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

// unescaped replaces the escapes in the cell that begins at the offset from. It writes each line end as \n, and cuts a
// cell that is too long.
func unescaped(b []byte, from int) []byte {
	if cell := b[from:]; bytes.IndexByte(cell, '\r') >= 0 || bytes.Contains(cell, []byte("_x")) {
		cell = escapes.ReplaceAllFunc(cell, func(escape []byte) []byte {
			character, _ := strconv.ParseUint(string(escape[2:6]), 16, 16) // always succeeds, because the expression matches four hexadecimal digits
			return []byte(string(rune(character)))
		})
		cell = bytes.ReplaceAll(cell, []byte("\r\n"), []byte("\n"))
		b = append(b[:from], bytes.ReplaceAll(cell, []byte("\r"), []byte("\n"))...)
	}
	return b[:min(len(b), from+MaxCell+1)]
}
