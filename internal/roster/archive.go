package roster

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"unicode/utf16"
)

// Limits for reading a workbook. Usual spreadsheets are far below these limits.
const (
	maxUnpacked  = 1 << 30 // largest number of unpacked bytes, of all parts together
	maxRatio     = 200     // the most unpacked bytes for one packed byte, in a part larger than freeUnpacked; deflate could reach about 1,000
	freeUnpacked = 1 << 20 // the largest size of a part that may have any ratio, in unpacked bytes
	maxDirectory = 2 << 20 // largest size of the archive's list of parts, in bytes; each part in the list needs about 300 bytes of memory
	maxPart      = 2 << 20 // largest size of a part that is read in one piece, in bytes
	maxToken     = 1 << 19 // largest size of one tag or text, in bytes; Excel's longest text has half of this size
	maxAttrs     = 256     // largest number of attributes of one tag; the decoder stores attributes that declare a namespace until the tag is closed
	maxDepth     = 64      // how deeply tags may be nested
)

// openTemporary creates a file and removes its name. Therefore, the file disappears with the process, even if the
// process is killed.
func openTemporary(dir string) (*os.File, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("keep a list on disk: %w", err)
		}
	}
	f, err := os.CreateTemp(dir, "list-*") // only the process's user may read the file
	if err != nil {
		return nil, fmt.Errorf("keep a list on disk: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) { // whoever removed it did the same
		f.Close()
		return nil, fmt.Errorf("keep a list on disk: %w", err)
	}
	return f, nil
}

// Spool creates a file for a list that is read twice. The file has no name, and disappears when it is closed.
func Spool(dir string) (*os.File, error) { return openTemporary(dir) }

// archive is a workbook, which is a zip archive of XML parts.
type archive struct {
	file  *os.File
	parts map[string]*zip.File // the parts by name in lower case, because programs differ in the case of these names
}

// openArchive copies an upload to disk. It checks the format and the list of parts. It unpacks no part.
func openArchive(ctx context.Context, r io.Reader, dir string) (*archive, error) {
	f, err := openTemporary(dir)
	if err != nil {
		return nil, err
	}
	a := &archive{file: f, parts: map[string]*zip.File{}}
	size, err := io.Copy(f, r)
	if err == nil {
		err = a.open(ctx, size)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return a, nil
}

func (a *archive) open(ctx context.Context, size int64) error {
	first := make([]byte, len(magicOLE))
	if _, err := a.file.ReadAt(first, 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read a list from disk: %w", err)
	}
	switch {
	case bytes.HasPrefix(first, magicOLE):
		return a.container(size)
	case !bytes.HasPrefix(first, magicZip):
		return &FileError{Problem: NotAList}
	}
	in := &contents{ctx, a.file, maxDirectory}
	z, err := zip.NewReader(in, size)
	if err != nil {
		return damaged(err)
	}
	in.directoryLeft = math.MaxInt
	unpacked, left := uint64(0), uint64(size)
	for _, f := range z.File {
		if f.CompressedSize64 > left {
			return damaged(errors.New("parts share their bytes")) // in such an archive, each of many parts could be as large as the whole file
		}
		left -= f.CompressedSize64
		if f.UncompressedSize64 > maxUnpacked-unpacked ||
			f.UncompressedSize64 > freeUnpacked && f.UncompressedSize64/maxRatio > f.CompressedSize64 {
			return &FileError{Problem: ZipBomb}
		}
		unpacked += f.UncompressedSize64
		a.parts[partName(f.Name)] = f
	}
	return nil
}

// contents is the file of the archive while it is unpacked. It limits the size of the list of parts, because this list
// is in memory. A faulty archive may contain a negative offset. contents refuses this offset, so the fault does not
// look like an error of the disk.
type contents struct {
	ctx           context.Context
	file          *os.File
	directoryLeft int
}

func (c *contents) ReadAt(p []byte, at int64) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	if c.directoryLeft -= len(p); c.directoryLeft < 0 || at < 0 {
		return 0, errors.New("the list of parts is too long, or wrong")
	}
	return c.file.ReadAt(p, at)
}

