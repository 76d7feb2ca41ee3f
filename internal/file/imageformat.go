package file

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// maxSegments is the most segments of a JPEG and chunks of a PNG that are read.
const maxSegments = 100_000

// Markers of a JPEG. (ITU-T T.81, table B.1.)
const (
	markSOI  = 0xd8
	markEOI  = 0xd9
	markSOS  = 0xda
	markDHT  = 0xc4
	markJPG  = 0xc8
	markDAC  = 0xcc
	markAPP0 = 0xe0
	markAPP1 = 0xe1
)

// inspectJPEG keeps the segments that a picture needs, and ends the file where the picture ends. Exif goes, with place,
// time and device; only which side is up stays. Everything behind the picture goes, too.
func inspectJPEG(r io.ReaderAt, size int64) (Facts, error) {
	f := Facts{Type: "image/jpeg", Extension: "jpg"}
	j := &jpegReader{r: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 64<<10), f: &f}
	if err := j.read(); err != nil {
		return Facts{}, err
	}
	return f, nil
}

type jpegReader struct {
	r       *bufio.Reader
	at      int64 // of the next byte
	f       *Facts
	scans   int
	later   bool // a frame says its height only behind its data (DNL), so nobody knows it before decoding
	pending int  // a marker that ended a scan; 0: none
}

var errJPEG = refuse(faultDamaged, "JPEG")

func (j *jpegReader) read() error {
	if _, err := j.r.Discard(2); err != nil {
		return errJPEG
	}
	j.at = 2
	j.f.keep(0, 2)
	for range maxSegments {
		marker, err := j.marker()
		if err != nil {
			return errJPEG
		}
		from := j.at - 2
		switch {
		case marker == markEOI:
			if j.f.Width == 0 || j.f.Height == 0 || j.later || j.scans == 0 {
				return errJPEG
			}
			j.f.keep(from, 2)
			return nil
		case marker == markSOI || marker == 0x01 || marker >= 0xd0 && marker <= 0xd7:
			return errJPEG
		}
		body, err := j.segment()
		if err != nil {
			return errJPEG
		}
		j.take(marker, from, body)
		if marker == markSOS {
			j.scans++
			begin := j.at
			if err := j.scan(); err != nil {
				return errJPEG
			}
			j.f.keep(begin, j.at-2-begin)
		}
	}
	return errJPEG
}

// marker reads the next marker. Before a marker there may be bytes 0xff, which are not kept.
func (j *jpegReader) marker() (int, error) {
	if j.pending != 0 {
		m := j.pending
		j.pending = 0
		return m, nil
	}
	b, err := j.byte()
	if err != nil || b != 0xff {
		return 0, errJPEG
	}
	for b == 0xff {
		if b, err = j.byte(); err != nil {
			return 0, err
		}
	}
	return int(b), nil
}

func (j *jpegReader) byte() (byte, error) {
	b, err := j.r.ReadByte()
	j.at++
	return b, err
}

// segment reads a segment without its marker and length.
func (j *jpegReader) segment() ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(j.r, length[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(length[:]))
	if n < 2 {
		return nil, errJPEG
	}
	body := make([]byte, n-2)
	_, err := io.ReadFull(j.r, body)
	j.at += int64(n)
	return body, err
}

// take keeps a segment, if the picture needs it.
func (j *jpegReader) take(marker int, from int64, body []byte) {
	frame := marker >= 0xc0 && marker <= 0xcf && marker != markDHT && marker != markJPG && marker != markDAC
	if frame && len(body) >= 6 {
		j.later = j.later || body[1] == 0 && body[2] == 0
		j.f.Height, j.f.Width = max(j.f.Height, int(binary.BigEndian.Uint16(body[1:]))), max(j.f.Width, int(binary.BigEndian.Uint16(body[3:])))
	}
	keeps := marker >= 0xc0 && marker <= 0xcf || marker >= 0xda && marker <= 0xdf
	switch marker {
	case markAPP0:
		keeps = bytes.HasPrefix(body, []byte("JFIF\x00"))
	case 0xe2:
		keeps = bytes.HasPrefix(body, []byte("ICC_PROFILE\x00"))
	case 0xee:
		keeps = bytes.HasPrefix(body, []byte("Adobe")) // without it, pictures with inverted colours look wrong
	case markAPP1:
		if side := orientation(body); side > 1 {
			instead := exifOf(side)
			j.f.kept = append(j.f.kept, part{size: int64(len(instead)), instead: instead})
		}
	}
	if keeps {
		j.f.keep(from, j.at-from)
	}
}

