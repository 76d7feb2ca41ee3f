package media

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/semaphore"
)

const (
	maxRedirects = 3
	chunk        = 64 << 10
)

// download follows redirects from the address to a file, and stores the file. The time limit does not include the wait
// for slots.
func (f *Fetcher) download(m *file, u *url.URL) error {
	leave, err := f.clients.Enter(m.ctx, semaphore.Holder{Key: m.key.client, Slots: f.cfg.PerClient})
	if err != nil {
		return err
	}
	defer leave()
	left := f.cfg.Total
	for hops := 0; ; hops++ {
		if refusal := forbidden(u, f.cfg.Ports); refusal != "" {
			return final(puntuale.ReasonFileAddress, refusal, nil)
		}
		if hops > maxRedirects {
			return final(puntuale.ReasonFileAddress, reasonRedirects, nil, strconv.Itoa(maxRedirects))
		}
		next, took, err := f.hop(m, u, left)
		if err != nil || next == nil {
			return err
		}
		u, left = next, left-took
	}
}

// hop makes one request. The argument left is the time limit. hop returns the target of a redirect, or nil if the
// answer is the file.
func (f *Fetcher) hop(m *file, u *url.URL, left time.Duration) (next *url.URL, took time.Duration, err error) {
	client := semaphore.Holder{Key: m.key.client}
	leaveHost, err := f.hosts.Enter(m.ctx, semaphore.Holder{Key: strings.ToLower(u.Hostname()), Slots: f.cfg.PerHost}, client)
	if err != nil {
		return nil, 0, err
	}
	defer leaveHost()
	leave, err := f.all.Enter(m.ctx, client)
	if err != nil {
		return nil, 0, err
	}
	defer leave()

	begun := f.cfg.Clock.Now()
	timed, stop := context.WithTimeoutCause(m.ctx, left, errTooLong)
	defer stop()
	ctx, cancel := context.WithCancelCause(timed)
	defer cancel(nil)
	next, err = f.request(ctx, cancel, m, u)
	if err != nil {
		err = asSendError(ctx, err) // the cause is in the context
	}
	return next, f.cfg.Clock.Now().Sub(begun), err
}

// request sends one request to the host. It uses the transport directly, so redirects are not followed automatically,
// and no cookie, credential or referrer is sent.
func (f *Fetcher) request(ctx context.Context, cancel context.CancelCauseFunc, m *file, u *url.URL) (next *url.URL, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, final(puntuale.ReasonFileAddress, reasonNoAddress, err)
	}
	request.Header.Set("User-Agent", "Puntuale")
	request.Header.Set("Accept", "*/*")
	request.Header.Set("Accept-Encoding", "identity")
	response, err := f.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	switch code := response.StatusCode; {
	case code == http.StatusOK || code == http.StatusNonAuthoritativeInfo:
		return nil, f.body(ctx, cancel, m, u, response)
	case isRedirect(code):
		location := response.Header.Get("Location")
		next, err := u.Parse(location)
		if err != nil || location == "" {
			return nil, final(puntuale.ReasonFileAddress, reasonNoRedirect, err)
		}
		return next, nil
	default:
		return nil, refusedStatus(code)
	}
}

func isRedirect(code int) bool {
	switch code {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// refusedStatus returns the error for a status that is neither a file nor a redirect. Some of these errors are
// temporary.
func refusedStatus(code int) error {
	status := strconv.Itoa(code)
	switch {
	case code == http.StatusNotFound || code == http.StatusGone:
		return final(reasonMissing, reasonHTTP, nil, status)
	case code >= 500 || code == http.StatusRequestTimeout || code == http.StatusTooEarly || code == http.StatusTooManyRequests:
		return transient(reasonUnreachable, reasonHTTP, nil, status)
	case code >= 400:
		return final(reasonRefused, reasonHTTP, nil, status)
	default:
		return final(reasonKind, reasonHTTP, nil, status)
	}
}

// body stores an answer's body while it arrives, and finds out the file's media type.
func (f *Fetcher) body(ctx context.Context, cancel context.CancelCauseFunc, m *file, u *url.URL, response *http.Response) error {
	if response.ContentLength > m.key.limit {
		return tooBig(m.key.limit)
	}
	if coding := response.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return final(reasonKind, reasonCompressed, nil)
	}
	if err := f.create(m); err != nil {
		return transient(reasonLater, reasonNotStored, err)
	}
	var received atomic.Int64
	f.wg.Go(func() { f.watch(ctx, cancel, &received) })
	first, err := f.store(ctx, m, response.Body, &received)
	if err != nil {
		return err
	}
	if m.size == 0 {
		return final(reasonKind, reasonEmpty, nil)
	}
	m.kind = kindOf(response.Header.Get("Content-Type"), u, m.key.url, first)
	if isPage(m.kind) {
		return final(reasonKind, reasonPage, nil, m.kind)
	}
	return nil
}

// store copies the body to the file, and returns the first bytes. The limit applies to the bytes that arrive, whatever
// size the host announced.
func (f *Fetcher) store(ctx context.Context, m *file, body io.Reader, received *atomic.Int64) (first []byte, err error) {
	buffer := make([]byte, chunk)
	for {
		n, err := body.Read(buffer)
		if n > 0 {
			received.Add(int64(n))
			if m.size+int64(n) > m.key.limit {
				return nil, tooBig(m.key.limit)
			}
			if err := f.grow(m, int64(n)); err != nil {
				return nil, err
			}
			if _, err := m.data.Write(buffer[:n]); err != nil {
				return nil, transient(reasonLater, reasonNotStored, err)
			}
			if len(first) < sniffed {
				first = append(first, buffer[:min(n, sniffed-len(first))]...)
			}
			m.size += int64(n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return first, nil
		case errors.Is(err, io.ErrUnexpectedEOF) && ctx.Err() == nil:
			return nil, transient(reasonBroken, reasonClosedEarly, err)
		case err != nil:
			return nil, err
		}
	}
}

// watch ends a fetch that is too slow. The rate is measured separately in each interval, so a fast beginning does not
// compensate for a slow rest.
func (f *Fetcher) watch(ctx context.Context, cancel context.CancelCauseFunc, received *atomic.Int64) {
	least := int64(float64(f.cfg.Rate) * f.cfg.Grace.Seconds())
	for f.cfg.Clock.Sleep(ctx, f.cfg.Grace) == nil {
		if received.Swap(0) < least {
			cancel(errTooSlow)
			return
		}
	}
}
