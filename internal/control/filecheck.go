package control

import (
	"context"
	"strings"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
)

// FileFacts describes a file at an address.
type FileFacts struct {
	Kind string // the media type, such as "image/jpeg"
	Size int64  // the size in bytes
}

// Limits of tries to fetch a file. A client may make fileTries tries in each fileSpan. Each try ends after fileWithin.
const (
	fileTries  = 20
	fileSpan   = time.Minute
	fileWithin = 20 * time.Second
)

// fileChecks fetches files to find out whether they can be sent, and counts the tries. Each process counts only its own
// tries. Therefore, two processes allow twice as many tries, which is acceptable.
type fileChecks struct {
	source puntuale.MediaSource // nil: files cannot be tried

	mu      sync.Mutex
	windows map[puntuale.ClientID]fileWindow
}

type fileWindow struct {
	begun time.Time
	tries int
}

// CanTryFiles reports whether this process can fetch files.
func (c *Client) CanTryFiles() bool { return c.control.files.source != nil }

// Codes of the faults that this file reports.
const (
	faultMediaNotFetched puntuale.ReasonCode = "media.not_fetched"
	faultMediaTooMany    puntuale.ReasonCode = "media.too_many"
)

// TryFile fetches the file at an address in the same way as for a message, and returns the file's type and size. It
// fetches only from public addresses. Codes: invalid; rate_limited; unavailable if this process cannot fetch files. If
// the file cannot be sent, the error is a [*puntuale.SendError].
func (c *Client) TryFile(ctx context.Context, address string) (FileFacts, error) {
	address = strings.TrimSpace(address)
	var f request.Faults
	f.Text("body.address", address, puntuale.MaxURL)
	if err := f.Err(); err != nil {
		return FileFacts{}, err
	}
	if c.control.files.source == nil {
		return FileFacts{}, &puntuale.Error{Code: puntuale.CodeUnavailable, Reason: puntuale.Because(faultMediaNotFetched)}
	}
	if err := c.control.files.enter(c.account.ID, c.control.clock.Now()); err != nil {
		return FileFacts{}, err
	}
	puntuale.AdmissionDeadlineOf(ctx).LeaveSeat()
	ctx, cancel := context.WithTimeout(ctx, fileWithin)
	defer cancel()
	m, err := c.control.files.source.Fetch(ctx, puntuale.MediaRequest{Client: c.account.ID, URL: address})
	if err != nil {
		return FileFacts{}, err
	}
	defer m.Close()
	return FileFacts{Kind: m.ContentType, Size: m.Size}, nil
}

// enter counts a try, or refuses it if the client made too many tries.
func (w *fileChecks) enter(client puntuale.ClientID, now time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, old := range w.windows {
		if now.Sub(old.begun) >= fileSpan {
			delete(w.windows, id)
		}
	}
	if w.windows == nil {
		w.windows = map[puntuale.ClientID]fileWindow{}
	}
	own, known := w.windows[client]
	if !known {
		own.begun = now
	}
	if own.tries >= fileTries {
		return &puntuale.Error{Code: puntuale.CodeRateLimited, Reason: puntuale.Because(faultMediaTooMany), RetryAfter: own.begun.Add(fileSpan).Sub(now)}
	}
	own.tries++
	w.windows[client] = own
	return nil
}
