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

// Limits for previews. A phone shows a small picture until it has loaded the image. For a voice note it shows the length.
const (
	thumbnailSide  = 96
	thumbnailMost  = 24_000_000 // pixels of an image; a larger one is not decoded
	thumbnailLevel = 60         // JPEG quality, 1 to 100
	oggLook        = 512        // bytes from the start of a file that name its codec
	oggTail        = 64 << 10   // bytes at the end of a file; an Ogg page is shorter
	opusRate       = 48_000     // ticks a second of an Ogg page's clock, at any sampling rate
)

// thumbnailOf makes a small picture of an image, and returns the image's size in pixels. The thumbnail is nil if the
// image cannot be decoded or is too large.
func thumbnailOf(m io.ReadSeeker) (thumbnail []byte, width, height int) {
	found, _, err := image.DecodeConfig(m)
	if err != nil {
		return nil, 0, 0
	}
	if found.Width <= 0 || found.Height <= 0 || found.Width*found.Height > thumbnailMost {
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

// shrink takes one point of the image for each point of the small picture. That is enough, because phones blur it.
func shrink(whole image.Image) image.Image {
	b := whole.Bounds()
	scale := max(1, math.Max(float64(b.Dx()), float64(b.Dy()))/thumbnailSide)
	small := image.NewRGBA(image.Rect(0, 0, max(1, int(float64(b.Dx())/scale)), max(1, int(float64(b.Dy())/scale))))
	for y := range small.Rect.Dy() {
		for x := range small.Rect.Dx() {
			r, g, bl, a := whole.At(b.Min.X+int(float64(x)*scale), b.Min.Y+int(float64(y)*scale)).RGBA()
			white := 0xffff - a // how much of the white background shows
			small.SetRGBA(x, y, color.RGBA{uint8((r + white) >> 8), uint8((g + white) >> 8), uint8((bl + white) >> 8), 0xff})
		}
	}
	return small
}

// opusSeconds is the length of an Ogg file with Opus in seconds, from the clock of its last page; 0 where it is
// unknown.
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