// container distinguishes an encrypted workbook from an .xls workbook. Both have the same outer format.
func (a *archive) container(size int64) error {
	var name []byte
	for _, unit := range utf16.Encode([]rune("EncryptedPackage")) {
		name = append(name, byte(unit), byte(unit>>8))
	}
	b := make([]byte, 64<<10)
	for at := int64(0); at < size; at += int64(len(b) - len(name)) {
		n, err := a.file.ReadAt(b, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read a list from disk: %w", err)
		}
		if bytes.Contains(b[:n], name) {
			return &FileError{Problem: Encrypted}
		}
	}
	return &FileError{Problem: OldXLS}
}

func partName(name string) string {
	return strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(name, `\`, "/"), "/"))
}

// damaged converts an error in the archive or its XML into a [FileError]. It returns an error of the disk or of the
// context unchanged.
func damaged(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("read a list from disk: %w", err)
	}
	if _, ok := errors.AsType[*FileError](err); ok {
		return err
	}
	return &FileError{Problem: Damaged, Err: err}
}

// part is one part of the archive while its XML is read. It limits the length of a tag or text, and the depth of
// nested tags.
type part struct {
	unpacking io.ReadCloser
	bytes     *bufio.Reader
	tokenLeft int  // bytes that the current token may still have
	begun     bool // true: a tag was read
	depth     int
	xml       *xml.Decoder
}

// part opens a part, or returns nil if the archive has no part with this name. It opens each part only once, because a
// workbook may use the same part for thousands of sheets.
func (a *archive) part(name string) (*part, error) {
	name = partName(name)
	f := a.parts[name]
	if f == nil {
		return nil, nil
	}
	delete(a.parts, name)
	r, err := f.Open()
	if err != nil {
		return nil, damaged(err)
	}
	p := &part{unpacking: r, bytes: bufio.NewReaderSize(r, 32<<10), tokenLeft: maxToken}
	p.xml = xml.NewDecoder(p)
	return p, nil
}

// ReadByte passes bytes to the XML decoder. The decoder does not read beyond the end of a token.
func (p *part) ReadByte() (byte, error) {
	if p.tokenLeft--; p.tokenLeft < 0 {
		return 0, errors.New("a tag or a text is too long")
	}
	return p.bytes.ReadByte()
}

// Read exists because the decoder needs an io.Reader. It is never called.
func (p *part) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// token returns the next tag or text, or nil at the end of the part.
func (p *part) token() (xml.Token, error) {
	p.tokenLeft = maxToken
	t, err := p.xml.Token()
	if errors.Is(err, io.EOF) && p.begun {
		return nil, nil // the decoder has checked that every tag is closed
	}
	if err != nil {
		return nil, damaged(err)
	}
	switch t := t.(type) {
	case xml.StartElement:
		p.begun = true
		if p.depth++; p.depth > maxDepth || len(t.Attr) > maxAttrs {
			return nil, damaged(errors.New("tags lie too deep in others, or one has too many attributes"))
		}
	case xml.EndElement:
		p.depth--
	}
	return t, nil
}

// finish reads the rest of the part, so that the zip reader checks the checksum.
func (p *part) finish() error {
	_, err := io.Copy(io.Discard, p.bytes)
	if err != nil {
		return damaged(err)
	}
	return nil
}

func (p *part) close() { p.unpacking.Close() }

// decode decodes a part of at most maxPart bytes into v. It returns false if there is no such part.
func (a *archive) decode(name string, v any) (bool, error) {
	if f := a.parts[partName(name)]; f != nil && f.UncompressedSize64 > maxPart {
		return false, damaged(fmt.Errorf("%s is too long", name))
	}
	p, err := a.part(name)
	if p == nil {
		return false, err
	}
	defer p.close()
	if err := xml.NewTokenDecoder(p).Decode(v); err != nil {
		return false, damaged(err)
	}
	return true, p.finish()
}

// Token passes tokens to decode, so that the limits of token also apply to decode.
func (p *part) Token() (xml.Token, error) {
	t, err := p.token()
	if t == nil && err == nil {
		err = io.EOF
	}
	return t, err
}
