package admission

import (
	"context"
	"io"
	"net/http"
	"time"
)

// The largest part of a refused body that is read and dropped, and the longest time for it.
const (
	lingerBytes = 32 << 20
	lingerTime  = 2 * time.Second
)

// longAgo is a deadline that ends a read immediately.
var longAgo = time.Unix(1, 0)

// Linger is called after a refusal. For a bounded time it reads the rest of the body that the caller still sends. A
// usual client reads the answer only after it has sent everything. If the server closed the connection while the client
// sends, the client would see a broken connection and no answer. A client that reads while it sends already has the
// whole answer.
func Linger(w http.ResponseWriter, r *http.Request) {
	if w.Header().Get("Connection") != "close" || r.ContentLength == 0 || r.Header.Get("Expect") != "" {
		return // the body was read, there is no body, or the caller asked first (header Expect) and sends no body after a refusal
	}
	out := http.NewResponseController(w)
	if out.Flush() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), lingerTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = out.SetReadDeadline(longAgo) })() // this fails only if the caller closed the connection
	_, _ = io.CopyN(io.Discard, r.Body, lingerBytes)
}
