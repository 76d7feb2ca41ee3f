//go:build !nosocket

package socket

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
)

// Limits for previews. A phone shows a thumbnail until it has loaded the image. For a voice note it shows the length.
const (
	thumbnailSide = 96
	oggLook       = 512      // bytes at the start of a file, which contain the codec's name
	oggTail       = 64 << 10 // bytes at the end of a file; longer than any Ogg page
	opusRate      = 48_000   // the granule position of Ogg pages grows by this number in a second, at any sampling rate
)

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
