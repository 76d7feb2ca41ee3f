package httpkit

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
)

// PackedEnding ends the names of files that are compressed with gzip, so that the program that contains them is smaller.
const PackedEnding = ".gz"

// ReadPacked returns the content of a file that may be compressed. name is without [PackedEnding].
func ReadPacked(files fs.FS, name string) ([]byte, error) {
	content, err := fs.ReadFile(files, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return content, err //nolint:wrapcheck // the error names the file
	}
	packed, missing := fs.ReadFile(files, name+PackedEnding)
	if missing != nil {
		return nil, err //nolint:wrapcheck // the error names the file
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err //nolint:wrapcheck // callers say what they read
	}
	return io.ReadAll(z)
}
