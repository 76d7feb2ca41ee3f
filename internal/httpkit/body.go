package httpkit

import (
	"errors"
	"io"
	"net/http"

	"puntuale"
)

// MaxBody is the largest body a call may have, in bytes.
const MaxBody = 1 << 20

// ReadBody reads the whole body, at most [MaxBody] bytes of it. A body whose length is announced is refused unread.
// Codes: too_large; unreadable when it ends early.
func ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if err := CheckLength(r); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, bodyTooLarge()
	}
	if err != nil {
		return nil, &puntuale.Error{Code: puntuale.CodeUnreadable, Message: "the body could not be read to its end", Err: err}
	}
	return body, nil
}

// CheckLength refuses a body that announces more than [MaxBody] bytes, for calls whose body is not read.
func CheckLength(r *http.Request) error {
	if r.ContentLength > MaxBody {
		return bodyTooLarge()
	}
	return nil
}

func bodyTooLarge() error {
	return &puntuale.Error{Code: puntuale.CodeTooLarge, Message: "the body is larger than 1048576 bytes"}
}