// scan reads the data of a scan, to the marker behind it.
func (j *jpegReader) scan() error {
	for {
		b, err := j.byte()
		if err != nil {
			return err
		}
		if b != 0xff {
			continue
		}
		for b == 0xff {
			if b, err = j.byte(); err != nil {
				return err
			}
		}
		if b != 0 && (b < 0xd0 || b > 0xd7) {
			j.pending = int(b)
			return nil
		}
	}
}

// orientation returns which side of an image is up, from 1 to 8, as its Exif says; 0: it does not say. (Exif 2.32, 4.6.4.)
func orientation(body []byte) uint16 {
	tiff, ok := bytes.CutPrefix(body, []byte("Exif\x00\x00"))
	if !ok || len(tiff) < 8 {
		return 0
	}
	var order binary.ByteOrder = binary.BigEndian
	if string(tiff[:2]) == "II" {
		order = binary.LittleEndian
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return 0
	}
	for i := range int64(order.Uint16(tiff[at:])) {
		entry := at + 2 + 12*i
		if entry+12 > int64(len(tiff)) {
			return 0
		}
		if order.Uint16(tiff[entry:]) == 0x0112 {
			if side := order.Uint16(tiff[entry+8:]); side <= 8 {
				return side
			}
			return 0
		}
	}
	return 0
}

// exifOf returns a segment that says only which side is up.
func exifOf(side uint16) []byte {
	return fmt.Appendf(nil, "\xff\xe1\x00\x22Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00%c\x00\x00\x00\x00\x00\x00", rune(side))
}

const pngMark = "\x89PNG\r\n\x1a\n"

// pngChunks are the chunks that a picture needs, each with the most bytes it may have; 0: no limit.
var pngChunks = map[string]int64{
	"IHDR": 13, "PLTE": 768, "IDAT": 0, "IEND": 1, "tRNS": 768, "gAMA": 4, "cHRM": 32, "sRGB": 1, "iCCP": 64 << 10, "sBIT": 4, "bKGD": 6, "pHYs": 9,
}

// inspectPNG keeps the chunks that a picture needs, and ends the file where the picture ends. Texts, Exif and animations
// go.
func inspectPNG(r io.ReaderAt, size int64) (Facts, error) {
	damaged := refuse(faultDamaged, "PNG")
	f := Facts{Type: "image/png", Extension: "png"}
	f.keep(0, int64(len(pngMark)))
	at, data := int64(len(pngMark)), false
	for i := range maxSegments {
		var head [8]byte
		if _, err := r.ReadAt(head[:], at); err != nil {
			return Facts{}, damaged
		}
		length, kind := int64(binary.BigEndian.Uint32(head[:])), string(head[4:])
		whole := length + 12
		if (i == 0) != (kind == "IHDR") || at+whole > size {
			return Facts{}, damaged
		}
		most, keeps := pngChunks[kind]
		switch kind {
		case "IHDR":
			var sides [8]byte
			if _, err := r.ReadAt(sides[:], at+8); err != nil || length != 13 {
				return Facts{}, damaged
			}
			f.Width, f.Height = int(binary.BigEndian.Uint32(sides[:])), int(binary.BigEndian.Uint32(sides[4:]))
			if f.Width <= 0 || f.Height <= 0 {
				return Facts{}, damaged
			}
		case "IDAT":
			data = data || length > 0
		}
		if keeps && (most == 0 || length <= most) {
			f.keep(at, whole)
		}
		at += whole
		if kind == "IEND" {
			if !data {
				return Facts{}, damaged
			}
			return f, nil
		}
	}
	return Facts{}, damaged
}
