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

// Limits of what reading a workbook may cost. Usual spreadsheets stay far below them.
const (
	maxUnpacked  = 1 << 30 // bytes of all parts
	maxRatio     = 200     // unpacked bytes for each packed byte, for a part above freeUnpacked; deflate itself reaches 1,000
	freeUnpacked = 1 << 20 // bytes; a smaller part may have any ratio
	maxDirectory = 2 << 20 // bytes of the archive's list of parts; each part in it takes some 300 in memory
	maxPart      = 2 << 20 // bytes of a part that is read at once
	maxToken     = 1 << 19 // bytes of one tag or text; the longest text of Excel takes half of it
	maxAttrs     = 256     // attributes of one tag; the decoder keeps those that name a namespace while the tag is open
	maxDepth     = 64      // how deeply tags may be nested
)

// openTemporary makes a file without a name. So the file disappears with the process, even if the process is killed.
func openTemporary(dir string) (*os.File, error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("keep a list on disk: %w", err)
		}
	}
	f, err := os.CreateTemp(dir, "list-*") // only its owner may read it
	if err != nil {
		return nil, fmt.Errorf("keep a list on disk: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, fmt.Errorf("keep a list on disk: %w", err)
	}
	return f, nil
}

// archive is a workbook as a zip archive.
type archive struct {
	file  *os.File
	parts map[string]*zip.File // by name in lower case, because programs write names differently
}

// openArchive copies an upload to disk and checks the list of its parts, before any of them is unpacked.
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
	in.left = math.MaxInt
	unpacked, left := uint64(0), uint64(size)
	for _, f := range z.File {
		if f.CompressedSize64 > left {
			return damaged(errors.New("parts share their bytes")) // reading each part would cost as much as reading all
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

// contents is the archive's file while it is unpacked. It bounds the bytes of the list of parts, which is kept in memory. An archive may
// name an offset before its own beginning. That is a fault of the archive, not of the disk.
type contents struct {
	ctx  context.Context
	file *os.File
	left int
}

func (c *contents) ReadAt(p []byte, at int64) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	if c.left -= len(p); c.left < 0 || at < 0 {
		return 0, errors.New("the list of parts is too long, or wrong")
	}
	return c.file.ReadAt(p, at)
}

// container tells an encrypted workbook from an .xls workbook. Both are in the same kind of file.
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

// damaged turns an error of the archive or of its XML into a fault of the list. It leaves an error of the disk, and the end of the context,
// as they are.
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

// part is one file of the archive while its XML is read. It bounds how long a tag or a text is, and how deeply tags are nested.
type part struct {
	unpacking io.ReadCloser
	bytes     *bufio.Reader
	left      int  // bytes that the current token may still have
	begun     bool // a tag was read
	depth     int
	xml       *xml.Decoder
}

// part opens a part, and returns nil if the archive has none with this name. It opens each part only once, because a workbook may name the
// same part for thousands of sheets.
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
	p := &part{unpacking: r, bytes: bufio.NewReaderSize(r, 32<<10), left: maxToken}
	p.xml = xml.NewDecoder(p)
	return p, nil
}

// ReadByte gives the XML decoder its bytes. The decoder reads no further than to the end of a token.
func (p *part) ReadByte() (byte, error) {
	if p.left--; p.left < 0 {
		return 0, errors.New("a tag or a text is too long")
	}
	return p.bytes.ReadByte()
}

// Read exists because the decoder needs an io.Reader. It is never called.
func (p *part) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// token returns the next tag or text. At the end of the part it is nil.
func (p *part) token() (xml.Token, error) {
	p.left = maxToken
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

// finish reads the rest of the part, so that the checksum is compared.
func (p *part) finish() error {
	_, err := io.Copy(io.Discard, p.bytes)
	if err != nil {
		return damaged(err)
	}
	return nil
}

func (p *part) close() { p.unpacking.Close() }

// decode reads a part of at most maxPart bytes into v. It reports whether there is such a part.
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

// Token gives decode its tokens, so that the bounds of token also hold for decode.
func (p *part) Token() (xml.Token, error) {
	t, err := p.token()
	if t == nil && err == nil {
		err = io.EOF
	}
	return t, err
}
