//go:build !nosocket

package socket

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

// Limits for previews. A phone shows a thumbnail until it has loaded the image. For a voice note it shows the length.
const (
	thumbnailSide  = 96
	maxThumbnail   = 24_000_000 // the most pixels of an image that is decoded
	thumbnailLevel = 60         // the JPEG quality of a thumbnail, from 1 to 100
	oggLook        = 512        // bytes at the start of a file, which contain the codec's name
	oggTail        = 64 << 10   // bytes at the end of a file; longer than any Ogg page
	opusRate       = 48_000     // the granule position of Ogg pages grows by this number in a second, at any sampling rate
)

// thumbnailOf returns a small picture of an image, and the image's size in pixels. The thumbnail is nil if the image
// cannot be decoded or is too large.
func thumbnailOf(m io.ReadSeeker) (thumbnail []byte, width, height int) {
	found, _, err := image.DecodeConfig(m)
	if err != nil {
		return nil, 0, 0
	}
	if found.Width <= 0 || found.Height <= 0 || found.Width*found.Height > maxThumbnail {
		return nil, found.Width, found.Height
	}
	if _, err := m.Seek(0, io.SeekStart); err != nil {
		return nil, found.Width, found.Height
	}
	whole, _, err := image.Decode(m)
	if err != nil {
		return nil, found.Width, found.Height
	}
	var out bytes.Buffer
	if jpeg.Encode(&out, shrink(whole), &jpeg.Options{Quality: thumbnailLevel}) != nil {
		return nil, found.Width, found.Height
	}
	return out.Bytes(), found.Width, found.Height
}

// shrink copies one pixel of the image for each pixel of the thumbnail. That is enough, because phones blur the
// thumbnail.
func shrink(whole image.Image) image.Image {
	b := whole.Bounds()
	scale := max(1, math.Max(float64(b.Dx()), float64(b.Dy()))/thumbnailSide)
	small := image.NewRGBA(image.Rect(0, 0, max(1, int(float64(b.Dx())/scale)), max(1, int(float64(b.Dy())/scale))))
	for y := range small.Rect.Dy() {
		for x := range small.Rect.Dx() {
			r, g, bl, a := whole.At(b.Min.X+int(float64(x)*scale), b.Min.Y+int(float64(y)*scale)).RGBA()
			white := 0xffff - a // how much of a white background shows through
			small.SetRGBA(x, y, color.RGBA{uint8((r + white) >> 8), uint8((g + white) >> 8), uint8((bl + white) >> 8), 0xff})
		}
	}
	return small
}

// opusSeconds returns the length of an Ogg file with Opus, in seconds. It reads the granule position (the number of
// samples) of the last Ogg page. It returns 0 if the length is unknown.
func opusSeconds(m io.ReadSeeker, size int64) int {
	if _, err := m.Seek(max(0, size-oggTail), io.SeekStart); err != nil {
		return 0
	}
	tail, err := io.ReadAll(io.LimitReader(m, oggTail))
	if err != nil {
		return 0
	}
	at := bytes.LastIndex(tail, []byte("OggS"))
	if at < 0 || len(tail) < at+14 {
		return 0
	}
	samples := binary.LittleEndian.Uint64(tail[at+6:])
	if samples > math.MaxInt32*opusRate {
		return 0
	}
	return max(1, int((samples+opusRate/2)/opusRate))
}
