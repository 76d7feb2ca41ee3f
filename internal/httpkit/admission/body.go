package admission

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"puntuale"
)

// MaxBody is the largest body a call may have, in bytes.
const MaxBody = 1 << 20

// What a body takes.
const (
	firstBytes = 512 // at first; doubled whenever more come
	workTimes  = 4   // as much memory as its length, once it is read and worked on
)

// Faults of this file.
const (
	faultCallBodyBrokenOff  puntuale.ReasonCode = "call.body_broken_off"
	faultCallBodyLargerThan puntuale.ReasonCode = "call.body_larger_than"
)

// ReadBody reads the whole body, at most so many bytes of it. It counts the bytes as they arrive, so a length that is only announced takes
// no memory. A body whose length is announced as too large is refused unread. Codes: too_large; unreadable when it ends early; overloaded
// and rate_limited as [MemoryGrant.Take].
func ReadBody(w http.ResponseWriter, r *http.Request, most int64, a *MemoryGrant) ([]byte, error) {
	if err := CheckLength(r, most); err != nil {
		return nil, err
	}
	src := http.MaxBytesReader(w, r.Body, most)
	var body []byte
	for {
		if len(body) == cap(body) {
			more := max(firstBytes, cap(body))
			if err := a.Take(int64(more)); err != nil {
				return nil, err
			}
			body = slices.Grow(body, more)
		}
		n, err := src.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, a.Take(int64(len(body)) * (workTimes - 1))
		}
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return nil, bodyTooLarge(most)
		}
		if err != nil {
			return nil, &puntuale.Error{Code: puntuale.CodeUnreadable, Reason: puntuale.Because(faultCallBodyBrokenOff), Err: err}
		}
	}
}

// CheckLength refuses a body that announces more than so many bytes.
func CheckLength(r *http.Request, most int64) error {
	if r.ContentLength > most {
		return bodyTooLarge(most)
	}
	return nil
}

func bodyTooLarge(most int64) error {
	return &puntuale.Error{Code: puntuale.CodeTooLarge, Reason: puntuale.Because(faultCallBodyLargerThan, strconv.FormatInt(most, 10))}
}

// ReadWithin ends the reading of a request's body after a time, for callers that nobody knows. Call release once it is read.
func ReadWithin(w http.ResponseWriter, r *http.Request, d time.Duration) (release func()) {
	ctx, cancel := context.WithTimeout(r.Context(), d)
	out := http.NewResponseController(w)
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			_ = out.SetReadDeadline(longAgo) // fails only when the caller is gone
		}
	})
	return func() { stop(); cancel() }
}

const (
	readOn   = 30 * time.Second // an upload may stand still for so long
	readAll  = 30 * time.Minute // and take so long in all
	answerOn = 10 * time.Minute // until its answer is written, after its end
)

// ReadOn returns the body of an upload. It may take long, but not stand still: each piece must come within 30 seconds, and
// all of it within 30 minutes. The answer may be written until 10 minutes after the last piece.
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
	_ = m.out.SetReadDeadline(deadline) // without it the server's own holds
	_ = m.out.SetWriteDeadline(now.Add(answerOn))
	n, err := m.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &puntuale.Error{Code: puntuale.CodeUnreadable, Reason: puntuale.Because(faultCallBodyBrokenOff), Err: err}
	}
	return n, err
}
