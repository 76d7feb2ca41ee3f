package replyfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"puntuale"
	"puntuale/internal/outside"
)

// IsGone returns an error with the code gone: the network no longer has the file.
func IsGone(err error) error {
	return &puntuale.Error{Code: puntuale.CodeGone, Reason: puntuale.Because(puntuale.FaultMediaGone), Err: err}
}

// Unavailable returns an error with the code unavailable: the file cannot be fetched now.
func Unavailable(err error) error {
	return &puntuale.Error{Code: puntuale.CodeUnavailable, Reason: puntuale.Because(puntuale.FaultMediaUnavailable), Err: err}
}

// TooLarge returns an error with the code too_large: the file has more bytes than the caller takes.
func TooLarge() error {
	return &puntuale.Error{Code: puntuale.CodeTooLarge, Reason: puntuale.Because(puntuale.FaultMediaTooLarge)}
}

// spool is a fetched file on disk. If the system allows it, the file's name is removed while the file is open, so that
// a crash leaves no file behind.
type spool struct {
	*os.File
	named bool // the file still has its name, because this system cannot remove the name of an open file
	size  int64
	sum   [sha256.Size]byte
}

// fetch sends a request and stores the body of the answer in a folder. "" is the system's folder for temporary files.
// Codes: gone, unavailable, too_large.
func fetch(via http.RoundTripper, r *http.Request, folder string, maxBytes int64) (_ *spool, err error) {
	got, err := via.RoundTrip(r) // the transport follows no redirect
	if err != nil {
		return nil, Unavailable(errors.New("the network's server cannot be reached")) // err is left out, because its text would contain the address
	}
	defer got.Body.Close()
	body := outside.ReplyFile.Body(r.Context(), got.Body)
	defer body.Close()
	switch code := got.StatusCode; {
	case code == http.StatusForbidden, code == http.StatusNotFound, code == http.StatusGone: // the answers after the file was removed or its address expired
		return nil, IsGone(fmt.Errorf("the network's server answered %d", code))
	case code != http.StatusOK:
		return nil, Unavailable(fmt.Errorf("the network's server answered %d", code))
	case got.ContentLength > maxBytes:
		return nil, TooLarge()
	}
	f, err := os.CreateTemp(folder, "reply-*")
	if err != nil {
		return nil, fmt.Errorf("store a reply's file: %w", err)
	}
	s := &spool{File: f, named: os.Remove(f.Name()) != nil}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	sum := sha256.New()
	s.size, err = io.Copy(io.MultiWriter(f, sum), io.LimitReader(body, maxBytes+1))
	switch {
	case err != nil:
		return nil, Unavailable(fmt.Errorf("the file broke off: %w", err))
	case s.size > maxBytes:
		return nil, TooLarge()
	}
	sum.Sum(s.sum[:0])
	if _, err = f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read a reply's file: %w", err)
	}
	return s, nil
}

// Close removes the file.
func (s *spool) Close() error {
	err := s.File.Close()
	if s.named {
		err = errors.Join(err, os.Remove(s.Name())) //nolint:gosec // the name is one that the system made
	}
	return err
}

// Fetch requests a file that is not encrypted, and stores it in a folder. sum is the file's SHA-256 hash, or nil if the
// hash is not known. A file with more than maxBytes is refused. Codes: gone, unavailable, too_large.
func Fetch(via http.RoundTripper, r *http.Request, folder string, sum []byte, maxBytes int64) (*puntuale.ReplyFile, error) {
	s, err := fetch(via, r, folder, maxBytes)
	if err != nil {
		return nil, err
	}
	if len(sum) > 0 && string(sum) != string(s.sum[:]) {
		return nil, errors.Join(Unavailable(errors.New("the file is not the one that was told")), s.Close())
	}
	return &puntuale.ReplyFile{ReadCloser: s, Size: s.size}, nil
}
