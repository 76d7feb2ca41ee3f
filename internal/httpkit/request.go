package httpkit

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"regexp"
	"sync"
)

// RequestIDHeader is the header with the request's id, both in requests and in answers.
const RequestIDHeader = "X-Request-Id"

// saneID is the allowed form of an id that the caller chooses. If the caller's id has another form, the server makes an
// id.
var saneID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// requestRecord contains data about a request while the request is served.
type requestRecord struct {
	id      string
	proxies Proxies

	mu    sync.Mutex
	attrs []slog.Attr
	route string
	quiet bool
}

type recordKey struct{}

// RequestID returns the id of the request that ctx belongs to, or "" if ctx belongs to none.
func RequestID(ctx context.Context) string {
	if t, ok := ctx.Value(recordKey{}).(*requestRecord); ok {
		return t.id
	}
	return ""
}

// Annotate adds attributes to the request's line in the access log. The attributes must not contain phone numbers,
// texts or keys.
func Annotate(ctx context.Context, attrs ...slog.Attr) {
	if t, ok := ctx.Value(recordKey{}).(*requestRecord); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.attrs = append(t.attrs, attrs...)
	}
}

// Matched stores the pattern that a request matched. The metrics count requests by pattern.
func Matched(ctx context.Context, pattern string) {
	if t, ok := ctx.Value(recordKey{}).(*requestRecord); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.route = pattern
	}
}

// Quieten lowers the request's line in the access log to level debug. It is for refusals that may be very many, because
// a log line for each would cost more than the refusal itself.
func Quieten(ctx context.Context) {
	if t, ok := ctx.Value(recordKey{}).(*requestRecord); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.quiet = true
	}
}

// begin gives the request an id and a record, and sends the id to the caller in a header.
func begin(w http.ResponseWriter, r *http.Request, proxies Proxies) (*requestRecord, *http.Request) {
	t := &requestRecord{id: r.Header.Get(RequestIDHeader), proxies: proxies}
	if !saneID.MatchString(t.id) {
		t.id = rand.Text()
	}
	w.Header().Set(RequestIDHeader, t.id)
	return t, r.WithContext(context.WithValue(r.Context(), recordKey{}, t))
}
