package httpkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"time"

	"puntuale/internal/httpkit/admission"
)

// Config configures [Wrap].
type Config struct {
	Logger *slog.Logger
	Now    func() time.Time

	// Proxies are the networks whose forwarding headers [CallerOf] trusts. nil means DefaultProxies.
	Proxies Proxies

	// Observe is called for every answer. route is the pattern that was passed to [Matched], or "". Observe may be nil.
	Observe func(route string, status int, took time.Duration)
}

// Wrap adds to a handler: a request id, security headers, one line in the access log, and recovery. A panic is logged.
// If the answer has not begun, the caller then gets an internal error.
func Wrap(h http.Handler, cfg Config) http.Handler {
	if cfg.Proxies == nil {
		cfg.Proxies = DefaultProxies
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := cfg.Now()
		t, r := begin(w, r, cfg.Proxies)
		secure(w.Header())
		if CallerOf(r).Secure {
			w.Header().Set("Strict-Transport-Security", strictTransport)
		}
		out := &recorder{ResponseWriter: w}
		if r.Body != nil && r.Body != http.NoBody {
			out.body = &noticedBody{ReadCloser: r.Body}
			r.Body = out.body
		}
		defer admission.Linger(w, r)
		defer func() { access(cfg, t, r, out, begun) }()
		defer recovered(cfg.Logger, r, out)
		h.ServeHTTP(out, r)
	})
}

// strictTransport makes browsers use only https, for a year. It does not include subdomains, because subdomains may
// belong to somebody else.
const strictTransport = "max-age=31536000"

// secure sets the headers of an answer that is data. A browser must not run, frame or store it, and must not guess its
// type.
func secure(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
}

func recovered(logger *slog.Logger, r *http.Request, out *recorder) {
	reason := recover()
	if reason == nil {
		return
	}
	if reason == http.ErrAbortHandler { //nolint:errorlint // net/http compares this value in the same way
		panic(reason)
	}
	p := NewProblem(r.Context(), logger, fmt.Errorf("panic: %v\n%s", reason, debug.Stack()))
	if out.status == 0 {
		p.Write(out)
	}
}

// keyLike matches texts that look like a key or the secret in an address. A caller may put a key into the path by mistake,
// or write the path of a secret address wrongly.
var keyLike = regexp.MustCompile(`[pcdh]k_[0-9A-Za-z]+|[0-9A-Za-z_-]{20,}`)

// numberLike finds text that looks like a phone number.
var numberLike = regexp.MustCompile(`\+?[0-9][0-9 ().-]{3,}[0-9]`)

// place returns the log attribute for the requested path. The attribute is the matched pattern, because the path itself
// may contain a phone number. If no pattern matched, the attribute is the path without all texts that look like a phone
// number or a key.
func place(r *http.Request, route string) slog.Attr {
	if route != "" {
		return slog.String("route", route)
	}
	path := r.URL.Path[:min(len(r.URL.Path), 200)]
	return slog.String("path", numberLike.ReplaceAllString(keyLike.ReplaceAllString(path, "[key]"), "[number]"))
}

// access logs one request. It does not log the query, because the query may contain the key.
func access(cfg Config, t *requestRecord, r *http.Request, out *recorder, begun time.Time) {
	took := cfg.Now().Sub(begun)
	t.mu.Lock()
	noted, route, level := t.attrs, t.route, slog.LevelInfo
	if t.quiet {
		level = slog.LevelDebug
	}
	t.mu.Unlock()
	if cfg.Observe != nil {
		cfg.Observe(route, out.status, took)
	}
	if !cfg.Logger.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request_id", t.id),
		slog.String("method", r.Method),
		place(r, route),
		slog.Int("status", out.status),
		slog.Int64("bytes", out.bytes),
		slog.Duration("took", took),
	}
	cfg.Logger.LogAttrs(r.Context(), level, "request", append(attrs, noted...)...)
}

// recorder counts the bytes of an answer, and stores its status.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	body   *noticedBody // nil: the request has no body
}

// noticedBody records whether a request's body was read to its end.
type noticedBody struct {
	io.ReadCloser
	ended bool
}

func (b *noticedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err
}

// WriteHeader makes the connection end after a refusal or a redirect if a part of the body was not read. Otherwise
// net/http would read the rest of the body before it sends the answer. A caller that sends byte by byte could delay the
// answer for half a minute.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
		if status >= http.StatusMultipleChoices && w.body != nil && !w.body.ended {
			w.Header().Set("Connection", "close")
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// A long answer is written in parts. The caller must receive each part except the last within takenWithin, so that a
// caller that reads nothing does not occupy memory for long.
const (
	partBytes   = 64 << 10 // how many bytes one part has at most
	takenWithin = 10 * time.Second
)

// longPast is a deadline that ends a write immediately.
var longPast = time.Unix(1, 0)

func (w *recorder) Write(p []byte) (written int, err error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	for len(p) > partBytes && err == nil {
		var n int
		n, err = w.writePart(p[:partBytes])
		written, p = written+n, p[n:]
	}
	if err == nil {
		var n int
		n, err = w.ResponseWriter.Write(p)
		written += n
	}
	w.bytes += int64(written)
	return written, err
}

func (w *recorder) writePart(p []byte) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), takenWithin)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(longPast) // this fails only if the caller closed the connection
		}
	})()
	return w.ResponseWriter.Write(p)
}

// Unwrap returns the wrapped writer, so that http.ResponseController finds the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
