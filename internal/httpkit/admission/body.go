package admission

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/outside"
)

// MaxBody is the largest body that a call may have, in bytes.
const MaxBody = 1 << 20

// Codes of the faults that this file reports.
const (
	faultCallBodyBrokenOff  puntuale.ReasonCode = "call.body_broken_off"
	faultCallBodyLargerThan puntuale.ReasonCode = "call.body_larger_than"
)

// ReadBody reads a body of at most maxBytes. The memory grant counts the bytes as they arrive. An announced length
// alone uses no memory. If the announced length is too large, ReadBody refuses the body unread. Codes: too_large;
// unreadable if the body ends early; overloaded and rate_limited as [MemoryGrant.Take].
func ReadBody(w http.ResponseWriter, r *http.Request, maxBytes int64, a *MemoryGrant) ([]byte, error) {
	if err := CheckLength(r, maxBytes); err != nil {
		return nil, err
	}
	src := http.MaxBytesReader(w, r.Body, maxBytes)
	body, err := outside.ReadAll(src, a.Take)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, bodyTooLarge(maxBytes)
	}
	if err != nil && puntuale.CodeOf(err) == puntuale.CodeInternal {
		return nil, brokenOff(err)
	}
	if err != nil {
		return nil, err
	}
	return body, nil
}

// brokenOff returns the error for a body that ended early, because of the caller or because the server stops.
func brokenOff(err error) error {
	if errors.Is(err, puntuale.ErrStopping) {
		return puntuale.ErrStopping
	}
	return &puntuale.Error{Code: puntuale.CodeUnreadable, Reason: puntuale.Because(faultCallBodyBrokenOff), Err: err}
}

// CheckLength refuses a body with an announced length above maxBytes. Codes: too_large.
func CheckLength(r *http.Request, maxBytes int64) error {
	if r.ContentLength > maxBytes {
		return bodyTooLarge(maxBytes)
	}
	return nil
}

func bodyTooLarge(maxBytes int64) error {
	return &puntuale.Error{Code: puntuale.CodeTooLarge, Reason: puntuale.Because(faultCallBodyLargerThan, strconv.FormatInt(maxBytes, 10))}
}

// ReadWithin sets a time limit for reading a request's body, for callers whose key is not known yet. The caller of
// ReadWithin must call release after reading the body.
func ReadWithin(w http.ResponseWriter, r *http.Request, d time.Duration) (release func()) {
	ctx, cancel := context.WithTimeout(r.Context(), d)
	out := http.NewResponseController(w)
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			_ = out.SetReadDeadline(longAgo) // this fails only if the caller closed the connection
		}
	})
	return func() { stop(); cancel() }
}

const (
	readOn   = 30 * time.Second // the longest time between two pieces of an upload
	readAll  = 30 * time.Minute // the longest time of a whole upload
	answerOn = 10 * time.Minute // the answer must be written within this time after the last piece
)

// ReadOn returns the body of an upload. Each piece must arrive within 30 seconds after the piece before it, and the
// whole upload within 30 minutes. The answer must be written within 10 minutes after the last piece.
func ReadOn(w http.ResponseWriter, r *http.Request, now func() time.Time) io.Reader {
	return &moving{r: r.Body, out: http.NewResponseController(w), now: now, end: now().Add(readAll)}
}

type moving struct {
	r   io.Reader
	out *http.ResponseController
	now func() time.Time
	end time.Time
}

func (m *moving) Read(p []byte) (int, error) {
	now := m.now()
	deadline := now.Add(readOn)
	if m.end.Before(deadline) {
		deadline = m.end
	}
	_ = m.out.SetReadDeadline(deadline) // if this fails, the server's own deadline applies
	_ = m.out.SetWriteDeadline(now.Add(answerOn))
	n, err := m.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = brokenOff(err)
	}
	return n, err
}
