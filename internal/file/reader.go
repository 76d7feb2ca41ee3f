package file

import (
	"errors"
	"fmt"
	"io"

	"puntuale"
)

// Reader reads a stored file, one part at a time. It is not safe for concurrent use.
type Reader struct {
	size, at int64
	read     func(n int) ([]byte, error)
	part     []byte // the part that was read last
	n        int
}

// NewReader returns a reader of a file. The function read returns the part with a number.
func NewReader(size int64, read func(n int) ([]byte, error)) *Reader {
	return &Reader{size: size, read: read, n: -1}
}

var errParts = errors.New("the parts of a file do not fit its size")

func (r *Reader) Read(p []byte) (int, error) {
	if err := r.Load(); err != nil {
		return 0, err
	}
	n := copy(p, r.part[r.at%puntuale.FilePartBytes:])
	r.at += int64(n)
	return n, nil
}

// Load reads the part with the next byte. After an error nothing was read, so an answer can still say what is wrong. At the
// end the error is io.EOF.
func (r *Reader) Load() error {
	if r.at >= r.size {
		return io.EOF
	}
	if n := int(r.at / puntuale.FilePartBytes); n != r.n {
		part, err := r.read(n)
		if err != nil {
			return err
		}
		if int64(len(part)) != min(puntuale.FilePartBytes, r.size-int64(n)*puntuale.FilePartBytes) {
			return errParts
		}
		r.part, r.n = part, n
	}
	return nil
}

// Seek changes the place of the next Read; see [io.Seeker].
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d", offset)
	}
	r.at = offset
	return offset, nil
}

// Close does nothing.
func (*Reader) Close() error { return nil }
