package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"puntuale"
)

// Facts are what the content of a file says. The bytes to keep may be fewer than those that were uploaded.
type Facts struct {
	Type          string // a media type, such as "image/jpeg"
	Extension     string // the usual extension of the type, without dot
	Width, Height int    // pixels of an image, or points of a PDF's first page; 0: not known
	Size          int64  // bytes to keep

	kept []part
}

// part is a part of the uploaded file, or bytes that replace a part.
type part struct {
	from, size int64
	instead    []byte // nil: the bytes of the upload
}

// Codes of the refusals.
const (
	faultUnknown  puntuale.ReasonCode = "file.unknown"   // {1}: the types that are taken
	faultConvert  puntuale.ReasonCode = "file.convert"   // {1}: what the file is; {2}: what to make of it
	faultDamaged  puntuale.ReasonCode = "file.damaged"   // {1}: the type
	faultPixels   puntuale.ReasonCode = "file.pixels"    // {1}, {2}: the most pixels of a side, and in millions of the whole
	faultMacros   puntuale.ReasonCode = "file.macros"    // a document with a program
	faultNotKept  puntuale.ReasonCode = "file.not_kept"  // a file of a person, of a type that is not taken
	faultTooLarge puntuale.ReasonCode = "file.too_large" // {1}: the most, in MB
)

// taken are the types that are taken, for people.
const taken = "jpg png mp4 3gp mp3 ogg aac amr m4a pdf docx xlsx pptx txt"

// RefusedError says why a file is not taken.
type RefusedError struct{ Reason puntuale.Reason }

func (e *RefusedError) Error() string { return "the file is refused: " + string(e.Reason.Code) }

func refuse(code puntuale.ReasonCode, args ...string) error {
	return &RefusedError{puntuale.Because(code, args...)}
}

// TooLarge returns the refusal of a file that is larger than so many bytes.
func TooLarge(most int64) puntuale.Reason {
	return puntuale.Because(faultTooLarge, strconv.FormatInt(most>>20, 10))
}

// MayBeDocument reports whether an uploaded file begins like a document that can be large. Plain texts cannot.
func MayBeDocument(r io.ReaderAt) bool {
	head := make([]byte, 5)
	_, err := r.ReadAt(head, 0)
	return err == nil && (string(head) == "%PDF-" || string(head[:4]) == archiveBegin)
}

// StickerRefusal says why no message can have a sticker.
func StickerRefusal() puntuale.Reason { return puntuale.Because(faultConvert, "WebP", "jpg, png") }

// Limits of an image. An image of this size takes 200 MB where it is shown.
const (
	maxSide   = 10_000
	maxPixels = 50_000_000
)

// archiveBegin is how the archive of an Office document begins.
const archiveBegin = "PK\x03\x04"

// look is how many of the first bytes decide about the type.
const look = 512

// Sticker is the media type of stickers. They are kept if people send them, but no network takes them as a file of a message.
const Sticker = "image/webp"

// Inspect reads an uploaded file of this size. It returns a [*RefusedError] for a file that is not taken.
func Inspect(r io.ReaderAt, size int64) (Facts, error) { return inspectAs(r, size, false) }

// InspectReceived reads a file that a person sent. It does the same as Inspect, and takes stickers, too.
func InspectReceived(r io.ReaderAt, size int64) (Facts, error) { return inspectAs(r, size, true) }

func inspectAs(r io.ReaderAt, size int64, received bool) (Facts, error) {
	head := make([]byte, look)
	n, err := r.ReadAt(head, 0)
	if err != nil && err != io.EOF { //nolint:errorlint // io.ReaderAt returns io.EOF itself
		return Facts{}, fmt.Errorf("read a file: %w", err)
	}
	head = head[:n]
	f, err := inspect(r, size, head)
	if received && isWebP(head) {
		f, err = Facts{Type: Sticker, Extension: "webp"}, nil
	}
	if refused, ok := errors.AsType[*RefusedError](err); ok && received && (refused.Reason.Code == faultUnknown || refused.Reason.Code == faultConvert) {
		return Facts{}, refuse(faultNotKept) // the other sentences advise somebody who uploads
	}
	if err != nil {
		return Facts{}, err
	}
	if f.kept == nil {
		f.kept = []part{{size: size}}
	}
	for _, p := range f.kept {
		f.Size += p.size
	}
	if f.Extension != "pdf" && (f.Width > maxSide || f.Height > maxSide || f.Width*f.Height > maxPixels) {
		return Facts{}, refuse(faultPixels, strconv.Itoa(maxSide), strconv.Itoa(maxPixels/1_000_000))
	}
	return f, nil
}

