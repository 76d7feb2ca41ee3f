package file

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	_ "image/png" // so that image.Decode reads PNG
	"io"
	"math"
)

// Limits of small pictures.
const (
	maxDecoded = 24_000_000 // the most pixels of an image that is decoded
	smallLevel = 60         // the JPEG quality of a small picture, from 1 to 100
	smallLook  = 128 << 10  // how many bytes of an image are searched for the side that is up
)

// Small returns a small picture of an image, a JPEG with at most side pixels on its longer side, and the size of the image,
// both as the image is shown: with the right side up. open returns the bytes of the image, each time from the beginning. The
// small picture is nil if the image cannot be decoded, or has more than 24 million pixels.
func Small(open func() io.Reader, side int) (small []byte, width, height int) {
	found, _, err := image.DecodeConfig(open())
	if err != nil {
		return nil, 0, 0
	}
	head, _ := io.ReadAll(io.LimitReader(open(), smallLook)) // after an error, decoding fails, too
	up := sideUp(head)
	if width, height = found.Width, found.Height; up >= 5 {
		width, height = height, width
	}
	if width <= 0 || height <= 0 || width*height > maxDecoded {
		return nil, width, height
	}
	whole, _, err := image.Decode(open())
	if err != nil {
		return nil, width, height
	}
	var out bytes.Buffer
	if jpeg.Encode(&out, shrink(whole, up, side), &jpeg.Options{Quality: smallLevel}) != nil {
		return nil, width, height
	}
	return out.Bytes(), width, height
}

// shrink copies one pixel of the image for each pixel of the small picture. up is which side of the image is up, from 1 to 8
// as in Exif; 0: not known.
func shrink(whole image.Image, up uint16, side int) image.Image {
	b := whole.Bounds()
	w, h := b.Dx(), b.Dy()
	if up >= 5 {
		w, h = h, w
	}
	scale := max(1, math.Max(float64(w), float64(h))/float64(side))
	small := image.NewRGBA(image.Rect(0, 0, max(1, int(float64(w)/scale)), max(1, int(float64(h)/scale))))
	for y := range small.Rect.Dy() {
		for x := range small.Rect.Dx() {
			px, py := stored(int(float64(x)*scale), int(float64(y)*scale), w, h, up)
			r, g, bl, a := whole.At(b.Min.X+px, b.Min.Y+py).RGBA()
			white := 0xffff - a // how much of a white background shows through
			small.SetRGBA(x, y, color.RGBA{uint8((r + white) >> 8), uint8((g + white) >> 8), uint8((bl + white) >> 8), 0xff})
		}
	}
	return small
}

// stored returns where the pixel x, y of an image of the size w, h is stored. (Exif 2.32, 4.6.4, tag 274.)
func stored(x, y, w, h int, up uint16) (px, py int) {
	switch up {
	case 2:
		return w - 1 - x, y
	case 3:
		return w - 1 - x, h - 1 - y
	case 4:
		return x, h - 1 - y
	case 5:
		return y, x
	case 6:
		return y, w - 1 - x
	case 7:
		return h - 1 - y, w - 1 - x
	case 8:
		return h - 1 - y, x
	}
	return x, y
}

// sideUp returns which side of an image is up, as the first segments of a JPEG say; 0: they do not say.
func sideUp(head []byte) uint16 {
	if !bytes.HasPrefix(head, []byte("\xff\xd8")) {
		return 0
	}
	for head = head[2:]; len(head) >= 4 && head[0] == 0xff; {
		marker, length := int(head[1]), int(binary.BigEndian.Uint16(head[2:]))
		if marker == 0xff { // a byte before the marker
			head = head[1:]
			continue
		}
		if marker == markSOS || length < 2 || length+2 > len(head) {
			return 0
		}
		if marker == markAPP1 {
			if up := orientation(head[4 : length+2]); up > 0 {
				return up
			}
		}
		head = head[length+2:]
	}
	return 0
}
