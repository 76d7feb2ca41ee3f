package admission

import (
	"context"
	"io"
	"net/http"
	"time"
)

// How much of a refused body is read and dropped, and for how long.
const (
	lingerBytes = 32 << 20
	lingerTime  = 2 * time.Second
)

// longAgo is a deadline that ends a read at once.
var longAgo = time.Unix(1, 0)

// After a refusal, Linger reads for a bounded time what the caller still sends of the body. A usual client looks for an
// answer only after it has sent everything. If the connection were closed earlier, the client would see a broken
// connection and no answer. A client that looks earlier already has the whole answer.
func Linger(w http.ResponseWriter, r *http.Request) {
	if w.Header().Get("Connection") != "close" || r.ContentLength == 0 || r.Header.Get("Expect") != "" {
		return // the body was read, or the caller asked first whether to send it
	}
	out := http.NewResponseController(w)
	if out.Flush() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), lingerTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = out.SetReadDeadline(longAgo) })() // this fails only if the caller has hung up
	_, _ = io.CopyN(io.Discard, r.Body, lingerBytes)
}