func inspect(r io.ReaderAt, size int64, head []byte) (Facts, error) {
	begins := func(text string) bool { return bytes.HasPrefix(head, []byte(text)) }
	switch {
	case begins("\xff\xd8\xff"):
		return inspectJPEG(r, size)
	case begins(pngMark):
		return inspectPNG(r, size)
	case len(head) >= 12 && string(head[4:8]) == "ftyp":
		return inspectMP4(r, size, head)
	case begins("%PDF-"):
		return inspectPDF(r, size), nil
	case begins(archiveBegin):
		return inspectOffice(r, size)
	case begins("\xd0\xcf\x11\xe0"):
		return Facts{}, refuse(faultConvert, "Office 97", "docx, xlsx, pptx, pdf")
	case begins("GIF8"):
		return Facts{}, refuse(faultConvert, "GIF", "mp4, png")
	case isWebP(head):
		return Facts{}, &RefusedError{StickerRefusal()}
	case begins("OggS"):
		return inspectOgg(head)
	case begins("#!AMR\n"):
		return Facts{Type: "audio/amr", Extension: "amr"}, nil
	case begins("ID3"), len(head) > 2 && head[0] == 0xff && head[1]&0xe6 == 0xe2: // a frame of MPEG layer III
		return Facts{Type: "audio/mpeg", Extension: "mp3"}, nil
	case len(head) > 2 && head[0] == 0xff && head[1]&0xf6 == 0xf0: // a frame of ADTS
		return Facts{Type: "audio/aac", Extension: "aac"}, nil
	}
	return inspectText(r, size, head)
}

func isWebP(head []byte) bool {
	return len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP"
}

// inspectOgg takes voice notes: WhatsApp plays no other codec than Opus.
func inspectOgg(head []byte) (Facts, error) {
	if !bytes.Contains(head, []byte("OpusHead")) {
		return Facts{}, refuse(faultConvert, "Ogg", "ogg (Opus), mp3")
	}
	return Facts{Type: "audio/ogg", Extension: "ogg"}, nil
}

// inspectText takes plain text. A text that begins with markup may be a page or a drawing with a script, so it is not taken.
func inspectText(r io.ReaderAt, size int64, head []byte) (Facts, error) {
	unknown := refuse(faultUnknown, taken)
	begin := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n\f\v")
	if len(begin) == 0 || begin[0] == '<' || bytes.HasPrefix(begin, []byte("%!")) || bytes.HasPrefix(begin, []byte("#!")) {
		return Facts{}, unknown
	}
	all, err := io.ReadAll(io.NewSectionReader(r, 0, min(size, maxText+1)))
	if err != nil {
		return Facts{}, fmt.Errorf("read a file: %w", err)
	}
	strange := func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\r\n\f", r) || r == 0x7f }
	if len(all) > maxText || !utf8.Valid(all) || bytes.ContainsFunc(all, strange) {
		return Facts{}, unknown
	}
	return Facts{Type: "text/plain", Extension: "txt"}, nil
}

// maxText is the most bytes of a plain text.
const maxText = 1 << 20

// Reader returns the bytes to keep of the upload.
func (f *Facts) Reader(r io.ReaderAt) io.Reader {
	readers := make([]io.Reader, len(f.kept))
	for i, p := range f.kept {
		if p.instead != nil {
			readers[i] = bytes.NewReader(p.instead)
		} else {
			readers[i] = io.NewSectionReader(r, p.from, p.size)
		}
	}
	return io.MultiReader(readers...)
}

// keep adds a part of the upload to what is kept.
func (f *Facts) keep(from, size int64) {
	if last := len(f.kept) - 1; last >= 0 && f.kept[last].instead == nil && f.kept[last].from+f.kept[last].size == from {
		f.kept[last].size += size
		return
	}
	f.kept = append(f.kept, part{from: from, size: size})
}
